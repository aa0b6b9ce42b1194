//! Walks that are long, and such that nginx begins when the answer is out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use support::{answer, noise, Backend, Dead, Nginx, Setup, FAILURES};

/// How many upstreams fail; the C module lost the request after some 50.
const MANY: usize = 1000;

/// Upstreams that all fail by the same server, and one behind them.
fn many(bad: &Backend, good: &Backend) -> Nginx {
    let all: String = (1..=MANY)
        .map(|i| format!("upstream u{i} {{ server <bad>; }}\n"))
        .collect();
    Setup::new()
        .at("bad", bad)
        .http(&all)
        .upstream("u_good", good)
        .upstrand(&format!(
            "upstream ~^u; order per_request; {FAILURES} next_upstream_statuses non_idempotent;"
        ))
        .start()
}

#[test]
fn a_walk_visits_a_thousand_upstreams() {
    let (bad, good) = (Backend::new("bad", 503), Backend::new("good", 200));
    let nginx = many(&bad, &good);
    let response = nginx.get("/");
    assert_eq!((response.status, response.text().as_str()), (200, "good"));
    assert_eq!((bad.count(), good.count()), (MANY, 1));
    let line = &nginx.log(1)[0];
    assert_eq!((&line["status"], &line["tries"]), ("200", "1001"));
    let reasons = &line["reason"];
    assert!(reasons.starts_with("(u1) http_503 (u2) http_503 (u3) "));
    assert!(reasons.ends_with("(u999) http_503 (u1000) http_503 (u_good) final"));
    assert_eq!(line["path"].split(" -> ").count(), MANY + 1);
}

#[test]
fn a_post_visits_a_thousand_upstreams_with_its_whole_body() {
    let (bad, good) = (Backend::new("bad", 503), Backend::new("good", 200));
    let nginx = many(&bad, &good);
    let body = noise(1024);
    let response = nginx.ask("POST", "/", "", &body);
    assert_eq!((response.status, response.text().as_str()), (200, "good"));
    assert_eq!(&nginx.log(1)[0]["tries"], "1001");
    let all = [bad.requests(), good.requests()].concat();
    assert_eq!(all.len(), MANY + 1);
    assert!(all.iter().all(|request| request.body == body));
}

/// nginx asks its `post_action` when the client has its answer; what comes back goes nowhere, and
/// with no answer to choose there is no fail-over. The request's variables tell of it as well.
#[test]
fn a_post_action_asks_one_upstream() {
    for (main, before) in [
        ("return 200 main;", ""),
        (
            "proxy_pass http://$upstrand_s;",
            "(u1) http_503 (u2) final ",
        ),
    ] {
        let main_answer = answer(200).body("main");
        let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", main_answer));
        let (p1, p2) = (Backend::new("p1", 503), Backend::new("p2", 200));
        let nginx = Setup::new()
            .upstream("u1", &u1)
            .upstream("u2", &u2)
            .upstream("p1", &p1)
            .upstream("p2", &p2)
            .http(&format!(
                "upstrand s {{ upstream ~^u; order per_request; {FAILURES} }}\n\
                 upstrand after {{ upstream ~^p; order per_request; {FAILURES} }}\n"
            ))
            .server(&format!(
                "location / {{ post_action @after; {main} }}\n\
                 location @after {{ proxy_pass http://$upstrand_after; }}\n"
            ))
            .start();
        for _ in 0..3 {
            let response = nginx.get("/x");
            let got = (response.status, response.text());
            assert_eq!(got, (200, "main".to_string()), "{main}");
        }
        for line in nginx.log(3) {
            assert_eq!(&line["reason"], format!("{before}(p1) final"), "{main}");
        }
        assert_eq!((p1.count(), p2.count()), (3, 0), "{main}");
        assert_eq!(p1.last().uri, "/x");
    }
}

/// An upstream that refuses the connection is no reason for another one either.
#[test]
fn a_post_action_that_finds_no_server_leaves_the_answer_alone() {
    let (p1, p2) = (Dead::new(), Backend::new("p2", 200));
    let nginx = Setup::new()
        .upstream("p1", &p1)
        .upstream("p2", &p2)
        .http("upstrand after { upstream ~^p; order per_request; }\n")
        .server(
            "location / { post_action /after; return 200 main; }\n\
             location /after { internal; proxy_pass http://$upstrand_after; }\n",
        )
        .start();
    for _ in 0..2 {
        assert_eq!(nginx.get("/").text(), "main");
    }
    for line in nginx.log(2) {
        assert_eq!(
            (&line["statuses"], &line["reason"]),
            ("(p1) 502", "(p1) final")
        );
    }
    assert_eq!(p2.count(), 0);
}
