//! `blacklist_interval`: what marks an upstream, and how it comes back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::time::Instant;

use support::{
    answer, client, eventually, ms, sleep, together, Act, Backend, Nginx, Setup, FAILURES,
};

/// u1 with a script and an interval, u2 that is good; walks begin with u1.
fn start(acts: Vec<Act>, interval: &str) -> (Backend, Backend, Nginx) {
    let (u1, u2) = (Backend::script("u1", acts), Backend::new("u2", 200));
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand(&format!(
            "upstream u1 blacklist_interval={interval}; upstream u2; order per_request; {FAILURES}"
        ))
        .start();
    (u1, u2, nginx)
}

#[test]
fn one_request_probes_while_the_others_pass_by_and_a_good_answer_clears() {
    let late = answer(200).after(900);
    let (u1, _u2, nginx) = start(vec![503.into(), late.into(), 200.into()], "1s");
    assert_eq!(nginx.paths(2, "/"), ["u1 -> u2", "u2"]);
    sleep(1100);
    let answers = together(8, |_| {
        let start = Instant::now();
        (nginx.get("/").text(), start.elapsed())
    });
    let probes: Vec<_> = answers.iter().filter(|(text, _)| text == "u1").collect();
    assert_eq!(probes.len(), 1, "{answers:?}");
    assert_eq!(u1.count(), 2);
    for (text, time) in &answers {
        if text != "u1" {
            assert_eq!(text, "u2");
            assert!(*time < ms(800), "waited for the probe: {time:?}");
        }
    }
    assert_eq!(nginx.paths(3, "/"), ["u1"; 3], "cleared");
}

#[test]
fn a_bad_probe_marks_anew() {
    let (u1, _u2, nginx) = start(vec![503.into()], "700ms");
    nginx.get("/");
    sleep(800);
    assert_eq!(nginx.paths(3, "/"), ["u1 -> u2", "u2", "u2"]);
    assert_eq!(u1.count(), 2);
    let asked: Vec<Instant> = u1.requests().iter().map(|r| r.at).collect();
    assert!(asked[1] - asked[0] > ms(600));
}

#[test]
fn a_client_that_leaves_during_the_probe_leaves_the_mark_to_a_later_one() {
    let (u1, _u2, nginx) = start(vec![503.into(), Act::Hang, 200.into()], "700ms");
    nginx.get("/");
    sleep(800);
    let mut client = nginx.client();
    client.start("/");
    eventually("a probe runs", || u1.count() == 2);
    drop(client);
    eventually("the probe is over", || u1.open() == 0);
    assert_eq!(
        nginx.get("/").text(),
        "u2",
        "a probe without answer clears nothing"
    );
    eventually("another probe", || nginx.get("/").text() == "u1");
    assert_eq!(u1.count(), 3);
    assert_eq!(nginx.paths(2, "/"), ["u1"; 2]);
}

#[test]
fn a_probe_that_resets_or_says_nonsense_marks_anew() {
    let nonsense = Act::Stall(b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n".to_vec());
    let acts = vec![503.into(), Act::Reset, nonsense, 200.into()];
    let (u1, _u2, nginx) = start(acts, "500ms");
    nginx.get("/");
    for asked in 2..4 {
        eventually("a probe", || {
            assert_eq!(nginx.get("/").text(), "u2");
            u1.count() == asked
        });
        assert_eq!(nginx.paths(1, "/"), ["u2"]);
    }
    eventually("a good probe", || nginx.get("/").text() == "u1");
}

#[test]
fn members_all_of_whom_are_marked_are_all_asked_and_the_log_says_so_once_a_walk() {
    let u1 = Backend::script("u1", vec![503.into()]);
    let u2 = Backend::script("u2", vec![503.into(), 503.into(), 200.into()]);
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand(&format!(
            "upstream ~^u blacklist_interval=60s; order per_request; {FAILURES}"
        ))
        .start();
    let told = |n| {
        let words = "all upstreams in upstrand \"s\" are blacklisted";
        assert_eq!(nginx.logged(words), n);
    };
    assert_eq!(nginx.get("/").status, 503);
    told(0);
    assert_eq!(nginx.get("/").status, 503);
    told(1);
    assert_eq!(nginx.get("/").status, 200);
    told(2);
    let want = ["u1 -> u2", "u1 -> u2", "u1 -> u2", "u2"];
    let paths: Vec<String> = nginx.paths(1, "/");
    assert_eq!(paths, ["u2"], "the good answer ended u2's mark, u1's stays");
    let lines = nginx.log(4);
    let paths: Vec<&str> = lines.iter().map(|line| &line["path"]).collect();
    assert_eq!(paths, want);
}

#[test]
fn many_clients_at_once_see_good_answers_only_while_marks_come_and_go() {
    let acts = (0..400).map(|i| if i % 3 == 0 { 200 } else { 503 }.into());
    let (u1, _u2, nginx) = start(acts.collect(), "20ms");
    let bad: Vec<String> = together(6, |_| {
        let mut bad = Vec::new();
        for _ in 0..60 {
            match client::get(nginx.port(), "/") {
                Ok(r) if r.status == 200 => {}
                other => bad.push(format!("{other:?}")),
            }
            sleep(2);
        }
        bad
    })
    .concat();
    assert!(bad.is_empty(), "{bad:?}");
    assert!(u1.count() > 5);
}

#[test]
fn an_answer_out_of_the_cache_is_no_probe() {
    let u1 = Backend::script("u1", vec![200.into(), 503.into(), 200.into()]);
    let u2 = Backend::new("u2", 200);
    let nginx = Setup::new()
        .http("proxy_cache_path <dir>/cache keys_zone=c:1m;\n")
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand_with(
            &format!(
                "upstream u1 blacklist_interval=1s; upstream u2; order per_request; {FAILURES}"
            ),
            "proxy_cache c; proxy_cache_valid 200 1m;",
        )
        .start();
    assert_eq!(nginx.paths(1, "/kept"), ["u1"]);
    assert_eq!(nginx.paths(1, "/a"), ["u1 -> u2"]);
    sleep(1100);
    assert_eq!(nginx.get("/kept").text(), "u1");
    assert_eq!(u1.count(), 2, "out of the cache");
    assert_eq!(nginx.paths(2, "/b"), ["u1"; 2], "the probe");
    assert_eq!(nginx.paths(1, "/c"), ["u1"]);
}

#[test]
fn a_client_that_leaves_before_its_probe_ends_no_mark_of_an_operator() {
    let (u1, u2) = (
        Backend::script("u1", vec![503.into(), 200.into()]),
        Backend::new("u2", 200),
    );
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .server("location /api/ { upstrand_api; }\n")
        .upstrand(&format!(
            "zone z 256k; upstream u1 blacklist_interval=300ms; upstream u2;\n\
             order per_request; {FAILURES}"
        ))
        .start();
    assert_eq!(nginx.paths(1, "/"), ["u1 -> u2"]);
    sleep(400);
    let mut client = nginx.client();
    client.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n");
    // The walk has begun as soon as the next one passes the upstream by.
    eventually("a probe", || nginx.get("/").text() == "u2");
    let response = nginx.ask(
        "PATCH",
        "/api/upstrands/s/upstreams/u1",
        "Content-Type: application/json\r\n",
        b"{\"blacklist\":\"1m\"}",
    );
    assert_eq!(response.status, 200, "{}", response.text());
    drop(client);
    eventually("the client's line in the log", || {
        nginx.log(1).iter().any(|line| line["status"] == *"400")
    });
    assert_eq!(nginx.paths(3, "/"), ["u2"; 3]);
    assert_eq!(u1.count(), 1);
}

#[test]
fn an_update_in_the_background_is_a_probe() {
    let acts = vec![
        answer(200).header("Cache-Control: max-age=1").into(),
        503.into(),
        answer(200).after(900).into(),
        200.into(),
    ];
    let (u1, u2) = (Backend::script("u1", acts), Backend::new("u2", 200));
    let nginx = Setup::new()
        .http("proxy_cache_path <dir>/cache keys_zone=c:1m;\n")
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand_with(
            &format!(
                "upstream u1 blacklist_interval=1500ms; upstream u2; order per_request; {FAILURES}"
            ),
            "proxy_cache c; proxy_cache_key $uri; proxy_cache_use_stale updating;\n\
             proxy_cache_background_update on;",
        )
        .start();
    assert_eq!(nginx.get("/kept").text(), "u1");
    assert_eq!(nginx.get("/a").text(), "u2");
    sleep(2100);
    assert_eq!(nginx.get("/kept").text(), "u1", "stale");
    eventually("an update", || u1.count() == 3);
    assert_eq!(nginx.get("/b").text(), "u2", "one request probes");
    eventually("a good probe", || nginx.get("/c").text() == "u1");
    assert_eq!(u1.count(), 4);
}

#[test]
fn a_probe_that_is_not_modified_is_a_good_one() {
    let acts = vec![
        answer(200)
            .header("Cache-Control: max-age=1")
            .header("ETag: \"one\"")
            .into(),
        503.into(),
        answer(304).into(),
        200.into(),
    ];
    let (u1, u2) = (Backend::script("u1", acts), Backend::new("u2", 200));
    let nginx = Setup::new()
        .http("proxy_cache_path <dir>/cache keys_zone=c:1m;\n")
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand_with(
            &format!(
                "upstream u1 blacklist_interval=2s; upstream u2; order per_request; {FAILURES}"
            ),
            "proxy_cache c; proxy_cache_key $uri; proxy_cache_revalidate on;",
        )
        .start();
    assert_eq!(nginx.get("/kept").text(), "u1");
    assert_eq!(nginx.get("/a").text(), "u2");
    sleep(2100);
    assert_eq!(nginx.get("/kept").text(), "u1", "revalidated");
    assert_eq!(u1.count(), 3);
    assert_eq!(nginx.get("/b").text(), "u1", "no mark is left");
}
