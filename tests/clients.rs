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

use std::io::Read;

use support::nginx::descriptors;
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
