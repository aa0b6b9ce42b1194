//! Reload, binary upgrade, stop; and that nothing grows.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use support::nginx::{descriptors, memory};
use support::{
    answer, eventually, ms, noise, sleep, within, Act, Backend, Client, Load, Nginx, Setup,
    FAILURES,
};

const PASS: &str = "location / { proxy_pass http://$upstrand_s; }";

fn upstreams(names: &[&str]) -> String {
    let one = |name: &&str| format!("upstream {name} {{ server <{name}>; }}\n");
    names.iter().map(one).collect()
}

/// u1 and u2 in the upstrand `s`.
fn two(u1: &Backend, u2: &Backend) -> Setup {
    Setup::new()
        .upstream("u1", u1)
        .upstream("u2", u2)
        .upstrand(&format!("upstream ~^u; order per_request; {FAILURES}"))
}

#[test]
fn reloads_with_changing_upstrands_lose_no_request() {
    let u1 = Backend::new("u1", answer(503).after(5));
    let (u2, u3) = (Backend::new("u2", 200), Backend::new("u3", 200));
    let all = upstreams(&["u1", "u2", "u3"]);
    let configs = [
        (
            format!("upstrand s {{ upstream ~^u[12]; {FAILURES} }}"),
            PASS,
        ),
        (
            format!(
                "upstrand t {{ upstream u3; }} \
                 upstrand s {{ upstream ~^u[123]; zone z 64k; {FAILURES} }}"
            ),
            PASS,
        ),
        (
            format!(
                "upstrand s {{ upstream u1 blacklist_interval=1s; upstream u3 tier=2; {FAILURES} }} \
                 upstrand x {{ zone z 128k; upstream u2; }}"
            ),
            PASS,
        ),
        (
            "upstrand renamed { upstream u2; }".to_string(),
            "location / { dynamic_upstrand $d renamed; proxy_pass http://$d; }",
        ),
        (
            String::new(),
            "location / { proxy_pass http://u3; }",
        ),
    ];
    let mut nginx = Setup::new()
        .at("u1", &u1)
        .at("u2", &u2)
        .at("u3", &u3)
        .http(&format!("{all}{}", configs[0].0))
        .server(configs[0].1)
        .workers(2)
        .start();
    let load = Load::start(3, nginx.port(), |r| r.status == 200);
    for round in 1..11 {
        sleep(80);
        let (http, server) = &configs[round % configs.len()];
        nginx.reload_with(&format!("{all}{http}"), server);
    }
    sleep(100);
    let asked = load.asked();
    assert_eq!(load.stop(), [] as [String; 0]);
    assert!(asked > 100, "{asked} requests only");
}

#[test]
fn a_walk_that_a_reload_overtakes_ends_by_its_old_configuration() {
    let u1 = Backend::new("u1", answer(503).after(500));
    let u2 = Backend::new("u2", answer(200).after(300).body("old"));
    let u3 = Backend::new("u3", 200);
    let mut nginx = two(&u1, &u2).at("u3", &u3).start();
    let mut client = nginx.client();
    client.start("/");
    eventually("the walk runs", || u1.count() == 1);
    nginx.reload_with(
        &format!("{}upstrand s {{ upstream u3; }}", upstreams(&["u3"])),
        PASS,
    );
    assert_eq!(nginx.get("/").text(), "u3");
    let response = client.read(true).expect("an answer");
    assert_eq!((response.status, response.text()), (200, "old".to_string()));
}

#[test]
fn a_reload_cuts_no_answer_that_is_being_read() {
    let body = noise(2_000_000);
    let u1 = Backend::new("u1", 503);
    let u2 = Backend::new("u2", answer(200).body(body.clone()));
    let nginx = two(&u1, &u2).listen("sndbuf=8k").start();
    let mut client = Client::small(nginx.port(), 4096);
    client.start("/");
    eventually("u2 is asked", || u2.count() == 1);
    nginx.reload();
    nginx.reload();
    sleep(200);
    assert!(client.read(true).expect("a whole answer").body == body);
}

#[test]
fn a_graceful_stop_ends_the_walk_first() {
    let u1 = Backend::new("u1", answer(503).after(400));
    let u2 = Backend::new("u2", answer(200).after(300));
    let mut nginx = two(&u1, &u2).start();
    let mut client = nginx.client();
    client.start("/");
    eventually("the walk runs", || u1.count() == 1);
    nginx.signal(libc::SIGQUIT);
    let response = client.read(true).expect("an answer");
    assert_eq!((response.status, response.text()), (200, "u2".to_string()));
    drop(client);
    assert_eq!(nginx.wait(), Some(0));
}

#[test]
fn a_fast_stop_does_not_wait_for_walks() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", Act::Hang));
    let mut nginx = two(&u1, &u2).start();
    let clients: Vec<_> = (0..6)
        .map(|_| {
            let mut client = nginx.client();
            client.start("/");
            client
        })
        .collect();
    eventually("the walks run", || u2.count() == 6);
    nginx.signal(libc::SIGTERM);
    assert_eq!(nginx.wait(), Some(0));
    for mut client in clients {
        assert!(client.read(true).is_err());
    }
}

#[test]
fn a_binary_upgrade_loses_no_request() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let mut nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand(&format!(
            "zone z 64k; upstream ~^u blacklist_interval=300ms; {FAILURES}"
        ))
        .daemon()
        .start();
    let load = Load::start(2, nginx.port(), |r| r.status == 200 && r.text() == "u2");
    sleep(200);
    let old = nginx.master;
    nginx.upgrade();
    sleep(200);
    nginx_quit(&nginx, old);
    sleep(200);
    assert_eq!(load.stop(), [] as [String; 0]);
    assert_eq!(nginx.get("/").text(), "u2");
    assert!(u1.count() > 0, "no walk ever failed over");
}

fn nginx_quit(nginx: &Nginx, pid: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid, libc::SIGQUIT) };
    nginx.wait_gone(pid);
}

#[test]
fn a_bad_configuration_leaves_the_running_one_and_its_marks() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let mut nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstrand(&format!(
            "zone z 64k; upstream u1 blacklist_interval=60s; upstream u2; \
             order per_request; {FAILURES}"
        ))
        .start();
    assert_eq!(nginx.paths(2, "/"), ["u1 -> u2", "u2"]);
    let workers = nginx.workers();
    for bad in [
        "upstrand s { upstream nope; }",
        "upstrand s { zone z 64k; upstream ~^zz; }",
        "upstrand s { zone z 1k; upstream u1; }",
        "upstrand s { zone z 64k; upstream u1; foo; }",
        // Refused after the zone was looked at.
        "upstrand s { zone z 64k; upstream u1; } upstream v { server 127.0.0.1:1; least_conn a; }",
        "upstrand s { zone z 128k; upstream u1; } proxy_cache_path /dev/null/x keys_zone=c:1m;",
        "upstrand {",
    ] {
        nginx.reload_refused(&format!("{}{bad}\n", upstreams(&["u1", "u2"])), PASS);
        assert_eq!(nginx.paths(1, "/"), ["u2"], "after {bad}");
    }
    assert_eq!(nginx.workers(), workers);
    nginx.reload();
    assert_eq!(
        nginx.paths(1, "/"),
        ["u2"],
        "a good one then takes over the marks"
    );
}

#[test]
fn reloads_do_not_grow_the_master() {
    let (u1, u2) = (Backend::new("u1", 200), Backend::new("u2", 200));
    let mut http: String = (0..60)
        .map(|i| {
            format!(
                "upstream v{i} {{ server <u1>; server <u2>; keepalive 4; \
                 combine_server_singlets _s_; extend_single_peers; }}\n"
            )
        })
        .collect();
    for i in 0..20 {
        http += &format!(
            "upstrand s{i} {{ zone z 2m; upstream ~^v blacklist_interval=1s; {FAILURES} \
             intercept_statuses 5xx /f/$arg_x; }}\n"
        );
    }
    let nginx = Setup::new()
        .at("u1", &u1)
        .at("u2", &u2)
        .http(&http)
        .server("location / { dynamic_upstrand $d $arg_s s0; proxy_pass http://$d; }")
        .start();
    let some = |n| (0..n).for_each(|_| nginx.reload());
    some(10);
    let (before, files) = (memory(nginx.master), descriptors(nginx.master));
    some(20);
    let grown = memory(nginx.master) - before;
    assert!(grown < 1024, "the master grew by {grown} kB in 20 reloads");
    assert!(descriptors(nginx.master) <= files + 2);
    assert_eq!(nginx.get("/?s=s7").status, 200);
}

#[test]
fn two_thousand_failovers_do_not_grow_a_worker() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", 200));
    let nginx = Setup::new()
        .upstream_with("u1", &u1, "keepalive 4;")
        .upstream_with("u2", &u2, "keepalive 4;")
        .upstrand_with(
            &format!("upstream ~^u; order per_request; {FAILURES}"),
            support::KEEPALIVE,
        )
        .http("keepalive_requests 100000;")
        .start();
    let worker = nginx.workers()[0];
    let mut client = nginx.client();
    let mut some = |n| {
        for _ in 0..n {
            let response = client.get("/").expect("an answer");
            assert_eq!(response.text(), "u2");
        }
    };
    some(500);
    let before = memory(worker);
    some(2000);
    let grown = memory(worker) - before;
    assert!(
        grown < 600,
        "the worker grew by {grown} kB in 2000 fail-overs"
    );
    assert_eq!(u1.count(), 2500);
}

#[test]
fn names_of_upstrands_that_clients_make_up_take_no_memory() {
    let u1 = Backend::new("u1", 200);
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .http("upstrand s { upstream u1; }\n")
        .server(
            "location / { dynamic_upstrand $upstrand_any $http_x_name; \
             proxy_pass http://$upstrand_any; }\n",
        )
        .start();
    let worker = nginx.workers()[0];
    let ask = |name: &str| nginx.ask("GET", "/", &format!("X-Name: {name}\r\n"), b"");
    let some = |numbers: std::ops::Range<u32>| {
        for n in numbers {
            let name = format!("s{n}-{}", "x".repeat(900));
            assert_eq!(ask(&name).status, 500, "no such upstrand");
        }
    };
    some(0..300);
    let before = memory(worker);
    some(300..3000);
    let grown = memory(worker) - before;
    assert!(grown < 600, "the worker grew by {grown} kB");
    assert_eq!((ask("S").text(), u1.count()), ("u1".into(), 1));
}

#[test]
fn a_walk_over_many_failing_upstreams_ends_with_the_good_one() {
    let (bad, good) = (Backend::new("bad", 503), Backend::new("good", 200));
    let mut setup = Setup::new();
    for i in 0..300 {
        setup = setup.upstream(&format!("u{i}"), &bad);
    }
    let nginx = setup
        .upstream("w", &good)
        .upstrand(&format!(
            "upstream ~^u; upstream w; order per_request; {FAILURES}"
        ))
        .start();
    assert_eq!(nginx.get("/").text(), "good");
    assert_eq!(bad.count(), 300);
    assert_eq!(&nginx.log(1)[0]["tries"], "301");
    let gone = within(ms(2000), || bad.open() == 0 && good.open() == 0);
    assert!(gone, "connections are left");
}

#[test]
fn a_refused_configuration_leaves_the_filters_as_they_were() {
    let u1 = Backend::new("u1", answer(200));
    let mut nginx = Setup::new()
        .upstream("u1", &u1)
        .http("upstrand s { upstream u1; }\n")
        .server(PASS)
        .allow("exited on signal 9")
        .start();
    let page = vec![b'x'; 12_000];
    std::fs::write(nginx.dir().join("html/page"), &page).expect("a file");
    let (http, server) = (nginx.http(), nginx.server());
    let server = format!("{server}\nlocation = /page {{ sub_filter x y; sub_filter_once off; sub_filter_types *; }}\n");
    nginx.reload_with(&http, &server);
    let bad: [(&str, &str); 3] = [
        ("", "dynamic_upstrand $d nope;"),
        (
            "upstrand t { upstream u1; upstream ~^below; } upstream below { server 127.0.0.1:1; }",
            "",
        ),
        (
            "upstream h { server 127.0.0.1:1; combine_server_singlets _ 4000; } \
             upstrand t { upstream ~^h; zone z 8k; }",
            "",
        ),
    ];
    for (more_http, more_server) in bad {
        nginx.reload_refused(
            &format!("{http}\n{more_http}\n"),
            &format!("{server}\n{more_server}\n"),
        );
        // A worker that is made anew gets the filters from the master.
        nginx.kill_worker(nginx.workers()[0]);
        let response = nginx.get("/page");
        assert_eq!((response.status, response.body.len()), (200, page.len()));
        assert!(response.body.iter().all(|byte| *byte == b'y'));
        assert_eq!(nginx.get("/").status, 200);
    }
}
