//! `zone`: one state for all workers, kept over reloads.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use support::{
    answer, client, eventually, ms, sleep, together, Act, Backend, Load, Nginx, Response, Setup,
    FAILURES,
};

const PID: &str = "add_header X-Pid $pid always;";

/// A bad upstream that is blacklisted for long, and a good one.
fn bad_and_good(interval: &str, zone: &str) -> (Backend, Backend, Setup) {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let setup = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand_with(
            &format!(
                "{zone} upstream u1 blacklist_interval={interval}; upstream u2; \
                 order per_request; {FAILURES}"
            ),
            PID,
        );
    (u1, u2, setup)
}

/// Asks until that many workers have answered; all answers in order.
fn ask_workers(nginx: &Nginx, workers: usize, at_least: usize) -> Vec<Response> {
    let mut responses = Vec::new();
    loop {
        responses.push(nginx.get("/"));
        if responses.len() >= at_least && pids(&responses) >= workers {
            return responses;
        }
        assert!(responses.len() < 500, "the kernel never asks all workers");
    }
}

fn pids(responses: &[Response]) -> usize {
    first_of_each(responses).len()
}

/// The first answer of each worker.
fn first_of_each(responses: &[Response]) -> BTreeMap<String, Response> {
    let mut first = BTreeMap::new();
    for response in responses {
        let pid = response.header("X-Pid").unwrap_or_default().to_string();
        first.entry(pid).or_insert_with(|| response.clone());
    }
    first
}

#[test]
fn four_workers_ask_a_bad_upstream_once_per_interval_in_all() {
    let (u1, _u2, setup) = bad_and_good("600ms", "zone z 256k;");
    let nginx = setup.workers(4).start();
    ask_workers(&nginx, 4, 4);
    let load = Load::start(3, nginx.port(), |r| r.status == 200 && r.text() == "u2");
    sleep(2800);
    assert_eq!(load.stop(), [] as [String; 0]);
    let asked: Vec<Instant> = u1.requests().iter().map(|r| r.at).collect();
    assert!(asked.len() >= 3, "asked {} times only", asked.len());
    for pair in asked.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(pause > ms(500), "asked again after {pause:?}");
    }
}

#[test]
fn one_request_of_four_workers_probes() {
    let late = answer(200).after(600);
    let u1 = Backend::script("u1", vec![503.into(), late.into(), 200.into()]);
    let u2 = Backend::new("u2", 200);
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand_with(
            &format!(
                "zone z 256k; upstream u1 blacklist_interval=900ms; upstream u2; \
                 order per_request; {FAILURES}"
            ),
            PID,
        )
        .workers(4)
        .start();
    assert_eq!(nginx.get("/").text(), "u2");
    sleep(1000);
    let responses = together(16, |_| nginx.get("/"));
    assert!(pids(&responses) > 1, "no test: one worker took all");
    let probes = responses.iter().filter(|r| r.text() == "u1");
    assert_eq!((probes.count(), u1.count()), (1, 2));
    let responses = ask_workers(&nginx, 4, 4);
    assert!(
        responses.iter().all(|r| r.text() == "u1"),
        "cleared for all"
    );
}

#[test]
fn four_workers_keep_strict_turns() {
    let backends = ["u1", "u2", "u3"].map(|name| Backend::new(name, 200));
    let nginx = Setup::new()
        .upstream("u1", &backends[0])
        .upstream("u2", &backends[1])
        .upstream("u3", &backends[2])
        .upstrand_with("zone z 256k; upstream u1; upstream u2; upstream u3;", PID)
        .workers(4)
        .start();
    let responses = ask_workers(&nginx, 4, 24);
    for (i, response) in responses.iter().enumerate() {
        assert_eq!(response.text(), ["u1", "u2", "u3"][i % 3], "request {i}");
    }
    // Also when they ask at the same time: no turn is given twice or lost.
    let before: Vec<usize> = backends.iter().map(Backend::count).collect();
    together(6, |_| (0..10).for_each(|_| drop(nginx.get("/"))));
    for (backend, before) in backends.iter().zip(before) {
        assert_eq!(backend.count() - before, 20);
    }
}

#[test]
fn without_a_zone_each_worker_has_its_own_marks() {
    let (u1, _u2, setup) = bad_and_good("60s", "");
    let nginx = setup.workers(4).start();
    let responses = ask_workers(&nginx, 4, 20);
    assert!(responses.iter().all(|r| r.text() == "u2"));
    assert_eq!(u1.count(), 4);
}

#[test]
fn random_starts_differ_between_workers() {
    let backend = Backend::new("u", 200);
    let mut setup = Setup::new();
    for i in 0..60 {
        setup = setup.upstream(&format!("u{i}"), &backend);
    }
    let nginx = setup
        .upstrand_with(
            "upstream ~^u; order start_random;",
            "add_header X-Pid $pid; add_header X-Upstream $upstrand_path;",
        )
        .workers(4)
        .start();
    let first = first_of_each(&ask_workers(&nginx, 4, 4));
    let starts: Vec<_> = first.values().map(|r| r.header("X-Upstream")).collect();
    assert!(starts.iter().any(|s| s != &starts[0]), "all {starts:?}");
}

#[test]
fn random_start_in_a_zone_is_drawn_once_for_all_workers() {
    let backend = Backend::new("u", 200);
    let mut setup = Setup::new();
    for i in 0..10 {
        setup = setup.upstream(&format!("u{i}"), &backend);
    }
    let nginx = setup
        .upstrand_with(
            "zone z 256k; upstream ~^u; order start_random;",
            "add_header X-Pid $pid; add_header X-Upstream $upstrand_path;",
        )
        .workers(4)
        .start();
    let responses = ask_workers(&nginx, 4, 12);
    let turns: Vec<usize> = responses
        .iter()
        .filter_map(|r| r.header("X-Upstream")?.strip_prefix('u')?.parse().ok())
        .collect();
    assert_eq!(turns.len(), responses.len());
    for pair in turns.windows(2) {
        assert_eq!(pair[1], (pair[0] + 1) % 10, "{turns:?}");
    }
}

fn upstreams(names: &[&str]) -> String {
    let one = |name: &&str| format!("upstream {name} {{ server <{name}>; }}\n");
    names.iter().map(one).collect()
}

#[test]
fn marks_are_kept_over_reloads_by_the_names_of_members() {
    let bad = Backend::new("bad", 503);
    let other = Backend::new("other", 503);
    let good = Backend::new("good", 200);
    let config = |members: &str| {
        format!(
            "upstream bad {{ server <bad>; }}\nupstream renamed {{ server <bad>; }}\n{}\
             upstrand s {{ zone z 256k; {members} order per_request; {FAILURES} }}\n",
            upstreams(&["other", "good"])
        )
    };
    let server = "location / { proxy_pass http://$upstrand_s; }";
    let mark = "upstream bad blacklist_interval=60s;";
    let mut nginx = Setup::new()
        .at("bad", &bad)
        .at("other", &other)
        .at("good", &good)
        .http(&config(&format!("{mark} upstream good;")))
        .server(server)
        .workers(2)
        .start();
    assert_eq!(nginx.paths(2, "/"), ["bad -> good", "good"]);

    nginx.reload();
    assert_eq!(nginx.paths(2, "/"), ["good"; 2], "the same members");

    nginx.reload_with(
        &config(&format!("upstream other; {mark} upstream good;")),
        server,
    );
    let want = ["other -> good"; 2];
    assert_eq!(nginx.paths(2, "/"), want, "one added before it");

    nginx.reload_with(&config(&format!("{mark} upstream good;")), server);
    assert_eq!(nginx.paths(2, "/"), ["good"; 2], "one removed before it");
    assert_eq!(bad.count(), 1);

    nginx.reload_with(
        &config("upstream renamed blacklist_interval=60s; upstream good;"),
        server,
    );
    let want = ["renamed -> good", "good"];
    assert_eq!(nginx.paths(2, "/"), want, "a new name is a new member");
}

#[test]
fn turns_are_kept_over_reloads() {
    let backends = ["u1", "u2", "u3"].map(|name| Backend::new(name, 200));
    let nginx = Setup::new()
        .upstream("u1", &backends[0])
        .upstream("u2", &backends[1])
        .upstream("u3", &backends[2])
        .upstrand("zone z 256k; upstream ~^u;")
        .start();
    assert_eq!(nginx.paths(2, "/"), ["u1", "u2"]);
    nginx.reload();
    assert_eq!(nginx.paths(2, "/"), ["u3", "u1"]);
}

#[test]
fn two_upstrands_in_a_zone_have_marks_of_their_own() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let members = "upstream u1 blacklist_interval=60s; upstream u2; order per_request;";
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .http(&format!(
            "upstrand a {{ zone z 256k; {members} {FAILURES} }}\n\
             upstrand b {{ zone z; {members} {FAILURES} }}\n"
        ))
        .server(
            "location /a { proxy_pass http://$upstrand_a; }\n\
             location /b { proxy_pass http://$upstrand_b; }\n",
        )
        .workers(3)
        .start();
    assert_eq!(nginx.paths(3, "/a"), ["u1 -> u2", "u2", "u2"]);
    assert_eq!(nginx.paths(3, "/b"), ["u1 -> u2", "u2", "u2"]);
    nginx.reload();
    assert_eq!(nginx.paths(2, "/a"), ["u2"; 2]);
    assert_eq!(nginx.paths(2, "/b"), ["u2"; 2]);
}

#[test]
fn upstrands_that_come_and_go_leave_the_marks_of_the_others_in_their_zone() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let upstrand = |name: &str, zone: &str| {
        format!(
            "upstrand {name} {{ zone {zone}; upstream u1 blacklist_interval=60s; upstream u2; \
             order per_request; {FAILURES} }}\n"
        )
    };
    let config = |upstrands: &str| format!("{}{upstrands}", upstreams(&["u1", "u2"]));
    let server = "location / { dynamic_upstrand $d $arg_s; proxy_pass http://$d; }";
    let (a, b) = (upstrand("a", "z 256k"), upstrand("b", "z"));
    let mut nginx = Setup::new()
        .at("u1", &u1)
        .at("u2", &u2)
        .http(&config(&format!("{a}{b}")))
        .server(server)
        .workers(2)
        .start();
    assert_eq!(nginx.paths(2, "/?s=b"), ["u1 -> u2", "u2"]);
    let c = upstrand("c", "z");
    nginx.reload_with(&config(&format!("{c}{}", upstrand("b", "z 128k"))), server);
    assert_eq!(nginx.paths(2, "/?s=b"), ["u2"; 2], "without a, beside c");
    assert_eq!(nginx.paths(2, "/?s=c"), ["u1 -> u2", "u2"]);
    nginx.reload_with(&config(&format!("{c}{b}{a}")), server);
    assert_eq!(nginx.paths(1, "/?s=b"), ["u2"]);
    assert_eq!(nginx.paths(1, "/?s=c"), ["u2"]);
    assert_eq!(nginx.paths(2, "/?s=a"), ["u1 -> u2", "u2"]);
}

#[test]
fn a_zone_may_grow_go_and_come_back_over_reloads() {
    let (_u1, _u2, setup) = bad_and_good("60s", "zone z 64k;");
    let mut nginx = setup.start();
    let (http, server) = (nginx.http(), nginx.server());
    assert_eq!(nginx.paths(2, "/"), ["u1 -> u2", "u2"]);
    nginx.reload_with(&http.replace("64k", "1m"), &server);
    assert_eq!(nginx.paths(1, "/"), ["u2"], "grown: marks are kept");
    nginx.reload_with(&http.replace("zone z 64k;", ""), &server);
    assert_eq!(
        nginx.paths(2, "/"),
        ["u1 -> u2", "u2"],
        "gone: a fresh start"
    );
    nginx.reload_with(&http, &server);
    assert_eq!(
        nginx.paths(2, "/"),
        ["u1 -> u2", "u2"],
        "back: a fresh start"
    );
}

#[test]
fn a_zone_too_small_is_refused_and_the_needed_size_told() {
    let backend = Backend::new("u", 200);
    let mut setup = Setup::new();
    for i in 0..900 {
        setup = setup.upstream(&format!("u{i}"), &backend);
    }
    let refused = setup.upstrand("zone z 32k; upstream ~^u;");
    let (accepted, text) = refused.check();
    assert!(!accepted, "accepted");
    let needed = text
        .split_once("need ")
        .and_then(|(_, rest)| rest.split_once('k'))
        .and_then(|(number, _)| number.parse::<u32>().ok());
    let needed = needed.unwrap_or_else(|| panic!("no size in {text}"));

    let mut setup = Setup::new();
    for i in 0..900 {
        setup = setup.upstream(&format!("u{i}"), &backend);
    }
    let nginx = setup
        .upstrand(&format!("zone z {needed}k; upstream ~^u;"))
        .start();
    assert_eq!(nginx.paths(2, "/"), ["u0", "u1"]);
}

#[test]
fn killed_workers_leave_the_others_working() {
    let (u1, u2, setup) = bad_and_good("60s", "zone z 256k;");
    u2.now(answer(200).after(5));
    let nginx = setup.workers(3).allow("exited on signal 9").start();
    ask_workers(&nginx, 3, 3);
    // Connections of the killed worker are lost, no other answer is.
    let load = Load::start(3, nginx.port(), |r| r.status == 200);
    for _ in 0..4 {
        sleep(60);
        nginx.kill_worker(nginx.workers()[0]);
    }
    let bad = load.stop();
    let wrong: Vec<_> = bad.iter().filter(|bad| !bad.starts_with("Err")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(!bad.iter().any(|bad| bad.contains("WouldBlock")), "{bad:?}");
    let responses = ask_workers(&nginx, 3, 10);
    assert!(responses.iter().all(|r| r.text() == "u2"));
    assert_eq!(u1.count(), 1, "the mark outlives the workers");
}

#[test]
fn a_worker_killed_while_it_probes_leaves_the_upstream_to_the_others() {
    let u1 = Backend::script("u1", vec![503.into(), Act::Hang, 200.into()]);
    let u2 = Backend::new("u2", 200);
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand_with(
            &format!(
                "zone z 256k; upstream u1 blacklist_interval=700ms; upstream u2; \
                 order per_request; {FAILURES}"
            ),
            PID,
        )
        .workers(2)
        .allow("exited on signal 9")
        .start();
    assert_eq!(nginx.get("/").text(), "u2");
    sleep(750);
    let mut probe = nginx.client();
    probe.start("/");
    eventually("a probe runs", || u1.count() == 2);
    // Which of them probes can't be seen from outside.
    for pid in nginx.workers() {
        nginx.kill_worker(pid);
    }
    assert!(probe.read(true).is_err());
    eventually("another probe", || nginx.get("/").text() == "u1");
    assert_eq!(nginx.get("/").text(), "u1");
    let lost = client::get(nginx.port(), "/").is_err();
    assert!(!lost);
}

/// The first place in the master's shared memory where these bytes are.
fn find_shared(nginx: &Nginx, bytes: &[u8]) -> Option<u64> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", nginx.master)).ok()?;
    let memory = File::open(format!("/proc/{}/mem", nginx.master)).ok()?;
    let shared = maps.lines().filter(|line| line.contains(" rw-s "));
    shared
        .filter_map(|line| line.split_once(' ')?.0.split_once('-'))
        .find_map(|(from, to)| {
            let from = u64::from_str_radix(from, 16).ok()?;
            let to = u64::from_str_radix(to, 16).ok()?;
            let mut content = vec![0; (to - from) as usize];
            memory.read_exact_at(&mut content, from).ok()?;
            let at = content.windows(bytes.len()).position(|w| w == bytes)?;
            Some(from + at as u64)
        })
}

#[test]
fn a_reload_takes_over_nothing_that_a_zone_cannot_hold() {
    const MAGIC: u64 = u64::from_be_bytes(*b"upstrand");
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let nginx = Setup::new()
        .upstream("first_member", &u1)
        .upstream("second_member", &u2)
        .upstrand(&format!(
            "zone z 256k; upstream first_member blacklist_interval=60s; \
             upstream second_member; order per_request; {FAILURES}"
        ))
        .start();
    assert_eq!(nginx.get("/").text(), "u2");
    let start = || find_shared(&nginx, &MAGIC.to_ne_bytes()).expect("a zone");
    // The words of the header and of the upstrand's head, and the lengths of names.
    let words = (1..8).map(|n| ("", n * 8));
    let names = ["first_member", "second_member"].map(|name| (name, 0));
    for (name, offset) in words.chain(names) {
        for value in [0, 1 << 40, (1 << 63) + 8, u64::MAX] {
            let at = match name {
                "" => start() + offset,
                name => {
                    let len = (name.len() as u64).to_ne_bytes();
                    let bytes = [&len, name.as_bytes()].concat();
                    find_shared(&nginx, &bytes).expect("a name")
                }
            };
            let path = format!("/proc/{}/mem", nginx.master);
            let memory = OpenOptions::new().write(true).open(path);
            let memory = memory.expect("a child's memory");
            memory.write_all_at(&u64::to_ne_bytes(value), at).unwrap();
            nginx.reload();
            assert_eq!(nginx.get("/").text(), "u2", "{name}{offset}: {value}");
        }
    }
    // With all as it should be marks are taken over.
    let asked = u1.count();
    nginx.reload();
    assert_eq!((nginx.get("/").text(), u1.count()), ("u2".into(), asked));
}
