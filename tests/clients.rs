//! Clients that are slow, leave, or do not wait for answers.

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
use std::io::Read;

use support::backend::hash;
use support::http2::{together, Answer, Request};
use support::nginx::{at_least, descriptors, free_port};
use support::{
    answer, eventually, noise, sleep, Act, Address, Backend, Client, Dead, Full, Nginx, Setup,
    FAILURES, KEEPALIVE,
};

fn two(u1: &impl Address, u2: &impl Address) -> Setup {
    two_with(u1, u2, "")
}

fn two_with(u1: &impl Address, u2: &impl Address, location: &str) -> Setup {
    Setup::new()
        .upstream("u1", u1)
        .upstream("u2", u2)
        .upstrand_with(
            &format!("upstream ~^u; order per_request; {FAILURES}"),
            location,
        )
        .server("location /ok { return 200 ok; }\n")
}

/// Reads an answer slowly through small buffers, then uses the connection again.
fn read_slowly(nginx: &Nginx) -> Vec<u8> {
    let mut client = Client::small(nginx.port(), 4096);
    client.start("/");
    sleep(300);
    let response = client.read(true).expect("a whole answer");
    assert_eq!(response.status, 200);
    assert_eq!(client.get("/ok").expect("in step").text(), "ok");
    response.body
}

fn slow_client_gets_the_tail(len: usize, act: impl FnOnce(Vec<u8>) -> Act, location: &str) {
    let body = noise(len);
    let (u1, u2) = (
        Backend::new("u1", 503),
        Backend::new("u2", act(body.clone())),
    );
    let nginx = two_with(&u1, &u2, location).listen("sndbuf=8k").start();
    let came = read_slowly(&nginx);
    assert_eq!(came.len(), body.len());
    assert!(came == body, "other bytes");
}

#[test]
fn d41_a_slow_client_gets_the_tail_of_a_short_body() {
    slow_client_gets_the_tail(20_000, |body| answer(200).body(body).into(), "");
}

#[test]
fn d41_a_slow_client_gets_the_tail_of_a_long_body() {
    slow_client_gets_the_tail(300_000, |body| answer(200).body(body).into(), "");
}

#[test]
fn d41_a_slow_client_gets_the_tail_of_chunks() {
    slow_client_gets_the_tail(
        300_000,
        |body| answer(200).body(body).chunked(7000, 0).into(),
        "proxy_http_version 1.1;",
    );
}

#[test]
fn d41_a_slow_client_gets_the_tail_unbuffered() {
    slow_client_gets_the_tail(
        300_000,
        |body| answer(200).body(body).into(),
        "proxy_buffering off;",
    );
}

#[test]
fn d41_a_slow_client_gets_the_tail_through_a_temporary_file() {
    slow_client_gets_the_tail(
        2_000_000,
        |body| answer(200).body(body).into(),
        "proxy_buffers 4 4k; proxy_buffer_size 4k; proxy_busy_buffers_size 8k;",
    );
}

#[test]
fn d41_a_slow_client_gets_the_tail_of_an_interception() {
    let body = noise(300_000);
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 503));
    let f = Backend::new("f", answer(200).body(body.clone()));
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstream("f", &f)
        .upstrand(&format!(
            "upstream ~^u; order per_request; {FAILURES} intercept_statuses 5xx /f;"
        ))
        .server("location /f { proxy_pass http://f; } location /ok { return 200 ok; }")
        .listen("sndbuf=8k")
        .start();
    assert!(read_slowly(&nginx) == body, "other bytes");
}

#[test]
fn a_client_that_leaves_while_connecting_ends_the_walk() {
    let (full, u2) = (Full::new(), Backend::new("u2", 200));
    let nginx = two(&full, &u2).start();
    let worker = nginx.workers()[0];
    let before = descriptors(worker);
    let mut client = nginx.client();
    client.start("/");
    eventually("the connect hangs", || descriptors(worker) >= before + 2);
    drop(client);
    let line = &nginx.log(1)[0];
    assert_eq!((&line["status"], &line["path"]), ("499", "u1"));
    eventually("nothing is left", || descriptors(worker) <= before);
    assert_eq!(u2.count(), 0);
}

#[test]
fn a_client_that_leaves_while_waiting_ends_the_walk() {
    let (u1, u2) = (Backend::new("u1", Act::Hang), Backend::new("u2", 200));
    let nginx = two(&u1, &u2).start();
    let mut client = nginx.client();
    client.start("/");
    eventually("u1 is asked", || u1.count() == 1);
    drop(client);
    let line = &nginx.log(1)[0];
    assert_eq!((&line["status"], &line["path"]), ("499", "u1"));
    eventually("u1's connection is closed", || u1.open() == 0);
    assert_eq!(u2.count(), 0);
}

#[test]
fn d34_a_client_that_leaves_in_the_second_try_finds_it_in_the_log() {
    for u1 in [Ok(Backend::new("u1", 503)), Err(Dead::new())] {
        let u2 = Backend::new("u2", Act::Hang);
        let (nginx, first) = match &u1 {
            Ok(backend) => (two(backend, &u2).start(), "503"),
            Err(dead) => (two(dead, &u2).start(), "502"),
        };
        let mut client = nginx.client();
        client.start("/");
        eventually("u2 is asked", || u2.count() == 1);
        drop(client);
        let line = &nginx.log(1)[0];
        assert_eq!((&line["status"], &line["path"]), ("499", "u1 -> u2"));
        assert_eq!(&line["addr"], "(u1) <u1> (u2) <u2>");
        assert!(
            line["statuses"].starts_with(&format!("(u1) {first} (u2) ")),
            "{}",
            &line["statuses"]
        );
        eventually("u2's connection is closed", || u2.open() == 0);
    }
}

#[test]
fn clients_that_leave_about_when_a_try_ends_leave_nothing() {
    let u1 = Backend::new("u1", answer(503).after(20));
    let u2 = Backend::new("u2", answer(200).after(20));
    let nginx = two(&u1, &u2).start();
    let worker = nginx.workers()[0];
    nginx.get("/");
    let before = descriptors(worker);
    for i in 0..50 {
        let mut client = nginx.client();
        client.start("/");
        sleep(15 + i % 30);
    }
    eventually("nothing is left", || {
        u1.open() == 0 && u2.open() == 0 && descriptors(worker) <= before
    });
    for line in nginx.log(51) {
        assert!(["200", "499"].contains(&&line["status"]), "{line:?}");
    }
    assert_eq!(nginx.get("/").text(), "u2");
}

#[test]
fn a_client_that_leaves_while_a_dropped_body_is_awaited_leaves_nothing() {
    let late = Act::Stall(b"HTTP/1.1 503 X\r\nContent-Length: 5\r\n\r\n".to_vec());
    let (u1, u2) = (Backend::new("u1", late), Backend::new("u2", Act::Hang));
    let nginx = two_with(&u1, &u2, KEEPALIVE).start();
    let worker = nginx.workers()[0];
    let before = descriptors(worker);
    for asked in 1..8 {
        let mut client = nginx.client();
        client.start("/");
        eventually("u2 is asked", || u2.count() == asked);
    }
    eventually("nothing is left", || {
        u1.open() == 0 && u2.open() == 0 && descriptors(worker) <= before
    });
    assert!(nginx.log(7).iter().all(|line| &line["status"] == "499"));
}

#[test]
fn a_client_that_leaves_in_the_body_ends_the_answer() {
    for location in ["", "proxy_buffering off;"] {
        let (u1, u2) = (
            Backend::new("u1", 503),
            Backend::new("u2", Act::Endless(200)),
        );
        let nginx = two_with(&u1, &u2, location).start();
        let mut client = nginx.client();
        client.start("/");
        let mut bytes = [0; 4096];
        client.stream.read_exact(&mut bytes).expect("some of it");
        drop(client);
        let line = &nginx.log(1)[0];
        assert_eq!(&line["path"], "u1 -> u2");
        eventually("u2's connection is closed", || u2.open() == 0);
    }
}

#[test]
fn a_client_that_leaves_does_not_matter_where_nginx_ignores_it() {
    let u1 = Backend::new("u1", answer(503).after(200));
    let u2 = Backend::new("u2", 200);
    let nginx = two_with(&u1, &u2, "proxy_ignore_client_abort on;").start();
    let mut client = nginx.client();
    client.start("/");
    eventually("u1 is asked", || u1.count() == 1);
    drop(client);
    let line = &nginx.log(1)[0];
    assert_eq!((u2.count(), &line["path"]), (1, "u1 -> u2"));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", Act::Echo));
    let nginx = two(&u1, &u2).start();
    let mut client = nginx.client();
    let request = |line: &str, body: &str| {
        let len = body.len();
        format!("{line} HTTP/1.1\r\nHost: test\r\nContent-Length: {len}\r\n\r\n{body}")
    };
    let long = "p".repeat(30_000);
    let all = [
        request("GET /1", ""),
        request("PUT /2", &long),
        request("HEAD /3", ""),
        request("GET /ok", ""),
        request("GET /4", ""),
    ];
    client.send(all.concat().as_bytes());
    for (uri, body_len, want) in [
        ("GET /1", true, "GET /1 0 "),
        ("PUT /2", true, "PUT /2 30000 "),
        ("HEAD /3", false, ""),
        ("GET /ok", true, "ok"),
        ("GET /4", true, "GET /4 0 "),
    ] {
        let response = client
            .read(body_len)
            .unwrap_or_else(|e| panic!("{uri}: {e}"));
        assert_eq!(response.status, 200, "{uri}");
        assert!(
            response.text().starts_with(want),
            "{uri}: {}",
            response.text()
        );
    }
    assert_eq!(nginx.log(5).len(), 5);
}

#[test]
fn a_failed_answer_without_end_does_not_hold_up_the_next_upstream() {
    let (u1, u2) = (
        Backend::new("u1", Act::Endless(503)),
        Backend::new("u2", 200),
    );
    let nginx = two(&u1, &u2).start();
    for _ in 0..3 {
        assert_eq!(nginx.get("/").text(), "u2");
    }
    eventually("u1's connections are closed", || u1.open() == 0);
}

#[test]
fn an_answer_that_its_upstream_cuts_is_cut_for_the_client() {
    let u1 = Backend::new("u1", 503);
    let u2 = Backend::new("u2", answer(200).body("half").cut(1000));
    let nginx = two(&u1, &u2).start();
    let mut client = nginx.client();
    let cut = client.get("/");
    assert!(
        cut.as_ref().is_err_and(|e| e.contains("cut: 4 of 1004")),
        "{cut:?}"
    );
    let line = &nginx.log(1)[0];
    assert_eq!(&line["path"], "u1 -> u2", "no failure, no other try");
}

/// How many streams one connection of HTTP/2 has at once in the tests below.
const STREAMS: usize = 16;

/// An nginx that speaks HTTP/2 without TLS.
fn start_http2(setup: Setup) -> Nginx {
    if at_least([1, 25, 1]) {
        setup.server("http2 on;").start()
    } else {
        setup.listen("http2").start()
    }
}

/// Asks for `/0`, `/1` and so on, all at once over one connection; the answers in that order.
fn streams(nginx: &Nginx, method: &'static str, body: impl Fn(usize) -> Vec<u8>) -> Vec<Answer> {
    let requests: Vec<_> = (0..STREAMS)
        .map(|i| Request {
            method,
            path: format!("/{i}"),
            body: body(i),
        })
        .collect();
    together(nginx.port(), &requests).expect("whole answers")
}

/// All streams were in the first upstream together, then in the second one.
fn all_failed_over(nginx: &Nginx, u1: &Backend) {
    assert_eq!((u1.count(), u1.most_running()), (STREAMS, STREAMS));
    let lines = nginx.log(STREAMS);
    assert_eq!(lines.len(), STREAMS);
    for line in lines {
        assert_eq!((&line["status"], &line["path"]), ("200", "u1 -> u2"));
    }
}

#[test]
fn streams_of_one_connection_fail_over_at_once() {
    for buffering in ["", "proxy_buffering off;"] {
        let u1 = Backend::new("u1", answer(503).after(1000));
        let port = free_port();
        let setup = Setup::new()
            .upstream("u1", &u1)
            .http(&format!(
                "upstream u2 {{ server 127.0.0.1:{port}; }}\n\
                 server {{ listen 127.0.0.1:{port}; access_log off; root <dir>/html; }}\n"
            ))
            .upstrand_with(
                &format!("upstream ~^u; order per_request; {FAILURES}"),
                buffering,
            );
        // Long enough that the streams take turns in sending frames.
        let want = |i: usize| noise(100_000 + 1000 * i)[i..].to_vec();
        for i in 0..STREAMS {
            fs::write(setup.dir().join(format!("html/{i}")), want(i)).expect("a file");
        }
        let nginx = start_http2(setup);
        let got = streams(&nginx, "GET", |_| Vec::new());
        for (i, (status, body)) in got.iter().enumerate() {
            assert_eq!(*status, 200, "stream {i}, {buffering}");
            assert!(*body == want(i), "other bytes in stream {i}, {buffering}");
        }
        all_failed_over(&nginx, &u1);
    }
}

#[test]
fn streams_of_one_connection_take_each_its_own_body_to_the_next_upstream() {
    // In memory, and in a temporary file.
    for size in ["16k", "1k"] {
        let u1 = Backend::new("u1", answer(503).after(1000));
        let u2 = Backend::new("u2", Act::Echo);
        let nginx = start_http2(two_with(
            &u1,
            &u2,
            &format!("client_body_buffer_size {size};"),
        ));
        let body = |i: usize| noise(2000 + 100 * i)[i..].to_vec();
        let got = streams(&nginx, "PUT", body);
        for (i, (status, text)) in got.iter().enumerate() {
            let (len, hash) = (body(i).len(), hash(&body(i)));
            let want = format!("PUT /{i} {len} {hash:016x}\n");
            let text = String::from_utf8_lossy(text);
            assert_eq!(*status, 200, "{size}");
            assert!(text.starts_with(&want), "{size}: not {want}{text}");
        }
        let files = nginx.logged("a client request body is buffered to a temporary file");
        assert_eq!(files > 0, size == "1k", "{files} files");
        all_failed_over(&nginx, &u1);
    }
}
