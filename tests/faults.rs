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

use support::{answer, eventually, sleep, Backend, Nginx, Setup, FAILURES};

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
    failed_allocations_of_a_configuration();
    failed_allocations_of_a_reload();
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

/// What takes memory in a configuration, beside setup()'s: singlets of all kinds, merged servers,
/// lone peers, names that no URL can have, regexes, and more upstreams than a small sort takes.
fn rich(u1: &Backend, u2: &Backend) -> Setup {
    let many: String = (0..30)
        .map(|n| format!("upstream many{n} {{ server <u1>; }}\n"))
        .collect();
    let lines: String = (0..30)
        .map(|n| format!("upstream many{n} tier={};\n", 30 - n))
        .collect();
    setup(u1, u2).http(&format!(
        "{many}upstream h {{ zone h 64k; server <u1>; server <u2> backup; keepalive 4;\n\
         combine_server_singlets _x_ 3; combine_server_singlets _n_ byname nobackup; }}\n\
         upstream l {{ least_conn; server <u1>; server unix:/nowhere; combine_server_singlets byname; }}\n\
         upstream g {{ add_upstream h backup; add_upstream u1 weight=2; server <u2>; extend_single_peers; }}\n\
         upstrand t {{ {lines} upstream ~^h_x_; upstream ~^nothing; upstream ~^l; zone z; zone z2 64k;\n\
         next_upstream_statuses 5xx 404; intercept_statuses 500-503 $uri; intercept_statuses 404 @f; }}\n"
    ).replace("zone z; zone z2 64k;", "zone z2 256k;"))
    .server("location /t { dynamic_upstrand $e $arg_e T; dynamic_upstrand $f t;\n\
             location /t/t { dynamic_upstrand $g s; proxy_pass http://$e; } }\n\
             location /other { proxy_pass http://<u1>; }\n")
}

/// The configuration with the fault in the master's environment, as nginx -t sees it.
fn check(setup: &Setup, fault: &str) -> (bool, String) {
    std::env::set_var(FAULT, fault);
    let (accepted, text) = setup.check();
    std::env::remove_var(FAULT);
    assert!(!text.contains("memory allocation"), "{fault}: {text}");
    (accepted, text)
}

/// Every allocation of a configuration in turn, alone and with all that follow it, is refused or does
/// without; nothing crashes.
fn failed_allocations_of_a_configuration() {
    let (u1, u2) = (
        Backend::new("u1", answer(503)),
        Backend::new("u2", answer(200)),
    );
    let setup = rich(&u1, &u2);
    let (accepted, text) = setup.check();
    assert!(accepted, "{text}");
    let (mut refused, mut n) = (0, 0);
    // From its last allocation on all is well even if none is left.
    while !check(&setup, &format!("allocs:{}", n + 1)).0 {
        n += 1;
        assert!(n < 5000, "the configuration is never read");
        let (accepted, text) = check(&setup, &format!("alloc:{n}"));
        if !accepted {
            assert!(text.contains("test failed"), "alloc:{n}: {text}");
            refused += 1;
        }
    }
    println!("{refused} of {n} allocations refuse the configuration");
    assert!(refused > 200, "{refused} configurations refused");
}

/// The same of a reload: what runs goes on, with all that its zones know.
fn failed_allocations_of_a_reload() {
    let (u1, u2) = (
        Backend::new("u1", answer(503)),
        Backend::new("u2", answer(200)),
    );
    let setup = rich(&u1, &u2);
    let first = (1..5000).find(|n| check(&setup, &format!("allocs:{n}")).0);
    let first = first.expect("the configuration is never read");
    let mut kept = 0;
    for n in (first..first * 2).step_by(23) {
        std::env::set_var(FAULT, format!("alloc:{n}"));
        let nginx = rich(&u1, &u2).allow("malloc() failed").start();
        std::env::remove_var(FAULT);
        let workers = nginx.workers();
        nginx.signal(libc::SIGHUP);
        eventually("a reload", || nginx.logged("reconfiguring") > 0);
        sleep(100);
        assert_eq!(nginx.get("/alive").text(), "alive", "alloc:{n}");
        kept += u32::from(nginx.workers() == workers);
    }
    assert!(kept > 5, "{kept} reloads were refused");
}

/// The number of the first allocation after setup()'s configuration is read.
fn after_the_configuration() -> usize {
    let (u1, u2) = (
        Backend::new("u1", answer(200)),
        Backend::new("u2", answer(200)),
    );
    let setup = setup(&u1, &u2);
    let is_read = |n: &usize| check(&setup, &format!("allocs:{n}")).0;
    let first = (1..5000).find(is_read);
    first.expect("the configuration is never read")
}

/// Every allocation of requests in turn: the request fails, or nothing shows; nothing crashes, and
/// the next request is served.
fn failed_allocations() {
    let (u1, u2) = (
        Backend::new("u1", answer(503)),
        Backend::new("u2", answer(200)),
    );
    let first = after_the_configuration();
    let mut failed = 0;
    for n in first..first + 60 {
        let nginx = start(&u1, &u2, &format!("alloc:{n}"));
        for path in ["/", "/?d=nope", "/?d=S"] {
            let status = survives(&nginx, path);
            if !matches!((path, status), ("/?d=nope", Some(500)) | (_, Some(200))) {
                failed += 1;
            }
        }
    }
    assert!(failed > 0, "no allocation of a request was hit");
}

/// Requests of state, and for changes with a body; and their answers' statuses.
const REQUESTS: [(&str, &str, &str, u16); 8] = [
    ("GET", "/s", "", 200),
    ("GET", "/s?format=prometheus", "", 200),
    ("GET", "/s?format=html", "", 200),
    ("GET", "/api/upstrands", "", 200),
    ("GET", "/api/upstrands/s/explain", "", 200),
    ("PATCH", MEMBER, "{\"drain\":true}", 200),
    ("PATCH", MEMBER, "{\"dr\\u0061in\":\"\\u00e4\"}", 400),
    ("PATCH", "/api/upstrands/s/upstreams/nope", "{}", 404),
];
const MEMBER: &str = "/api/upstrands/s/upstreams/u1";

/// The answer's status, after which the same worker serves the next request.
fn ask(nginx: &Nginx, (method, path, body, _): (&str, &str, &str, u16)) -> Option<u16> {
    let (port, workers) = (nginx.port(), nginx.workers());
    let json = "Content-Type: application/json\r\n";
    let response = support::client::request(port, method, path, json, body.as_bytes()).ok();
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
        ("change", &REQUESTS[5..7]),
    ] {
        let (u1, u2) = (
            Backend::new("u1", answer(200)),
            Backend::new("u2", answer(200)),
        );
        let nginx = start(&u1, &u2, fault);
        for request in REQUESTS {
            let status = if hit.contains(&request) {
                500
            } else {
                request.3
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
    let first = after_the_configuration();
    for request in REQUESTS {
        let good = Some(request.3);
        let (mut n, mut hit, mut in_a_row) = (first, 0, 0);
        // An allocation may be done without: only several such in a row are the end.
        while in_a_row < 3 {
            let (u1, u2) = (
                Backend::new("u1", answer(200)),
                Backend::new("u2", answer(200)),
            );
            let nginx = start(&u1, &u2, &format!("alloc:{n}"));
            let status = ask(&nginx, request);
            assert!(status == good || status == Some(500), "{n}: {request:?}");
            if status == good {
                in_a_row += 1;
            } else {
                (hit, in_a_row) = (hit + 1, 0);
                // A change may have been made before its answer found no memory.
                assert_eq!(ask(&nginx, request), good, "{n}: {request:?} again");
            }
            n += 1;
        }
        assert!(hit > 0, "{request:?}: no allocation was hit");
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
