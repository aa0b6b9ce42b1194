//! Connections to upstreams are reused, also those of failed tries.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use support::nginx::at_least;
use support::{
    answer, eventually, noise, skip, sleep, Act, Backend, Nginx, Setup, FAILURES, KEEPALIVE,
};

/// u1 that does this, and u2 that is good; both keep connections.
fn start(act: impl Into<Act>, location: &str) -> (Backend, Backend, Nginx) {
    let (u1, u2) = (Backend::new("u1", act), Backend::new("u2", 200));
    let nginx = Setup::new()
        .upstream_with("u1", &u1, "keepalive 4;")
        .upstream_with("u2", &u2, "keepalive 4;")
        .upstrand_with(
            &format!("upstream ~^u; order per_request; {FAILURES}"),
            &format!("{KEEPALIVE} {location}"),
        )
        .start();
    (u1, u2, nginx)
}

/// Eight requests, each of which fails over.
fn eight(u1: &Backend, u2: &Backend, nginx: &Nginx) {
    for _ in 0..8 {
        assert_eq!(nginx.get("/").text(), "u2");
    }
    assert_eq!((u1.count(), u2.count()), (8, 8));
    assert_eq!(u2.connections(), 1, "of the good one");
}

#[test]
fn eight_failed_answers_that_are_whole_use_one_connection() {
    let (u1, u2, nginx) = start(answer(503).body(noise(2000)), "");
    eight(&u1, &u2, &nginx);
    assert_eq!(u1.connections(), 1);
}

#[test]
fn eight_failed_answers_without_a_body_use_one_connection() {
    let (u1, u2, nginx) = start(answer(503).body(""), "");
    eight(&u1, &u2, &nginx);
    assert_eq!(u1.connections(), 1);
}

#[test]
fn eight_failed_answers_in_chunks_use_one_connection() {
    let (u1, u2, nginx) = start(answer(503).body(noise(2000)).chunked(300, 0), "");
    eight(&u1, &u2, &nginx);
    assert_eq!(u1.connections(), 1);
}

#[test]
fn eight_failed_answers_use_one_connection_unbuffered_too() {
    let (u1, u2, nginx) = start(503, "proxy_buffering off;");
    eight(&u1, &u2, &nginx);
    assert_eq!(u1.connections(), 1);
}

#[test]
fn a_failed_answer_that_is_longer_than_the_buffer_closes_its_connection() {
    let (u1, u2, nginx) = start(answer(503).body(noise(300_000)), "");
    eight(&u1, &u2, &nginx);
    assert_eq!(u1.connections(), 8);
    eventually("they are closed", || u1.open() == 0);
}

#[test]
fn a_failed_answer_whose_body_is_late_closes_its_connection() {
    let late = Act::Stall(b"HTTP/1.1 503 X\r\nContent-Length: 5\r\n\r\n".to_vec());
    let (u1, u2, nginx) = start(late, "");
    eight(&u1, &u2, &nginx);
    assert_eq!(u1.connections(), 8);
    eventually("they are closed", || u1.open() == 0);
}

#[test]
fn a_failed_answer_that_says_close_closes_its_connection() {
    let (u1, u2, nginx) = start(answer(503).header("Connection: close"), "");
    eight(&u1, &u2, &nginx);
    assert_eq!(u1.connections(), 8);
}

#[test]
fn a_failed_answer_to_head_keeps_its_connection() {
    let (u1, u2, nginx) = start(503, "");
    let mut client = nginx.client();
    for _ in 0..4 {
        let response = client.ask("HEAD", "/", "", b"").expect("an answer");
        assert_eq!(response.status, 200);
    }
    assert_eq!((u1.connections(), u2.connections()), (1, 1));
}

#[test]
fn an_upgrade_that_is_no_answer_is_not_reused() {
    let (u1, u2) = (Backend::new("u1", Act::Upgrade), Backend::new("u2", 200));
    let nginx = Setup::new()
        .upstream_with("u1", &u1, "keepalive 4;")
        .upstream_with("u2", &u2, "keepalive 4;")
        .upstrand_with(
            "upstream ~^u; order per_request; next_upstream_statuses 101;",
            "proxy_http_version 1.1; proxy_set_header Connection upgrade; \
             proxy_set_header Upgrade websocket;",
        )
        .start();
    for _ in 0..3 {
        let response = nginx.ask("GET", "/", "Upgrade: websocket\r\n", b"");
        assert_eq!(response.text(), "u2");
    }
    assert_eq!(u1.connections(), 3);
    eventually("they are closed", || u1.open() == 0);
}

#[test]
fn a_kept_connection_that_its_peer_closes_is_no_failure() {
    let u1 = Backend::script("u1", vec![200.into(), Act::Close, 200.into()]);
    let u2 = Backend::new("u2", 200);
    let nginx = Setup::new()
        .upstream_with("u1", &u1, "keepalive 4;")
        .upstream("u2", &u2)
        .upstrand_with(
            &format!(
                "upstream u1 blacklist_interval=60s; upstream u2; order per_request; {FAILURES}"
            ),
            KEEPALIVE,
        )
        .start();
    // The second request goes into the kept connection, which closes; nginx makes another one.
    assert_eq!(nginx.paths(3, "/"), ["u1"; 3]);
    assert_eq!((u1.count(), u1.connections(), u2.count()), (4, 2, 0));
}

#[test]
fn failures_of_all_kinds_leave_the_connections_of_client_and_upstreams_in_step() {
    let failures: [Act; 6] = [
        Act::Reset,
        503.into(),
        Act::Close,
        answer(503).body(noise(50_000)).into(),
        answer(503).chunked(2, 0).into(),
        answer(500).cut(100).into(),
    ];
    let acts = failures.iter().cycle().take(60).cloned();
    let u1 = Backend::script("u1", acts.collect());
    let u2 = Backend::new("u2", Act::Echo);
    let nginx = Setup::new()
        .upstream_with("u1", &u1, "keepalive 4;")
        .upstream_with("u2", &u2, "keepalive 4;")
        .upstrand_with(
            &format!("upstream ~^u; order per_request; {FAILURES}"),
            KEEPALIVE,
        )
        .start();
    let mut client = nginx.client();
    for i in 0..50 {
        let method = ["GET", "PUT", "HEAD", "DELETE"][i % 4];
        let body = noise(if method == "PUT" { i * 700 } else { 0 });
        let response = client.ask(method, &format!("/{i}"), "", &body);
        let response = response.unwrap_or_else(|e| panic!("{method} /{i}: {e}"));
        assert_eq!(response.status, 200, "{method} /{i}");
        let want = format!("{method} /{i} {} ", body.len());
        let text = response.text();
        assert!(method == "HEAD" || text.starts_with(&want), "{text}");
    }
    assert_eq!((u2.count(), u2.connections()), (50, 1));
}

/// a and b in the upstream `u`, with more lines, and the location `/1` for its first singlet.
fn singlets(lines: &str) -> (Backend, Backend, Nginx) {
    let (a, b) = (Backend::new("a", 200), Backend::new("b", 200));
    let nginx = Setup::new()
        .at("a", &a)
        .at("b", &b)
        .http(&format!(
            "upstream u {{ server <a>; server <b>; {lines} }}\n"
        ))
        .server(&format!(
            "location /1 {{ {KEEPALIVE} proxy_pass http://u_s_1; }}\n"
        ))
        .start();
    (a, b, nginx)
}

#[test]
fn singlets_reuse_connections_be_keepalive_above_their_line_or_below() {
    for lines in [
        "keepalive 4; combine_server_singlets _s_;",
        "combine_server_singlets _s_; keepalive 4;",
        "combine_server_singlets _s_ nobackup; keepalive 4;",
        "least_conn; combine_server_singlets _s_ nobackup; keepalive 4;",
    ] {
        let (a, b, nginx) = singlets(lines);
        for _ in 0..6 {
            assert_eq!(nginx.get("/1").text(), "a");
        }
        assert_eq!((a.connections(), b.connections()), (1, 0), "{lines}");
    }
}

#[test]
fn singlets_take_over_keepalive_requests_and_keepalive_timeout() {
    for lines in [
        "keepalive 4; keepalive_requests 2; combine_server_singlets _s_;",
        "combine_server_singlets _s_; keepalive 4; keepalive_requests 2;",
    ] {
        let (a, _b, nginx) = singlets(lines);
        for _ in 0..6 {
            assert_eq!(nginx.get("/1").text(), "a");
        }
        assert_eq!(a.connections(), 3, "{lines}");
    }
    let (a, _b, nginx) =
        singlets("combine_server_singlets _s_; keepalive 4; keepalive_timeout 200ms;");
    nginx.get("/1");
    eventually("an idle connection is closed", || a.open() == 0);
    sleep(50);
    nginx.get("/1");
    assert_eq!(a.connections(), 2);
}

#[test]
fn singlets_without_keepalive_reuse_as_much_as_their_host() {
    let (a, b) = (Backend::new("a", 200), Backend::new("b", 200));
    let nginx = Setup::new()
        .default_keepalive()
        .at("a", &a)
        .at("b", &b)
        .http("upstream u { server <a>; server <b> down; combine_server_singlets _s_; }\n")
        .server(&format!(
            "location /1 {{ {KEEPALIVE} proxy_pass http://u_s_1; }}\n\
             location /u {{ {KEEPALIVE} proxy_pass http://u; }}\n"
        ))
        .start();
    (0..5).for_each(|_| drop(nginx.get("/u")));
    let host = a.connections();
    (0..5).for_each(|_| drop(nginx.get("/1")));
    assert_eq!(a.connections() - host, host);
}

#[test]
fn singlets_keep_their_connections_to_one_location_if_their_host_does() {
    if !at_least([1, 29, 7]) {
        skip(
            "singlets_keep_their_connections_to_one_location_if_their_host_does",
            "nginx before 1.29.7 has no keepalive ... local",
        );
        return;
    }
    for (lines, locals) in [
        ("keepalive 4; combine_server_singlets _s_;", 1),
        ("combine_server_singlets _s_ nobackup; keepalive 4;", 1),
        ("keepalive 4 local; combine_server_singlets _s_;", 2),
        ("combine_server_singlets _s_; keepalive 4 local;", 2),
        (
            "combine_server_singlets _s_ nobackup; keepalive 4 local;",
            2,
        ),
        (
            "least_conn; combine_server_singlets _s_; keepalive 4 local;",
            2,
        ),
    ] {
        let (a, b) = (Backend::new("a", 200), Backend::new("b", 200));
        let nginx = Setup::new()
            .at("a", &a)
            .at("b", &b)
            .http(&format!(
                "upstream u {{ server <a>; server <b> down; {lines} }}\n"
            ))
            .server(
                "location /u1 { proxy_pass http://u; }\n\
                 location /u2 { proxy_pass http://u; }\n\
                 location /s1 { proxy_pass http://u_s_1; }\n\
                 location /s2 { proxy_pass http://u_s_1; }\n",
            )
            .start();
        let mut before = 0;
        for upstream in ["u", "s"] {
            for _ in 0..3 {
                for location in 1..=2 {
                    assert_eq!(nginx.get(&format!("/{upstream}{location}")).text(), "a");
                }
            }
            assert_eq!(a.connections() - before, locals, "{upstream}: {lines}");
            before = a.connections();
        }
    }
}

#[test]
fn a_failover_reuses_connections_where_nginx_does_so_by_default() {
    if !at_least([1, 29, 7]) {
        skip(
            "a_failover_reuses_connections_where_nginx_does_so_by_default",
            "nginx before 1.29.7 keeps no connections unless told",
        );
        return;
    }
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let nginx = Setup::new()
        .default_keepalive()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand(&format!("upstream ~^u; order per_request; {FAILURES}"))
        .start();
    eight(&u1, &u2, &nginx);
    assert_eq!(u1.connections(), 1);
}

#[test]
fn singlets_of_an_upstrand_reuse_connections_over_failovers() {
    let (a, b) = (Backend::new("a", 503), Backend::new("b", 200));
    let nginx = Setup::new()
        .at("a", &a)
        .at("b", &b)
        .http("upstream u { server <a>; server <b>; keepalive 4; combine_server_singlets _s_ nobackup; }\n")
        .upstrand_with(
            &format!("upstream ~^u_s_; order per_request; {FAILURES}"),
            KEEPALIVE,
        )
        .start();
    for _ in 0..8 {
        assert_eq!(nginx.get("/").text(), "b");
    }
    assert_eq!((a.connections(), b.connections()), (1, 1));
    assert_eq!(&nginx.log(8)[7]["path"], "u_s_1 -> u_s_2");
}
