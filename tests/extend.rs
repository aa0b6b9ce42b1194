//! `extend_single_peers`: a lone server is marked as failed, and comes back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use support::{answer, eventually, Act, Backend, Dead, Nginx, Setup, FAILURES};

/// Lines of an upstream that go well with a lone server; `hash` has a key that varies.
const METHODS: [&str; 9] = [
    "",
    "zone z 256k;",
    "ip_hash;",
    "random;",
    "random two least_conn;",
    "hash $uri;",
    "hash $uri consistent;",
    "least_conn;",
    "zone z 256k; least_conn;",
];

fn start(backend: &impl support::Address, lines: &str, location: &str) -> Nginx {
    Setup::new()
        .at("u", backend)
        .http(&format!("upstream u {{ {lines} }}\n"))
        .server(&format!(
            "location / {{ {location} proxy_pass http://u; }}\n"
        ))
        .start()
}

/// The addresses that each of that many requests asked.
fn asked(nginx: &Nginx, n: usize) -> Vec<String> {
    let one = |i| nginx.trace(1, &format!("/{i}")).remove(0)["upstream_addr"].to_string();
    (0..n).map(one).collect()
}

#[test]
fn a_lone_server_that_refuses_is_marked_under_every_method() {
    for method in METHODS {
        let dead = Dead::new();
        let lines = format!("{method} server <u> fail_timeout=60s; extend_single_peers;");
        let nginx = start(&dead, &lines, "");
        assert_eq!(asked(&nginx, 4), ["<u>", "u", "u", "u"], "{method}");
    }
}

#[test]
fn d35_a_lone_server_is_marked_by_a_status_of_proxy_next_upstream_under_every_method() {
    for method in METHODS {
        let u = Backend::new("u", 503);
        let lines = format!("{method} server <u> fail_timeout=60s; extend_single_peers;");
        let nginx = start(&u, &lines, "proxy_next_upstream error timeout http_503;");
        let first = nginx.get("/first");
        assert_eq!(
            (first.status, first.text()),
            (503, "u".to_string()),
            "{method}"
        );
        assert_eq!(asked(&nginx, 3), ["u", "u", "u"], "{method}");
        assert_eq!(u.count(), 1, "{method}");
    }
}

#[test]
fn d35_only_statuses_of_proxy_next_upstream_mark() {
    for (status, location, marks) in [
        (503, "", false),
        (500, "proxy_next_upstream error http_503;", false),
        (500, "proxy_next_upstream error http_500;", true),
        (502, "proxy_next_upstream http_502;", true),
        (504, "proxy_next_upstream http_504;", true),
        (429, "proxy_next_upstream http_429;", true),
        (503, "proxy_next_upstream off;", false),
    ] {
        let u = Backend::new("u", status);
        let nginx = start(
            &u,
            "server <u> fail_timeout=60s; extend_single_peers;",
            location,
        );
        nginx.get("/");
        nginx.get("/");
        let want = if marks { 1 } else { 2 };
        assert_eq!(u.count(), want, "{status} {location}");
    }
}

#[test]
fn d35_a_post_marks_only_where_nginx_would_go_on() {
    let lines = "server <u> fail_timeout=60s; extend_single_peers;";
    for (location, count) in [
        ("proxy_next_upstream error http_503;", 2),
        ("proxy_next_upstream error http_503 non_idempotent;", 1),
    ] {
        let u = Backend::new("u", 503);
        let nginx = start(&u, lines, location);
        nginx.ask("POST", "/", "", b"x");
        nginx.ask("POST", "/", "", b"x");
        assert_eq!(u.count(), count, "{location}");
    }
}

#[test]
fn max_fails_counts_failures() {
    let u = Backend::new("u", 503);
    let lines = "server <u> max_fails=3 fail_timeout=60s; extend_single_peers;";
    let nginx = start(&u, lines, "proxy_next_upstream error http_503;");
    for want in [503, 503, 503, 502, 502] {
        assert_eq!(nginx.get("/").status, want);
    }
    assert_eq!(u.count(), 3);
}

#[test]
fn a_lone_server_recovers_after_fail_timeout_under_every_method() {
    let setups: Vec<_> = METHODS
        .iter()
        .map(|method| {
            let u = Backend::script("u", vec![Act::Reset, 200.into()]);
            let lines = format!("{method} server <u> fail_timeout=1s; extend_single_peers;");
            let nginx = start(&u, &lines, "");
            assert_eq!(nginx.get("/").status, 502, "{method}");
            assert_eq!(nginx.get("/").status, 502, "{method}");
            assert_eq!(u.count(), 1, "{method}");
            (nginx, u)
        })
        .collect();
    for (nginx, _u) in &setups {
        eventually("it is asked again", || nginx.get("/").status == 200);
        for i in 0..3 {
            assert_eq!(nginx.get(&format!("/{i}")).status, 200);
        }
    }
}

#[test]
fn a_lone_server_recovers_after_a_status_too() {
    let u = Backend::script("u", vec![503.into(), 200.into()]);
    let lines = "server <u> fail_timeout=1s; extend_single_peers;";
    let nginx = start(&u, lines, "proxy_next_upstream error http_503;");
    assert_eq!(nginx.get("/").status, 503);
    assert_eq!(nginx.get("/").status, 502);
    eventually("it is asked again", || nginx.get("/").status == 200);
    assert_eq!(nginx.get("/").status, 200);
}

#[test]
fn the_server_that_nginx_is_given_beside_it_is_never_asked() {
    for method in METHODS {
        let u = Backend::new("u", 200);
        let lines = format!("{method} server <u>; extend_single_peers;");
        let nginx = start(&u, &lines, "");
        assert_eq!(asked(&nginx, 12), ["<u>"; 12], "{method}");
    }
}

#[test]
fn a_lone_server_and_a_lone_backup_that_are_dead_are_asked_once() {
    let (main, backup) = (Dead::new(), Dead::new());
    for method in ["", "least_conn;", "zone z 256k;"] {
        let nginx = Setup::new()
            .at("main", &main)
            .at("backup", &backup)
            .http(&format!(
                "upstream u {{ {method} server <main> fail_timeout=60s; \
                 server <backup> backup fail_timeout=60s; extend_single_peers; }}\n"
            ))
            .server("location / { proxy_pass http://u; }\n")
            .start();
        let asked = asked(&nginx, 3);
        assert!(
            asked[0].starts_with("<main>, <backup>"),
            "{method} {asked:?}"
        );
        assert_eq!(asked[1..], ["u", "u"], "{method}");
    }
}

#[test]
fn a_member_that_a_status_has_marked_costs_a_walk_nothing() {
    let (u1, u2) = (Backend::new("u1", answer(503)), Backend::new("u2", 200));
    let nginx = Setup::new()
        .upstream_with("u1", &u1, "extend_single_peers;")
        .upstream("u2", &u2)
        .upstrand_with(
            &format!("upstream u1; upstream u2; order per_request; {FAILURES}"),
            "proxy_next_upstream error http_503;",
        )
        .start();
    let lines = nginx.trace(3, "/");
    assert_eq!(u1.count(), 1);
    assert_eq!(&lines[0]["statuses"], "(u1) 503 (u2) 200");
    for line in &lines[1..] {
        assert_eq!((&line["status"], &line["path"]), ("200", "u1 -> u2"));
        assert_eq!(&line["addr"], "(u1) u1 (u2) <u2>");
        assert_eq!(&line["statuses"], "(u1) 502 (u2) 200");
        assert_eq!(&line["reason"], "(u1) error (u2) final");
    }
}
