//! fastcgi, uwsgi, scgi and grpc fail over, with real servers behind them: PHP-FPM, uWSGI (which
//! speaks SCGI, too) and gRPC's own for Python, which also makes the calls.
//!
//! The applications are in tests/servers/. A server that is not installed fails the test, unless
//! TEST_GATEWAYS=skip.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use support::backend::hash;
use support::nginx::Line;
use support::{answer, eventually, ms, noise, skip, sleep, within, FAILURES};
use support::{Address, Backend, Dead, Full, Nginx, Response, Setup};

/// The Python that Debian's packages are for.
const PYTHON: &str = "/usr/bin/python3";

fn installed(program: &str) -> Option<PathBuf> {
    let name = Path::new(program).file_name()?.to_str()?;
    let mut found: Vec<PathBuf> = fs::read_dir(Path::new(program).parent()?)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            // php-fpm8.2: the version is a part of the name.
            let version = path
                .file_name()
                .and_then(|own| own.to_str()?.strip_prefix(name));
            version.is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
        })
        .collect();
    found.sort();
    found.pop()
}

/// Whether a test can run. Without the packages it fails, unless it was asked not to.
fn can_run(test: &str, package: &str, is_there: bool) -> bool {
    if is_there {
        return true;
    }
    let wants_skip = std::env::var_os("TEST_GATEWAYS").is_some_and(|value| value == "skip");
    assert!(
        wants_skip,
        "{package} is not installed ('make deps' does it; TEST_GATEWAYS=skip passes these tests by)"
    );
    skip(test, &format!("{package} is not installed"));
    false
}

fn source(name: &str) -> String {
    format!("{}/tests/servers/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A server program, at a unix socket.
struct Server {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Address for Server {
    fn address(&self) -> &str {
        &self.address
    }
}

impl Server {
    /// Starts one; `command` is given the path of its socket.
    fn start(name: &str, dir: &Path, command: impl FnOnce(&str) -> Command) -> Server {
        let place = |end: &str| dir.join(format!("{name}.{end}"));
        let (socket, log) = (place("sock"), place("log"));
        let output = fs::File::create(place("out")).expect("a file");
        let mut command = command(socket.to_str().expect("a path"));
        command
            .env("NAME", name)
            .env("LOG", &log)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a descriptor"))
            .stderr(output)
            .process_group(0);
        // Goes with the test, even if that one is killed.
        // SAFETY: a plain system call.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        let mut server = Server {
            child: command.spawn().expect("a server that starts"),
            address: format!("unix:{}", socket.display()),
            log,
        };
        let listens = within(ms(10_000), || {
            matches!(server.child.try_wait(), Ok(Some(_))) || UnixStream::connect(&socket).is_ok()
        });
        let output = fs::read_to_string(place("out")).unwrap_or_default();
        let runs = matches!(server.child.try_wait(), Ok(None));
        assert!(listens && runs, "{name} did not start: {output}");
        server
    }

    /// What it was asked, a line each.
    fn seen(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // With its workers.
        // SAFETY: a plain system call; the child is not yet waited for, so the group is its own.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

/// Passes bytes on to a server, and counts the connections.
struct Counter {
    address: String,
    connections: Arc<AtomicUsize>,
}

impl Address for Counter {
    fn address(&self) -> &str {
        &self.address
    }
}

impl Counter {
    fn before(server: &Server) -> Counter {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let path = server.address.trim_start_matches("unix:").to_string();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&path)) else {
                    return;
                };
                counted.fetch_add(1, Relaxed);
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
                let (mut from, mut to): (UnixStream, TcpStream) = (server, client);
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        });
        Counter {
            address,
            connections,
        }
    }
}

// fastcgi, uwsgi, scgi

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gateway {
    Fastcgi,
    Uwsgi,
    Scgi,
}

use Gateway::{Fastcgi, Scgi, Uwsgi};

/// What an application has to know; `GW` is the gateway module.
const PARAMETERS: &[&str] = &[
    "QUERY_STRING $query_string",
    "REQUEST_METHOD $request_method",
    "REQUEST_URI $request_uri",
    "CONTENT_TYPE $content_type",
    "CONTENT_LENGTH $content_length",
    "SERVER_PROTOCOL $server_protocol",
    "SERVER_NAME localhost",
    "SERVER_PORT $server_port",
    "REMOTE_ADDR $remote_addr",
    "UPSTREAM $upstrand_upstream",
];

impl Gateway {
    fn name(self) -> &'static str {
        match self {
            Fastcgi => "fastcgi",
            Uwsgi => "uwsgi",
            Scgi => "scgi",
        }
    }

    fn is_there(self) -> bool {
        match self {
            Fastcgi => installed("/usr/sbin/php-fpm").is_some(),
            Uwsgi | Scgi => {
                installed("/usr/bin/uwsgi").is_some()
                    && Path::new("/usr/lib/uwsgi/plugins/python3_plugin.so").exists()
            }
        }
    }

    fn package(self) -> &'static str {
        match self {
            Fastcgi => "php-fpm",
            Uwsgi | Scgi => "uwsgi-core or uwsgi-plugin-python3",
        }
    }

    /// A server of this name, with two processes.
    fn server(self, name: &str, dir: &Path) -> Server {
        Server::start(name, dir, |socket| match self {
            Fastcgi => {
                let file = dir.join(format!("{name}.fpm"));
                let text = format!(
                    "[global]\nerror_log = /dev/stderr\ndaemonize = no\n\
                     [www]\nlisten = {socket}\nlisten.mode = 0666\npm = static\n\
                     pm.max_children = 2\nclear_env = no\n"
                );
                fs::write(&file, text).expect("a file");
                let program = installed("/usr/sbin/php-fpm").expect("php-fpm");
                let mut command = Command::new(program);
                // Without php.ini, in the foreground, as whoever runs the tests.
                command.args(["-n", "-F", "-R", "-y"]).arg(file);
                for setting in ["extension=posix", "log_errors=1", "display_errors=0"] {
                    command.args(["-d", setting]);
                }
                command
            }
            Uwsgi | Scgi => {
                let mut command = Command::new("/usr/bin/uwsgi");
                command.args([
                    "--plugin",
                    "python3",
                    "--master",
                    "--no-orphans",
                    "--processes",
                ]);
                command.args(["2", "--chmod-socket=666", "--wsgi-file", &source("app.py")]);
                command.args([&format!("--{}-socket", self.name()), socket]);
                command
            }
        })
    }

    fn parameters(self) -> String {
        let name = self.name();
        let mut text: String = PARAMETERS
            .iter()
            .map(|parameter| format!("{name}_param {parameter};\n"))
            .collect();
        text += &match self {
            Fastcgi => format!("fastcgi_param SCRIPT_FILENAME {};\n", source("app.php")),
            Uwsgi | Scgi => format!("{name}_param PATH_INFO $uri;\n"),
        };
        text
    }

    /// An nginx before two upstreams. In both texts `GW` is the gateway module.
    fn nginx(
        self,
        setup: Setup,
        upstreams: [&dyn Address; 2],
        upstrand: &str,
        server: &str,
    ) -> Nginx {
        let own = |text: &str| text.replace("GW", self.name());
        let upstrand = format!("upstream first; upstream second; order per_request; {upstrand}");
        let mut setup = setup.http(&self.parameters());
        for (name, what) in ["first", "second"].iter().zip(upstreams) {
            setup = setup.upstream(name, &what.address().to_string());
        }
        setup
            .http(&own(&format!("upstrand s {{ {upstrand} }}\n")))
            .server(&own(&format!("client_max_body_size 0;\n{server}\n")))
            .start()
    }
}

/// Makes a test of each function for each gateway module.
macro_rules! for_each_gateway {
    ($($test:ident)*) => {
        mod fastcgi {
            $(#[test] fn $test() { super::run(stringify!($test), super::Fastcgi, super::$test); })*
        }
        mod uwsgi {
            $(#[test] fn $test() { super::run(stringify!($test), super::Uwsgi, super::$test); })*
        }
        mod scgi {
            $(#[test] fn $test() { super::run(stringify!($test), super::Scgi, super::$test); })*
        }
    };
}

fn run(test: &str, gateway: Gateway, body: fn(Gateway)) {
    if can_run(test, gateway.package(), gateway.is_there()) {
        body(gateway);
    }
}

for_each_gateway! {
    a_first_upstream_that_is_dead_is_passed_by
    a_first_upstream_that_fails_is_passed_by
    a_body_reaches_each_upstream_whole
    a_post_stops_after_an_answer
    a_body_that_is_passed_on_as_it_comes
    x_accel_redirect_is_not_followed
    intercept_errors_and_error_page_do_not_act
    an_interception_takes_the_last_answer
    large_answers
    the_deadline_cuts_a_silent_upstream
}

/// What the application answers when asked as `upstream`.
fn told(upstream: &str, method: &str, body: &[u8]) -> String {
    let (len, hash) = (body.len(), hash(body));
    format!("{upstream} {upstream} {method} {len} {hash:016x}")
}

#[track_caller]
fn is(response: &Response, status: u16, text: &str) {
    assert_eq!((response.status, response.text().as_str()), (status, text));
}

#[track_caller]
fn last_line(nginx: &Nginx, n: usize) -> Line {
    nginx.log(n).pop().expect("a line")
}

const LOCATION: &str = "location / { GW_pass $upstrand_s; }";

fn a_first_upstream_that_is_dead_is_passed_by(gateway: Gateway) {
    let (setup, dead) = (Setup::new(), Dead::new());
    let second = gateway.server("second", setup.dir());
    let nginx = gateway.nginx(setup, [&dead, &second], FAILURES, LOCATION);
    is(&nginx.get("/"), 200, &told("second", "GET", b""));
    // Nothing was sent: a POST goes on as well.
    let body = noise(200_000);
    is(
        &nginx.ask("POST", "/", "", &body),
        200,
        &told("second", "POST", &body),
    );
    for line in nginx.log(2) {
        assert_eq!(&line["path"], "first -> second");
        assert_eq!(&line["reason"], "(first) error (second) final");
        assert_eq!(&line["statuses"], "(first) 502 (second) 200");
    }
}

fn a_first_upstream_that_fails_is_passed_by(gateway: Gateway) {
    let setup = Setup::new();
    let first = gateway.server("first", setup.dir());
    let second = gateway.server("second", setup.dir());
    let location = "location / { GW_read_timeout 300ms; GW_pass $upstrand_s; }";
    let nginx = gateway.nginx(setup, [&first, &second], FAILURES, location);
    let acts = [
        ("503", "503", "http_503"),
        ("500", "500", "http_500"),
        ("close", "502", "error"),
        ("hang", "504", "timeout"),
    ];
    for (i, (act, status, reason)) in acts.iter().enumerate() {
        let uri = format!("/?first={act}");
        let response = nginx.get(&uri);
        is(&response, 200, &told("second", "GET", b""));
        assert_eq!(response.header("X-Server"), Some("second"));
        let line = last_line(&nginx, i + 1);
        assert_eq!(&line["uri"], uri);
        assert_eq!(&line["status"], "200");
        assert_eq!(&line["path"], "first -> second");
        assert_eq!(&line["addr"], "(first) <first> (second) <second>");
        assert_eq!(&line["statuses"], format!("(first) {status} (second) 200"));
        assert_eq!(&line["reason"], format!("(first) {reason} (second) final"));
        assert_eq!(&line["tries"], "2");
        assert_eq!(&line["upstream_addr"], "<first> : <second>");
        assert_eq!(&line["upstream_status"], format!("{status} : 200"));
        assert_eq!(first.seen().len(), i + 1, "the first one was asked");
    }
    let head = nginx
        .client()
        .ask("HEAD", "/?first=503", "Connection: close\r\n", b"");
    let head = head.expect("an answer");
    assert_eq!(
        (head.status, head.header("X-Server")),
        (200, Some("second"))
    );
    is(&nginx.get("/"), 200, &told("first", "GET", b""));
}

fn a_body_reaches_each_upstream_whole(gateway: Gateway) {
    let setup = Setup::new();
    let first = gateway.server("first", setup.dir());
    let second = gateway.server("second", setup.dir());
    let nginx = gateway.nginx(
        setup,
        [&first, &second],
        "next_upstream_statuses error timeout 5xx non_idempotent;",
        &format!("client_body_buffer_size 8k; {LOCATION}"),
    );
    for len in [1, 900, 8192, 8193, 300_000] {
        let body = noise(len);
        let response = nginx.ask("POST", "/?first=503", "", &body);
        is(&response, 200, &told("second", "POST", &body));
        let both = [&first, &second].map(|server| server.seen().pop());
        let want = ["first", "second"].map(|name| Some(told(name, "POST", &body)));
        assert_eq!(both, want);
    }
    // In chunks: nginx tells the applications how long the body is.
    let body = noise(40_000);
    let mut text = Vec::new();
    for piece in body.chunks(3000) {
        text.extend(format!("{:x}\r\n", piece.len()).bytes());
        text.extend(piece);
        text.extend(b"\r\n");
    }
    text.extend(b"0\r\n\r\n");
    let mut client = nginx.client();
    client.send(b"POST /?first=503 HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(&text);
    let response = client.read(true).expect("an answer");
    is(&response, 200, &told("second", "POST", &body));
    assert_eq!(first.seen().pop(), Some(told("first", "POST", &body)));
    // An application that answers without a look at the body: it may well close first.
    let body = noise(300_000);
    for _ in 0..3 {
        let response = nginx.ask("POST", "/?first=deaf", "", &body);
        is(&response, 200, &told("second", "POST", &body));
    }
}

fn a_post_stops_after_an_answer(gateway: Gateway) {
    let setup = Setup::new();
    let first = gateway.server("first", setup.dir());
    let second = gateway.server("second", setup.dir());
    let location = "location / { GW_read_timeout 300ms; GW_pass $upstrand_s; }";
    let nginx = gateway.nginx(setup, [&first, &second], FAILURES, location);
    let body = noise(20_000);
    let response = nginx.ask("POST", "/?first=503", "", &body);
    is(&response, 503, &told("first", "POST", &body));
    assert_eq!(&last_line(&nginx, 1)["reason"], "(first) non_idempotent");
    for (i, (act, status)) in [("close", 502), ("hang", 504)].iter().enumerate() {
        let response = nginx.ask("POST", &format!("/?first={act}"), "", &body);
        assert_eq!(response.status, *status);
        let line = last_line(&nginx, i + 2);
        assert_eq!(&line["reason"], "(first) non_idempotent");
    }
    assert_eq!(first.seen().len(), 3);
    assert_eq!(second.seen(), [""; 0], "the second one was asked");
    // A PUT may be sent twice.
    let response = nginx.ask("PUT", "/?first=503", "", &body);
    is(&response, 200, &told("second", "PUT", &body));
}

fn a_body_that_is_passed_on_as_it_comes(gateway: Gateway) {
    let (setup, dead) = (Setup::new(), Dead::new());
    let server = gateway.server("second", setup.dir());
    let location = "GW_request_buffering off; location / { GW_pass $upstrand_s; }";
    let body = noise(300_000);
    let text = "next_upstream_statuses error 5xx non_idempotent;";
    let nginx = gateway.nginx(setup, [&dead, &server], text, location);
    let response = nginx.ask("POST", "/", "", &body);
    is(&response, 200, &told("second", "POST", &body));
    drop((nginx, server));

    let setup = Setup::new();
    let first = gateway.server("first", setup.dir());
    let second = gateway.server("second", setup.dir());
    let nginx = gateway.nginx(setup, [&first, &second], text, location);
    let response = nginx.ask("POST", "/?first=503", "", &body);
    is(&response, 503, &told("first", "POST", &body));
    assert_eq!(&last_line(&nginx, 1)["reason"], "(first) unbuffered");
}

fn x_accel_redirect_is_not_followed(gateway: Gateway) {
    let setup = Setup::new();
    let first = gateway.server("first", setup.dir());
    let second = gateway.server("second", setup.dir());
    let server = format!("{LOCATION} location /elsewhere {{ return 200 elsewhere; }}");
    let nginx = gateway.nginx(setup, [&first, &second], FAILURES, &server);
    for (uri, status, name) in [
        ("/?first=redirect", 200, "first"),
        ("/?first=redirect503", 200, "second"),
        ("/?first=503&second=redirect", 200, "second"),
        ("/?first=503&second=redirect503", 503, "second"),
    ] {
        is(&nginx.get(uri), status, &told(name, "GET", b""));
    }
}

fn intercept_errors_and_error_page_do_not_act(gateway: Gateway) {
    let setup = Setup::new();
    let first = gateway.server("first", setup.dir());
    let second = gateway.server("second", setup.dir());
    let server =
        "error_page 404 502 503 504 /elsewhere; location /elsewhere { return 200 elsewhere; }
        location / { GW_intercept_errors on; GW_read_timeout 300ms; GW_pass $upstrand_s; }";
    let nginx = gateway.nginx(setup, [&first, &second], FAILURES, server);
    let second_told = told("second", "GET", b"");
    is(&nginx.get("/?first=404"), 404, &told("first", "GET", b""));
    is(&nginx.get("/?first=503&second=404"), 404, &second_told);
    is(&nginx.get("/?first=503&second=503"), 503, &second_told);
    let response = nginx.get("/?first=503&second=hang");
    assert_eq!(response.status, 504);
    assert!(response.text().contains("504 Gateway Time-out"));
}

fn an_interception_takes_the_last_answer(gateway: Gateway) {
    let setup = Setup::new();
    let first = gateway.server("first", setup.dir());
    let second = gateway.server("second", setup.dir());
    let server = format!(
        "{LOCATION}
        location /page {{ internal; return 200 'page $arg_of'; }}
        location @script {{ GW_pass <second>; }}"
    );
    let upstrand = format!("{FAILURES} intercept_statuses 502-504 /page?of=$upstrand_status; ");
    let upstrand = upstrand + "intercept_statuses 500 @script;";
    let nginx = gateway.nginx(setup, [&first, &second], &upstrand, &server);
    let response = nginx.get("/?first=503&second=503");
    is(&response, 200, "page (first) 503 (second) 503");
    let response = nginx.get("/?first=close&second=503");
    is(&response, 200, "page (first) 502 (second) 503");
    // The location asks the application once more, without an upstrand: as a GET.
    let response = nginx.ask("PUT", "/?first=503&second=500", "", b"");
    is(&response, 500, &told("second", "GET", b""));
    assert_eq!(second.seen().len(), 4);
    let line = last_line(&nginx, 3);
    assert_eq!(&line["path"], "first -> second -> <intercepted>");
}

fn large_answers(gateway: Gateway) {
    let setup = Setup::new();
    let first = gateway.server("first", setup.dir());
    let second = gateway.server("second", setup.dir());
    let server =
        format!("{LOCATION} location /unbuffered {{ GW_buffering off; GW_pass $upstrand_s; }}");
    let nginx = gateway.nginx(setup, [&first, &second], FAILURES, &server);
    for path in ["/", "/unbuffered"] {
        for more in [3000, 1_000_000] {
            let response = nginx.get(&format!("{path}?first=503&more={more}"));
            let want = told("second", "GET", b"") + "\n" + &"x".repeat(more);
            assert_eq!(response.status, 200);
            assert!(response.text() == want, "another body: {path} {more}");
        }
    }
}

fn the_deadline_cuts_a_silent_upstream(gateway: Gateway) {
    let setup = Setup::new();
    let first = gateway.server("first", setup.dir());
    let second = gateway.server("second", setup.dir());
    let upstrand = format!("{FAILURES} next_upstream_timeout 300ms;");
    let nginx = gateway.nginx(setup, [&first, &second], &upstrand, LOCATION);
    let begin = Instant::now();
    assert_eq!(nginx.get("/?first=503&second=hang").status, 504);
    assert!(begin.elapsed() < ms(1500), "{:?}", begin.elapsed());
    let line = last_line(&nginx, 1);
    assert_eq!(&line["reason"], "(first) http_503 (second) deadline");
    assert_eq!(&line["statuses"], "(first) 503 (second) 504");
}

/// PHP-FPM as first and second, and what counts the connections to them.
fn php(dir: &Path) -> ([Server; 2], [Counter; 2]) {
    let servers = ["first", "second"].map(|name| Fastcgi.server(name, dir));
    let counters = [Counter::before(&servers[0]), Counter::before(&servers[1])];
    (servers, counters)
}

#[test]
fn fastcgi_connections_are_kept_after_failed_answers() {
    run("fastcgi_connections_are_kept", Fastcgi, |_| {
        let setup = Setup::new();
        let (servers, counters) = php(setup.dir());
        // The directive has to come after the servers: upstreams of their own.
        let nginx = setup
            .at("first", &counters[0])
            .at("second", &counters[1])
            .http(&Fastcgi.parameters())
            .http(&format!(
                "upstream first {{ server <first>; keepalive 4; }}
                upstream second {{ server <second>; keepalive 4; }}
                upstrand s {{ upstream first; upstream second; order per_request; {FAILURES} }}"
            ))
            .server("fastcgi_keep_conn on; location / { fastcgi_pass $upstrand_s; }")
            .start();
        let connections = || [0, 1].map(|i: usize| counters[i].connections.load(Relaxed));
        for _ in 0..20 {
            let response = nginx.get("/?first=503");
            is(&response, 200, &told("second", "GET", b""));
        }
        assert_eq!(connections(), [1, 1]);
        // So does a page of a usual size, and what was said on the way; FastCGI pads its records.
        for more in 1000..1010 {
            let response = nginx.get(&format!("/?first=noisy&more={more}"));
            assert_eq!(
                response.text().len(),
                told("second", "GET", b"").len() + 1 + more
            );
        }
        assert_eq!(connections(), [1, 1]);
        // One that ended does no harm.
        let response = nginx.get("/?first=close");
        is(&response, 200, &told("second", "GET", b""));
        for _ in 0..3 {
            let response = nginx.get("/?first=503");
            is(&response, 200, &told("second", "GET", b""));
        }
        let [first, second] = connections();
        assert!(first <= 3 && second == 1, "{first}, {second} connections");
        assert_eq!(servers[1].seen().len(), 34);
    });
}

#[test]
fn fastcgi_stderr_of_a_failed_try_is_logged_and_does_no_harm() {
    run("fastcgi_stderr", Fastcgi, |_| {
        let setup = Setup::new();
        let ([first, second], _) = php(setup.dir());
        let server = format!(
            "{LOCATION}
            location /small {{ fastcgi_buffer_size 512; fastcgi_pass $upstrand_s; }}
            location /catch {{ fastcgi_catch_stderr 'all is lost'; fastcgi_pass $upstrand_s; }}"
        );
        let nginx = Fastcgi.nginx(setup, [&first, &second], FAILURES, &server);
        for uri in ["/?first=noisy", "/small?first=noisy", "/catch?first=lost"] {
            is(&nginx.get(uri), 200, &told("second", "GET", b""));
        }
        let log = nginx.log(3);
        assert_eq!(&log[0]["reason"], "(first) http_503 (second) final");
        assert_eq!(&log[1]["path"], "first -> second");
        assert_eq!(&log[2]["statuses"], "(first) 502 (second) 200");
        let said = nginx.error_log();
        assert!(said.contains("the first word of first"), "{said}");
        assert!(said.contains("all is lost in first"), "{said}");
    });
}

#[test]
fn fastcgi_a_script_that_is_not_there_is_looked_for_in_the_next_upstream() {
    run("fastcgi_a_script_that_is_not_there", Fastcgi, |_| {
        let setup = Setup::new();
        let ([first, second], _) = php(setup.dir());
        let setup = setup.http(
            "map $upstrand_upstream $script { first /nonexistent/app.php; default <app>; }\n",
        );
        let setup = setup.at("app", &source("app.php"));
        let server = format!(
            "{}fastcgi_param SCRIPT_FILENAME $script; {LOCATION}",
            Fastcgi
                .parameters()
                .replace("fastcgi_param SCRIPT_FILENAME", "#")
        );
        let upstrand = "next_upstream_statuses error 404;";
        let nginx = Fastcgi.nginx(setup, [&first, &second], upstrand, &server);
        is(&nginx.get("/"), 200, &told("second", "GET", b""));
        let line = last_line(&nginx, 1);
        assert_eq!(&line["reason"], "(first) http_404 (second) final");
        assert_eq!(nginx.logged("Primary script unknown"), 1);
    });
}

impl Address for String {
    fn address(&self) -> &str {
        self
    }
}
