//! `next_upstream_timeout`: the deadline of a walk.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::time::{Duration, Instant};

use support::nginx::built_with;
use support::{
    answer, eventually, ms, noise, skip, sleep, Act, Address, Backend, Client, Dead, Full, Nginx,
    Response, Setup, FAILURES,
};

/// u1 and u2 in an upstrand with a deadline of 700 ms.
fn two(u1: &impl Address, u2: &impl Address, members: &str, location: &str) -> Setup {
    Setup::new()
        .upstream("u1", u1)
        .upstream("u2", u2)
        .upstrand_with(
            &format!("{members} order per_request; next_upstream_timeout 700ms; {FAILURES}"),
            location,
        )
        .server("location /ok { return 200 ok; }\n")
}

const BOTH: &str = "upstream u1; upstream u2;";

fn timed(ask: impl FnOnce() -> Response) -> (Response, Duration) {
    let start = Instant::now();
    let response = ask();
    (response, start.elapsed())
}

/// One request, which the deadline cuts.
fn is_cut(nginx: &Nginx, body: &[u8]) {
    let (response, time) = timed(|| nginx.ask("PUT", "/", "", body));
    assert_eq!(response.status, 504);
    assert!(time > ms(600), "cut after {time:?}");
    assert!(time < ms(3000), "cut after {time:?}");
}

#[test]
fn cuts_a_connect_that_hangs() {
    let (u1, u2) = (Full::new(), Backend::new("u2", 200));
    let nginx = two(&u1, &u2, BOTH, "").start();
    is_cut(&nginx, b"");
    let line = &nginx.log(1)[0];
    assert_eq!((&line["path"], &line["statuses"]), ("u1", "(u1) 504"));
    assert_eq!((&line["reason"], u2.count()), ("(u1) deadline", 0));
}

#[test]
fn cuts_while_it_waits_for_an_answer() {
    let (u1, u2) = (Backend::new("u1", Act::Hang), Backend::new("u2", 200));
    let nginx = two(&u1, &u2, BOTH, "").start();
    is_cut(&nginx, b"");
    eventually("the connection is closed", || u1.open() == 0);
    let line = &nginx.log(1)[0];
    assert_eq!((&line["reason"], u2.count()), ("(u1) deadline", 0));
    assert_eq!(&line["status"], "504");
    // A POST is no exception, and a HEAD gets no body.
    assert_eq!(nginx.ask("POST", "/", "", b"x").status, 504);
    let mut client = nginx.client();
    assert_eq!(client.ask("HEAD", "/", "", b"").expect("504").status, 504);
    assert_eq!(client.get("/ok").expect("in step").text(), "ok");
}

#[test]
fn cuts_in_the_middle_of_a_header() {
    let half = Act::Stall(b"HTTP/1.1 200 OK\r\nContent-Le".to_vec());
    let (u1, u2) = (Backend::new("u1", half), Backend::new("u2", 200));
    let nginx = two(&u1, &u2, BOTH, "").start();
    is_cut(&nginx, b"");
    eventually("the connection is closed", || u1.open() == 0);
    assert_eq!(u2.count(), 0);
}

#[test]
fn cuts_while_it_sends_a_body_that_no_one_reads() {
    let (u1, u2) = (Backend::new("u1", Act::Deaf), Backend::new("u2", 200));
    let nginx = two(&u1, &u2, BOTH, "client_max_body_size 0;").start();
    is_cut(&nginx, &noise(12_000_000));
    let line = &nginx.log(1)[0];
    assert_eq!((&line["reason"], u2.count()), ("(u1) deadline", 0));
}

#[test]
fn cuts_a_tls_handshake_that_hangs() {
    if !built_with().contains("http_ssl_module") {
        return skip("cuts_a_tls_handshake_that_hangs", "nginx knows no TLS");
    }
    // It waits for the end of a header that never comes.
    let (u1, u2) = (Backend::new("u1", Act::Hang), Backend::new("u2", 200));
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .http(&format!(
            "upstrand s {{ {BOTH} order per_request; next_upstream_timeout 700ms; {FAILURES} }}\n"
        ))
        .server("location / { proxy_pass https://$upstrand_s; }\n")
        .start();
    is_cut(&nginx, b"");
    eventually("the connection is closed", || u1.open() == 0);
    let line = &nginx.log(1)[0];
    assert_eq!((&line["path"], &line["reason"]), ("u1", "(u1) deadline"));
    assert_eq!((u1.connections(), u2.connections()), (1, 0));
}

#[test]
fn goes_with_a_client_that_leaves_before() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", Act::Hang));
    let nginx = two(&u1, &u2, BOTH, "").start();
    for left in 1..6 {
        let mut client = nginx.client();
        client.start("/");
        eventually("u2 is asked", || u2.count() == left);
    }
    // No timer is left that could find a request that is gone.
    sleep(900);
    assert_eq!(nginx.get("/ok").text(), "ok");
    let lines = nginx.log(6);
    assert_eq!(lines.iter().filter(|l| &l["status"] == "499").count(), 5);
}

#[test]
fn cuts_the_last_member_and_a_lone_one_too() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", Act::Hang));
    let nginx = two(&u1, &u2, BOTH, "").start();
    is_cut(&nginx, b"");
    let line = &nginx.log(1)[0];
    assert_eq!(&line["reason"], "(u1) http_503 (u2) deadline");
    drop(nginx);
    let nginx = two(&u1, &u2, "upstream u2;", "").start();
    is_cut(&nginx, b"");
}

#[test]
fn counts_the_time_of_all_servers_and_tries() {
    let (a, b, u2) = (Full::new(), Full::new(), Backend::new("u2", 200));
    let nginx = Setup::new()
        .at("a", &a)
        .at("b", &b)
        .upstream("u2", &u2)
        .http("upstream u1 { server <a>; server <b>; }\n")
        .upstrand_with(
            &format!("upstream u1; upstream u2; next_upstream_timeout 700ms; {FAILURES}"),
            "proxy_connect_timeout 450ms;",
        )
        .start();
    is_cut(&nginx, b"");
    let line = &nginx.log(1)[0];
    assert_eq!(&line["addr"], "(u1) <a>, <b>");
    assert_eq!(u2.count(), 0);
}

#[test]
fn begins_anew_with_each_request_of_a_connection() {
    let u1 = Backend::new("u1", answer(503).after(300));
    let u2 = Backend::new("u2", 200);
    let nginx = two(&u1, &u2, BOTH, "").start();
    let mut client = nginx.client();
    for _ in 0..4 {
        assert_eq!(client.get("/").expect("an answer").status, 200);
    }
}

#[test]
fn does_not_count_the_time_that_the_client_takes_to_send_a_body() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let nginx = two(&u1, &u2, BOTH, "").start();
    let mut client = nginx.client();
    client.send(b"PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhello");
    sleep(1000);
    client.send(b"world");
    assert_eq!(client.read(true).expect("an answer").text(), "u2");
    assert_eq!(u2.last().body, b"helloworld");
}

#[test]
fn does_not_cut_a_body() {
    let body = noise(60_000);
    let slow = answer(200).body(body.clone()).chunked(10_000, 200);
    for location in ["", "proxy_buffering off;"] {
        let u1 = Backend::new("u1", 503);
        let u2 = Backend::new("u2", slow.clone());
        let location = format!("proxy_http_version 1.1; {location}");
        let nginx = two(&u1, &u2, BOTH, &location).start();
        let (response, time) = timed(|| nginx.get("/"));
        assert_eq!(response.status, 200);
        assert!(response.body == body, "{} bytes", response.body.len());
        assert!(time > ms(900), "no test: whole after {time:?}");
    }
}

#[test]
fn does_not_cut_a_client_that_reads_slowly() {
    let body = noise(400_000);
    let u1 = Backend::new("u1", 503);
    let u2 = Backend::new("u2", answer(200).body(body.clone()));
    let nginx = two(&u1, &u2, BOTH, "").listen("sndbuf=8k").start();
    let mut client = Client::small(nginx.port(), 4096);
    client.start("/");
    sleep(1100);
    assert!(client.read(true).expect("an answer").body == body);
}

#[test]
fn marks_an_upstream_that_is_silent_also_when_it_is_shorter_than_other_timeouts() {
    let (u1, u2) = (Backend::new("u1", Act::Hang), Backend::new("u2", 200));
    let marked = "upstream u1 blacklist_interval=60s; upstream u2;";
    let nginx = two(&u1, &u2, marked, "").start();
    is_cut(&nginx, b"");
    let (response, time) = timed(|| nginx.get("/"));
    assert_eq!((response.text(), u1.count()), ("u2".to_string(), 1));
    assert!(time < ms(600), "the silent one was asked: {time:?}");
}

#[test]
fn marks_an_upstream_whose_connect_hangs() {
    let (u1, u2) = (Full::new(), Backend::new("u2", 200));
    let marked = "upstream u1 blacklist_interval=60s; upstream u2;";
    let nginx = two(&u1, &u2, marked, "").start();
    is_cut(&nginx, b"");
    assert_eq!(nginx.paths(1, "/"), ["u2"]);
}

#[test]
fn does_not_mark_an_upstream_that_merely_came_late() {
    let u1 = Backend::script("u1", vec![answer(503).after(500).into(), 200.into()]);
    let u2 = Backend::script("u2", vec![answer(200).after(500).into(), 200.into()]);
    let marked = "upstream u1; upstream u2 blacklist_interval=60s;";
    let nginx = two(&u1, &u2, marked, "").start();
    is_cut(&nginx, b"");
    assert_eq!((u1.count(), u2.count()), (1, 1));
    u1.now(503);
    assert_eq!(nginx.paths(1, "/"), ["u1 -> u2"], "u2 is not blacklisted");
}

#[test]
fn does_not_wait_for_a_cache_entry_that_another_request_fills() {
    let u1 = Backend::new("u1", 503);
    let u2 = Backend::script("u2", vec![answer(200).after(3000).into(), Act::Hang]);
    let marked = "upstream u1; upstream u2 blacklist_interval=60s;";
    let lock = "proxy_cache_lock on; proxy_cache_lock_timeout 10s; proxy_cache_lock_age 10s;";
    let cached = format!("proxy_cache c; {lock} proxy_cache_key $proxy_host$arg_k;");
    let nginx = two(&u1, &u2, marked, &cached)
        .http("proxy_cache_path <dir>/cache keys_zone=c:1m;\n")
        .server(&format!(
            "location /filler {{ {cached} proxy_pass http://u2; }}\n"
        ))
        .start();
    let mut filler = nginx.client();
    filler.send(b"GET /filler HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("the entry is being filled", || u2.count() == 1);
    let (response, time) = timed(|| nginx.get("/"));
    assert_eq!(response.status, 504);
    assert!(time > ms(600) && time < ms(2500), "cut after {time:?}");
    let line = &nginx.log(1)[0];
    assert_eq!(&line["reason"], "(u1) http_503 (u2) deadline");
    u2.now(200);
    assert_eq!(nginx.get("/?k=2").text(), "u2", "it is not to blame");
    assert_eq!(filler.read(true).expect("an answer").text(), "u2");
}

#[test]
fn lets_an_interception_take_its_time() {
    let (u1, u2) = (Backend::new("u1", Act::Hang), Dead::new());
    let f = Backend::new("f", answer(200).after(900));
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstream("f", &f)
        .upstrand(&format!(
            "upstream u1; upstream u2; order per_request; next_upstream_timeout 300ms; {FAILURES} \
             intercept_statuses 504 /f;"
        ))
        .server("location /f { internal; proxy_pass http://f; }")
        .start();
    let response = nginx.get("/");
    assert_eq!((response.status, response.text()), (200, "f".to_string()));
    assert_eq!(&nginx.log(1)[0]["path"], "u1 -> <intercepted>");
}
