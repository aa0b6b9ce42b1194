//! What happens after a fault of our own: a module built with the feature `faults` panics, or gets
//! no memory, where the environment says. It needs TEST_NGINX_LOAD_MODULES to name that build.
#![cfg(feature = "faults")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use support::{answer, Backend, Nginx, Setup, FAILURES};

const FAULT: &str = "COMBINED_UPSTREAMS_FAULT";

/// An upstrand that fails over, has a deadline, a zone and an interception, and is read by
/// variables of all kinds.
fn setup(u1: &Backend, u2: &Backend) -> Setup {
    Setup::new()
        .upstream("u1", u1)
        .upstream("u2", u2)
        .http(&format!(
            "upstream c {{ add_upstream u1; combine_server_singlets _s_; extend_single_peers; }}\n\
             map $upstrand_s $m {{ u1 one; default two; }}\n\
             upstrand s {{ zone z 64k; upstream u1 blacklist_interval=1ms; upstream u2;\n\
             order per_request; next_upstream_timeout 300ms; intercept_statuses 404 /f; {FAILURES} }}\n"
        ))
        .server(
            "location / { dynamic_upstrand $d $arg_d s; proxy_set_header X-M $m;\n\
             add_header X-Path $upstrand_path always; proxy_pass http://$d; }\n\
             location /f { return 200 'intercepted'; }\n\
             location /alive { return 200 'alive'; }\n\
             location = /s { upstrand_status; }\nlocation /api/ { upstrand_api; }\n",
        )
}

fn start(u1: &Backend, u2: &Backend, fault: &str) -> Nginx {
    setup(u1, u2)
        .main(&format!("env {FAULT}={fault};"))
        .allow("panicked at")
        .start()
}

/// The request is over, in one way or the other, and the same worker serves the next one.
fn survives(nginx: &Nginx, path: &str) -> Option<u16> {
    let workers = nginx.workers();
    let status = support::client::get(nginx.port(), path)
        .ok()
        .map(|r| r.status);
    assert_eq!(nginx.get("/alive").text(), "alive");
    assert_eq!(nginx.workers(), workers, "the worker died");
    status
}

/// All faults in one test: those of the configuration are set in this process's environment.
#[test]
fn faults() {
    panics_in_a_request();
    panics_in_a_status();
    failed_allocations();
    failed_allocations_of_a_status();
    panics_in_the_configuration();
}

fn panics_in_a_request() {
    for (fault, status) in [
        ("variable", Some(500)),
        ("peer", Some(500)),
        ("filter", Some(500)),
        ("reentry", Some(500)),
        // What the client gets is not made there.
        ("variables", Some(200)),
    ] {
        let (u1, u2) = (
            Backend::new("u1", answer(503)),
            Backend::new("u2", answer(200)),
        );
        let nginx = start(&u1, &u2, fault);
        assert_eq!(survives(&nginx, "/"), status, "{fault}");
        let lines = nginx.logged("ngx_http_combined_upstreams_module panicked at ");
        assert!(lines >= 1, "{fault}: {lines} lines");
        if fault != "variables" {
            assert_eq!(lines, 1, "{fault}: more than a line for one request");
        }
    }

    let (u1, u2) = (
        Backend::new("u1", answer(404)),
        Backend::new("u2", answer(200)),
    );
    let nginx = start(&u1, &u2, "intercept");
    assert_eq!(survives(&nginx, "/"), Some(500));

    // Without the deadline's cut the upstream's own answer comes, late.
    let (u1, u2) = (
        Backend::new("u1", answer(200).after(600)),
        Backend::new("u2", answer(200)),
    );
    let nginx = start(&u1, &u2, "deadline");
    assert_eq!(survives(&nginx, "/"), Some(200));
}

/// Every allocation in turn: the configuration is refused, or the request fails, or nothing shows;
/// nothing crashes, and the next request is served.
fn failed_allocations() {
    let (mut refused, mut failed) = (0, 0);
    for n in 1..150 {
        let (u1, u2) = (
            Backend::new("u1", answer(503)),
            Backend::new("u2", answer(200)),
        );
        std::env::set_var(FAULT, format!("alloc:{n}"));
        let (accepted, text) = setup(&u1, &u2).check();
        std::env::remove_var(FAULT);
        if !accepted {
            assert!(!text.contains("signal"), "alloc:{n}: {text}");
            refused += 1;
            continue;
        }
        let nginx = start(&u1, &u2, &format!("alloc:{n}"));
        for path in ["/", "/?d=nope", "/?d=S"] {
            let status = survives(&nginx, path);
            if !matches!((path, status), ("/?d=nope", Some(500)) | (_, Some(200))) {
                failed += 1;
            }
        }
    }
    assert!(refused > 10, "{refused} configurations refused");
    assert!(failed > 0, "no allocation of a request was hit");
}

/// Requests of state, and for changes.
const REQUESTS: [(&str, &str); 7] = [
    ("GET", "/s"),
    ("GET", "/s?format=prometheus"),
    ("GET", "/s?format=html"),
    ("GET", "/api/upstrands"),
    ("GET", "/api/upstrands/s/explain"),
    ("PATCH", "/api/upstrands/s/upstreams/u1"),
    ("PATCH", "/api/upstrands/s/upstreams/nope"),
];

/// The answer's status, after which the same worker serves the next request.
fn ask(nginx: &Nginx, (method, path): (&str, &str)) -> Option<u16> {
    let (port, workers) = (nginx.port(), nginx.workers());
    let json = "Content-Type: application/json\r\n";
    let body: &[u8] = match method {
        "PATCH" => b"{\"drain\":true}",
        _ => b"",
    };
    let response = support::client::request(port, method, path, json, body).ok();
    assert_eq!(nginx.get("/alive").text(), "alive");
    assert_eq!(nginx.workers(), workers, "the worker died");
    let response = response?;
    let is_json = response.header("Content-Type") == Some("application/json");
    if is_json {
        let value: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
        let said = &value["error"]["status"];
        assert!(said.is_null() || *said == response.status, "{value}");
    }
    Some(response.status)
}

fn panics_in_a_status() {
    for (fault, hit) in [
        ("status", &REQUESTS[..3]),
        ("api", &REQUESTS[3..]),
        ("change", &REQUESTS[5..6]),
    ] {
        let (u1, u2) = (
            Backend::new("u1", answer(200)),
            Backend::new("u2", answer(200)),
        );
        let nginx = start(&u1, &u2, fault);
        for request in REQUESTS {
            let status = match (hit.contains(&request), request.1.ends_with("nope")) {
                (true, _) => 500,
                (false, true) => 404,
                (false, false) => 200,
            };
            assert_eq!(ask(&nginx, request), Some(status), "{fault}: {request:?}");
        }
        let lines = nginx.logged("ngx_http_combined_upstreams_module panicked at ");
        assert_eq!(lines, hit.len(), "{fault}: a line for each request");
        let text = nginx.get("/").text();
        assert_eq!(text, if fault == "status" { "u2" } else { "u1" }, "{fault}");
    }
}

/// Every allocation of these requests in turn: that request fails, no other one does.
fn failed_allocations_of_a_status() {
    for request in REQUESTS {
        let mut failed = 0;
        for n in 1..150 {
            let (u1, u2) = (
                Backend::new("u1", answer(200)),
                Backend::new("u2", answer(200)),
            );
            std::env::set_var(FAULT, format!("alloc:{n}"));
            let (accepted, _) = setup(&u1, &u2).check();
            std::env::remove_var(FAULT);
            if !accepted {
                continue;
            }
            let nginx = start(&u1, &u2, &format!("alloc:{n}"));
            let good = if request.1.ends_with("nope") {
                404
            } else {
                200
            };
            let first = ask(&nginx, request);
            assert!(
                [Some(500), Some(good)].contains(&first),
                "{n}: {request:?} {first:?}"
            );
            failed += u32::from(first == Some(500));
            if first == Some(good) {
                // It takes fewer.
                break;
            }
            // A change may have been made before its answer found no memory.
            assert_eq!(ask(&nginx, request), Some(good), "{n}: {request:?} again");
        }
        assert!(failed > 0, "{request:?}: no allocation was hit");
    }
}

fn panics_in_the_configuration() {
    for fault in ["conf", "zone"] {
        let (u1, u2) = (
            Backend::new("u1", answer(503)),
            Backend::new("u2", answer(200)),
        );
        std::env::set_var(FAULT, fault);
        let (accepted, text) = setup(&u1, &u2).check();
        std::env::remove_var(FAULT);
        assert!(!accepted, "{fault}: accepted");
        assert!(text.contains("panicked at"), "{fault}: {text}");
    }
}
