//! The request that each upstream gets is the one that the client has sent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use support::backend::{hash, Request};
use support::nginx::{at_least, free_port};
use support::{answer, eventually, noise, sleep, Act, Address, Backend, Dead, Setup, FAILURES};

/// u1, u2 and u3; bodies of any length.
fn three(u1: &impl Address, u2: &impl Address, u3: &impl Address, location: &str) -> Setup {
    Setup::new()
        .upstream("u1", u1)
        .upstream("u2", u2)
        .upstream("u3", u3)
        .upstrand_with(
            &format!("upstream ~^u; order per_request; {FAILURES}"),
            &format!("client_max_body_size 0; {location}"),
        )
}

const UNBUFFERED: &str = "proxy_request_buffering off; proxy_http_version 1.1;";

fn is_same(request: &Request, body: &[u8]) {
    assert_eq!(
        (request.method.as_str(), request.uri.as_str()),
        ("PUT", "/p?q=1")
    );
    assert_eq!(request.header("X-Test"), Some("1"));
    assert!(request.whole && request.body == body, "another body");
}

#[test]
fn twenty_megabytes_reach_the_third_upstream_unharmed() {
    let body = noise(20_000_000);
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 500));
    let u3 = Backend::new("u3", Act::Echo);
    let nginx = three(&u1, &u2, &u3, "").start();
    let response = nginx.ask("PUT", "/p?q=1", "X-Test: 1\r\n", &body);
    let text = response.text();
    let want = format!("PUT /p?q=1 20000000 {:016x}\n", hash(&body));
    assert!(text.starts_with(&want), "{text}");
    for upstream in [&u1, &u2, &u3] {
        is_same(&upstream.last(), &body);
    }
}

#[test]
fn bodies_of_all_kinds_are_replayed() {
    for location in [
        "",
        "client_body_buffer_size 1k;",
        "client_body_in_file_only clean;",
        "client_body_in_single_buffer on;",
        "proxy_http_version 1.1;",
    ] {
        let (u1, dead, u3) = (
            Backend::new("u1", 503),
            Dead::new(),
            Backend::new("u3", 200),
        );
        let nginx = three(&u1, &dead, &u3, location).start();
        for len in [1, 900, 9000, 200_000] {
            let body = noise(len);
            let response = nginx.ask("PUT", "/p?q=1", "X-Test: 1\r\n", &body);
            assert_eq!((response.status, response.text()), (200, "u3".to_string()));
            is_same(&u1.last(), &body);
            is_same(&u3.last(), &body);
        }
    }
}

/// Sends a body in chunks, one by one.
fn send_chunks(client: &mut support::Client, head: &str, body: &[u8]) {
    client.send(
        format!("{head} HTTP/1.1\r\nHost: test\r\nX-Test: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
            .as_bytes(),
    );
    for piece in body.chunks(5000) {
        client.send(format!("{:x}\r\n", piece.len()).as_bytes());
        client.send(piece);
        client.send(b"\r\n");
    }
    client.send(b"0\r\n\r\n");
}

#[test]
fn chunked_bodies_are_replayed() {
    let body = noise(60_000);
    let (u1, u2, u3) = (
        Backend::new("u1", 503),
        Backend::new("u2", Act::Reset),
        Backend::new("u3", 200),
    );
    let nginx = three(&u1, &u2, &u3, "proxy_http_version 1.1;").start();
    let mut client = nginx.client();
    for _ in 0..2 {
        send_chunks(&mut client, "PUT /p?q=1", &body);
        assert_eq!(client.read(true).expect("an answer").text(), "u3");
        for upstream in [&u1, &u2, &u3] {
            is_same(&upstream.last(), &body);
        }
    }
}

#[test]
fn d07_an_unbuffered_body_of_which_nothing_was_sent_goes_on() {
    let body = noise(1_000_000);
    let (a, b, u3) = (Dead::new(), Dead::new(), Backend::new("u3", 200));
    let nginx = three(&a, &b, &u3, UNBUFFERED).start();
    let response = nginx.ask("PUT", "/p?q=1", "X-Test: 1\r\n", &body);
    assert_eq!((response.status, response.text()), (200, "u3".to_string()));
    is_same(&u3.last(), &body);
    // In chunks, and of a client that takes its time.
    let mut client = nginx.client();
    send_chunks(&mut client, "PUT /p?q=1", &body[..100_000]);
    assert_eq!(client.read(true).expect("an answer").text(), "u3");
    is_same(&u3.last(), &body[..100_000]);
    let mut client = nginx.client();
    client.send(b"PUT /p?q=1 HTTP/1.1\r\nHost: test\r\nX-Test: 1\r\nContent-Length: 10\r\n\r\n");
    sleep(100);
    client.send(b"hello");
    sleep(100);
    client.send(b"world");
    assert_eq!(client.read(true).expect("an answer").text(), "u3");
    is_same(&u3.last(), b"helloworld");
}

#[test]
fn d07_an_unbuffered_body_of_which_something_was_sent_does_not_go_on() {
    let body = noise(1_000_000);
    let (u1, u2, u3) = (
        Backend::new("u1", 503),
        Backend::new("u2", 200),
        Backend::new("u3", 200),
    );
    let nginx = three(&u1, &u2, &u3, UNBUFFERED).start();
    let response = nginx.ask("PUT", "/p?q=1", "X-Test: 1\r\n", &body);
    assert_eq!((response.status, response.text()), (503, "u1".to_string()));
    let line = &nginx.log(1)[0];
    assert_eq!((&line["path"], &line["reason"]), ("u1", "(u1) unbuffered"));
    assert_eq!((u2.count(), u3.count()), (0, 0));
    assert_eq!(nginx.get("/").text(), "u2", "a request without a body does");
}

#[test]
fn d07_an_unbuffered_body_stays_with_an_upstream_that_resets() {
    let (u1, u2, u3) = (
        Backend::new("u1", Act::Reset),
        Backend::new("u2", 200),
        Backend::new("u3", 200),
    );
    let nginx = three(&u1, &u2, &u3, UNBUFFERED).start();
    let response = nginx.ask("PUT", "/p?q=1", "X-Test: 1\r\n", &noise(100_000));
    assert_eq!((response.status, u2.count()), (502, 0));
    assert_eq!(&nginx.log(1)[0]["reason"], "(u1) unbuffered");
}

#[test]
fn a_post_goes_on_only_if_nothing_was_sent() {
    let (dead, u2, u3) = (
        Dead::new(),
        Backend::new("u2", 503),
        Backend::new("u3", 200),
    );
    let nginx = three(&dead, &u2, &u3, "").start();
    for method in ["POST", "LOCK", "PATCH"] {
        let response = nginx.ask(method, "/", "", b"abc");
        assert_eq!(
            (response.status, response.text()),
            (503, "u2".to_string()),
            "{method}"
        );
    }
    for line in nginx.log(3) {
        assert_eq!(&line["path"], "u1 -> u2");
        assert_eq!(&line["reason"], "(u1) error (u2) non_idempotent");
    }
    assert_eq!(u3.count(), 0);
    for method in ["PUT", "DELETE", "OPTIONS", "MKCOL"] {
        assert_eq!(nginx.ask(method, "/", "", b"abc").text(), "u3", "{method}");
    }
    // One that was sent and then got no answer counts as sent, too.
    u2.now(Act::Reset);
    assert_eq!(nginx.ask("POST", "/", "", b"abc").status, 502);
    u2.now(Act::Close);
    assert_eq!(nginx.ask("POST", "/", "", b"abc").status, 502);
    assert_eq!(u3.count(), 4);
}

#[test]
fn a_post_goes_on_where_the_upstrand_says_non_idempotent() {
    let body = noise(50_000);
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand(
            "upstream ~^u; order per_request; next_upstream_statuses error 5xx non_idempotent;",
        )
        .start();
    assert_eq!(nginx.ask("POST", "/", "", &body).text(), "u2");
    assert!(u2.last().body == body && u1.last().body == body);
}

#[test]
fn a_client_that_expects_100_gets_one_and_all_upstreams_the_body() {
    let body = noise(30_000);
    for location in ["", UNBUFFERED] {
        let (u1, u2) = (Dead::new(), Backend::new("u2", 503));
        let u3 = Backend::new("u3", answer(200).body("fine"));
        let buffered = location.is_empty();
        let nginx = three(&u1, &u2, &u3, location).start();
        let mut client = nginx.client();
        let head = format!(
            "PUT /p?q=1 HTTP/1.1\r\nHost: test\r\nX-Test: 1\r\nExpect: 100-continue\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        client.send(head.as_bytes());
        assert_eq!(client.read(true).expect("a 100").status, 100);
        client.send(&body);
        let response = client.read(true).expect("an answer");
        is_same(&u2.last(), &body);
        if buffered {
            assert_eq!(
                (response.status, response.text()),
                (200, "fine".to_string())
            );
            is_same(&u3.last(), &body);
        } else {
            assert_eq!((response.status, u3.count()), (503, 0));
        }
        drop(client);
        eventually("no connection is left", || u2.open() == 0 && u3.open() == 0);
    }
}

#[test]
fn a_request_that_no_upstream_was_asked_for_has_no_walk_in_the_log() {
    let u1 = Backend::new("u1", 200);
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstrand_with("upstream u1;", "client_max_body_size 10;")
        .start();
    for body in ["40\r\nabcdefgh", "z\r\n"] {
        let mut client = nginx.client();
        client.send(b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
        sleep(50);
        client.send(body.as_bytes());
        let response = client.read(true).expect("an answer");
        assert!([400, 413].contains(&response.status));
    }
    for line in nginx.log(2) {
        assert_eq!(&line["path"], "-");
    }
    assert_eq!(u1.count(), 0);
}

/// The end of an HTTP/2 body may be a frame of its own, without bytes.
#[test]
fn a_grpc_call_over_http2_ends_with_an_empty_frame() {
    let v2 = if at_least([1, 25, 1]) {
        ("", "http2 on;")
    } else {
        ("http2", "")
    };
    let (port, good, dead) = (free_port(), free_port(), Dead::new());
    let nginx = Setup::new()
        .upstream("u1", &dead)
        .http(&format!(
            "upstream u2 {{ server 127.0.0.1:{good}; }}\n\
             server {{ listen 127.0.0.1:{good} {0}; {1} location / {{ return 200 two; }} }}\n\
             server {{ listen 127.0.0.1:{port} {0}; {1}\n\
             location / {{ grpc_pass grpc://$upstrand_s; }} }}\n\
             upstrand s {{ upstream u1; upstream u2; order per_request; }}\n",
            v2.0, v2.1
        ))
        .start();
    for body in [&b""[..], b"a", &[b'b'; 70_000]] {
        let mut curl = Command::new("curl")
            .args([
                "-s",
                "-m",
                "5",
                "--http2-prior-knowledge",
                "-X",
                "POST",
                "-T",
                "-",
            ])
            .arg(format!("http://127.0.0.1:{port}/call"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("curl");
        let mut stdin = curl.stdin.take().expect("a pipe");
        sleep(50);
        // An early answer may end curl before all is written.
        let _ = stdin.write_all(body);
        sleep(50);
        drop(stdin);
        // The early answer makes curl complain, without an upstrand too.
        curl.wait().expect("curl");
    }
    let lines = nginx.log(6);
    let walks = lines.iter().filter(|line| &line["path"] == "u1 -> u2");
    assert!(walks.clone().all(|line| &line["status"] == "200"));
    assert_eq!(walks.count(), 3);
}
