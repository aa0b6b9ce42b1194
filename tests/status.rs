//! `upstrand_status` and `upstrand_api` where it takes several workers, reloads, load, or a client
//! that sends in parts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::dns::Dns;
use support::nginx::at_least;
use support::schema::{checked, refused};
use support::{
    answer, client, eventually, http2, ms, skip, sleep, together, Act, Backend, Load, Nginx,
    Response, Setup, FAILURES,
};

const LOCATIONS: &str = "location = /s { upstrand_status; }\nlocation /api/ { upstrand_api; }\n";

const JSON: &str = "Content-Type: application/json\r\n";

const DRAIN: &str = "{\"drain\":true}";
const UNDRAIN: &str = "{\"drain\":false}";
const FORCE: &str = "{\"drain\":true,\"force\":true}";

fn two(zone: &str, more: &str) -> (Backend, Backend, Setup) {
    let (u1, u2) = (Backend::new("u1", 200), Backend::new("u2", 200));
    let setup = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .server(LOCATIONS)
        .upstrand(&format!(
            "{zone} upstream u1 {more}; upstream u2 {more}; order per_request; {FAILURES}"
        ));
    (u1, u2, setup)
}

fn path(member: &str) -> String {
    format!("/api/upstrands/s/upstreams/{member}")
}

fn patch(nginx: &Nginx, member: &str, body: &str) -> Response {
    nginx.ask("PATCH", &path(member), JSON, body.as_bytes())
}

/// A change that has to be made; the member as it is then.
#[track_caller]
fn change(nginx: &Nginx, member: &str, body: &str) -> Value {
    let response = patch(nginx, member, body);
    assert_eq!(response.status, 200, "{}", response.text());
    checked(&response, "upstream")
}

#[track_caller]
fn member(nginx: &Nginx, name: &str) -> Value {
    checked(&nginx.get(&path(name)), "upstream")
}

#[track_caller]
fn status(nginx: &Nginx) -> Value {
    let response = nginx.get("/s");
    assert_eq!(response.status, 200);
    checked(&response, "status")
}

/// What the status of each worker says of a member.
#[track_caller]
fn of_all_workers(nginx: &Nginx, workers: usize, upstream: usize) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for _ in 0..500 {
        let status = status(nginx);
        if seen.insert(status["worker"].as_u64()) {
            all.push(status["upstrands"]["s"]["upstreams"][upstream].clone());
        }
        if seen.len() == workers {
            return all;
        }
    }
    panic!("the kernel never asks all workers");
}

#[test]
fn a_change_through_one_worker_holds_for_all_at_once() {
    let (_u1, _u2, setup) = two("zone z 256k;", "");
    let nginx = setup.workers(4).start();
    for round in 0..6 {
        let drains = round % 2 == 0;
        let body = format!("{{\"drain\":{drains}}}");
        assert_eq!(change(&nginx, "u1", &body)["draining"], drains);
        for member in of_all_workers(&nginx, 4, 0) {
            assert_eq!(member["draining"], drains, "round {round}");
        }
        let first = if drains { "u2" } else { "u1" };
        for _ in 0..12 {
            assert_eq!(nginx.get("/").text(), first, "round {round}");
        }
    }
    let line = "upstream \"u1\" in upstrand \"s\" is draining by request, client: 127.0.0.1, ";
    assert_eq!(nginx.logged(line), 3);
    assert_eq!(nginx.logged("is taken back by request, client: "), 3);
}

#[test]
fn changes_and_counts_are_kept_over_reloads_while_members_come_and_go() {
    let all = ["a", "b", "c", "d"].map(|name| Backend::new(name, 200));
    let mut setup = Setup::new().server(LOCATIONS);
    for (name, backend) in ["a", "b", "c", "d"].iter().zip(&all) {
        setup = setup.upstream(name, backend);
    }
    let mut nginx = setup
        .upstrand("zone z 256k; upstream a blacklist_interval=0; upstream b blacklist_interval=1s; upstream c; order per_request;")
        .workers(2)
        .start();
    for _ in 0..5 {
        assert_eq!(nginx.get("/").text(), "a");
    }
    change(&nginx, "a", "{\"blacklist\":\"1h\"}");
    change(&nginx, "b", "{\"blacklist\":\"1h\"}");
    let since = change(
        &nginx,
        "c",
        "{\"blacklist\":\"1h\",\"drain\":true,\"force\":true}",
    )["since"]
        .clone();
    let (http, server) = (nginx.http(), nginx.server());
    let members = "upstream a blacklist_interval=0; upstream b blacklist_interval=1s; upstream c;";
    for (walks, members) in (5..).zip([
        members,
        "upstream d; upstream a; upstream b; upstream c;",
        "upstream b blacklist_interval=0; upstream c tier=3; upstream d; upstream a blacklist_interval=9s backup;",
        members,
    ]) {
        let old = "upstream a blacklist_interval=0; upstream b blacklist_interval=1s; upstream c;";
        nginx.reload_with(&http.replace(old, members), &server);
        for name in ["a", "b", "c"] {
            let member = member(&nginx, name);
            assert!(member["blacklisted_until"].is_string(), "{members}: {member}");
            let state = if name == "c" { "draining" } else { "unavail" };
            assert_eq!(member["state"], state, "{members}: {name}");
        }
        let near = |time: &Value| time.as_str().unwrap()[..18].to_string();
        assert_eq!(near(&member(&nginx, "c")["since"]), near(&since));
        let a = member(&nginx, "a");
        assert_eq!(a["tries"], a["responses"]["2xx"]);
        assert!(a["tries"].as_u64() >= Some(5), "{members}: {a}");
        assert_eq!(status(&nginx)["upstrands"]["s"]["walks"], walks, "{members}");
        let first = if members.contains("upstream d") { "d" } else { "a" };
        assert_eq!(nginx.get("/").text(), first, "{members}");
    }
    let renamed = http.replace("zone z 256k", "zone y 256k");
    nginx.reload_with(&renamed, &server);
    assert_eq!(member(&nginx, "c")["draining"], false, "another zone");
    nginx.reload_with(&http, &server);
    assert_eq!(member(&nginx, "a")["state"], "up", "it was gone");
    assert_eq!(status(&nginx)["upstrands"]["s"]["walks"], 0);
}

#[test]
fn members_that_change_places_keep_what_is_theirs() {
    let all = ["a", "b", "c", "d"].map(|name| Backend::new(name, 200));
    let mut setup = Setup::new().server(LOCATIONS);
    for (name, backend) in ["a", "b", "c", "d"].iter().zip(&all) {
        setup = setup.upstream(name, backend);
    }
    let order = |names: &str| {
        let members: String = names.split(' ').map(|n| format!("upstream {n};")).collect();
        format!("upstrand s {{ zone z 256k; {members} order per_request; }}\n")
    };
    let mut nginx = setup.http("#\n").start();
    let upstreams = nginx.http();
    let server = format!("{LOCATIONS}location / {{ proxy_pass http://$upstrand_s; }}");
    nginx.reload_with(&format!("{upstreams}{}", order("a b c d")), &server);
    change(&nginx, "b", DRAIN);
    change(&nginx, "a", "{\"blacklist\":\"1h\"}");
    assert_eq!(nginx.get("/").text(), "c");
    for names in ["d c b a", "b a", "c a b", "a b c d"] {
        nginx.reload_with(&format!("{upstreams}{}", order(names)), &server);
        assert_eq!(member(&nginx, "b")["state"], "draining", "{names}");
        assert_eq!(member(&nginx, "a")["state"], "unavail", "{names}");
    }
    assert_eq!(member(&nginx, "c")["tries"], 0, "it was gone in between");
}

#[test]
fn a_change_that_meets_a_reload_holds_or_is_refused() {
    let (_u1, _u2, setup) = two("zone z 256k;", "");
    let nginx = setup.workers(4).listen("").start();
    let (mut made, mut put_off, mut lost) = (0, 0, 0);
    for round in 0..12 {
        let old = nginx.workers();
        let mut last = None;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(5 + round * 7 % 40);
                nginx.signal(libc::SIGHUP);
            });
            let end = Instant::now() + ms(220);
            let mut drains = false;
            while Instant::now() < end {
                drains = !drains;
                let body = format!("{{\"drain\":{drains}}}");
                match client::request(nginx.port(), "PATCH", &path("u1"), JSON, body.as_bytes()) {
                    Ok(response) if response.status == 200 => {
                        made += 1;
                        last = Some(drains);
                    }
                    Ok(response) => {
                        let text = refused(&response, 503);
                        assert!(text.contains("a reload is under way"), "{text}");
                        put_off += 1;
                        last = None;
                    }
                    Err(_) => {
                        lost += 1;
                        last = None;
                    }
                }
            }
        });
        eventually("new workers", || {
            let workers = nginx.workers();
            workers.len() == 4 && workers.iter().all(|pid| !old.contains(pid))
        });
        if let Some(drains) = last {
            for member in of_all_workers(&nginx, 1, 0) {
                assert_eq!(member["draining"], drains, "round {round}");
            }
        }
        // Made after the reload it holds over the next one.
        change(&nginx, "u1", DRAIN);
        nginx.reload();
        assert_eq!(member(&nginx, "u1")["draining"], true, "round {round}");
        change(&nginx, "u1", UNDRAIN);
    }
    println!("{made} changes made, {put_off} put off, {lost} connections lost");
    assert!(made > 100, "{made} changes");
}

#[test]
fn a_change_whose_body_comes_after_a_reload_is_put_off() {
    let (_u1, _u2, setup) = two("zone z 256k;", "");
    let nginx = setup.workers(2).listen("").start();
    for signal in [libc::SIGHUP, libc::SIGQUIT] {
        let mut client = nginx.client();
        let path = path("u1");
        client.send(
            format!("PATCH {path} HTTP/1.1\r\nHost: t\r\n{JSON}Content-Length: 14\r\n\r\n{{\"dra")
                .as_bytes(),
        );
        sleep(100);
        if signal == libc::SIGHUP {
            nginx.reload();
        } else {
            nginx.signal(signal);
            sleep(300);
        }
        client.send(b"in\":true}");
        refused(&client.read(true).expect("an answer"), 503);
        if signal == libc::SIGHUP {
            assert_eq!(member(&nginx, "u1")["draining"], false);
        }
    }
}

#[test]
fn a_refused_reload_puts_changes_off_for_a_while_at_most() {
    let (_u1, _u2, setup) = two("zone z 256k;", "");
    let mut nginx = setup.workers(2).start();
    change(&nginx, "u1", DRAIN);
    let (http, server) = (nginx.http(), nginx.server());
    nginx.reload_refused(&format!("{http} nonsense;"), &server);
    assert_eq!(member(&nginx, "u1")["draining"], true);
    change(&nginx, "u1", UNDRAIN);
}

#[test]
fn draining_loses_nothing_and_lets_running_requests_finish() {
    let u1 = Backend::new("u1", answer(200).after(15));
    let u2 = Backend::new("u2", answer(200).after(5));
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .server(LOCATIONS)
        .upstrand("zone z 256k; upstream u1; upstream u2;")
        .workers(4)
        .start();
    let load = Load::start(6, nginx.port(), |r| r.status == 200);
    eventually("both serve", || u1.count() > 5 && u2.count() > 5);
    for _ in 0..3 {
        u1.now(answer(200).after(400));
        let running = u1.count();
        eventually("slow ones run", || u1.count() > running);
        change(&nginx, "u1", DRAIN);
        // What was on its way when the change came.
        sleep(60);
        let count = u1.count();
        sleep(300);
        assert_eq!(u1.count(), count, "a new walk asked a draining upstream");
        u1.now(answer(200).after(5));
        change(&nginx, "u1", UNDRAIN);
        eventually("it serves again", || u1.count() > count + 3);
    }
    assert_eq!(load.stop(), [] as [String; 0]);
}

#[test]
fn a_running_request_goes_on_to_an_upstream_that_does_not_drain() {
    let u1 = Backend::new("u1", answer(503).after(400));
    let (u2, u3) = (Backend::new("u2", 200), Backend::new("u3", 200));
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .upstream("u3", &u3)
        .server(LOCATIONS)
        .upstrand(&format!(
            "zone z 256k; upstream u1; upstream u2; upstream u3; order per_request; {FAILURES}"
        ))
        .start();
    let mut client = nginx.client();
    client.start("/");
    eventually("it runs", || u1.count() == 1);
    change(&nginx, "u2", DRAIN);
    assert_eq!(client.read(true).expect("an answer").text(), "u3");
}

#[test]
fn the_last_usable_one_stays_whoever_asks_at_the_same_time() {
    // Members 0 and 65 are in different words of the set.
    let backend = Backend::new("u", 200);
    let mut setup = Setup::new().server(LOCATIONS);
    for i in 0..66 {
        setup = setup.upstream(&format!("u{i}"), &backend);
    }
    let nginx = setup
        .upstrand("zone z 512k; upstream ~^u; order per_request;")
        .workers(4)
        .start();
    for i in 1..65 {
        change(&nginx, &format!("u{i}"), DRAIN);
    }
    let load = Load::start(1, nginx.port(), |r| r.status == 200);
    for round in 0..40 {
        let results = together(4, |i| patch(&nginx, ["u0", "u65"][i % 2], DRAIN).status);
        assert!(
            results.iter().all(|s| [200, 409].contains(s)),
            "{results:?}"
        );
        let left = [0, 65].map(|i| member(&nginx, &format!("u{i}"))["draining"] == false);
        assert!(left[0] != left[1], "round {round}: {left:?} of {results:?}");
        for name in ["u0", "u65"] {
            change(&nginx, name, UNDRAIN);
        }
    }
    assert_eq!(load.stop(), [] as [String; 0]);
    assert_eq!(nginx.logged("are draining"), 0);
}

#[test]
fn all_drained_by_force_fail_and_recover() {
    let (u1, u2, setup) = two("zone z 256k;", "");
    let nginx = setup.workers(4).start();
    change(&nginx, "u1", DRAIN);
    let text = refused(&patch(&nginx, "u2", DRAIN), 409);
    assert_eq!(
        text,
        "no other upstream of upstrand \"s\" is usable: \"force\" drains \"u2\" all the same"
    );
    change(&nginx, "u2", FORCE);
    let (first, second) = (u1.count(), u2.count());
    for _ in 0..8 {
        assert_eq!(nginx.get("/").status, 502);
    }
    assert_eq!((u1.count(), u2.count()), (first, second));
    assert_eq!(
        nginx.logged("all upstreams in upstrand \"s\" are draining"),
        8
    );
    nginx.reload();
    assert_eq!(nginx.get("/").status, 502, "kept");
    let explain = checked(&nginx.get("/api/upstrands/s/explain"), "explain");
    assert_eq!(explain["upstreams"][0]["position"], Value::Null);
    change(&nginx, "u2", UNDRAIN);
    for _ in 0..8 {
        assert_eq!(nginx.get("/").text(), "u2");
    }
}

#[test]
fn blacklisted_by_hand_without_an_interval_it_ends_by_itself() {
    let (u1, _u2, setup) = two("zone z 256k;", "");
    let nginx = setup.workers(2).start();
    let started = Instant::now();
    change(&nginx, "u1", "{\"blacklist\":\"900ms\"}");
    while started.elapsed() < ms(700) {
        assert_eq!(nginx.get("/").text(), "u2");
    }
    assert_eq!(u1.count(), 0);
    sleep(300);
    assert_eq!(member(&nginx, "u1")["state"], "checking");
    // All at once: nobody waits for a probe.
    assert_eq!(nginx.get("/").text(), "u1");
    assert_eq!(member(&nginx, "u1")["state"], "up");
    assert_eq!(nginx.get("/").text(), "u1");
}

#[test]
fn blacklisted_by_hand_with_an_interval_a_probe_tells() {
    let (u1, _u2, setup) = two("zone z 256k;", "blacklist_interval=60s");
    let nginx = setup.start();
    change(&nginx, "u1", "{\"blacklist\":\"300ms\"}");
    assert_eq!(nginx.get("/").text(), "u2");
    sleep(400);
    u1.now(answer(503));
    assert_eq!(nginx.get("/").text(), "u2");
    let member = member(&nginx, "u1");
    assert_eq!(member["state"], "unavail");
    assert_eq!(member["reason"], "blacklisted after http_503");
    u1.now(answer(200));
    change(&nginx, "u1", "{\"blacklist\":\"300ms\"}");
    sleep(400);
    assert_eq!(nginx.get("/").text(), "u1");
    assert_eq!(self::member(&nginx, "u1")["state"], "up");
}

#[test]
fn neither_good_nor_bad_answers_end_what_was_blacklisted_by_hand() {
    for interval in ["", "blacklist_interval=20ms"] {
        let (u1, u2, setup) = two("zone z 256k;", interval);
        let nginx = setup.start();
        for name in ["u1", "u2"] {
            change(&nginx, name, "{\"blacklist\":\"1h\"}");
        }
        let until = member(&nginx, "u1")["blacklisted_until"].clone();
        let same = |what: &str| {
            let member = member(&nginx, "u1");
            assert_eq!(member["reason"], "blacklisted by hand", "{interval} {what}");
            let near = |time: &Value| time.as_str().unwrap()[..16].to_string();
            assert_eq!(
                near(&member["blacklisted_until"]),
                near(&until),
                "{interval} {what}"
            );
        };
        assert_eq!(nginx.get("/").text(), "u1", "last resort");
        same("a good answer");
        u1.now(answer(503));
        assert_eq!(nginx.get("/").text(), "u2");
        same("a bad answer");
        sleep(60);
        assert_eq!(nginx.get("/").text(), "u2");
        same("a bad answer, later");
        u2.now(answer(503));
        assert_eq!(nginx.get("/").status, 503);
        same("bad answers of all");
        change(&nginx, "u1", "{\"blacklist\":null}");
        assert_eq!(member(&nginx, "u1")["state"], "up");
    }
}

#[test]
fn a_failure_of_before_does_not_shorten_what_was_blacklisted_by_hand() {
    let u1 = Backend::new("u1", answer(503).after(300));
    let u2 = Backend::new("u2", 200);
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .server(LOCATIONS)
        .upstrand(&format!(
            "zone z 256k; upstream u1 blacklist_interval=100ms; upstream u2; order per_request; {FAILURES}"
        ))
        .start();
    let mut client = nginx.client();
    client.start("/");
    eventually("it runs", || u1.count() == 1);
    change(&nginx, "u1", "{\"blacklist\":\"1h\"}");
    assert_eq!(client.read(true).expect("an answer").text(), "u2");
    sleep(150);
    assert_eq!(nginx.get("/").text(), "u2");
    assert_eq!(u1.count(), 1);
    assert_eq!(member(&nginx, "u1")["reason"], "blacklisted by hand");
}

#[test]
fn without_a_zone_each_worker_has_its_own_view_and_nothing_is_changed() {
    let (_u1, _u2, setup) = two("", "");
    let nginx = setup.workers(3).start();
    for _ in 0..30 {
        nginx.get("/");
    }
    let tries: Vec<u64> = of_all_workers(&nginx, 3, 0)
        .iter()
        .filter_map(|member| member["tries"].as_u64())
        .collect();
    assert_eq!(tries.iter().sum::<u64>(), 30, "{tries:?}");
    refused(&patch(&nginx, "u1", DRAIN), 409);
    assert_eq!(status(&nginx)["upstrands"]["s"]["zone"], Value::Null);
}

#[test]
fn workers_count_together_in_a_zone() {
    let (_u1, u2, setup) = two("zone z 256k;", "");
    u2.now(answer(503));
    let nginx = setup.workers(4).start();
    together(8, |_| (0..25).for_each(|_| drop(nginx.get("/"))));
    let status = status(&nginx);
    let s = &status["upstrands"]["s"];
    assert_eq!((&s["walks"], &s["failovers"]), (&200.into(), &0.into()));
    assert_eq!(s["upstreams"][0]["responses"]["2xx"], 200);
}

#[test]
fn aborted_and_unbuffered_tries_are_counted() {
    let u1 = Backend::script("u1", vec![Act::Hang, answer(503).into()]);
    let u2 = Backend::new("u2", 200);
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .server(LOCATIONS)
        .http("upstrand s { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx non_idempotent; }\n")
        .server("location / { client_body_buffer_size 1k; proxy_request_buffering off; proxy_pass http://$upstrand_s; }\n")
        .start();
    let mut client = nginx.client();
    client.start("/");
    eventually("it runs", || u1.count() == 1);
    drop(client);
    let metric = |result: &str| {
        let line = format!(
            "nginx_upstrand_tries_total{{upstrand=\"s\",upstream=\"u1\",result=\"{result}\"}} 1\n"
        );
        String::from_utf8(nginx.get("/s?format=prometheus").body)
            .unwrap()
            .contains(&line)
    };
    eventually("the abort is counted", || metric("aborted"));
    let response = nginx.ask("POST", "/", "", &support::noise(300_000));
    assert_eq!(response.status, 503);
    assert!(metric("unbuffered"));
    let u1 = member(&nginx, "u1");
    assert_eq!(u1["tries"], 2);
    assert_eq!(u1["failures"]["http"], 1);
}

#[test]
fn access_is_granted_as_nginx_has_it() {
    let (_u1, _u2, setup) = two("zone z 256k;", "");
    let nginx = setup
        .http(
            "server { listen unix:<dir>/api.sock; location / { upstrand_api; } }\n\
             map $request_method $reads { GET 1; HEAD 1; default ''; }\n",
        )
        .server(
            "location /auth/ { auth_basic api; auth_basic_user_file <dir>/html/pw; upstrand_api; }\n\
             location /any/ { satisfy any; deny all; auth_basic api; auth_basic_user_file <dir>/html/pw; upstrand_api; }\n\
             location /local/ { allow 127.0.0.2; deny all; upstrand_api; }\n\
             location /limited/ { upstrand_api; limit_except GET { auth_basic api; auth_basic_user_file <dir>/html/pw; } }\n",
        )
        .start();
    std::fs::write(nginx.dir().join("html/pw"), "admin:{PLAIN}secret\n").unwrap();
    let good = format!("{JSON}Authorization: Basic YWRtaW46c2VjcmV0\r\n");
    let bad = format!("{JSON}Authorization: Basic YWRtaW46d3Jvbmc=\r\n");
    let at = |place: &str| format!("/{place}/upstrands/s/upstreams/u1");
    for place in ["auth", "any", "limited"] {
        for (headers, body, status) in [
            (JSON, DRAIN, 401),
            (bad.as_str(), DRAIN, 401),
            (good.as_str(), DRAIN, 200),
            (good.as_str(), UNDRAIN, 200),
        ] {
            let response = nginx.ask("PATCH", &at(place), headers, body.as_bytes());
            assert_eq!(response.status, status, "{place}");
            let drains = body == DRAIN && status == 200;
            assert_eq!(member(&nginx, "u1")["draining"], drains, "{place}");
        }
    }
    assert_eq!(nginx.get("/limited/upstrands").status, 200);
    assert_eq!(
        nginx
            .ask("PATCH", &at("local"), JSON, DRAIN.as_bytes())
            .status,
        403
    );
    assert_eq!(member(&nginx, "u1")["draining"], false);

    let mut stream = UnixStream::connect(nginx.dir().join("api.sock")).unwrap();
    stream.set_read_timeout(Some(ms(5000))).unwrap();
    let request = format!(
        "PATCH /upstrands/s/upstreams/u1 HTTP/1.0\r\n{JSON}Content-Length: 14\r\n\r\n{DRAIN}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains(" 200 OK\r\n"), "{text}");
    assert_eq!(nginx.logged("is draining by request, client: unix:"), 1);
}

#[test]
fn changes_by_http2() {
    let (_u1, _u2, setup) = two("zone z 256k;", "");
    let setup = if at_least([1, 25, 1]) {
        setup.server("http2 on;")
    } else {
        setup.listen("http2")
    };
    let nginx = setup.start();
    let ask = |method, path: &str, body: &str| http2::Request {
        method,
        path: path.to_string(),
        body: body.as_bytes().to_vec(),
    };
    let (u1, u2) = (path("u1"), path("u2"));
    let answers = http2::together(
        nginx.port(),
        &[
            ask("PATCH", &u1, DRAIN),
            ask("PATCH", &u1, "{\"drain\":"),
            ask("GET", "/s", ""),
            ask("PATCH", &u1, &" ".repeat(5000)),
            ask("POST", &u2, DRAIN),
            ask("GET", "/api/upstrands/nope", ""),
            ask("PATCH", &u2, "{\"blacklist\":\"1h\"}"),
        ],
    )
    .expect("answers");
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 400, 200, 413, 405, 404, 200]);
    for (status, body) in answers {
        let value: Value = serde_json::from_slice(&body).expect("JSON");
        assert!(
            status == 200 || value["error"]["status"] == status,
            "{value}"
        );
    }
}

#[test]
fn expecting_clients_are_told_to_go_on() {
    let (_u1, _u2, setup) = two("zone z 256k;", "");
    let nginx = setup.start();
    let mut client = nginx.client();
    let head = |len: usize, kind: &str| {
        format!(
            "PATCH {} HTTP/1.1\r\nHost: t\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nExpect: 100-continue\r\n\r\n",
            path("u1")
        )
    };
    client.send(head(14, "application/json").as_bytes());
    assert_eq!(client.read(true).unwrap().status, 100);
    client.send(DRAIN.as_bytes());
    assert_eq!(client.read(true).unwrap().status, 200);
    // Refused before the body has come: what follows in the connection is the next request.
    client.send(head(14, "text/plain").as_bytes());
    let mut response = client.read(true).unwrap();
    if response.status == 100 {
        response = client.read(true).unwrap();
    }
    refused(&response, 415);
    client.send(UNDRAIN.as_bytes().get(..14).unwrap());
    assert_eq!(
        checked(&client.get(&path("u1")).unwrap(), "upstream")["draining"],
        true
    );
}

#[test]
fn clients_that_leave_in_the_middle_change_nothing() {
    let (_u1, _u2, setup) = two("zone z 256k;", "");
    let nginx = setup.start();
    let whole = format!(
        "PATCH {} HTTP/1.1\r\nHost: t\r\n{JSON}Content-Length: 14\r\n\r\n{DRAIN}",
        path("u1")
    );
    for len in (1..whole.len()).step_by(7) {
        let mut client = nginx.client();
        client.send(&whole.as_bytes()[..len]);
    }
    sleep(100);
    assert_eq!(member(&nginx, "u1")["draining"], false);
}

#[test]
fn status_while_servers_are_resolved_anew() {
    if !at_least([1, 27, 3]) {
        skip(
            "status_while_servers_are_resolved_anew",
            "nginx before 1.27.3 resolves no servers at run time",
        );
        return;
    }
    let backend = Backend::new("u", 200);
    let dns = Dns::new();
    let addresses: Vec<Ipv4Addr> = (1..40).map(|i| Ipv4Addr::new(127, 0, 0, i)).collect();
    for name in ["name.test", "back.test"] {
        dns.set(name, &addresses);
    }
    let port = backend.port();
    let nginx = Setup::new()
        .at("dns", &dns)
        .http(&format!(
            "upstream u {{ zone u 512k; resolver <dns> valid=1s; server name.test:{port} resolve; \
             server 127.0.0.1:{port} weight=2; server back.test:{port} resolve backup; \
             combine_server_singlets _n_ nobackup; }}\n"
        ))
        .server(LOCATIONS)
        .upstrand("zone z 256k; upstream u; upstream ~^u_n_;")
        .workers(2)
        .start();
    let total = |nginx: &Nginx| {
        let status = status(nginx);
        status["upstrands"]["s"]["upstreams"][0]["peers_total"]
            .as_u64()
            .unwrap()
    };
    eventually("both names are resolved", || total(&nginx) == 79);
    let stop = AtomicBool::new(false);
    let asked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let value = status(&nginx);
                    assert!(value["upstrands"]["s"]["upstreams"][0]["peers"].is_array());
                    nginx.get("/s?format=prometheus");
                    nginx.get("/");
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for len in [0, 3, 39, 1, 20] {
            for name in ["name.test", "back.test"] {
                dns.set(name, &addresses[..len]);
            }
            sleep(1200);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(asked.load(Ordering::Relaxed) > 50);
    for name in ["name.test", "back.test"] {
        dns.set(name, &[]);
    }
    eventually("both names are gone", || total(&nginx) == 1);
}

/// Finds the zone in the master's shared memory and writes a word of its header.
fn write_header(pid: i32, word: u64, value: u64) {
    let magic = *b"dnartspu";
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut memory = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"))
        .expect("the memory of a child");
    for line in maps.lines().filter(|line| line.contains("rw-s")) {
        let (range, _) = line.split_once(' ').unwrap();
        let (from, to) = range.split_once('-').unwrap();
        let [from, to] = [from, to].map(|n| u64::from_str_radix(n, 16).unwrap());
        let mut bytes = vec![0; (to - from) as usize];
        memory.seek(SeekFrom::Start(from)).unwrap();
        if memory.read_exact(&mut bytes).is_err() {
            continue;
        }
        let found = bytes
            .windows(8)
            .step_by(8)
            .position(|window| window == magic);
        if let Some(at) = found {
            memory
                .seek(SeekFrom::Start(from + 8 * (at as u64 + word)))
                .unwrap();
            memory.write_all(&value.to_le_bytes()).unwrap();
            return;
        }
    }
    panic!("no zone in the memory of {pid}");
}

#[test]
fn a_zone_of_another_layout_is_not_read() {
    let (_u1, _u2, setup) = two("zone z 256k;", "");
    let nginx = setup.start();
    for (word, value) in [
        (0, 7),
        (1, 1),
        (1, 3),
        (1, u64::MAX),
        (2, u64::MAX),
        (2, 1 << 40),
    ] {
        change(&nginx, "u1", DRAIN);
        nginx.get("/");
        nginx.reload();
        assert_eq!(member(&nginx, "u1")["draining"], true, "read as it is");
        write_header(nginx.master, word, value);
        nginx.reload();
        let member = member(&nginx, "u1");
        assert_eq!(member["draining"], false, "word {word}: {value}");
        assert_eq!(status(&nginx)["upstrands"]["s"]["walks"], 0);
        assert_eq!(member["since"], Value::Null);
    }
}

#[test]
fn a_status_of_500_members_takes_less_than_20_ms() {
    let backend = Backend::new("u", 200);
    let mut setup = Setup::new().server(
        "location = /s { upstrand_status; }\nlocation /api/ { upstrand_api; }\n\
         location = /nothing { return 200 ''; }\n",
    );
    for i in 0..500 {
        setup = setup.upstream_with(&format!("u{i}"), &backend, "zone u 4m;");
    }
    for i in 0..20 {
        let members: String = (0..25)
            .map(|n| format!("upstream u{};", i * 25 + n))
            .collect();
        setup = setup.http(&format!("upstrand t{i} {{ zone y 1m; {members} }}\n"));
    }
    let nginx = setup
        .upstrand("zone z 1m; upstream ~^u;")
        .workers(4)
        .start();
    // Of the workers' own time, which others on the machine do not add to; and as a client sees it.
    let times = |path: &str| {
        let mut client = nginx.client();
        let before: Duration = nginx.workers().into_iter().map(cpu_time).sum();
        let mut times: Vec<Duration> = (0..100)
            .map(|_| {
                let begin = Instant::now();
                let response = client.get(path).expect("an answer");
                assert_eq!(response.status, 200);
                begin.elapsed()
            })
            .collect();
        let after: Duration = nginx.workers().into_iter().map(cpu_time).sum();
        times.sort();
        ((after - before) / 100, times[50])
    };
    for path in [
        "/nothing",
        "/s?format=json",
        "/s?format=prometheus",
        "/api/upstrands/s",
        "/api/upstrands/s/explain",
    ] {
        let size = nginx.get(path).body.len();
        let (own, seen) = times(path);
        eprintln!(
            "{path}: {size} bytes in {own:?} of the worker, {seen:?} for the client (median)"
        );
        // The status has 500 members twice.
        assert!(own < ms(20), "{path}: {own:?}");
    }
}

/// What a process has had of the processors.
fn cpu_time(pid: i32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a worker");
    let (_, fields) = stat.rsplit_once(") ").expect("its fields");
    let ticks: Vec<u64> = fields
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|n| n.parse().ok())
        .collect();
    ms(ticks.iter().sum::<u64>() * 10)
}

#[test]
fn the_schema_by_another_validator() {
    let python = "/usr/bin/python3";
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/check-status.py");
    let found = Command::new(python)
        .args(["-c", "import jsonschema"])
        .output();
    if !found.is_ok_and(|output| output.status.success()) {
        skip("the_schema_by_another_validator", "no python3-jsonschema");
        return;
    }
    let (u1, _u2, setup) = two("zone z 256k;", "blacklist_interval=1h");
    u1.now(answer(503));
    let nginx = setup.start();
    nginx.get("/");
    change(&nginx, "u2", FORCE);
    nginx.get("/");
    for (path, part) in [
        ("/s", "status"),
        ("/api/upstrands", "upstrands"),
        ("/api/upstrands/s", "upstrand"),
        ("/api/upstrands/s/explain", "explain"),
        ("/api/upstrands/s/upstreams/u1", "upstream"),
        ("/api/nope", "error"),
    ] {
        let response = nginx.get(path);
        checked(&response, part);
        let mut check = Command::new(python)
            .args([tool, "--as", part])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        check
            .stdin
            .take()
            .unwrap()
            .write_all(&response.body)
            .unwrap();
        let output = check.wait_with_output().unwrap();
        assert!(output.status.success(), "{path}: {output:?}");
    }
}

#[test]
fn an_upstream_that_is_taken_back_while_a_client_sends_its_body_is_asked() {
    for back in ["u1", "u2"] {
        let (_u1, _u2, setup) = two("zone z 256k;", "");
        let nginx = setup.start();
        change(&nginx, "u1", DRAIN);
        change(&nginx, "u2", FORCE);
        let mut client = nginx.client();
        client.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n");
        eventually("a walk", || nginx.logged("are draining") == 1);
        change(&nginx, back, UNDRAIN);
        client.send(b"12345");
        let response = client.read(true).expect("an answer");
        assert_eq!((response.status, response.text().as_str()), (200, back));
    }
}

#[test]
fn a_background_update_asks_no_draining_upstream() {
    let cached = answer(200).header("Cache-Control: max-age=1");
    let (u1, u2) = (
        Backend::new("u1", cached.clone()),
        Backend::new("u2", cached),
    );
    let nginx = Setup::new()
        .http("proxy_cache_path <dir>/cache keys_zone=c:1m;\n")
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .server(LOCATIONS)
        .upstrand_with(
            &format!("zone z 256k; upstream u1; upstream u2; order per_request; {FAILURES}"),
            "proxy_cache c; proxy_cache_key $uri; proxy_cache_use_stale updating error;\n\
             proxy_cache_background_update on;",
        )
        .start();
    assert_eq!(nginx.get("/").text(), "u1");
    change(&nginx, "u1", DRAIN);
    change(&nginx, "u2", FORCE);
    sleep(2100);
    for n in 1..3 {
        assert_eq!(nginx.get("/").text(), "u1", "stale");
        // The walk of the request, and of the update behind it.
        eventually("both", || nginx.logged("are draining") == 2 * n);
        sleep(100);
        assert_eq!((u1.count(), u2.count()), (1, 0));
    }
}

#[test]
fn a_slice_asks_no_draining_upstream() {
    let bytes = |range: &str| {
        answer(206)
            .header(&format!("Content-Range: bytes {range}/20"))
            .header("ETag: \"one\"")
            .body("0123456789")
    };
    let u1 = Backend::script("u1", vec![bytes("0-9").into(), bytes("10-19").into()]);
    let nginx = Setup::new()
        .http("proxy_cache_path <dir>/cache keys_zone=c:1m;\n")
        .upstream("u1", &u1)
        .server(LOCATIONS)
        .upstrand_with(
            &format!("zone z 256k; upstream u1; {FAILURES}"),
            "slice 10; proxy_cache c; proxy_cache_key $uri$slice_range;\n\
             proxy_cache_valid 206 1m; proxy_set_header Range $slice_range;",
        )
        .start();
    let mut client = nginx.client();
    let response = client.ask("GET", "/", "Range: bytes=0-9\r\n", b"");
    assert_eq!(response.expect("the first slice").text(), "0123456789");
    change(&nginx, "u1", FORCE);
    // The first slice comes out of the cache; the second one is not to be had.
    let whole = nginx.client().get("/").map(|response| response.text());
    assert!(whole.is_err(), "{whole:?}");
    assert_eq!(u1.count(), 1);
}
