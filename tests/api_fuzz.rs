//! Requests that no one would send to `upstrand_api` and `upstrand_status`, while others ask the
//! upstrand: each gets an answer that is well-formed, nothing changes that nobody asked for, and no
//! worker dies. They are made at random, each batch from a seed of its own.
//!
//! - `FUZZ_SECONDS`: for how long (default 4)
//! - `FUZZ_SEED`: the seed of the first batch, the others follow (default 1); a failure prints it

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
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde_json::Value;
use support::schema::{checked, refused};
use support::{client, ms, Backend, Client, Load, Nginx, Response, Setup};

const MEMBERS: [&str; 4] = ["u0", "u1", "q\"\\ %2F/я", "UPPER"];
/// The same in a path.
const ENCODED: [&str; 4] = ["u0", "%751", "q%22%5C%20%252F/%D1%8F", "upper"];

/// What a member is like: draining, blacklisted.
type State = [(bool, bool); MEMBERS.len()];

/// What a body asks for.
#[derive(Clone, Copy, Default)]
struct Wish {
    drain: Option<bool>,
    force: bool,
    blacklist: Option<bool>,
}

/// Bodies; None: they are refused.
fn bodies() -> Vec<(String, Option<Wish>)> {
    let drain = |drain, force| Wish {
        drain: Some(drain),
        force,
        blacklist: None,
    };
    let blacklist = |blacklist| Wish {
        blacklist: Some(blacklist),
        ..Wish::default()
    };
    let both = |drain, blacklist| Wish {
        drain: Some(drain),
        force: false,
        blacklist: Some(blacklist),
    };
    let good = [
        ("{\"drain\":true}", drain(true, false)),
        ("{\"drain\":true}", drain(true, false)),
        ("{\"drain\":false}", drain(false, false)),
        (
            "\n{ \"force\" : true , \"drain\" : true }\t",
            drain(true, true),
        ),
        ("{\"force\":false,\"drain\":true}", drain(true, false)),
        ("{\"force\":true,\"\\u0064rain\":false}", drain(false, true)),
        ("{\"blacklist\":\"1h\"}", blacklist(true)),
        ("{\"blacklist\":\"1h 30m\"}", blacklist(true)),
        ("{\"blacklist\":\"9\\u0030m\"}", blacklist(true)),
        ("{\"blacklist\":null}", blacklist(false)),
        ("{\"blacklist\":null,\"drain\":true}", both(true, false)),
        ("{\"blacklist\":\"1d\",\"drain\":true}", both(true, true)),
        ("{\"blacklist\":\"1d\",\"drain\":false}", both(false, true)),
    ];
    let bad = [
        "",
        "{}",
        "[]",
        "null",
        "{\"drain\":1}",
        "{\"drain\":null}",
        "{\"drain\":true,\"drain\":true}",
        "{\"drain\":true}x",
        "{\"drain\":true",
        "{\"force\":true}",
        "{\"blacklist\":5}",
        "{\"blacklist\":\"\"}",
        "{\"blacklist\":\"1x\"}",
        "{\"blacklist\":\"-1s\"}",
        "{\"blacklist\":\"0\"}",
        "{\"blacklist\":\"99999999999999999999\"}",
        "{\"drain\":true,\"blacklist\":\"nope\"}",
        "{\"drain\":true,\"other\":1}",
        "[true,null,null]",
        "\u{feff}{\"drain\":true}",
    ];
    let good = good.map(|(text, wish)| (text.to_string(), Some(wish)));
    let bad = bad.map(|text| (text.to_string(), None));
    let mut all: Vec<_> = good.into_iter().chain(bad).collect();
    all.push(("[".repeat(4000), None));
    all
}

/// A request whose answer is known.
struct Known {
    bytes: Vec<u8>,
    head: bool,
    status: u16,
    part: &'static str,
}

struct Fuzz<'a> {
    rng: StdRng,
    nginx: &'a Nginx,
    bodies: Vec<(String, Option<Wish>)>,
}

impl Fuzz<'_> {
    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        *all.choose(&mut self.rng).expect("a choice")
    }

    /// A body as it is sent: with a length, or in chunks.
    fn framed(&mut self, body: &[u8]) -> Vec<u8> {
        if self.rng.random_bool(0.6) {
            let head = format!("Content-Length: {}\r\n\r\n", body.len());
            return [head.as_bytes(), body].concat();
        }
        let mut bytes = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
        let mut rest = body;
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(self.rng.random_range(1..=rest.len()));
            bytes.extend(format!("{:X}\r\n", chunk.len()).into_bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
            rest = later;
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }

    /// A request that is well-formed HTTP, what it is answered with, and what it does to the state.
    fn known(&mut self, state: &mut State) -> Known {
        let number = self.rng.random_range(0..MEMBERS.len());
        let member = format!("/api/upstrands/S/upstreams/{}", ENCODED[number]);
        let (path, part): (String, _) = match self.rng.random_range(0..14) {
            0 => ("/s".into(), "status"),
            1 => ("/s?format=xml".into(), "xml"),
            2 => ("/api/upstrands".into(), "upstrands"),
            3 => ("/api/%75pstrands/s".into(), "upstrand"),
            4 => ("/api/upstrands/s/explain".into(), "explain"),
            5 => ("/api/upstrands/nope".into(), "error"),
            6 => ("/api/upstrands/s/upstreams/nope".into(), "error"),
            7 => ("/api/upstrands/own/upstreams/u0".into(), "own"),
            _ => (member, "upstream"),
        };
        let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "FROB"];
        let method = match part {
            "upstream" | "own" if self.rng.random_bool(0.8) => "PATCH",
            _ => self.pick(&methods),
        };
        let kinds = [
            "application/json",
            "Application/JSON ; x=y",
            "text/json",
            "",
        ];
        let kind = match self.rng.random_range(0..5) {
            0 => self.pick(&kinds),
            _ => kinds[0],
        };
        let (mut body, mut wish) = self.bodies.choose(&mut self.rng).unwrap().clone();
        if self.rng.random_bool(0.05) {
            body += &" ".repeat(self.rng.random_range(4097..9000));
            wish = None;
        }
        let reads = ["GET", "HEAD"].contains(&method);
        let status = match (part, method) {
            ("error", _) => 404,
            ("xml", _) if reads => 400,
            ("own" | "upstream", "PATCH") => {
                if !kind.to_lowercase().starts_with("application/json") {
                    415
                } else if body.len() > 4096 {
                    413
                } else {
                    match wish {
                        None => 400,
                        Some(_) if part == "own" => 409,
                        Some(wish) => apply(state, number, wish),
                    }
                }
            }
            _ if reads => 200,
            _ => 405,
        };
        let mut headers = vec!["Host: t".to_string(), format!("Content-Type: {kind}")];
        headers.extend((0..self.rng.random_range(0..3)).map(|n| format!("X-{n}: \u{fc}\"")));
        headers.shuffle(&mut self.rng);
        let head = format!("{method} {path} HTTP/1.1\r\n{}\r\n", headers.join("\r\n"));
        let framed = self.framed(body.as_bytes());
        Known {
            bytes: [head.as_bytes(), &framed].concat(),
            head: method == "HEAD",
            status,
            part: match (status, part) {
                (200, "own") => "upstream",
                (200, part) => part,
                _ => "error",
            },
        }
    }

    /// Bytes that were a request once.
    fn broken(&mut self) -> Vec<u8> {
        let mut state = State::default();
        let mut bytes = self.known(&mut state).bytes;
        for _ in 0..self.rng.random_range(1..6) {
            let at = self.rng.random_range(0..bytes.len());
            let words: [&[u8]; 12] = [
                b"\"",
                b"\\u0000",
                b"{",
                b"\r\n",
                b"/",
                b"%",
                b"..",
                b"\0",
                b"upstrands",
                b"PATCH ",
                b"ffffffffffffffff",
                b"Transfer-Encoding: chunked\r\n",
            ];
            match self.rng.random_range(0..5) {
                0 => bytes[at] = self.rng.random(),
                1 => drop(bytes.remove(at)),
                2 => {
                    let word = self.pick(&words);
                    bytes.splice(at..at, word.iter().copied());
                }
                3 => {
                    let end = self.rng.random_range(at..=bytes.len().min(at + 40));
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
                _ => bytes.truncate(at.max(1)),
            }
            if bytes.is_empty() {
                bytes.push(b'x');
            }
        }
        bytes
    }

    /// Sends in parts.
    fn send(&mut self, stream: &mut TcpStream, bytes: &[u8]) {
        let mut rest = bytes;
        let parts = self.rng.random_range(1..4);
        for part in 1..=parts {
            let len = match part == parts {
                true => rest.len(),
                false => self.rng.random_range(0..=rest.len()),
            };
            let (now, later) = rest.split_at(len);
            if stream.write_all(now).is_err() {
                return;
            }
            if self.rng.random_bool(0.2) {
                std::thread::sleep(ms(1));
            }
            rest = later;
        }
    }

    /// One batch of requests over one connection.
    fn batch(&mut self) {
        let before = self.state();
        match self.rng.random_range(0..10) {
            // Well-formed ones, one after another without waiting.
            0..=5 => {
                let mut state = before;
                let all: Vec<Known> = (0..self.rng.random_range(1..6))
                    .map(|_| self.known(&mut state))
                    .collect();
                let bytes: Vec<u8> = all.iter().flat_map(|one| one.bytes.clone()).collect();
                let mut client = self.nginx.client();
                self.send(&mut client.stream, &bytes);
                for one in &all {
                    let asked = String::from_utf8_lossy(&one.bytes);
                    let response = client
                        .read(!one.head)
                        .unwrap_or_else(|e| panic!("{e}: {asked}"));
                    assert_eq!(response.status, one.status, "{asked}\n{}", response.text());
                    if one.head {
                        continue;
                    }
                    match one.status {
                        200 => drop(checked(&response, one.part)),
                        status => drop(refused(&response, status)),
                    }
                }
                assert_eq!(self.state(), state, "{}", String::from_utf8_lossy(&bytes));
            }
            // A client that leaves in the middle.
            6 => {
                let mut state = before;
                let bytes = self.known(&mut state).bytes;
                let len = self.rng.random_range(0..bytes.len());
                let mut client = self.nginx.client();
                self.send(&mut client.stream, &bytes[..len]);
                drop(client);
                assert_eq!(
                    self.state(),
                    before,
                    "{}",
                    String::from_utf8_lossy(&bytes[..len])
                );
            }
            // Whatever it is.
            _ => {
                let bytes: Vec<u8> = (0..self.rng.random_range(1..4))
                    .flat_map(|_| self.broken())
                    .collect();
                let mut client = self.nginx.client();
                self.send(&mut client.stream, &bytes);
                let _ = client.stream.shutdown(Shutdown::Write);
                let changed = any_good(&mut client, &bytes);
                let text = String::from_utf8_lossy(&bytes);
                assert!(changed || self.state() == before, "{text}");
            }
        }
    }

    fn state(&self) -> State {
        let response = client::get(self.nginx.port(), "/api/upstrands/s").expect("an answer");
        let value = checked(&response, "upstrand");
        let mut state = State::default();
        for (n, (own, name)) in state.iter_mut().zip(MEMBERS).enumerate() {
            let member = &value["upstreams"][n];
            assert_eq!(member["name"], *name);
            *own = (
                member["draining"] == true,
                member["blacklisted_until"].is_string(),
            );
        }
        state
    }
}

/// The status of a change, which is made then.
fn apply(state: &mut State, number: usize, wish: Wish) -> u16 {
    let (drains, _) = state[number];
    let others = state.iter().enumerate();
    let other_is_usable = others
        .filter(|(other, _)| *other != number)
        .any(|(_, own)| *own == (false, false));
    if wish.drain == Some(true) && !drains && !wish.force && !other_is_usable {
        return 409;
    }
    let (draining, blacklisted) = &mut state[number];
    *draining = wish.drain.unwrap_or(*draining);
    *blacklisted = wish.blacklist.unwrap_or(*blacklisted);
    200
}

/// Reads all answers, each of which is well-formed; whether one of them is, or may be, good.
fn any_good(client: &mut Client, asked: &[u8]) -> bool {
    let asked = String::from_utf8_lossy(asked).to_string();
    let mut good = false;
    let bytes = client.rest().unwrap_or_else(|_| {
        // nginx closed with bytes of ours unread, which may have cost the client an answer.
        good = true;
        std::mem::take(&mut client.buffer)
    });
    let mut rest = &bytes[..];
    while let Some(end) = rest.windows(4).position(|window| window == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&rest[..end]).to_string();
        rest = &rest[end + 4..];
        let mut lines = head.split("\r\n");
        let status: u16 = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok())
            .unwrap_or_else(|| panic!("{head} for {asked}"));
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        good |= status < 300;
        if status == 100 {
            continue;
        }
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        let is_json = response.header("Content-Type") == Some("application/json");
        let len = response
            .header("Content-Length")
            .and_then(|len| len.parse().ok());
        let Some(body) = rest.get(..len.unwrap_or(rest.len())) else {
            // HEAD, or cut off.
            return good;
        };
        let is_body = body.first() != Some(&b'H');
        if is_json && is_body && !body.is_empty() {
            response.body = body.to_vec();
            if status >= 400 {
                refused(&response, status);
            } else {
                let value: Result<Value, _> = serde_json::from_slice(body);
                assert!(value.is_ok(), "{} for {asked}", response.text());
            }
        }
        assert!(
            is_json || status < 500 || [501, 505].contains(&status),
            "{head} for {asked}"
        );
        if is_body {
            rest = &rest[body.len()..];
        }
    }
    good
}

#[test]
fn no_request_breaks_the_api() {
    let number = |variable: &str, default| {
        std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
    };
    let backend = Backend::new("u", 200);
    let mut http = String::new();
    for name in MEMBERS {
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        http += &format!("upstream \"{name}\" {{ server <u>; }}\n");
    }
    let members: String = MEMBERS
        .iter()
        .map(|name| name.replace('\\', "\\\\").replace('"', "\\\""))
        .map(|name| format!("upstream \"{name}\";\n"))
        .collect();
    let nginx = Setup::new()
        .at("u", &backend)
        .http(&format!(
            "{http}upstrand s {{ zone z 256k; {members} }}\nupstrand own {{ {members} }}\n"
        ))
        .server(
            "large_client_header_buffers 4 16k; client_header_timeout 3s; client_body_timeout 3s;\n\
             location = /s { upstrand_status; }\n\
             location /api/ { upstrand_api; client_body_buffer_size 200; }\n\
             location = / { proxy_pass http://$upstrand_s; }\n",
        )
        .workers(2)
        .start();
    let workers = nginx.workers();
    let load = Load::start(1, nginx.port(), |r| [200, 502].contains(&r.status));
    let begin = Instant::now();
    let first = number("FUZZ_SEED", 1);
    let mut seed = first;
    while begin.elapsed() < ms(number("FUZZ_SECONDS", 4) * 1000) {
        let mut fuzz = Fuzz {
            rng: StdRng::seed_from_u64(seed),
            nginx: &nginx,
            bodies: bodies(),
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fuzz.batch()));
        assert!(result.is_ok(), "FUZZ_SEED={seed}");
        assert_eq!(nginx.workers(), workers, "FUZZ_SEED={seed}: a worker died");
        seed += 1;
    }
    println!("{} batches", seed - first);
    assert_eq!(load.stop(), [] as [String; 0]);
}
