//! Caches in front of upstreams that fail at random: a request is never failed while an upstream has
//! a good answer, a body is always one that was made for its URI, and the variables and counts tell
//! what the backends saw. Each configuration and its requests come from a seed.
//!
//! - `FUZZ_SECONDS`: for how long (default 4; a configuration takes about 3)
//! - `FUZZ_SEED`: the first seed, the others follow (default 1); a failure prints it

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use support::backend::answer;
use support::{ms, sleep, Act, Backend, Client, Nginx, Setup};

const MEMBERS: [&str; 3] = ["a", "b", "c"];
const LOCATIONS: usize = 8;
const URIS: usize = 3;
/// The length of each body: one slice, of which nothing is left.
const LENGTH: usize = 100;

/// A location with a cache.
#[derive(Clone, Copy)]
struct Location {
    slices: bool,
}

struct Fuzz {
    rng: StdRng,
    backends: Vec<Backend>,
    locations: Vec<Location>,
    /// The bodies that were made for a URI.
    made: HashMap<String, HashSet<Vec<u8>>>,
    serial: usize,
    /// Tries of each member that variables told of.
    tries: [u64; MEMBERS.len()],
}

impl Fuzz {
    fn chance(&mut self, p: f64, text: &'static str) -> &'static str {
        if self.rng.random_bool(p) {
            text
        } else {
            ""
        }
    }

    fn location(&mut self, number: usize) -> String {
        let stale = self.rng.random_bool(0.7);
        let slices = self.rng.random_bool(0.3);
        self.locations.push(Location { slices });
        let key = *["$uri", "$uri$proxy_host"].choose(&mut self.rng).unwrap();
        let mut text = format!("proxy_cache_key {key}$slice_range;");
        if slices {
            text += "slice 1k; proxy_set_header Range $slice_range;";
        }
        if stale {
            text += "proxy_cache_use_stale error invalid_header http_503 http_404;";
        }
        text += self.chance(0.3, "proxy_cache_revalidate on;");
        text += self.chance(0.3, "proxy_cache_lock on;");
        text += self.chance(0.2, "proxy_intercept_errors on;");
        text += self.chance(0.3, "proxy_buffering off;");
        text += self.chance(0.2, "proxy_next_upstream off;");
        format!("location /{number}/ {{ {text} proxy_pass http://$upstrand_s; }}\n")
    }

    fn start(&mut self) -> Nginx {
        let order = self.chance(0.5, "order per_request;");
        let mut setup = Setup::new();
        for (name, backend) in MEMBERS.iter().zip(&self.backends) {
            setup = setup.upstream_with(name, backend, keepalive(&mut self.rng));
        }
        let locations: String = (0..LOCATIONS).map(|n| self.location(n)).collect();
        let html = setup.dir().join("html");
        for number in 0..LOCATIONS {
            for uri in 0..URIS {
                let page = format!(
                    "begin<!--# block name=\"stub\" -->STUB<!--# endblock -->\
                     <!--# include virtual=\"/{number}/{uri}\" stub=\"stub\" -->end"
                );
                fs::write(html.join(format!("{number}-{uri}.html")), page).unwrap();
            }
        }
        let root = html.display().to_string();
        setup
            .http(&format!(
                "proxy_cache_path {root}/cache keys_zone=k:1m;\n\
                 upstrand s {{ upstream a; upstream b; upstream c; {order}\n\
                     next_upstream_statuses error timeout 503 404; }}\n"
            ))
            .server(&format!(
                "proxy_cache k; proxy_cache_valid 200 206 1s;\n\
                 add_header X-Path $upstrand_path always;\n\
                 add_header X-Told $upstrand_status always;\n\
                 location = /status {{ upstrand_status json; }}\n\
                 location ~ html$ {{ ssi on; root {root}; }}\n{locations}"
            ))
            .start()
    }

    /// What a member is to do; whether it is good.
    fn act(&mut self, number: usize, uri: &str, slices: bool, p: f64) -> (Act, bool) {
        if self.rng.random_bool(p) {
            self.serial += 1;
            let mut body = format!("{} {} {uri} ", MEMBERS[number], self.serial).into_bytes();
            body.resize(LENGTH, b'.');
            self.made
                .entry(uri.to_string())
                .or_default()
                .insert(body.clone());
            let status = if slices { 206 } else { 200 };
            let mut good = answer(status)
                .body(body)
                .header(&format!("ETag: \"{}\"", self.serial));
            if slices {
                good = good.header("Content-Range: bytes 0-99/100");
            }
            return (good.into(), true);
        }
        let bad = match self.rng.random_range(0..5) {
            0 => Act::Close,
            1 => Act::Reset,
            2 => Act::Stall(b"HTTP/1.1 200 OK\r\nA\0: b\r\n\r\n".to_vec()),
            3 => 404.into(),
            _ => 503.into(),
        };
        (bad, false)
    }

    /// One request. `p`: how likely a member is good.
    fn step(&mut self, client: &mut Client, p: f64) {
        let number = self.rng.random_range(0..LOCATIONS);
        let location = self.locations[number];
        let file = self.rng.random_range(0..URIS);
        let uri = format!("/{number}/{file}");
        let mut any_good = false;
        for member in 0..MEMBERS.len() {
            let (act, good) = self.act(member, &uri, location.slices, p);
            self.backends[member].now(act);
            any_good |= good;
        }
        let before: Vec<usize> = self.backends.iter().map(Backend::count).collect();
        let included = self.rng.random_bool(0.2);
        let asked = match included {
            true => format!("/{number}-{file}.html"),
            false => uri.clone(),
        };
        let method = *["GET", "GET", "GET", "HEAD", "PUT"]
            .choose(&mut self.rng)
            .unwrap();
        let method = if included { "GET" } else { method };
        let ranged = method == "GET" && !included && self.rng.random_bool(0.2);
        let headers = if ranged { "Range: bytes=10-19\r\n" } else { "" };
        let response = client.ask(method, &asked, headers, b"");
        let response = response.unwrap_or_else(|e| panic!("{method} {asked}: {e}"));
        let made = self.made.get(&uri);
        let is_made = |body: &[u8]| made.is_some_and(|made| made.contains(body));
        let what = format!("{method} {asked}: {response:?}");
        if included {
            let inner = response.text();
            let inner = inner
                .strip_prefix("begin")
                .and_then(|t| t.strip_suffix("end"));
            let inner = inner.unwrap_or_else(|| panic!("{what}"));
            // The last upstream's own page, or nginx's in whose place the stub stands.
            let failed = inner == "STUB" || MEMBERS.contains(&inner.trim_end());
            assert!(is_made(inner.as_bytes()) || failed && !any_good, "{what}");
        } else if response.status < 300 {
            // A stale answer, or one that is still fresh, does where nobody has a good one.
            let is_whole = match (method, response.status) {
                ("HEAD", _) => response.body.is_empty(),
                (_, 206) if ranged => made
                    .is_some_and(|made| made.iter().any(|body| body[10..20] == response.body[..])),
                _ => is_made(&response.body),
            };
            assert!(is_whole, "{what}");
        } else {
            assert!(!any_good, "{what}");
            assert!([404, 502, 503].contains(&response.status), "{what}");
            let path = response.header("X-Path").expect("a path");
            for member in MEMBERS {
                assert!(path.split(" -> ").any(|name| name == member), "{what}");
            }
        }
        if !included {
            self.check_told(response.header("X-Told").unwrap_or(""), &before, &what);
        }
    }

    /// The variables tell of each request that a backend saw.
    fn check_told(&mut self, told: &str, before: &[usize], what: &str) {
        let mut seen = [0; MEMBERS.len()];
        for part in told.split('(').skip(1) {
            let (name, statuses) = part.split_once(')').expect("a value");
            let member = MEMBERS.iter().position(|own| *own == name).expect("a name");
            let count = statuses
                .split(", ")
                .filter(|s| !s.trim().is_empty())
                .count();
            seen[member] += count;
            self.tries[member] += u64::from(count > 0);
        }
        for (member, count) in seen.iter().enumerate() {
            let asked = self.backends[member].count() - before[member];
            // An idle connection may have been closed under a request, which is tried once more.
            assert!(*count >= asked, "{}: {asked} of {what}", MEMBERS[member]);
        }
    }
}

fn keepalive(rng: &mut StdRng) -> &'static str {
    ["", "keepalive 2;"].choose(rng).unwrap()
}

/// Tries of each member by `upstrand_status`.
fn counted(nginx: &Nginx) -> Vec<u64> {
    let status: Value = serde_json::from_slice(&nginx.get("/status").body).expect("a status");
    let upstreams = status["upstrands"]["s"]["upstreams"].as_array().unwrap();
    upstreams
        .iter()
        .map(|u| u["tries"].as_u64().unwrap())
        .collect()
}

fn run(seed: u64) {
    let mut fuzz = Fuzz {
        rng: StdRng::seed_from_u64(seed),
        backends: MEMBERS.iter().map(|name| Backend::new(name, 200)).collect(),
        locations: Vec::new(),
        made: HashMap::new(),
        serial: 0,
        tries: [0; MEMBERS.len()],
    };
    let nginx = fuzz.start();
    let workers = nginx.workers();
    let mut client = nginx.client();
    for likely in [0.8, 0.25] {
        for _ in 0..60 {
            fuzz.step(&mut client, likely);
        }
        // By then what is cached is stale.
        sleep(if likely > 0.5 { 2100 } else { 0 });
    }
    let counted = counted(&nginx);
    for (member, told) in fuzz.tries.iter().enumerate() {
        assert!(counted[member] >= *told, "{counted:?} {:?}", fuzz.tries);
    }
    assert_eq!(nginx.workers(), workers, "a worker died");
}

#[test]
fn what_fails_before_a_cache_fails_no_one_else() {
    let number = |variable: &str, default| {
        std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
    };
    let begin = Instant::now();
    let first = number("FUZZ_SEED", 1);
    let mut seed = first;
    while begin.elapsed() < ms(number("FUZZ_SECONDS", 4) * 1000) {
        let result = std::panic::catch_unwind(|| run(seed));
        assert!(result.is_ok(), "FUZZ_SEED={seed}");
        seed += 1;
    }
    println!("{} configurations", seed - first);
}
