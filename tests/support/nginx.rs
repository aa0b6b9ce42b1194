//! An nginx with the module, in a directory of its own.
//!
//! Parts of its configuration name addresses as `<name>`; the log's values name them so, too. When
//! an `Nginx` goes, it is stopped gracefully, and the test fails if a worker died of a signal or an
//! alert was logged: also one of a connection that was still open.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::ops::Index;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::client::{self, Response};
use super::{eventually, ms, within, Backend, Dead, Full};

const LOG: &[(&str, &str)] = &[
    ("uri", "$request_uri"),
    ("status", "$status"),
    ("bytes", "$body_bytes_sent"),
    ("path", "$upstrand_path"),
    ("addr", "$upstrand_addr"),
    ("statuses", "$upstrand_status"),
    ("reason", "$upstrand_reason"),
    ("tries", "$upstrand_tries"),
    ("upstream_addr", "$upstream_addr"),
    ("upstream_status", "$upstream_status"),
    ("tag", "$http_x_tag"),
];

/// Whatever has an address.
pub trait Address {
    fn address(&self) -> &str;
}

impl Address for Backend {
    fn address(&self) -> &str {
        &self.address
    }
}

impl Address for Dead {
    fn address(&self) -> &str {
        &self.address
    }
}

impl Address for Full {
    fn address(&self) -> &str {
        &self.address
    }
}

impl Address for super::dns::Dns {
    fn address(&self) -> &str {
        &self.address
    }
}

/// A line of the access log.
#[derive(Clone, Debug)]
pub struct Line(BTreeMap<&'static str, String>);

impl Index<&str> for Line {
    type Output = str;

    fn index(&self, field: &str) -> &str {
        &self.0[field]
    }
}

/// What an nginx is started with.
pub struct Setup {
    dir: Dir,
    port: u16,
    listen: &'static str,
    workers: usize,
    daemon: bool,
    keepalive: bool,
    main: String,
    http: String,
    server: String,
    names: Vec<(String, String)>,
    allowed: Vec<&'static str>,
}

/// A directory that goes with its variable.
struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn env(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

#[track_caller]
fn existing(path: PathBuf) -> PathBuf {
    assert!(
        path.is_file(),
        "no such file: {} (make build)",
        path.display()
    );
    path
}

/// The nginx to run.
pub fn binary() -> PathBuf {
    let built = || Some(env("NGINX_BUILD_DIR")?.join("nginx"));
    let binary = env("TEST_NGINX_BINARY").or_else(built);
    existing(binary.expect("TEST_NGINX_BINARY or NGINX_BUILD_DIR must be set"))
}

/// The modules to load, as Test::Nginx has them: with spaces between.
pub fn modules() -> Vec<PathBuf> {
    let built = || {
        let name = "libngx_http_combined_upstreams_module.so";
        Some(env("CARGO_TARGET_DIR")?.join("release").join(name))
    };
    let modules = env("TEST_NGINX_LOAD_MODULES").or_else(built);
    let modules = modules.expect("TEST_NGINX_LOAD_MODULES or CARGO_TARGET_DIR must be set");
    let text = modules.to_string_lossy();
    text.split_whitespace()
        .map(|path| existing(PathBuf::from(path)))
        .collect()
}

/// What `nginx -V` prints.
pub fn built_with() -> String {
    let output = Command::new(binary()).arg("-V").output().expect("nginx -V");
    String::from_utf8_lossy(&output.stderr).to_string()
}

/// Whether nginx is at least that version.
pub fn at_least(version: [u32; 3]) -> bool {
    let text = built_with();
    let own: Vec<u32> = text
        .split_once("nginx/")
        .map(|(_, text)| text.split(|c: char| !c.is_ascii_digit()))
        .into_iter()
        .flatten()
        .map_while(|number| number.parse().ok())
        .take(3)
        .collect();
    own.as_slice() >= version.as_slice()
}

/// A port of 127.0.0.1 that no one has: none of those that the kernel gives to sockets.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let salted = std::process::id().wrapping_mul(7919).wrapping_add(next);
        let port = 11_000 + (salted % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Setup {
    /// One worker and nothing to serve.
    pub fn new() -> Setup {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("upstrands-{}-{next}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        for name in ["html", "tmp"] {
            fs::create_dir_all(dir.join(name)).expect("a directory");
        }
        Setup {
            dir: Dir(dir),
            port: free_port(),
            listen: "",
            workers: 1,
            daemon: false,
            keepalive: false,
            main: String::new(),
            http: String::new(),
            server: String::new(),
            names: Vec::new(),
            allowed: Vec::new(),
        }
    }

    /// What `<name>` stands for.
    pub fn at(mut self, name: &str, what: &impl Address) -> Setup {
        self.names
            .push((format!("<{name}>"), what.address().to_string()));
        self
    }

    /// An upstream of one server, with the same name.
    pub fn upstream(self, name: &str, what: &impl Address) -> Setup {
        self.upstream_with(name, what, "")
    }

    /// An upstream of one server, with the same name, and what else stands in it.
    pub fn upstream_with(self, name: &str, what: &impl Address, more: &str) -> Setup {
        let text = format!("upstream {name} {{ server <{name}>; {more} }}\n");
        self.at(name, what).http(&text)
    }

    /// The upstrand `s`, and the location `/` that asks it.
    pub fn upstrand(self, text: &str) -> Setup {
        self.upstrand_with(text, "")
    }

    /// The upstrand `s`, and the location `/` that asks it and has something else in it.
    pub fn upstrand_with(self, text: &str, location: &str) -> Setup {
        self.http(&format!("upstrand s {{ {text} }}\n"))
            .server(&format!(
                "location / {{ {location} proxy_pass http://$upstrand_s; }}\n"
            ))
    }

    /// More at http level.
    pub fn http(mut self, text: &str) -> Setup {
        self.http += text;
        self
    }

    /// More in the server.
    pub fn server(mut self, text: &str) -> Setup {
        self.server += text;
        self
    }

    /// More at main level.
    pub fn main(mut self, text: &str) -> Setup {
        self.main += text;
        self
    }

    /// That many workers; the kernel spreads connections over them.
    pub fn workers(mut self, workers: usize) -> Setup {
        self.workers = workers;
        self.listen = "reuseport";
        self
    }

    /// Parameters of `listen`.
    pub fn listen(mut self, parameters: &'static str) -> Setup {
        self.listen = parameters;
        self
    }

    /// Runs in the background, as a binary upgrade needs it.
    pub fn daemon(mut self) -> Setup {
        self.daemon = true;
        self
    }

    /// Upstreams without `keepalive` do what nginx does by default, whichever version it is.
    pub fn default_keepalive(mut self) -> Setup {
        self.keepalive = true;
        self
    }

    /// Alerts with these words are no fault.
    pub fn allow(mut self, words: &'static str) -> Setup {
        self.allowed.push(words);
        self
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir.0
    }

    /// Writes the configuration.
    fn write(&self) -> PathBuf {
        let dir = self.dir().display();
        // SAFETY: it can't fail.
        let user = if unsafe { libc::geteuid() } == 0 {
            "user root;"
        } else {
            ""
        };
        let format: Vec<&str> = LOG.iter().map(|(_, variable)| *variable).collect();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("    {name}_temp_path {dir}/tmp/{name};\n"))
            .collect();
        let modules: String = modules()
            .iter()
            .map(|path| format!("load_module {};\n", path.display()))
            .collect();
        let mut text = format!(
            "{modules}{user}\nworker_processes {};\ndaemon {};\npid {dir}/nginx.pid;\n\
             error_log {dir}/error.log info;\n{}\n\
             events {{ worker_connections 512; }}\nhttp {{\n\
             log_format fields '{}';\n    access_log {dir}/access.log fields;\n{temporary}\
             lingering_close off;\ndefault_type text/plain;\n{}\nserver {{\n\
             listen 127.0.0.1:{} {};\nroot {dir}/html;\n{}\n}}\n}}\n",
            self.workers,
            if self.daemon { "on" } else { "off" },
            self.main,
            format.join("\t"),
            self.http,
            self.port,
            self.listen,
            self.server,
        );
        if !self.keepalive && at_least([1, 29, 7]) {
            text = without_keepalive(&text);
        }
        for (name, address) in &self.names {
            text = text.replace(name, address);
        }
        text = text.replace("<dir>", &dir.to_string());
        let path = self.dir().join("nginx.conf");
        fs::write(&path, text).expect("nginx.conf");
        path
    }

    fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("-p")
            .arg(self.dir())
            .arg("-e")
            .arg(self.dir().join("error.log"))
            .arg("-c")
            .arg(self.write())
            .env_remove("NGINX")
            .stdin(Stdio::null());
        command
    }

    /// `nginx -t`: whether it accepts the configuration, and what it says.
    pub fn check(&self) -> (bool, String) {
        let output = self.command().arg("-t").output().expect("nginx -t");
        let text = String::from_utf8_lossy(&output.stderr).to_string();
        let code = output.status.code();
        assert!(code.is_some(), "{}: {text}", output.status);
        (code == Some(0), text)
    }

    /// Starts it and waits until all workers are there.
    pub fn start(self) -> Nginx {
        let mut command = self.command();
        let stderr = fs::File::create(self.dir().join("stderr")).expect("a file");
        // Not ours: a worker whose master has crashed would keep whoever reads our output waiting.
        command.stderr(stderr).stdout(Stdio::null());
        if !self.daemon {
            // Goes with the test, even if that one is killed.
            // SAFETY: a plain system call.
            unsafe {
                command.pre_exec(|| {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                    Ok(())
                });
            }
        }
        let child = command.spawn().expect("nginx starts");
        let mut nginx = Nginx {
            setup: self,
            master: child.id() as i32,
            child: Some(child),
            others: BTreeSet::new(),
        };
        if nginx.setup.daemon {
            nginx.child = None;
            nginx.master = 0;
            let file = nginx.pid_file();
            assert!(
                within(ms(5000), || read_pid(&file).is_some()),
                "nginx did not start: {}",
                nginx.stderr()
            );
            nginx.master = read_pid(&file).unwrap_or_default();
        }
        // The master listens before it starts workers. No connection to see whether it does: it
        // would be one more that a test finds in the worker.
        let up = within(ms(8000), || nginx.workers().len() == nginx.setup.workers);
        assert!(up, "nginx did not start: {}", nginx.stderr());
        nginx
    }
}

/// nginx keeps connections to upstreams by default from 1.29.7 on. The tests count them, and walk more
/// upstreams than a worker has connections: a block that does not speak of `keepalive` is given the
/// default of all other versions.
fn without_keepalive(text: &str) -> String {
    const WORD: &str = "upstream ";
    let mut whole = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(WORD) {
        let (before, from) = rest.split_at(at);
        whole += before;
        // Not `add_upstream`, and not the line of an upstrand.
        let name_end = from.find(['{', ';', '\n']).unwrap_or(from.len());
        let is_block = !before.ends_with('_') && from[name_end..].starts_with('{');
        let end = from.find('}').filter(|_| is_block);
        let (taken, more) = from.split_at(end.unwrap_or(WORD.len()));
        whole += taken;
        if end.is_some() && !taken.contains("keepalive ") {
            whole += " keepalive 0; ";
        }
        rest = more;
    }
    whole + rest
}

fn read_pid(path: &Path) -> Option<i32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn send_signal(pid: i32, signal: i32) {
    assert!(pid > 1, "pid {pid}");
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid, signal) };
}

/// Parent, and the command line, of a process that runs.
fn process(pid: i32) -> Option<(i32, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    if fields.next()? == "Z" {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some((parent, String::from_utf8_lossy(&line).to_string()))
}

fn processes() -> impl Iterator<Item = (i32, i32, String)> {
    let entries = fs::read_dir("/proc").expect("/proc");
    entries.filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let (parent, line) = process(pid)?;
        Some((pid, parent, line))
    })
}

/// Kilobytes of memory that a process has in use.
pub fn memory(pid: i32) -> i64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    text.lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .expect("VmRSS")
}

/// Descriptors that a process has open.
pub fn descriptors(pid: i32) -> usize {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    entries.expect("a running process").count()
}

/// An nginx that runs.
pub struct Nginx {
    setup: Setup,
    pub master: i32,
    child: Option<Child>,
    /// Masters of before or after a binary upgrade.
    others: BTreeSet<i32>,
}

impl Nginx {
    /// Its port.
    pub fn port(&self) -> u16 {
        self.setup.port
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        self.setup.dir()
    }

    fn pid_file(&self) -> PathBuf {
        self.dir().join("nginx.pid")
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.dir().join("stderr")).unwrap_or_default() + &self.error_log()
    }

    /// One GET; the answer must be whole.
    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        client::get(self.port(), path).unwrap_or_else(|e| panic!("GET {path}: {e}"))
    }

    /// One request; the answer must be whole. `headers` are whole lines.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Response {
        client::request(self.port(), method, path, headers, body)
            .unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    /// A connection.
    pub fn client(&self) -> client::Client {
        client::Client::new(self.port()).expect("nginx listens")
    }

    /// That many requests, one after another; the `$upstrand_path` of each.
    #[track_caller]
    pub fn paths(&self, n: usize, uri: &str) -> Vec<String> {
        let lines = self.trace(n, uri);
        lines.iter().map(|line| line["path"].to_string()).collect()
    }

    /// That many requests, one after another; what the access log says of each.
    #[track_caller]
    pub fn trace(&self, n: usize, uri: &str) -> Vec<Line> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let one = |_| {
            // A client has its answer before nginx writes the line, so the line must be known by
            // more than its place.
            let tag = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
            self.ask("GET", uri, &format!("X-Tag: {tag}\r\n"), b"");
            let mut found = None;
            eventually("the request's line in the access log", || {
                found = self.lines().into_iter().find(|line| line["tag"] == tag);
                found.is_some()
            });
            found.expect("a line")
        };
        (0..n).map(one).collect()
    }

    fn lines(&self) -> Vec<Line> {
        let text = fs::read_to_string(self.dir().join("access.log")).unwrap_or_default();
        // A line that is not written to its end does not count.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| self.line(line)).collect()
    }

    fn line(&self, line: &str) -> Line {
        let mut line = line.to_string();
        for (name, address) in &self.setup.names {
            line = line.replace(address, name);
        }
        let values = line.split('\t').map(str::to_string);
        Line(LOG.iter().map(|(name, _)| *name).zip(values).collect())
    }

    /// The access log, once it has that many lines.
    #[track_caller]
    pub fn log(&self, n: usize) -> Vec<Line> {
        let what = format!("{n} lines in the access log");
        eventually(&what, || self.lines().len() >= n);
        self.lines()
    }

    /// The error log.
    pub fn error_log(&self) -> String {
        let bytes = fs::read(self.dir().join("error.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).to_string()
    }

    /// How many lines of the error log have these words.
    pub fn logged(&self, words: &str) -> usize {
        let log = self.error_log();
        log.lines().filter(|line| line.contains(words)).count()
    }

    /// Sends a signal to the master.
    pub fn signal(&self, signal: i32) {
        send_signal(self.master, signal);
    }

    /// Processes of its workers that still take connections.
    pub fn workers(&self) -> Vec<i32> {
        self.processes(|line| line.contains("worker process") && !line.contains("shutting down"))
    }

    fn processes(&self, is: impl Fn(&str) -> bool) -> Vec<i32> {
        let mut pids: Vec<i32> = processes()
            .filter(|(_, parent, line)| *parent == self.master && is(line))
            .map(|(pid, _, _)| pid)
            .collect();
        pids.sort_unstable();
        pids
    }

    /// Kills a worker and waits until another one is there.
    pub fn kill_worker(&self, pid: i32) {
        send_signal(pid, libc::SIGKILL);
        eventually("a new worker", || {
            let workers = self.workers();
            workers.len() == self.setup.workers && !workers.contains(&pid)
        });
    }

    /// Reloads, and waits until new workers have taken over.
    pub fn reload(&self) {
        let old = self.workers();
        self.setup.write();
        self.signal(libc::SIGHUP);
        eventually("new workers", || {
            let workers = self.workers();
            workers.len() == self.setup.workers && workers.iter().all(|pid| !old.contains(pid))
        });
    }

    /// Reloads with other parts at http level and in the server.
    pub fn reload_with(&mut self, http: &str, server: &str) {
        self.replace(http, server);
        self.reload();
    }

    /// Tries to reload with a configuration that nginx refuses; waits until it has said so.
    pub fn reload_refused(&mut self, http: &str, server: &str) {
        let before = self.logged("[emerg]");
        let (good_http, good_server) = (self.setup.http.clone(), self.setup.server.clone());
        self.replace(http, server);
        self.setup.write();
        self.signal(libc::SIGHUP);
        eventually("a refusal", || self.logged("[emerg]") > before);
        self.replace(&good_http, &good_server);
        self.setup.allowed.push("[emerg]");
    }

    fn replace(&mut self, http: &str, server: &str) {
        self.setup.http = http.to_string();
        self.setup.server = server.to_string();
    }

    /// What stands at http level.
    pub fn http(&self) -> String {
        self.setup.http.clone()
    }

    /// What stands in the server.
    pub fn server(&self) -> String {
        self.setup.server.clone()
    }

    /// Has a new binary started beside the old one; both serve then.
    pub fn upgrade(&mut self) {
        let old = self.master;
        self.signal(libc::SIGUSR2);
        let (file, before) = (self.pid_file(), self.dir().join("nginx.pid.oldbin"));
        eventually("a new master", || {
            read_pid(&before) == Some(old) && read_pid(&file).is_some_and(|pid| pid != old)
        });
        self.others.insert(old);
        self.master = read_pid(&file).expect("a pid");
        eventually("its workers", || self.workers().len() == self.setup.workers);
    }

    /// Waits until a process is gone.
    pub fn wait_gone(&self, pid: i32) {
        eventually("a process that is gone", || process(pid).is_none());
    }

    /// Waits for the master's end; its exit code if it ended by itself.
    pub fn wait(&mut self) -> Option<i32> {
        let child = self.child.as_mut().expect("not in the background");
        let mut status = None;
        eventually("the master's end", || {
            status = child.try_wait().expect("a child");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }

    fn ended(&mut self) -> bool {
        let master_ended = match &mut self.child {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => process(self.master).is_none(),
        };
        master_ended && self.others.iter().all(|pid| process(*pid).is_none())
    }

    fn stop(&mut self) -> bool {
        for (signal, time) in [(libc::SIGQUIT, 1000), (libc::SIGTERM, 4000)] {
            if self.ended() {
                return true;
            }
            for pid in self.others.iter().chain([&self.master]) {
                send_signal(*pid, signal);
            }
            if within(Duration::from_millis(time), || self.ended()) {
                return true;
            }
        }
        let masters: Vec<i32> = self.others.iter().copied().chain([self.master]).collect();
        for (pid, parent, line) in processes().collect::<Vec<_>>() {
            if masters.contains(&pid) || (masters.contains(&parent) && line.contains("nginx: ")) {
                send_signal(pid, libc::SIGKILL);
            }
        }
        within(ms(2000), || self.ended());
        false
    }

    /// Lines that tell of a fault.
    fn faults(&self) -> Vec<String> {
        const FAULTS: [&str; 5] = [
            "exited on signal",
            "[alert]",
            "[crit]",
            "[emerg]",
            "panicked",
        ];
        let text = self.stderr();
        text.lines()
            .filter(|line| FAULTS.iter().any(|words| line.contains(words)))
            .filter(|line| !self.setup.allowed.iter().any(|words| line.contains(words)))
            .map(str::to_string)
            .collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let stopped = self.stop();
        let faults = self.faults();
        if std::thread::panicking() {
            let log = self.error_log();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(30)..];
            let access: Vec<String> = self.lines().iter().map(|l| format!("{l:?}")).collect();
            let first = access.len().saturating_sub(10);
            eprintln!("the end of error.log:\n{}", last.join("\n"));
            eprintln!("the end of access.log:\n{}", access[first..].join("\n"));
            return;
        }
        assert!(stopped, "nginx had to be killed");
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
