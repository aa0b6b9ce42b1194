//! Two liberties that a walk takes, and what would go wrong if they were unsound: the chosen upstream
//! is brought to the front of nginx's list, and a dropped answer's buffer serves the next one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::sync::Barrier;

use support::{answer, together, Backend, Client, Dead, Nginx, Response, Setup, FAILURES};

const WALKS: usize = 24;

/// A POST whose body ends only after all others have begun: nginx knows the name of its upstream by
/// then, and has yet to look for it.
fn post_slowly(nginx: &Nginx, path: &str, all: &Barrier) -> Response {
    let mut client = nginx.client();
    client.send(
        format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: 8\r\n\r\nbody").as_bytes(),
    );
    support::sleep(50);
    all.wait();
    client.send(b"done");
    client.read(true).expect(path)
}

fn path_of(response: &Response) -> &str {
    response.header("X-Path").unwrap_or_default()
}

/// `bad0` and `good0`, `bad1` and `good1`, and so on, each pair an upstrand `s0`, `s1`, and so on.
fn pairs(backends: &[(Backend, Backend)]) -> Setup {
    let mut setup = Setup::new();
    for (i, (bad, good)) in backends.iter().enumerate() {
        setup = setup
            .upstream(&format!("bad{i}"), bad)
            .upstream(&format!("good{i}"), good)
            .http(&format!(
                "upstrand s{i} {{ upstream bad{i}; upstream good{i}; order per_request;\n\
                 next_upstream_statuses error 5xx non_idempotent; }}\n"
            ));
    }
    setup.server(
        "location / { dynamic_upstrand $d $arg_s; add_header X-Path $upstrand_path always;\n\
         proxy_pass http://$d; }\n",
    )
}

fn backends() -> Vec<(Backend, Backend)> {
    let bad = |i| Backend::new(&format!("bad{i}"), 503);
    let good = |i| Backend::new(&format!("good{i}"), 200);
    (0..WALKS).map(|i| (bad(i), good(i))).collect()
}

#[test]
fn each_walk_finds_its_own_upstream_while_others_move_the_list() {
    let backends = backends();
    let nginx = pairs(&backends).start();
    let all = Barrier::new(WALKS);
    for round in 1..=4 {
        together(WALKS, |i| {
            let response = post_slowly(&nginx, &format!("/?s=s{i}"), &all);
            assert_eq!(
                (response.status, response.text()),
                (200, format!("good{i}"))
            );
            assert_eq!(path_of(&response), format!("bad{i} -> good{i}"));
        });
        for (bad, good) in &backends {
            assert_eq!((bad.count(), good.count()), (round, round));
        }
    }
}

#[test]
fn names_with_other_ports_find_their_own_upstream_while_walks_move_the_list() {
    let backends = backends();
    let others: Vec<Backend> = (0..6)
        .map(|i| Backend::new(&format!("o{i}"), 200))
        .collect();
    let mut setup = pairs(&backends);
    // These make upstreams without a block: one name, and each its port.
    for (i, other) in others.iter().enumerate() {
        let port = other.port();
        setup = setup.server(&format!(
            "location /fixed{i} {{ proxy_pass http://localhost:{port}; }}\n"
        ));
    }
    // Without a resolver this only answers if nginx finds the name and the port in its list.
    let nginx = setup
        .server("location /port { proxy_pass http://localhost:$arg_p; }\n")
        .server("location /name { proxy_pass http://$arg_n; }\n")
        .start();
    let clients = WALKS + 2 * others.len();
    let all = Barrier::new(clients);
    for _ in 0..4 {
        together(clients, |i| {
            let (path, own) = match i.checked_sub(WALKS) {
                None => (format!("/?s=s{i}"), format!("good{i}")),
                Some(n) if n < others.len() => {
                    (format!("/port?p={}", others[n].port()), format!("o{n}"))
                }
                // An upstream of an upstrand, asked by its name alone.
                Some(n) => (format!("/name?n=GOOD{n}"), format!("good{n}")),
            };
            let response = post_slowly(&nginx, &path, &all);
            assert_eq!((response.status, response.text()), (200, own), "{path}");
        });
    }
    for i in 0..others.len() {
        assert_eq!(nginx.get(&format!("/fixed{i}")).text(), format!("o{i}"));
    }
}

/// nginx lets a name have two entries that both match it if they come before the block of that name;
/// then the first one in the list is meant.
#[test]
fn a_name_with_two_entries_means_the_same_one_after_walks() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    // What counts is whom nginx asks.
    let own = Dead::new();
    let nginx = Setup::new()
        .at("own", &own)
        .http(
            "server { listen unix:<dir>/other.sock;\n\
             location /http { proxy_pass http://127.0.0.1; }\n\
             location /https { proxy_pass https://127.0.0.1; } }\n\
             upstream 127.0.0.1 { server <own>; }\n",
        )
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand(&format!(
            "upstream u1; upstream u2; order per_request; {FAILURES}"
        ))
        .http("map $uri $name { default 127.0.0.1; }\n")
        .server("location /name { proxy_pass https://$name; }\n")
        .start();
    for _ in 0..3 {
        let line = &nginx.trace(1, "/name")[0];
        assert_eq!((&line["status"], &line["upstream_addr"]), ("502", "<own>"));
        assert_eq!(nginx.get("/").text(), "u2");
    }
}

fn headers(response: &Response) -> Vec<(String, String)> {
    let own =
        |(name, _): &&(String, String)| !matches!(name.as_str(), "Date" | "X-Path" | "Connection");
    response.headers.iter().filter(own).cloned().collect()
}

#[test]
fn a_reused_buffer_shows_nothing_of_the_answer_that_was_dropped() {
    let long = |n: usize| format!("X-Long: {}", "l".repeat(n));
    let backends = [
        // Almost as long as the buffer, then short ones, then a body that fills it.
        answer(503)
            .header(&long(3600))
            .header("X-Failed: u0")
            .header("Set-Cookie: failed=u0")
            .header("Cache-Control: no-store")
            .header("Location: http://failed/"),
        answer(500).body(""),
        answer(503).header(&long(100)).body("b".repeat(3500)),
        // The rest of this one is read while the next upstream answers.
        answer(503).header("X-Failed: u3").body("r".repeat(7000)),
        answer(502)
            .header("Content-Encoding: failed")
            .chunked(500, 0),
    ];
    let failing: Vec<Backend> = backends
        .into_iter()
        .enumerate()
        .map(|(i, answer)| Backend::new(&format!("u{i}"), answer))
        .collect();
    let dead = Dead::new();
    let good = Backend::new(
        "good",
        answer(200).header("X-Good: yes").body(support::noise(9000)),
    );
    for more in [
        "proxy_buffer_size 4k;",
        "proxy_buffer_size 8k;",
        "proxy_buffering off;",
        "proxy_ignore_headers Cache-Control; proxy_cache c; proxy_cache_key $uri$upstrand_path;\n\
         proxy_cache_valid 200 1m;",
    ] {
        let mut setup = Setup::new().http("proxy_cache_path <dir>/tmp/cache keys_zone=c:1m;\n");
        for (i, backend) in failing.iter().enumerate() {
            setup = setup.upstream_with(&format!("u{i}"), backend, "keepalive 8;");
        }
        let location = format!(
            "{more} {} add_header X-Path $upstrand_path always;\n\
             add_header X-Seen '$upstream_http_x_failed$upstream_cookie_failed' always;",
            support::KEEPALIVE
        );
        let nginx = setup
            .upstream("dead", &dead)
            .upstream("good", &good)
            .upstrand_with(
                &format!(
                    "upstream u0; upstream u1; upstream dead; upstream u2; upstream u3;\n\
                     upstream u4; upstream good; order per_request; {FAILURES}"
                ),
                &location,
            )
            .server(&format!(
                "location /direct {{ {location} proxy_pass http://good; }}\n"
            ))
            .start();
        let direct = nginx.get("/direct");
        assert_eq!((direct.status, direct.body.len()), (200, 9000));
        together(8, |i| {
            let mut client: Client = nginx.client();
            for n in 0..4 {
                let response = client.get(&format!("/{i}/{n}")).expect("an answer");
                let path = "u0 -> u1 -> dead -> u2 -> u3 -> u4 -> good";
                assert_eq!(path_of(&response), path, "{more}");
                assert_eq!(response.body, direct.body, "{more}");
                assert_eq!(headers(&response), headers(&direct), "{more}");
            }
        });
    }
}
