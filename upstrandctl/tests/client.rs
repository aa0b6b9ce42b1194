//! `upstrandctl` against a server that answers as `upstrand_api` does, over TCP and a unix socket, and
//! against servers that do not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

const UPSTRANDS: &str = include_str!("upstrands.json");
const EXPLAIN: &str = include_str!("explain.json");
/// 2026-11-30T04:20:00Z
const DATE: &str = "Mon, 30 Nov 2026 04:20:00 GMT";

// === the server ===

#[derive(Clone, Debug)]
struct Request {
    method: String,
    path: String,
    headers: String,
    body: String,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

type Handler = fn(&Request) -> Vec<u8>;

/// Answers each connection once, and tells what it was asked.
struct Server {
    url: String,
    asked: Receiver<Request>,
}

impl Server {
    fn tcp(handler: Handler) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api/", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let request = serve(&stream, &stream, handler);
                let _ = request.map(|request| sender.send(request));
            }
        });
        Server { url, asked }
    }

    fn unix(name: &str, handler: Handler) -> Server {
        let path = scratch(name);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let url = format!("unix:{}:/api/", path.display());
        let (sender, asked) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let request = serve(&stream, &stream, handler);
                let _ = request.map(|request| sender.send(request));
            }
        });
        Server { url, asked }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        ctl(&self.url, arguments)
    }

    fn asked(&self) -> Request {
        self.asked.recv_timeout(Duration::from_secs(10)).unwrap()
    }
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

fn serve(read: impl Read, mut write: impl Write, handler: Handler) -> Option<Request> {
    let mut read = BufReader::new(read);
    let mut line = String::new();
    read.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = String::new();
    while read.read_line(&mut headers).ok()? > 2 {}
    let mut request = Request {
        method,
        path,
        headers,
        body: String::new(),
    };
    let length = request.header("content-length");
    let length: u64 = length.map_or(0, |length| length.parse().unwrap());
    read.take(length).read_to_string(&mut request.body).ok()?;
    // The client may leave before all is sent.
    let _ = write.write_all(&handler(&request));
    Some(request)
}

fn answer(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nServer: nginx\r\nDate: {DATE}\r\nContent-Type: {kind}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

fn json(body: &str) -> Vec<u8> {
    answer("200 OK", "application/json", body)
}

fn error(status: &str, text: &str) -> Vec<u8> {
    let number: u16 = status[..3].parse().unwrap();
    let body = json!({"error": {"status": number, "text": text}}).to_string();
    answer(status, "application/json", &body)
}

/// What the module answers.
fn api(request: &Request) -> Vec<u8> {
    let all: Value = serde_json::from_str(UPSTRANDS).unwrap();
    let path: Vec<&str> = request
        .path
        .trim_start_matches("/api/")
        .split('/')
        .collect();
    let upstrand = |name: &str| {
        all.get(name)
            .ok_or_else(|| error("404 Not Found", "no such upstrand"))
    };
    let allowed = |method: &str| {
        if request.method == method {
            Ok(())
        } else {
            Err(error("405 Not Allowed", "another method is needed"))
        }
    };
    let found = || -> Result<Vec<u8>, Vec<u8>> {
        match path[..] {
            ["upstrands"] => allowed("GET").map(|()| json(UPSTRANDS)),
            ["upstrands", name] => {
                allowed("GET")?;
                Ok(json(&upstrand(name)?.to_string()))
            }
            ["upstrands", name, "explain"] => {
                allowed("GET")?;
                upstrand(name).map(|_| json(EXPLAIN))
            }
            ["upstrands", name, "upstreams", member] => {
                allowed("PATCH")?;
                let upstrand = upstrand(name)?;
                let member = upstrand["upstreams"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|it| it["name"] == member)
                    .ok_or_else(|| error("404 Not Found", "no such upstream"))?;
                changed(request, upstrand, member.clone())
            }
            _ => Err(error("404 Not Found", "no such path")),
        }
    };
    found().unwrap_or_else(|refused| refused)
}

fn changed(request: &Request, upstrand: &Value, mut member: Value) -> Result<Vec<u8>, Vec<u8>> {
    if request.header("content-type") != Some("application/json") {
        return Err(error(
            "415 Unsupported Media Type",
            "the body has to be application/json",
        ));
    }
    if request.body.len() > 4096 {
        return Err(error(
            "413 Request Entity Too Large",
            "the body is longer than 4 KiB",
        ));
    }
    let change: Value = serde_json::from_str(&request.body)
        .map_err(|_| error("400 Bad Request", "the body is no JSON"))?;
    if upstrand["zone"].is_null() {
        return Err(error("409 Conflict", "the upstrand has no zone"));
    }
    if change["drain"] == true && member["name"] == "us" && change["force"] != true {
        return Err(error(
            "409 Conflict",
            "the last usable upstream, \"force\" is missing",
        ));
    }
    if let Some(drain) = change["drain"].as_bool() {
        member["draining"] = drain.into();
        member["state"] = if drain { "draining" } else { "up" }.into();
        member["reason"] = if drain { "drained by hand" } else { "no mark" }.into();
        member["blacklisted_until"] = Value::Null;
    }
    match change.get("blacklist") {
        None => {}
        Some(Value::Null) => {
            member["state"] = "up".into();
            member["reason"] = "no mark".into();
            member["blacklisted_until"] = Value::Null;
        }
        Some(time) if time == "30s" => {
            member["state"] = "unavail".into();
            member["reason"] = "blacklisted by hand".into();
            member["blacklisted_until"] = "2026-11-30T04:20:30.900Z".into();
        }
        Some(_) => return Err(error("400 Bad Request", "invalid time in \"blacklist\"")),
    }
    Ok(json(&member.to_string()))
}

// === the client ===

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_upstrandctl"));
    command
        .args(arguments)
        .env_remove("UPSTRAND_URL")
        .env("http_proxy", "http://127.0.0.1:1/")
        .stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> Run {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let run = Run {
        code: status.code().unwrap_or_else(|| panic!("{status}")),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    };
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    run
}

fn ctl(url: &str, arguments: &[&str]) -> Run {
    run(command(arguments).env("UPSTRAND_URL", url))
}

impl Run {
    /// Fails with one line on standard error, nothing on the other.
    #[track_caller]
    fn fails(&self, code: i32, line: &str) {
        assert_eq!(self.stderr, format!("upstrandctl: {line}\n"));
        assert_eq!((self.code, self.stdout.as_str()), (code, ""));
    }

    #[track_caller]
    fn prints(&self, stdout: &str) {
        assert_eq!(self.stderr, "");
        assert_eq!((self.stdout.as_str(), self.code), (stdout, 0));
    }
}

const TABLE: &str = "\
UPSTRAND  TIER  UPSTREAM  STATE     SINCE  TRIES  FAILURES  ACTIVE  PEERS  REASON
local        0  app       up            -     12         0       0      -  no mark
regions      0  eu        unavail     10s    900        31       3    1/2  blacklisted after http_503, 20s left
regions      1  us        up            -     31         0       2    1/1  no mark
regions      1  asia      draining  2h05m      0         0       0    0/1  drained by hand

regions: tier 1 serves: us
one worker's view, no zone: local
";

// === what it answers when all is well ===

#[test]
fn status_over_tcp_and_a_unix_socket() {
    for server in [Server::tcp(api), Server::unix("status", api)] {
        server.run(&["status"]).prints(TABLE);
        let asked = server.asked();
        assert_eq!(
            (asked.method.as_str(), asked.path.as_str()),
            ("GET", "/api/upstrands")
        );
        assert_eq!(asked.header("accept"), Some("application/json"));
        assert!(asked
            .header("user-agent")
            .unwrap()
            .starts_with("upstrandctl/"));
    }
}

#[test]
fn the_url_is_an_option_too_and_goes_before_the_environment() {
    let server = Server::unix("option", api);
    let slashless = server.url.trim_end_matches('/');
    for url in [slashless.to_owned(), format!("http://{}", server.url)] {
        let run = ctl("http://127.0.0.1:1/", &["status", "local", "--url", &url]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{url}");
        assert!(
            run.stdout.contains("\nlocal        0  app "),
            "{}",
            run.stdout
        );
        let asked = server.asked();
        assert_eq!(asked.path, "/api/upstrands/local");
        assert_eq!(asked.header("host"), Some("localhost"));
    }
}

#[test]
fn json_is_what_the_server_answered() {
    let server = Server::tcp(api);
    server.run(&["status", "--json"]).prints(UPSTRANDS);
    server
        .run(&["--json", "explain", "regions"])
        .prints(EXPLAIN);
    let run = server.run(&["--json", "drain", "regions", "eu"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["draining"], true);

    // The server's refusal, too.
    let run = server.run(&["--json", "drain", "regions", "us"]);
    assert_eq!(run.code, 1);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["error"]["status"], 409);
    assert_eq!(
        run.stderr,
        "upstrandctl: the last usable upstream, \"force\" is missing\n"
    );
}

#[test]
fn explain() {
    let server = Server::tcp(api);
    server.run(&["explain", "regions"]).prints(
        "\
regions: by turns, zone upstrands

VISIT  TIER  UPSTREAM  REASON
    1     1  us        its turn
    -     0  eu        blacklisted after http_503
    -     1  asia      drained by hand
",
    );
    assert_eq!(server.asked().path, "/api/upstrands/regions/explain");
}

#[test]
fn changes_over_tcp_and_a_unix_socket() {
    for server in [Server::tcp(api), Server::unix("changes", api)] {
        for (arguments, body, line) in [
            (
                &["drain", "regions", "eu"][..],
                json!({"drain": true}),
                "eu in regions is draining: drained by hand\n",
            ),
            (
                &["drain", "regions", "us", "--force"],
                json!({"drain": true, "force": true}),
                "us in regions is draining: drained by hand\n",
            ),
            (
                &["undrain", "regions", "asia"],
                json!({"drain": false}),
                "asia in regions is up: no mark\n",
            ),
            (
                &["blacklist", "regions", "us", "30s"],
                json!({"blacklist": "30s"}),
                "us in regions is unavail: blacklisted by hand, 30s left\n",
            ),
            (
                &["unblacklist", "regions", "eu"],
                json!({"blacklist": null}),
                "eu in regions is up: no mark\n",
            ),
        ] {
            server.run(arguments).prints(line);
            let asked = server.asked();
            assert_eq!(asked.method, "PATCH");
            assert_eq!(
                asked.path,
                format!("/api/upstrands/regions/upstreams/{}", arguments[2])
            );
            assert_eq!(asked.header("content-type"), Some("application/json"));
            assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap(), body);
        }
    }
}

#[test]
fn names_are_encoded() {
    let server = Server::tcp(api);
    server.run(&["drain", "a b", "app[__1]_80/é?#%"]);
    let path = "/api/upstrands/a%20b/upstreams/app%5B__1%5D_80%2F%C3%A9%3F%23%25";
    assert_eq!(server.asked().path, path);
}

#[test]
fn headers_and_passwords() {
    let server = Server::tcp(api);
    let host = server.url.strip_prefix("http://").unwrap();
    let url = format!("http://martin:secret@{host}");
    ctl(
        &url,
        &[
            "status",
            "-H",
            "X-Token: a:b",
            "--header",
            "Host: status.example",
        ],
    );
    let asked = server.asked();
    assert_eq!(
        asked.header("authorization"),
        Some("Basic bWFydGluOnNlY3JldA==")
    );
    assert_eq!(asked.header("x-token"), Some("a:b"));
    assert_eq!(asked.header("host"), Some("status.example"));

    ctl(&url, &["status", "-H", "authorization: Bearer x"]);
    assert_eq!(server.asked().header("authorization"), Some("Bearer x"));

    let run = ctl("http://martin:secret@127.0.0.1:1/", &["status"]);
    assert!(!run.stderr.contains("secret"), "{}", run.stderr);
}

#[test]
fn watch_prints_one_after_the_other_until_nobody_reads() {
    let server = Server::tcp(api);
    let mut child = command(&["watch", "--interval", "10ms"])
        .env("UPSTRAND_URL", &server.url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let expected = format!("{TABLE}\n{TABLE}\n");
    let mut text = vec![0; expected.len()];
    stdout.read_exact(&mut text).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_pipe_that_closes_is_no_failure() {
    let server = Server::tcp(api);
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["completion", "bash"],
        &["--help"],
    ] {
        let mut child = command(arguments)
            .env("UPSTRAND_URL", &server.url)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            "",
            "{arguments:?}"
        );
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_a_failure() {
    let server = Server::tcp(api);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let run = run(command(&["status"])
        .env("UPSTRAND_URL", &server.url)
        .stdout(full));
    assert_eq!(run.code, 1);
    assert!(
        run.stderr
            .starts_with("upstrandctl: standard output: No space left"),
        "{}",
        run.stderr
    );
}

// === exit codes ===

#[test]
fn an_upstrand_without_a_usable_upstream() {
    fn out(request: &Request) -> Vec<u8> {
        let all = UPSTRANDS.replace("\"state\":\"up\"", "\"state\":\"unavail\"");
        let all: Value = serde_json::from_str(&all).unwrap();
        match request.path.strip_prefix("/api/upstrands/") {
            Some(name) => json(&all[name].to_string()),
            None => json(&all.to_string()),
        }
    }
    let server = Server::tcp(out);
    for arguments in [&["status"][..], &["status", "local"], &["status", "--json"]] {
        let run = server.run(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (3, ""), "{arguments:?}");
    }
    assert!(server
        .run(&["status"])
        .stdout
        .contains("\nregions: no usable upstream\n"));
}

#[test]
fn what_the_server_refuses() {
    let server = Server::tcp(api);
    for (arguments, text) in [
        (&["status", "nowhere"][..], "no such upstrand"),
        (&["explain", "nowhere"], "no such upstrand"),
        (&["drain", "nowhere", "eu"], "no such upstrand"),
        (&["drain", "regions", "nowhere"], "no such upstream"),
        (
            &["drain", "regions", "us"],
            "the last usable upstream, \"force\" is missing",
        ),
        (&["drain", "local", "app"], "the upstrand has no zone"),
        (
            &["blacklist", "regions", "us", "soon"],
            "invalid time in \"blacklist\"",
        ),
        (
            &["blacklist", "regions", "us", &"9".repeat(5000)],
            "the body is longer than 4 KiB",
        ),
    ] {
        server.run(arguments).fails(1, text);
    }
}

#[test]
fn refusals_that_only_other_clients_meet() {
    let cases: [(Handler, &str); 2] = [
        (|_| error("405 Not Allowed", "GET only"), "GET only"),
        (
            |_| error("415 Unsupported Media Type", "no JSON"),
            "no JSON",
        ),
    ];
    for (handler, text) in cases {
        Server::tcp(handler)
            .run(&["undrain", "a", "b"])
            .fails(1, text);
    }
}

#[test]
fn usage() {
    let nowhere = "where is upstrand_api? Give --url URL or set UPSTRAND_URL, to \
                   http://127.0.0.1/api/ or unix:/run/nginx.sock:/api/ for example";
    run(&mut command(&["status"])).fails(2, nowhere);
    ctl("", &["status"]).fails(2, nowhere);
    ctl("localhost/api", &["status"]).fails(
        2,
        "invalid URL of upstrand_api: it has to begin with http://, https:// or unix:",
    );
    ctl("http://h/", &["status", "-H", "nothing"]).fails(2, "invalid header \"nothing\": no \":\"");
    ctl("http://h/", &["status", "-H", "a b: c"]).fails(2, "invalid name of a header: \"a b\"");
    ctl("http://h/", &["status", "-H", "a: b\nc: d"]).fails(2, "invalid value of a header");
    for arguments in [
        &[][..],
        &["status", ""],
        &["explain"],
        &["drain", "regions"],
        &["drain", "regions", ""],
        &["blacklist", "regions", "eu"],
        &["watch", "--interval", "0"],
        &["status", "--timeout", "never"],
        &["completion", "tcsh"],
        &["no-such-command"],
    ] {
        let run = ctl("http://127.0.0.1:1/", arguments);
        assert_eq!(run.code, 2, "{arguments:?}");
        assert!(!run.stderr.is_empty(), "{arguments:?}");
    }
}

// === servers that are none ===

#[test]
fn no_server() {
    let run = ctl("http://127.0.0.1:1/api", &["status"]);
    run.fails(
        1,
        "no answer from http://127.0.0.1:1/api/: Connection refused",
    );
    let path = scratch("none");
    let run = ctl(&format!("unix:{}", path.display()), &["status"]);
    let text = "No such file or directory (os error 2)";
    run.fails(
        1,
        &format!("no answer from unix:{}:/: {text}", path.display()),
    );
    let run = ctl("http://no-such-host.invalid/", &["status"]);
    assert_eq!(run.code, 1);
    assert!(run
        .stderr
        .starts_with("upstrandctl: no answer from http://no-such-host.invalid/: "));
    // The first answer of a watch has to come.
    assert_eq!(ctl("http://127.0.0.1:1/api", &["watch"]).code, 1);
}

#[test]
fn servers_that_are_something_else() {
    let cases: [(Handler, &str); 11] = [
        (
            |_| answer("200 OK", "text/html", "<html></html>"),
            "200 OK, text/html",
        ),
        (
            |_| answer("403 Forbidden", "text/html", "<html></html>"),
            "403 Forbidden, text/html",
        ),
        (
            |_| answer("404 Not Found", "application/json", "{}"),
            "404 Not Found, application/json",
        ),
        (|_| json("{\"regions\":1}"), "200 OK, application/json"),
        (|_| json("{\"regions\":{}}"), "200 OK, application/json"),
        (|_| json("[]"), "200 OK, application/json"),
        (|_| json(""), "200 OK, application/json"),
        (|_| json(&UPSTRANDS[..200]), "200 OK, application/json"),
        (
            |_| json(&format!("{UPSTRANDS}}}")),
            "200 OK, application/json",
        ),
        (
            |_| b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe".to_vec(),
            "200 OK, without a Content-Type",
        ),
        (
            |_| {
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
                    .to_vec()
            },
            "302 Found, without a Content-Type",
        ),
    ];
    for (handler, what) in cases {
        let server = Server::tcp(handler);
        let line = format!("{} did not answer as upstrand_api does: {what}", server.url);
        server.run(&["status"]).fails(1, &line);
    }
    // Nor does nesting without end hurt.
    fn deep(_: &Request) -> Vec<u8> {
        json(&"[".repeat(1_000_000))
    }
    assert_eq!(Server::tcp(deep).run(&["status"]).code, 1);
}

#[test]
fn answers_that_break() {
    let cases: [(Handler, &str); 5] = [
        (|_| Vec::new(), "no answer from URL: "),
        (
            |_| b"220 mail.example ESMTP\r\n".to_vec(),
            "URL does not answer as HTTP has it: ",
        ),
        (
            |_| b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec(),
            "no answer from URL: ",
        ),
        (
            |_| b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
            "URL does not answer as HTTP has it: ",
        ),
        (
            |_| format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)).into_bytes(),
            "URL does not answer as HTTP has it: ",
        ),
    ];
    for (number, (handler, line)) in cases.into_iter().enumerate() {
        for server in [
            Server::tcp(handler),
            Server::unix(&format!("break{number}"), handler),
        ] {
            let run = server.run(&["status"]);
            let line = format!("upstrandctl: {}", line.replace("URL", &server.url));
            assert!(run.stderr.starts_with(&line), "{number}: {}", run.stderr);
            assert_eq!(
                (run.code, run.stderr.matches('\n').count()),
                (1, 1),
                "{}",
                run.stderr
            );
        }
    }
}

#[test]
fn an_answer_that_is_too_large() {
    fn large(_: &Request) -> Vec<u8> {
        let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n".to_vec();
        bytes.resize(bytes.len() + (64 << 20) + 1, b' ');
        bytes
    }
    let server = Server::tcp(large);
    let line = format!("the answer of {} is larger than 64 MiB", server.url);
    server.run(&["status", "--timeout", "60s"]).fails(1, &line);
}

#[test]
fn a_server_that_says_nothing() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = scratch("silent");
    let _ = std::fs::remove_file(&path);
    let unix = UnixListener::bind(&path).unwrap();
    for url in [
        format!("http://{}/", tcp.local_addr().unwrap()),
        format!("unix:{}:/", path.display()),
    ] {
        let begin = Instant::now();
        let run = ctl(&url, &["status", "--timeout", "200ms"]);
        run.fails(1, &format!("no answer from {url} within 200ms"));
        assert!(begin.elapsed() < Duration::from_secs(4));
    }
    drop(unix);
}

#[test]
fn what_the_server_says_does_not_reach_the_terminal_raw() {
    fn evil(request: &Request) -> Vec<u8> {
        if request.path.ends_with("evil") {
            answer("200 OK", "text/\u{9b}", "")
        } else if request.method == "PATCH" {
            error("409 Conflict", "\x1b]0;owned\x07\nrm -rf")
        } else {
            json("{\"\u{9b}2J\\u001b[2J\":{\"zone\":null,\"upstreams\":[]}}\r\n")
        }
    }
    let server = Server::tcp(evil);
    server
        .run(&["drain", "a", "b"])
        .fails(1, "\\u{1b}]0;owned\\u{7}\\nrm -rf");
    let run = server.run(&["status"]);
    assert!(run.stdout.contains("\\u{9b}2J\\u{1b}[2J"), "{}", run.stdout);
    let run = server.run(&["status", "--json"]);
    assert_eq!(
        run.stdout,
        "{\"\\u009b2J\\u001b[2J\":{\"zone\":null,\"upstreams\":[]}}\n"
    );
    let run = server.run(&["status", "evil"]);
    assert_eq!(run.code, 1);
    assert!(
        !run.stderr.trim_end().chars().any(char::is_control),
        "{:?}",
        run.stderr
    );
}

// === the rest ===

#[test]
fn completion_for_shells() {
    for (shell, word) in [
        ("bash", "complete -F _upstrandctl"),
        ("zsh", "#compdef upstrandctl"),
        ("fish", "complete -c upstrandctl"),
    ] {
        let run = run(&mut command(&["completion", shell]));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert!(run.stdout.contains(word), "{shell}");
        assert!(run.stdout.contains("unblacklist"), "{shell}");
    }
}

#[test]
fn version_and_help() {
    let version = format!("upstrandctl {}\n", env!("CARGO_PKG_VERSION"));
    run(&mut command(&["--version"])).prints(&version);
    let help = run(command(&["--help"]).env("UPSTRAND_URL", "http://u:secret@h/"));
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("UPSTRAND_URL"));
    assert!(!help.stdout.contains("secret"));
}
