//! Everything at once, for a while: backends that fail in every way, clients that leave, reloads
//! with changing configurations, killed workers. `make soak` runs it; it prints what it has seen.
//!
//! - `SOAK_SECONDS`: for how long (default 120)
//! - `SOAK_SEED`: of all that is random (default: another one each time; it is printed)
//!
//! Each request has a tag. The backends note which tag came from which worker, and so does nginx's
//! log: of an answer that is not whole it is known whether its worker was killed. No other excuse is
//! taken, but for connections that nginx closes between two requests, as HTTP has it.
//!
//! Upstream zones (not those of upstrands) are left out: nginx's own locks in them stay locked
//! when a worker is killed that has one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use support::backend::hash;
use support::nginx::{descriptors, memory};
use support::{
    eventually, ms, noise, sleep, sockets, within, Address, Client, Dead, Nginx, Response, Setup,
};

const WORKERS: usize = 4;
const CLIENTS: usize = 16;
const LEAVING_CLIENTS: usize = 3;
/// Sizes of the answers of good backends.
const SIZES: [usize; 4] = [0, 10, 5_000, 300_000];
/// What the raw backend sends in place of an answer.
const RAW: &[u8] = b"neither a status line nor a header\r\n\r\n\0\x01\x02";
/// How long a try may be silent.
const SILENCE: u64 = 1200;

/// Kilobytes that master and workers may have more at the end, whatever the number of reloads.
const GROWTH: i64 = 512;

/// The body of that size that good backends send.
fn body(size: usize) -> &'static [u8] {
    static ALL: OnceLock<Vec<u8>> = OnceLock::new();
    &ALL.get_or_init(|| noise(300_000))[..size]
}

// Backends.

/// What a backend does with each request.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Answers 200: in one piece, chunked, or chunked with pauses.
    Good,
    Chunked,
    Slow,
    /// Answers with a failure: small; large and chunked; cut; reset in its middle; before it reads
    /// the body; late.
    Fail(u16),
    FailLarge,
    FailCut,
    FailReset,
    FailEarly,
    FailLate,
    /// Resets: at once; in the body of the request; after the request; in the header.
    Reset,
    ResetInBody,
    ResetAfter,
    ResetInHeader,
    /// Closes, or hangs, without a byte.
    Close,
    Hang,
    /// Sends no valid header; one that is too large; one without end.
    Garbage,
    TooLarge,
    Endless,
    /// Answers 200 and cuts the body: by a close; in a chunk; by a reset.
    Cut,
    CutChunked,
    CutReset,
    /// Sends bytes without any header.
    Raw,
}

/// Names of the upstreams that answer well.
const GOOD: [(&str, Does); 3] = [
    ("good", Does::Good),
    ("chunked", Does::Chunked),
    ("slow", Does::Slow),
];
/// Those that fail before an answer has begun.
const FAILING: [(&str, Does); 18] = [
    ("s503", Does::Fail(503)),
    ("s429", Does::Fail(429)),
    ("s404", Does::Fail(404)),
    ("large", Does::FailLarge),
    ("cut503", Does::FailCut),
    ("reset503", Does::FailReset),
    ("early", Does::FailEarly),
    ("late", Does::FailLate),
    ("reset", Does::Reset),
    ("resetbody", Does::ResetInBody),
    ("resetafter", Does::ResetAfter),
    ("resetheader", Does::ResetInHeader),
    ("close", Does::Close),
    ("hang", Does::Hang),
    ("hang2", Does::Hang),
    ("garbage", Does::Garbage),
    ("toolarge", Does::TooLarge),
    ("endless", Does::Endless),
];
/// Those that break off what they have begun, or answer with no header.
const BREAKING: [(&str, Does); 4] = [
    ("cut", Does::Cut),
    ("cutchunked", Does::CutChunked),
    ("cutreset", Does::CutReset),
    ("raw", Does::Raw),
];

/// Which workers asked for which tag.
type Seen = Arc<Mutex<HashMap<String, Vec<i32>>>>;

struct Peer {
    address: String,
    stop: Arc<AtomicBool>,
}

impl Address for Peer {
    fn address(&self) -> &str {
        &self.address
    }
}

impl Peer {
    fn new(does: Does, seen: &Seen) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, seen) = (stop.clone(), seen.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Relaxed) {
                    return;
                }
                let seen = seen.clone();
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let _ = stream.set_read_timeout(Some(ms(8000)));
                    let _ = stream.set_write_timeout(Some(ms(8000)));
                    let _ = serve(stream, does, &seen);
                });
            }
        });
        Peer { address, stop }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(&self.address));
    }
}

/// A request's header.
struct Head {
    text: String,
}

impl Head {
    fn read(client: &mut Client) -> Option<Head> {
        let bytes = client.until(b"\r\n\r\n").ok()?;
        Some(Head {
            text: String::from_utf8_lossy(&bytes).to_string(),
        })
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Whether the answer is to have no body.
    fn is_head(&self) -> bool {
        self.text.starts_with("HEAD ")
    }

    /// What stands between the last slash of the URI and its end.
    fn size(&self) -> usize {
        let uri = self.text.split(' ').nth(1).unwrap_or_default();
        let size = uri.rsplit('/').next().and_then(|size| size.parse().ok());
        size.unwrap_or_default()
    }

    fn read_body(&self, client: &mut Client) -> Option<Vec<u8>> {
        if let Some(len) = self.value("Content-Length") {
            return client.exactly(len.parse().ok()?).ok();
        }
        let mut body = Vec::new();
        if self.value("Transfer-Encoding") != Some("chunked") {
            return Some(body);
        }
        loop {
            let line = String::from_utf8(client.until(b"\r\n").ok()?).ok()?;
            let len = usize::from_str_radix(line.trim_end(), 16).ok()?;
            body.extend(client.exactly(len).ok()?);
            client.exactly(2).ok()?;
            if len == 0 {
                return Some(body);
            }
        }
    }
}

/// Serves a connection; None when it is over.
fn serve(stream: TcpStream, does: Does, seen: &Seen) -> Option<()> {
    if let Does::Reset = does {
        sockets::reset(stream);
        return None;
    }
    let mut client = Client {
        stream,
        buffer: Vec::new(),
    };
    loop {
        let head = Head::read(&mut client)?;
        if let (Some(tag), Some(pid)) = (head.value("X-Tag"), head.value("X-Pid")) {
            let pid = pid.parse().ok()?;
            let mut seen = seen.lock().unwrap();
            seen.entry(tag.to_string()).or_default().push(pid);
        }
        match does {
            Does::ResetInBody => {
                if head.value("Content-Length").is_some_and(|len| len != "0") {
                    client.exactly(1).ok()?;
                }
                sockets::reset(client.stream);
                return None;
            }
            Does::FailEarly => {
                client.send(b"HTTP/1.1 503 X\r\nContent-Length: 5\r\n\r\n");
                client.send(&b"early"[..if head.is_head() { 0 } else { 5 }]);
                // What nginx goes on to send must not make a reset of the close.
                let _ = client.rest();
                return None;
            }
            _ => {}
        }
        let sent = head.read_body(&mut client)?;
        let without_body = head.is_head();
        let small = |status: u16| {
            let body = if without_body { "" } else { "failed" };
            format!("HTTP/1.1 {status} X\r\nX-From: {does:?}\r\nContent-Length: 6\r\n\r\n{body}")
        };
        match does {
            Does::Good | Does::Chunked | Does::Slow => {
                good(&mut client, does, &head, &sent, without_body)?;
            }
            Does::Fail(status) => {
                client.stream.write_all(small(status).as_bytes()).ok()?;
            }
            Does::FailLate => {
                sleep(150);
                client.send(small(503).as_bytes());
                return None;
            }
            Does::FailLarge => {
                client.send(b"HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n");
                if !without_body {
                    chunks(&mut client, body(200_000), ms(0))?;
                }
                return None;
            }
            Does::FailCut => {
                client.send(b"HTTP/1.1 503 X\r\nContent-Length: 50000\r\n\r\n");
                client.send(body(if without_body { 0 } else { 20_000 }));
                return None;
            }
            Does::FailReset | Does::CutReset => {
                let status = if let Does::CutReset = does { 200 } else { 503 };
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 50000\r\n\r\n");
                client.send(head.as_bytes());
                client.send(body(if without_body { 0 } else { 20_000 }));
                sleep(20);
                sockets::reset(client.stream);
                return None;
            }
            Does::ResetInHeader => {
                client.send(b"HTTP/1.1 200 X\r\nContent-Le");
                sleep(5);
                sockets::reset(client.stream);
                return None;
            }
            Does::Hang => {
                let _ = client.rest();
                return None;
            }
            Does::Garbage => {
                client.send(b"HTTP/1.1 200 X\r\n\0\x01\x02 garbage\xff\r\n\r\n");
                return None;
            }
            Does::TooLarge => {
                client.send(b"HTTP/1.1 200 X\r\nX-Large: ");
                client.send(&[b'x'; 40_000]);
                client.send(b"\r\n\r\n");
                return None;
            }
            Does::Endless => {
                client.send(b"HTTP/1.1 200 X\r\n");
                let end = Instant::now() + ms(3000);
                while Instant::now() < end {
                    let line = b"X-One: more\r\n".repeat(20);
                    client.stream.write_all(&line).ok()?;
                    sleep(1);
                }
                return None;
            }
            Does::Cut => {
                client.send(b"HTTP/1.1 200 X\r\nContent-Length: 50000\r\n\r\n");
                client.send(body(20_000));
                return None;
            }
            Does::CutChunked => {
                client.send(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n");
                client.send(body(10_000));
                return None;
            }
            Does::Raw => {
                client.send(RAW);
                return None;
            }
            Does::ResetAfter => {
                sockets::reset(client.stream);
                return None;
            }
            Does::Close | Does::Reset | Does::ResetInBody | Does::FailEarly => return None,
        }
        if !head.text.contains("HTTP/1.1\r\n") || head.value("Connection") == Some("close") {
            return None;
        }
    }
}

/// Sends a chunked body.
fn chunks(client: &mut Client, body: &[u8], pause: Duration) -> Option<()> {
    for piece in body.chunks(30_000) {
        let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
        client.stream.write_all(&bytes).ok()?;
        thread::sleep(pause);
    }
    client.stream.write_all(b"0\r\n\r\n").ok()
}

/// A good answer tells what came of the request's body.
fn good(
    client: &mut Client,
    does: Does,
    head: &Head,
    sent: &[u8],
    without_body: bool,
) -> Option<()> {
    let body = body(head.size().min(300_000));
    let mut text = format!(
        "HTTP/1.1 200 X\r\nX-Got: {}-{:016x}\r\n",
        sent.len(),
        hash(sent)
    );
    let plain = matches!(does, Does::Good) || !head.text.contains("HTTP/1.1\r\n");
    text += &match plain {
        true => format!("Content-Length: {}\r\n\r\n", body.len()),
        false => "Transfer-Encoding: chunked\r\n\r\n".to_string(),
    };
    client.stream.write_all(text.as_bytes()).ok()?;
    if without_body {
        return Some(());
    }
    if plain {
        return client.stream.write_all(body).ok();
    }
    let pause = ms(if let Does::Slow = does { 20 } else { 0 });
    chunks(client, body, pause)
}

// Configurations.

/// The locations, each with an upstrand of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Some upstream answers well, so the request does: buffered answers; unbuffered ones over
    /// kept connections; through combined upstreams and singlets.
    Any,
    Stream,
    Combined,
    /// The same, but POST does not go on once it is sent.
    Idempotent,
    /// The same, but the body of the request is not kept.
    Unbuffered,
    /// No upstream answers well: the failure comes as it is; another location answers; the deadline
    /// passes; two of them are asked.
    Bad,
    Intercepted,
    Deadline,
    Limited,
    /// The answer breaks off, or has no header.
    Cut,
    Raw,
    /// Comes and goes.
    Extra,
}

const KINDS: [Kind; 12] = [
    Kind::Any,
    Kind::Stream,
    Kind::Combined,
    Kind::Idempotent,
    Kind::Unbuffered,
    Kind::Bad,
    Kind::Intercepted,
    Kind::Deadline,
    Kind::Limited,
    Kind::Cut,
    Kind::Raw,
    Kind::Extra,
];

impl Kind {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Whether each request gets a good answer, whatever its method.
    fn is_good(self) -> bool {
        matches!(
            self,
            Kind::Any | Kind::Stream | Kind::Combined | Kind::Extra
        )
    }

    fn location(self) -> String {
        let more = match self {
            Kind::Stream => "proxy_buffering off;",
            Kind::Unbuffered => "proxy_request_buffering off;",
            _ => "",
        };
        let name = self.name();
        format!("location /{name}/ {{ {more} proxy_pass http://$upstrand_{name}; }}\n")
    }

    /// Its upstrand, made by lot.
    fn upstrand(self, rng: &mut StdRng) -> String {
        let pick = |rng: &mut StdRng, from: &[&str], n: usize| -> Vec<String> {
            let picked = from.choose_multiple(rng, n);
            picked.map(|name| (*name).to_string()).collect()
        };
        let failing: Vec<&str> = FAILING.iter().map(|(name, _)| *name).collect();
        let answering = ["s503", "s429", "s404", "large", "dead", "reset", "close"];
        let n = rng.random_range(1..6);
        let some = rng.random_range(2..4);
        let mut members = match self {
            Kind::Any | Kind::Stream | Kind::Idempotent | Kind::Unbuffered | Kind::Extra => {
                pick(rng, &failing, n)
            }
            Kind::Combined => ["merged", "~^host_", "dead"].map(str::to_string).to_vec(),
            Kind::Bad | Kind::Intercepted => pick(rng, &answering, some),
            Kind::Deadline => vec!["hang".to_string(), "hang2".to_string()],
            Kind::Limited => pick(rng, &answering[..4], 4),
            Kind::Cut => pick(rng, &["cut", "cutchunked", "cutreset"], 1),
            Kind::Raw => vec!["raw".to_string()],
        };
        if self.is_good() || matches!(self, Kind::Idempotent | Kind::Unbuffered) {
            let good: Vec<&str> = GOOD.iter().map(|(name, _)| *name).collect();
            let n = rng.random_range(1..3);
            members.extend(pick(rng, &good, n));
            members.shuffle(rng);
        }
        let mut text = format!("upstrand {} {{\n", self.name());
        for member in members {
            let place = ["", "", " backup", " tier=2", " tier=7"].choose(rng);
            let interval = ["", "", "", "100ms", "1s", "5s"].choose(rng).unwrap();
            let _ = write!(text, "upstream {member}{}", place.unwrap());
            if !interval.is_empty() {
                let _ = write!(text, " blacklist_interval={interval}");
            }
            text += ";\n";
        }
        text += [
            "",
            "order per_request;\n",
            "order start_random;\n",
            "order start_random per_request;\n",
        ]
        .choose(rng)
        .unwrap();
        text += match self {
            Kind::Idempotent => "next_upstream_statuses error timeout invalid_header 4xx 5xx;\n",
            Kind::Deadline => "next_upstream_statuses 5xx; next_upstream_timeout 200ms;\n",
            Kind::Limited => {
                "next_upstream_statuses 4xx 5xx non_idempotent; next_upstream_tries 2;\n"
            }
            _ => "next_upstream_statuses error timeout 4xx 500-599 non_idempotent;\n",
        };
        if let Kind::Intercepted = self {
            text += "intercept_statuses 4xx 5xx /sorry;\n";
        }
        // A shared zone, own ones of two sizes, or none. The shared one has its size elsewhere.
        text += match rng.random_range(0..4) {
            0 => "zone shared;\n".to_string(),
            1 => format!("zone {} 64k;\n", self.name()),
            2 => format!("zone {} 256k;\n", self.name()),
            _ => String::new(),
        }
        .as_str();
        text + "}\n"
    }
}

/// Another http level and server for each seed.
fn configuration(seed: u64) -> (String, String) {
    let rng = &mut StdRng::seed_from_u64(seed);
    let mut http = "log_format soak '$http_x_tag|$pid|$status|$upstrand_status|\
                    $upstrand_reason|$upstrand_tries';\n"
        .to_string();
    for (name, _) in GOOD.iter().chain(&FAILING).chain(&BREAKING) {
        let keepalive = ["", "", "keepalive 4;"].choose(rng).unwrap();
        let _ = writeln!(http, "upstream {name} {{ server <{name}>; {keepalive} }}");
    }
    http += "upstream dead { server <dead>; extend_single_peers; }\n\
             upstream host_ { server <dead>; server <good>; server <s503>;\n\
             combine_server_singlets; }\n\
             upstream merged { add_upstream s503 weight=3; add_upstream s404;\n\
             add_upstream dead backup; extend_single_peers; }\n";
    let size = ["64k", "128k"].choose(rng).unwrap();
    let _ = writeln!(
        http,
        "upstrand keeper {{ upstream good; zone shared {size}; }}"
    );
    let mut server = "access_log <dir>/soak.log soak;\n\
        lingering_close always; lingering_timeout 500ms; lingering_time 3s;\n\
        send_timeout 8s; client_body_timeout 8s; client_header_timeout 8s;\n\
        client_body_buffer_size 16k; client_max_body_size 1m;\n\
        proxy_connect_timeout 1s; proxy_next_upstream error;\n\
        proxy_http_version 1.1; proxy_set_header Connection '';\n\
        proxy_set_header X-Pid $pid;\n\
        location /sorry { internal; return 418 sorry; }\n"
        .to_string();
    let _ = writeln!(server, "proxy_read_timeout {SILENCE}ms;");
    for kind in KINDS {
        if kind == Kind::Extra && rng.random_bool(0.5) {
            continue;
        }
        http += &kind.upstrand(rng);
        server += &kind.location();
    }
    (http, server)
}

// Clients.

/// What became of a request.
enum Outcome {
    /// All of it came: its status; 9 if it had no header.
    Whole(u16),
    /// It began and did not end.
    Broken(String),
    /// Not a byte came.
    Nothing(String),
}

impl Outcome {
    fn text(&self) -> String {
        match self {
            Outcome::Whole(status) => format!("whole, status {status}"),
            Outcome::Broken(why) => format!("broken: {why}"),
            Outcome::Nothing(why) => format!("nothing: {why}"),
        }
    }
}

/// What a client has read.
struct Came {
    outcome: Outcome,
    complaint: Option<String>,
    /// No other answer will come over the connection.
    last: bool,
}

impl Came {
    fn is_good(&self) -> bool {
        matches!(self.outcome, Outcome::Whole(200))
    }
}

impl From<Outcome> for Came {
    fn from(outcome: Outcome) -> Came {
        Came {
            outcome,
            complaint: None,
            last: true,
        }
    }
}

/// A request that a client has not left.
struct Asked {
    tag: String,
    kind: Kind,
    what: String,
    /// The connection's first request and when it was made, if that is another one.
    first: Option<(String, Instant)>,
    start: Instant,
    end: Instant,
    outcome: Outcome,
    complaint: Option<String>,
}

#[derive(Default)]
struct Traffic {
    stop: AtomicBool,
    pause: AtomicBool,
    busy: AtomicUsize,
    next_tag: AtomicU64,
    left: AtomicUsize,
    asked: Mutex<Vec<Asked>>,
}

impl Traffic {
    /// Waits while there is a pause; false: it is over.
    fn goes_on(&self) -> bool {
        self.busy.fetch_sub(1, Relaxed);
        while self.pause.load(Relaxed) && !self.stop.load(Relaxed) {
            sleep(5);
        }
        self.busy.fetch_add(1, Relaxed);
        !self.stop.load(Relaxed)
    }

    fn tag(&self) -> String {
        format!("t{}", self.next_tag.fetch_add(1, Relaxed))
    }
}

/// A request to be sent.
struct Ask {
    tag: String,
    kind: Kind,
    method: &'static str,
    size: usize,
    body: usize,
    chunked: bool,
    version: &'static str,
    last: bool,
    expect: bool,
}

impl Ask {
    fn new(rng: &mut StdRng, tag: String) -> Ask {
        let kind = if rng.random_bool(0.5) {
            *KINDS.choose(rng).unwrap()
        } else {
            [Kind::Any, Kind::Stream, Kind::Combined, Kind::Unbuffered]
                .choose(rng)
                .copied()
                .unwrap()
        };
        let method = *["GET", "GET", "GET", "HEAD", "POST", "PUT", "LOCK", "DELETE"]
            .choose(rng)
            .unwrap();
        let mut body = 0;
        if matches!(method, "POST" | "PUT" | "LOCK") {
            body = *[1, 300, 9_000, 100_000].choose(rng).unwrap();
        }
        let mut ask = Ask {
            tag,
            kind,
            method,
            size: *SIZES.choose(rng).unwrap(),
            body,
            chunked: body > 0 && rng.random_bool(0.4),
            version: "HTTP/1.1",
            last: rng.random_bool(0.3),
            expect: body > 0 && rng.random_bool(0.1),
        };
        if rng.random_bool(0.15) && kind != Kind::Cut && !ask.chunked && !ask.expect {
            ask.version = "HTTP/1.0";
            ask.last = true;
        }
        if matches!(kind, Kind::Cut | Kind::Raw) {
            // A HEAD's answer has no body to be cut, and one without a header ends by a close.
            ask.method = if method == "HEAD" { "GET" } else { method };
            ask.last |= kind == Kind::Raw;
            ask.expect &= kind != Kind::Raw;
        }
        ask
    }

    /// A request that can stand among others that are sent at once.
    fn without_body(mut self, last: bool) -> Ask {
        self.body = 0;
        self.chunked = false;
        self.expect = false;
        self.version = "HTTP/1.1";
        self.method = if self.method == "HEAD" { "HEAD" } else { "GET" };
        self.last = last;
        if matches!(self.kind, Kind::Cut | Kind::Raw) {
            self.kind = Kind::Bad;
        }
        self
    }

    fn head(&self) -> String {
        let mut text = format!(
            "{} /{}/{} {}\r\nHost: soak\r\nX-Tag: {}\r\n",
            self.method,
            self.kind.name(),
            self.size,
            self.version,
            self.tag
        );
        if self.chunked {
            text += "Transfer-Encoding: chunked\r\n";
        } else if self.body > 0 {
            let _ = write!(text, "Content-Length: {}\r\n", self.body);
        }
        if self.expect {
            text += "Expect: 100-continue\r\n";
        }
        if self.last {
            text += "Connection: close\r\n";
        }
        text + "\r\n"
    }

    fn send(&self, client: &mut Client, rng: &mut StdRng) {
        client.send(self.head().as_bytes());
        if self.body == 0 {
            return;
        }
        for piece in body(self.body).chunks(rng.random_range(1000..40_000)) {
            if self.chunked {
                client.send(format!("{:x}\r\n", piece.len()).as_bytes());
            }
            client.send(piece);
            if self.chunked {
                client.send(b"\r\n");
            }
            if rng.random_bool(0.1) {
                sleep(3);
            }
        }
        if self.chunked {
            client.send(b"0\r\n\r\n");
        }
    }

    /// Reads the answer and judges it.
    fn read(&self, client: &mut Client) -> Came {
        if client.buffer.is_empty() {
            match client.more() {
                Ok(true) => {}
                Ok(false) => return Outcome::Nothing("closed".to_string()).into(),
                Err(e) => return Outcome::Nothing(e).into(),
            }
        }
        if self.kind == Kind::Raw {
            while !client.buffer.starts_with(b"HTTP/1.1 ") {
                match client.more() {
                    Ok(true) => {}
                    Ok(false) if client.buffer == RAW => return Outcome::Whole(9).into(),
                    Ok(false) => return Outcome::Broken("not the raw bytes".to_string()).into(),
                    Err(e) => return Outcome::Broken(e).into(),
                }
            }
        }
        let mut response = client.read(self.method != "HEAD");
        while matches!(&response, Ok(response) if response.status == 100) {
            response = client.read(self.method != "HEAD");
        }
        match response {
            Ok(response) => Came {
                outcome: Outcome::Whole(response.status),
                complaint: self.judge(&response).err(),
                last: response.header("Connection") == Some("close"),
            },
            Err(e) => Outcome::Broken(e).into(),
        }
    }

    /// Whether a whole answer is one that the backends gave or forced.
    fn judge(&self, response: &Response) -> Result<(), String> {
        let status = response.status;
        let post = matches!(self.method, "POST" | "LOCK");
        let may_fail = match self.kind {
            Kind::Idempotent => post,
            Kind::Unbuffered => self.body > 0,
            _ => false,
        };
        let good = self.kind.is_good() || matches!(self.kind, Kind::Idempotent | Kind::Unbuffered);
        let failures = [404, 429, 502, 503, 504];
        if good && status == 200 {
            let want = if self.method == "HEAD" {
                &[]
            } else {
                body(self.size)
            };
            if response.body != want {
                return Err(format!("another body of {} bytes", response.body.len()));
            }
            let sent = body(self.body);
            let got = format!("{}-{:016x}", sent.len(), hash(sent));
            return match response.header("X-Got") == Some(&got) {
                true => Ok(()),
                false => Err(format!(
                    "the backend got {:?}, not {got}",
                    response.header("X-Got")
                )),
            };
        }
        let fits = match self.kind {
            // Without the location there is no such file, and files are only read.
            Kind::Extra => [404, 405].contains(&status) && response.header("X-From").is_none(),
            Kind::Intercepted => {
                status == 418 && (self.method == "HEAD" || response.text() == "sorry")
            }
            Kind::Bad => failures[..4].contains(&status),
            Kind::Limited => [404, 429, 503].contains(&status),
            Kind::Deadline => status == 504,
            // The reset may overtake the header.
            Kind::Cut => status == 502,
            // Newer versions of nginx don't take such an answer.
            Kind::Raw => status == 502,
            _ => may_fail && failures.contains(&status),
        };
        match fits {
            true => Ok(()),
            false => Err(format!("status {status}")),
        }
    }
}

/// A client that reads all its answers.
fn client(traffic: &Traffic, port: u16, seed: u64) {
    let rng = &mut StdRng::seed_from_u64(seed);
    while traffic.goes_on() {
        let pipelined = rng.random_bool(0.15);
        let n = rng.random_range(1..5);
        let small = rng.random_bool(0.05);
        let mut asks: Vec<Ask> = (0..n).map(|_| Ask::new(rng, traffic.tag())).collect();
        if pipelined {
            let last = |(i, ask): (usize, Ask)| ask.without_body(i + 1 == n);
            asks = asks.into_iter().enumerate().map(last).collect();
        }
        let begin = Instant::now();
        let connected = match small {
            true => Ok(Client::small(port, 4096)),
            false => Client::new(port),
        };
        let mut client = match connected {
            Ok(client) => client,
            Err(e) => {
                let ask = &asks[0];
                note(traffic, ask, None, begin, Outcome::Nothing(e).into());
                continue;
            }
        };
        if pipelined {
            let all: String = asks.iter().map(Ask::head).collect();
            client.send(all.as_bytes());
        }
        for (i, ask) in asks.iter().enumerate() {
            let start = if pipelined { begin } else { Instant::now() };
            if !pipelined {
                ask.send(&mut client, rng);
            }
            if small {
                sleep(rng.random_range(1..100));
            }
            let came = ask.read(&mut client);
            // After an answer that comes before the whole body has, nginx closes unannounced.
            let early = ask.kind == Kind::Unbuffered && ask.body > 0;
            let over = ask.last || came.last || (early && !came.is_good());
            let first = (i > 0).then_some((&asks[0], begin));
            note(traffic, ask, first, start, came);
            if over {
                break;
            }
        }
        sleep(rng.random_range(1..10));
    }
    traffic.busy.fetch_sub(1, Relaxed);
}

fn note(traffic: &Traffic, ask: &Ask, first: Option<(&Ask, Instant)>, start: Instant, came: Came) {
    traffic.asked.lock().unwrap().push(Asked {
        tag: ask.tag.clone(),
        kind: ask.kind,
        what: ask.head().replace("\r\n", " | "),
        first: first.map(|(ask, start)| (ask.tag.clone(), start)),
        start,
        end: Instant::now(),
        outcome: came.outcome,
        complaint: came.complaint,
    });
}

/// A client that leaves, at any point.
fn leaving_client(traffic: &Traffic, port: u16, seed: u64) {
    let rng = &mut StdRng::seed_from_u64(seed);
    while traffic.goes_on() {
        let ask = Ask::new(rng, format!("left-{}", traffic.tag()));
        if let Ok(mut client) = Client::new(port) {
            let mut bytes = ask.head().into_bytes();
            if ask.body > 0 && !ask.chunked {
                bytes.extend_from_slice(body(ask.body));
            }
            if rng.random_bool(0.5) {
                bytes.truncate(rng.random_range(0..bytes.len()));
            }
            client.send(&bytes);
            sleep(rng.random_range(0..120));
            if rng.random_bool(0.3) {
                let _ = client.stream.set_read_timeout(Some(ms(50)));
                let _ = client.stream.read(&mut [0; 2000]);
            }
            if rng.random_bool(0.5) {
                sockets::reset(client.stream);
            }
            traffic.left.fetch_add(1, Relaxed);
        }
        sleep(rng.random_range(1..30));
    }
    traffic.busy.fetch_sub(1, Relaxed);
}

// The whole.

/// What master and workers have in use, with nothing to do.
#[derive(Debug)]
struct Figures {
    master: i64,
    workers: i64,
    descriptors: (usize, Vec<usize>),
    shared: BTreeMap<String, usize>,
}

/// Children of a process.
fn children(parent: i32) -> usize {
    let is_child = |entry: &fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent_of = stat
            .rsplit_once(") ")
            .and_then(|(_, fields)| fields.split(' ').nth(1)?.parse().ok());
        parent_of == Some(parent)
    };
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter(is_child).count()
}

/// Shared mappings of a process: how many there are of each size.
fn shared(pid: i32) -> BTreeMap<String, usize> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("a running process");
    let mut sizes = BTreeMap::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (range, flags) = (words.next().unwrap(), words.next().unwrap());
        if flags.ends_with('s') {
            let (from, to) = range.split_once('-').unwrap();
            let at = |text| u64::from_str_radix(text, 16).unwrap();
            *sizes
                .entry(format!("{}k", (at(to) - at(from)) / 1024))
                .or_default() += 1;
        }
    }
    sizes
}

/// Pauses the traffic, reloads with the first configuration, and measures when the old workers
/// are gone.
fn measure(
    nginx: &mut Nginx,
    traffic: &Traffic,
    first: &(String, String),
    workers: &mut Workers,
) -> Figures {
    traffic.pause.store(true, Relaxed);
    assert!(
        within(ms(30_000), || traffic.busy.load(Relaxed) == 0),
        "clients wait for answers that never come"
    );
    workers.reload(nginx, first);
    let master = nginx.master;
    assert!(
        within(ms(20_000), || children(master) == WORKERS),
        "old workers do not end"
    );
    // A worker that has just been forked still opens and closes this and that.
    sleep(300);
    let now = nginx.workers();
    let figures = Figures {
        master: memory(master),
        workers: now.iter().map(|pid| memory(*pid)).max().unwrap(),
        descriptors: (
            descriptors(master),
            now.iter().map(|pid| descriptors(*pid)).collect(),
        ),
        shared: shared(master),
    };
    traffic.pause.store(false, Relaxed);
    figures
}

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).unwrap_or_default();
    value.parse().unwrap_or(default)
}

/// What was done to workers, and when.
#[derive(Default)]
struct Workers {
    reloads: usize,
    /// When each was seen to serve last, just before a reload.
    served: HashMap<i32, Instant>,
    killed: Vec<(i32, Instant)>,
}

impl Workers {
    fn reload(&mut self, nginx: &mut Nginx, (http, server): &(String, String)) {
        let now = Instant::now();
        for pid in nginx.workers() {
            self.served.insert(pid, now);
        }
        nginx.reload_with(http, server);
        self.reloads += 1;
    }

    fn kill(&mut self, pid: i32) {
        assert!(pid > 1);
        self.killed.push((pid, Instant::now()));
        // SAFETY: a plain system call.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }

    /// Whether one of these workers was killed in that time; any, if none is known.
    fn killed(&self, known: &[i32], from: Instant, to: Instant) -> bool {
        self.killed.iter().any(|(pid, at)| {
            let during = *at + ms(100) >= from && *at <= to + ms(100);
            during && (known.is_empty() || known.contains(pid))
        })
    }

    /// Whether this worker had begun to end. One that was never seen came and went between two
    /// looks.
    fn ended(&self, pid: i32, by: Instant) -> bool {
        self.served.get(&pid).is_none_or(|last| *last <= by)
    }
}

#[test]
#[ignore = "takes SOAK_SECONDS; make soak runs it"]
fn nothing_is_lost_and_nothing_grows() {
    let seconds = number("SOAK_SECONDS", 120).clamp(5, 86_400);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = number("SOAK_SEED", now.expect("a time").as_secs());
    println!("soak: {seconds} s, SOAK_SEED={seed}");

    let seen = Seen::default();
    let dead = Dead::new();
    let all = GOOD.iter().chain(&FAILING).chain(&BREAKING);
    let peers: Vec<(&str, Peer)> = all
        .map(|(name, does)| (*name, Peer::new(*does, &seen)))
        .collect();
    let first = configuration(seed);
    let mut setup = Setup::new()
        .at("dead", &dead)
        .http(&first.0)
        .server(&first.1)
        .workers(WORKERS)
        .main("worker_shutdown_timeout 15s;")
        // What the master says of a worker that was killed, and of a zone that it had locked.
        .allow("exited on signal 9")
        .allow("was locked by");
    for (name, peer) in &peers {
        setup = setup.at(name, peer);
    }
    let mut nginx = setup.start();
    let port = nginx.port();

    let traffic = Arc::new(Traffic::default());
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for i in 0..CLIENTS + LEAVING_CLIENTS {
        let traffic = traffic.clone();
        let seed = seed ^ (i as u64 + 1) << 32;
        traffic.busy.fetch_add(1, Relaxed);
        threads.push(thread::spawn(move || match i < CLIENTS {
            true => client(&traffic, port, seed),
            false => leaving_client(&traffic, port, seed),
        }));
    }

    let rng = &mut StdRng::seed_from_u64(seed);
    let mut workers = Workers::default();
    let begin = Instant::now();
    sleep(1000);
    workers.reload(&mut nginx, &first);
    sleep(1000);
    let before = measure(&mut nginx, &traffic, &first, &mut workers);
    let mut next = Instant::now() + ms(1000);
    while begin.elapsed() < Duration::from_secs(seconds) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next = Instant::now() + ms(1000);
        if workers.reloads % 5 == 2 {
            // Beside the reload.
            workers.kill(*nginx.workers().choose(rng).unwrap());
        }
        workers.reload(&mut nginx, &configuration(rng.random()));
        if workers.reloads % 5 == 0 {
            sleep(rng.random_range(0..300));
            let victim = *nginx.workers().choose(rng).unwrap();
            workers.kill(victim);
            eventually("a new worker", || {
                let now = nginx.workers();
                now.len() == WORKERS && !now.contains(&victim)
            });
        }
    }
    let after = measure(&mut nginx, &traffic, &first, &mut workers);
    traffic.stop.store(true, Relaxed);
    for thread in threads {
        thread.join().expect("a client that ends");
    }
    let asked = std::mem::take(&mut *traffic.asked.lock().unwrap());
    let log = fs::read_to_string(nginx.dir().join("soak.log")).expect("a log");
    let verdict = Verdict::of(&asked, &log, &seen.lock().unwrap(), &workers);

    println!(
        "soak: {} requests, {} of them whole; {} broken by their backends, {} by killed workers, \
         {} on connections that nginx had closed; {} left by their clients",
        asked.len(),
        verdict.whole,
        verdict.forced,
        verdict.killed,
        verdict.closed,
        traffic.left.load(Relaxed)
    );
    println!(
        "soak: {} failovers, {} reloads, {} kills",
        verdict.failovers,
        workers.reloads,
        workers.killed.len()
    );
    println!("soak: answers by status {:?}", verdict.statuses);
    println!("soak: after the second reload {before:?}");
    println!("soak: after the last reload   {after:?}");

    let faults = verdict.faults;
    let shown = faults[..faults.len().min(20)].join("\n");
    assert!(faults.is_empty(), "{} faults:\n{shown}", faults.len());
    assert!(asked.len() > 20 * seconds as usize / 2, "hardly any load");
    assert_eq!(before.descriptors, after.descriptors);
    assert_eq!(before.shared, after.shared);
    // The heap gets some holes by configurations of different sizes, 100k or 200k after some
    // hundreds of them. A pool that leaks in each reload would be 16k each time, a page 4k.
    assert!(after.master <= before.master + GROWTH, "the master grew");
    assert!(after.workers <= before.workers + GROWTH, "workers grew");
}

/// What came of all.
#[derive(Default)]
struct Verdict {
    whole: usize,
    forced: usize,
    killed: usize,
    closed: usize,
    failovers: usize,
    statuses: BTreeMap<u16, usize>,
    faults: Vec<String>,
}

impl Verdict {
    fn of(
        asked: &[Asked],
        log: &str,
        seen: &HashMap<String, Vec<i32>>,
        workers: &Workers,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let mut lines: HashMap<&str, Vec<Vec<&str>>> = HashMap::new();
        for line in log.lines() {
            let words: Vec<&str> = line.split('|').collect();
            let tries: usize = words
                .get(5)
                .and_then(|n| n.parse().ok())
                .unwrap_or_default();
            verdict.failovers += tries.saturating_sub(1);
            lines.entry(words[0]).or_default().push(words);
        }
        let pids_of = |tag: &str| -> Vec<i32> {
            let logged = lines.get(tag).into_iter().flatten();
            let logged = logged.flat_map(|words| words[1].parse());
            logged
                .chain(seen.get(tag).into_iter().flatten().copied())
                .collect()
        };
        // nginx may close a connection between two requests when its worker is to end.
        let closed = |one: &Asked, known: &[i32]| {
            one.first.is_some() && known.iter().any(|pid| workers.ended(*pid, one.end))
        };
        for one in asked {
            let own = lines.get(one.tag.as_str()).map_or(&[][..], Vec::as_slice);
            let pids = pids_of(&one.tag);
            // A request that no one has noted is the connection's worker's.
            let (from, known) = match &one.first {
                Some((tag, start)) if pids.is_empty() => (*start, pids_of(tag)),
                _ => (one.start, pids.clone()),
            };
            let was_killed = workers.killed(&known, from, one.end);
            let last_try = own.last().and_then(|words| words[3].rsplit('(').next());
            let last_try = last_try.unwrap_or_default();
            let mut fault = |what: &str| {
                verdict.faults.push(format!(
                    "{what}: {} {}\n  {} after {:?}, asked by {:?}, log {own:?}",
                    one.what,
                    match &one.first {
                        Some((tag, _)) => {
                            format!("(after {tag}, asked by {:?})", pids_of(tag))
                        }
                        None => String::new(),
                    },
                    one.outcome.text(),
                    one.end - one.start,
                    pids
                ));
            };
            match &one.outcome {
                Outcome::Whole(status) => {
                    if let Some(complaint) = &one.complaint {
                        // Over HTTP/1.0 a body may end as the worker does.
                        if !(was_killed && own.is_empty() && one.what.contains("HTTP/1.0")) {
                            fault(complaint);
                        }
                    }
                    match own {
                        [] if was_killed => {}
                        [] => fault("not logged"),
                        [words] => {
                            let own_status: Option<u16> = words[2].parse().ok();
                            if own_status != Some(*status) {
                                fault("logged with another status");
                            }
                            let last = last_try.rsplit(' ').next().unwrap_or_default();
                            let others = [418, 9].contains(status) || words[3] == "-";
                            if !others && last.parse().ok() != Some(*status) {
                                fault("not the status of the last try");
                            }
                            let why = words[4].rsplit(' ').next().unwrap_or_default();
                            let fits = match one.kind {
                                Kind::Unbuffered if *status != 200 => {
                                    ["unbuffered", "exhausted"].contains(&why)
                                }
                                Kind::Idempotent if *status != 200 => why == "non_idempotent",
                                Kind::Deadline => why == "deadline",
                                Kind::Limited => {
                                    ["tries", "exhausted"].contains(&why)
                                        && ["1", "2"].contains(&words[5])
                                }
                                Kind::Bad => why == "exhausted",
                                _ => true,
                            };
                            if !fits {
                                fault("another reason");
                            }
                        }
                        _ => fault("logged more than once"),
                    }
                    verdict.whole += 1;
                    *verdict.statuses.entry(*status).or_default() += 1;
                }
                Outcome::Broken(_) if one.kind == Kind::Cut => verdict.forced += 1,
                // A failure that stands, and breaks off.
                Outcome::Broken(_)
                    if matches!(one.kind, Kind::Idempotent | Kind::Unbuffered)
                        && ["cut503) 503", "reset503) 503"].contains(&last_try) =>
                {
                    verdict.forced += 1;
                }
                _ if was_killed => verdict.killed += 1,
                Outcome::Nothing(_) if pids.is_empty() && closed(one, &known) => {
                    verdict.closed += 1
                }
                _ => fault("no whole answer"),
            }
        }
        verdict
    }
}
