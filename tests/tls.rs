//! TLS to upstreams: each try has its own name, certificate and session.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use support::nginx::free_port;
use support::{eventually, Nginx, Setup, FAILURES};

/// The name that each upstream wants to be called by.
const NAMES: &str = "map $upstrand_s $wanted { u1 one.example; u2 two.example; }\n";

/// Calls each upstream by that name, and has it prove the name.
const VERIFY: &str = "proxy_ssl_server_name on; proxy_ssl_name $wanted; proxy_ssl_verify on;\n\
    proxy_ssl_trusted_certificate <dir>/trusted.pem;";

/// A self-signed certificate for a name, in `NAME.pem`; its key in `NAME.key`.
fn certificate(dir: &Path, name: &str) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-days", "1", "-newkey", "ec"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", &format!("/CN={name}")])
        .args(["-keyout", &format!("{name}.key")])
        .args(["-out", &format!("{name}.pem")])
        .current_dir(dir)
        .stderr(Stdio::null())
        .status();
    assert!(made.is_ok_and(|status| status.success()), "openssl req");
}

/// Two upstreams behind TLS, the first one of which fails. Each writes down what name it was
/// called by and whether the session was known, and has a certificate for its own name only.
fn two(names: &str, location: &str) -> Nginx {
    let mut setup = Setup::new();
    let mut trusted = Vec::new();
    let mut http = String::from("log_format tls '$ssl_server_name $ssl_session_reused';\n");
    for (upstream, name, answer) in [("u1", "one.example", 503), ("u2", "two.example", 200)] {
        certificate(setup.dir(), name);
        trusted.extend(fs::read(setup.dir().join(format!("{name}.pem"))).expect("it was made"));
        let port = free_port();
        http += &format!(
            "upstream {upstream} {{ server 127.0.0.1:{port}; }}\n\
             server {{ listen 127.0.0.1:{port} ssl; ssl_protocols TLSv1.2 TLSv1.3;\n\
             access_log <dir>/{upstream}.log tls;\n\
             ssl_certificate <dir>/{name}.pem; ssl_certificate_key <dir>/{name}.key;\n\
             location / {{ return {answer} \"{upstream} as $ssl_server_name\"; }} }}\n"
        );
    }
    fs::write(setup.dir().join("trusted.pem"), trusted).expect("a file");
    setup = setup.http(&http).http(names).http(&format!(
        "upstrand s {{ upstream u1; upstream u2; order per_request; {FAILURES} }}\n"
    ));
    let server = format!("location / {{ proxy_pass https://$upstrand_s; {location} }}\n");
    setup.server(&server).start()
}

/// What the requests of an upstream came with, once there are that many.
#[track_caller]
fn came_with(nginx: &Nginx, upstream: &str, n: usize) -> Vec<String> {
    let path = nginx.dir().join(format!("{upstream}.log"));
    let mut lines = Vec::new();
    eventually("the upstream's log", || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        lines = text.lines().map(str::to_string).collect();
        text.ends_with('\n') && lines.len() >= n
    });
    lines
}

/// The variables that tell the running upstream.
#[test]
fn each_try_has_its_own_name_and_certificate() {
    for variable in ["$upstrand_s", "$upstrand_upstream"] {
        let nginx = two(&NAMES.replace("$upstrand_s", variable), VERIFY);
        for _ in 0..2 {
            let response = nginx.get("/");
            assert_eq!(response.status, 200, "{variable}");
            assert_eq!(response.text(), "u2 as two.example", "{variable}");
        }
        for line in nginx.log(2) {
            assert_eq!(&line["reason"], "(u1) http_503 (u2) final");
        }
        for (upstream, name) in [("u1", "one.example"), ("u2", "two.example")] {
            for line in came_with(&nginx, upstream, 2) {
                assert_eq!(line.split(' ').next(), Some(name), "{upstream}, {variable}");
            }
        }
    }
}

/// Without a name of its own a try goes by that of its upstream, not by that of the first one.
#[test]
fn the_default_name_is_that_of_the_running_upstream() {
    let nginx = two("", "proxy_ssl_server_name on;");
    assert_eq!(nginx.get("/").text(), "u2 as u2");
    assert!(came_with(&nginx, "u1", 1)[0].starts_with("u1 "));
}

/// A session belongs to one server. It is resumed there, also where the answer was dropped.
#[test]
fn sessions_are_resumed_at_both_upstreams() {
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        for (reuse, second) in [("on", "r"), ("off", ".")] {
            let nginx = two(
                NAMES,
                &format!(
                    "{VERIFY} proxy_ssl_protocols {protocol}; proxy_ssl_session_reuse {reuse};"
                ),
            );
            for _ in 0..2 {
                assert_eq!(nginx.get("/").text(), "u2 as two.example", "{protocol}");
            }
            for (upstream, name) in [("u1", "one.example"), ("u2", "two.example")] {
                assert_eq!(
                    came_with(&nginx, upstream, 2),
                    [format!("{name} ."), format!("{name} {second}")],
                    "{protocol}, reuse {reuse}"
                );
            }
        }
    }
}

/// An upstream that can't prove its name was never asked, so a POST may go on as well.
#[test]
fn a_certificate_of_another_name_is_an_error_and_the_walk_goes_on() {
    let nginx = two(
        "map $upstrand_s $wanted { u1 other.example; u2 two.example; }\n",
        VERIFY,
    );
    for method in ["GET", "POST"] {
        let response = nginx.ask(method, "/", "", b"");
        assert_eq!(response.text(), "u2 as two.example", "{method}");
    }
    for line in nginx.log(2) {
        assert_eq!(&line["reason"], "(u1) error (u2) final");
    }
    assert_eq!(nginx.logged("does not match \"other.example\""), 2);
}
