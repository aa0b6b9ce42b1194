//! Configurations that no one would write: nginx must accept or refuse each with a message, never
//! crash or hang. They are made at random from the module's grammar, each from a seed of its own.
//!
//! - `HOSTILE_CONF_COUNT`: how many (default 400)
//! - `HOSTILE_CONF_SEED`: the seed of the first one, the others follow (default 1); a failure
//!   prints the seed, and with a count of 1 that one is run again
//! - `HOSTILE_CONF_SHOW`: print why each one was refused
//! - `TEST_NGINX_BINARY`, `TEST_NGINX_LOAD_MODULES`: nginx and the module (empty: it is linked in);
//!   else what NGINX_BUILD_DIR and CARGO_TARGET_DIR hold

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects)]
#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const NAME: &str = "ngx_http_combined_upstreams_module";
/// No configuration takes nginx longer.
const LIMIT: Duration = Duration::from_secs(20);
/// Stands for a byte that is not UTF-8 until the file is written.
const BAD_BYTE: char = '\u{e000}';

#[test]
fn nginx_survives_hostile_configurations() {
    let Some(nginx) = Nginx::find() else {
        println!("skipped: no nginx; set NGINX_BUILD_DIR, or TEST_NGINX_BINARY");
        return;
    };
    let count = number("HOSTILE_CONF_COUNT", 400);
    let first = number("HOSTILE_CONF_SEED", 1);
    let mut accepted = 0;
    for seed in first..first + count {
        let conf = Generator::new(seed).configuration();
        match nginx.test(&conf) {
            Ok(true) => accepted += 1,
            Ok(false) => {}
            Err(why) => panic!(
                "HOSTILE_CONF_SEED={seed} HOSTILE_CONF_COUNT=1: {why}\nfiles are in {}",
                nginx.prefix.display()
            ),
        }
    }
    println!("{accepted} of {count} configurations accepted");
    if count >= 400 {
        // Else the generator tries nothing: all it makes is refused, or all is harmless.
        let share = accepted * 100 / count;
        assert!((15..85).contains(&share), "{share}% were accepted");
    }
    fs::remove_dir_all(&nginx.prefix).unwrap();
}

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

/// The nginx to be tested.
struct Nginx {
    binary: PathBuf,
    modules: Vec<PathBuf>,
    prefix: PathBuf,
}

impl Nginx {
    fn find() -> Option<Nginx> {
        let binary = match env::var_os("TEST_NGINX_BINARY") {
            Some(binary) => binary.into(),
            None => Path::new(&env::var_os("NGINX_BUILD_DIR")?).join("nginx"),
        };
        let modules = match env::var("TEST_NGINX_LOAD_MODULES") {
            Ok(modules) => modules.split_whitespace().map(PathBuf::from).collect(),
            Err(_) => {
                vec![Path::new(&env::var_os("CARGO_TARGET_DIR")?).join(format!("release/{NAME}.so"))]
            }
        };
        if !binary.exists() || !modules.iter().all(|module| module.exists()) {
            return None;
        }
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("hostile-conf-{}", std::process::id()));
        fs::create_dir_all(&prefix).unwrap();
        Some(Nginx {
            binary,
            modules,
            prefix,
        })
    }

    /// Whether nginx accepts a configuration; an error if it does neither that nor refuse it.
    fn test(&self, conf: &Configuration) -> Result<bool, String> {
        let mut main = String::new();
        for module in &self.modules {
            writeln!(main, "load_module {};", module.display()).unwrap();
        }
        main.push_str("pid nginx.pid;\nerror_log stderr;\nevents {}\n");
        main.push_str(&conf.main);
        write(&self.prefix.join("nginx.conf"), &main);
        for (name, text) in &conf.includes {
            write(&self.prefix.join(name), text);
        }

        let messages = self.prefix.join("messages");
        let status = self.run(&messages)?;
        let messages = String::from_utf8_lossy(&fs::read(messages).unwrap()).into_owned();
        for sign in ["panicked", "Sanitizer", "[alert]"] {
            if messages.contains(sign) {
                return Err(format!("{sign}:\n{messages}"));
            }
        }
        let refusal = messages.lines().find(|line| line.contains("[emerg]"));
        if let (Some(line), true) = (refusal, env::var_os("HOSTILE_CONF_SHOW").is_some()) {
            println!("{line}");
        }
        let refused = refusal.is_some();
        match status.code() {
            Some(0) if !refused => Ok(true),
            Some(1) if refused => Ok(false),
            _ => Err(format!("{status}:\n{messages}")),
        }
    }

    fn run(&self, messages: &Path) -> Result<ExitStatus, String> {
        let mut nginx = Command::new(&self.binary)
            .args(["-t", "-e", "stderr", "-c", "nginx.conf", "-p"])
            .arg(&self.prefix)
            .env_remove("NGINX")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(messages).unwrap())
            .spawn()
            .unwrap();
        let started = Instant::now();
        loop {
            if let Some(status) = nginx.try_wait().unwrap() {
                return Ok(status);
            }
            if started.elapsed() > LIMIT {
                nginx.kill().unwrap();
                nginx.wait().unwrap();
                return Err(format!("hangs for {LIMIT:?}"));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn write(path: &Path, text: &str) {
    let mut bytes = Vec::with_capacity(text.len());
    let mut buffer = [0; 4];
    for c in text.chars() {
        match c {
            BAD_BYTE => bytes.push(0xff),
            c => bytes.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes()),
        }
    }
    fs::write(path, bytes).unwrap();
}

/// What nginx is to read.
struct Configuration {
    main: String,
    includes: Vec<(String, String)>,
}

/// Makes one configuration.
struct Generator {
    rng: StdRng,
    /// How likely a word, a line or a place is a wrong one.
    hostility: f64,
    upstreams: Vec<String>,
    upstrands: Vec<String>,
    includes: Vec<(String, String)>,
}

impl Generator {
    fn new(seed: u64) -> Generator {
        let mut rng = StdRng::seed_from_u64(seed);
        let hostility = *[0.0, 0.002, 0.01, 0.05, 0.3].choose(&mut rng).unwrap();
        Generator {
            rng,
            hostility,
            upstreams: Vec::new(),
            upstrands: Vec::new(),
            includes: Vec::new(),
        }
    }

    fn configuration(mut self) -> Configuration {
        let mut http = String::from("access_log off;\n");
        if self.chance(0.9) {
            http.push_str("resolver 127.0.0.1:9 ipv6=off;\n");
        }
        let early_server = self.chance(0.1);
        if early_server {
            self.server(&mut http);
        }
        for _ in 0..self.rng.random_range(1..6) {
            self.upstream(&mut http);
        }
        for _ in 0..self.rng.random_range(1..4) {
            self.upstrand(&mut http);
            if self.chance(0.2) {
                self.upstream(&mut http);
            }
        }
        if self.chance(0.4) {
            let source = self.variable();
            let value = self.upstrand_name();
            writeln!(
                http,
                "map {source} $mapped {{ default {value}; x {source}; }}"
            )
            .unwrap();
        }
        if !early_server || self.chance(0.5) {
            self.server(&mut http);
        }
        let mut main = format!("http {{\n{http}}}\n");
        if self.chance(self.hostility) {
            self.shred(&mut main);
        }
        Configuration {
            main,
            includes: self.includes,
        }
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    fn hostile(&mut self) -> bool {
        self.chance(self.hostility)
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of.choose(&mut self.rng).copied().unwrap_or_default()
    }

    /// A directive, with something done to it now and then. Its first argument is left alone:
    /// it may be an address, and a name in its place would be looked up.
    fn line(&mut self, out: &mut String, words: &str) {
        let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        if words.len() > 1 && self.hostile() {
            let at = self.rng.random_range(2..=words.len());
            match self.rng.random_range(0..4) {
                0 if at < words.len() => {
                    words.remove(at);
                }
                1 if at < words.len() => words[at] = self.wrong_word(),
                2 if at < words.len() => {
                    let again = words[at].clone();
                    words.push(again);
                }
                _ => {
                    let word = self.wrong_word();
                    words.insert(at, word);
                }
            }
        }
        let line = words.join(" ");
        writeln!(out, "{line};").unwrap();
        if self.hostile() {
            writeln!(out, "{line};").unwrap();
        }
    }

    /// Puts lines into a file that is included instead, now and then.
    fn lines(&mut self, out: &mut String, lines: &str) {
        if !lines.is_empty() && self.chance(0.1) {
            let name = format!("include{}", self.includes.len());
            writeln!(out, "include {name};").unwrap();
            self.includes.push((name, lines.to_owned()));
        } else {
            out.push_str(lines);
        }
    }

    fn wrong_word(&mut self) -> String {
        let long = self.rng.random_range(1..3000);
        match self.rng.random_range(0..36) {
            0 => "\"\"".into(),
            1 => "x".repeat(long),
            2 => format!("\"{}\"", "é".repeat(long / 4 + 1)),
            3 => format!("a{BAD_BYTE}b"),
            4 => "backupxyz".into(),
            5 => "Backup".into(),
            6 => "weight=0".into(),
            7 => "weight=-1".into(),
            8 => "weight=".into(),
            9 => "weight=9223372036854775807".into(),
            10 => "weight=99999999999999999999".into(),
            11 => "tier=4294967295".into(),
            12 => "tier=4294967296".into(),
            13 => "tier=".into(),
            14 => "blacklist_interval=".into(),
            15 => "blacklist_interval=-1".into(),
            16 => "blacklist_interval=9223372036854775807ms".into(),
            17 => "blacklist_interval=106751991167d".into(),
            18 => "~(".into(),
            19 => "~(a+)+$".into(),
            20 => "'~^.*'".into(),
            21 => "$".into(),
            22 => "\"${\"".into(),
            23 => "$upstrand_nosuch".into(),
            24 => "@".into(),
            25 => "18446744073709551616".into(),
            26 => "-".into(),
            27 => "500-".into(),
            28 => "599-500".into(),
            29 => "101-200".into(),
            30 => "%s%n%V".into(),
            31 => "\"a b\"".into(),
            32 => "\"a\\\"b\\\\\"".into(),
            _ => self
                .pick(&["backup", "nobackup", "byname", "2xx", "error", "0", "1"])
                .into(),
        }
    }

    fn new_upstream_name(&mut self) -> String {
        if self.hostile() {
            let long = self.rng.random_range(1..1500);
            return match self.rng.random_range(0..10) {
                0 => "\"\"".into(),
                1 => "x".repeat(long),
                2 => "a:1".into(),
                3 => "\"[::1]\"".into(),
                4 => "/a/b".into(),
                5 => "~x".into(),
                6 => "unix:/a".into(),
                7 => format!("ü{BAD_BYTE}"),
                8 => "127.0.0.1".into(),
                _ => "\"a b\"".into(),
            };
        }
        let number = self.upstreams.len();
        match self.rng.random_range(0..6) {
            0 => format!("U{number}"),
            1 => format!("up-stream.{number}"),
            2 => format!("ü{number}"),
            _ => format!("u{number}"),
        }
    }

    fn upstream_name(&mut self) -> String {
        if self.hostile() {
            return self.wrong_word();
        }
        match self.upstreams.choose(&mut self.rng) {
            Some(name) if self.rng.random_bool(0.1) => name.to_uppercase(),
            Some(name) => name.clone(),
            None => "none".into(),
        }
    }

    fn upstream(&mut self, out: &mut String) {
        let name = self.new_upstream_name();
        let mut lines = Vec::new();
        let method = self.rng.random_range(0..20);
        let knows_backup = method >= 6;
        for _ in 0..self.rng.random_range(1..5) {
            lines.push(self.server_line(knows_backup));
        }
        let many = self.chance(0.02);
        if many {
            for n in 0..self.rng.random_range(1..600) {
                lines.push(format!("server 127.{}.{}.9:9", n / 250, n % 250 + 1));
            }
        }
        if !self.upstreams.is_empty() && self.chance(0.4) {
            let source = self.upstream_name();
            let mut line = format!("add_upstream {source}");
            if knows_backup && self.chance(0.4) {
                line.push_str(" backup");
            }
            if self.chance(0.4) {
                let weight = self.pick(&["1", "2", "7"]);
                write!(line, " weight={weight}").unwrap();
            }
            lines.push(line);
        }
        let mut singlets = None;
        if self.chance(0.4) {
            let suffix = format!("_{}_", self.pick(&["s", "é", "S.", "x-"]));
            let tail = self.pick(&["", " 2", " 0", " 17", " byname", " 4096"]);
            let nobackup = self.pick(&["", " nobackup"]);
            let line = match self.rng.random_range(0..6) {
                0 => "combine_server_singlets".into(),
                1 => "combine_server_singlets byname".into(),
                2 => "combine_server_singlets \"\" 3 nobackup".into(),
                _ => format!("combine_server_singlets {suffix}{tail}{nobackup}"),
            };
            singlets = tail.is_empty().then(|| format!("{name}{suffix}1"));
            lines.push(line);
        }
        if self.chance(0.25) {
            lines.push("extend_single_peers".into());
        }
        // A zone too small for its upstream is nginx's own matter, and a [crit].
        if !many && self.chance(0.3) {
            let size = self.pick(&["512k", "1m"]);
            let number = self.rng.random_range(0..99);
            lines.push(format!("zone z{number} {size}"));
        }
        if self.chance(0.3) {
            let connections = self.pick(&["1", "4", "1000"]);
            lines.push(format!("keepalive {connections}"));
            if self.chance(0.3) {
                lines.push("keepalive_requests 7".into());
                lines.push("keepalive_timeout 3s".into());
            }
        }
        match method {
            0 => lines.insert(0, "ip_hash".into()),
            // nginx gives each unit of weight memory here, be it a wrong word's weight.
            1 if self.hostility == 0.0 => lines.insert(0, "hash $uri consistent".into()),
            2 => lines.insert(0, "hash $upstrand_path".into()),
            3 => lines.insert(0, "random two".into()),
            4 => lines.insert(0, "random".into()),
            5 => lines.insert(0, "hash $uri".into()),
            6 | 7 => lines.insert(0, "least_conn".into()),
            8 if self.chance(0.2) => lines.push("least_conn".into()),
            _ => {}
        }
        if self.hostile() {
            let line = self.foreign_line();
            lines.push(line);
        }
        if self.hostile() || self.chance(0.05) {
            for n in 1..lines.len() {
                let other = self.rng.random_range(0..=n);
                lines.swap(n, other);
            }
        }
        let mut body = String::new();
        for line in lines {
            self.line(&mut body, &line);
        }
        writeln!(out, "upstream {name} {{").unwrap();
        self.lines(out, &body);
        out.push_str("}\n");
        self.upstreams.push(name);
        if let Some(singlet) = singlets {
            self.upstreams.push(singlet);
        }
    }

    fn server_line(&mut self, knows_backup: bool) -> String {
        let port = self.rng.random_range(1..10);
        let mut line = match self.rng.random_range(0..10) {
            0 => "server unix:/tmp/none".to_owned(),
            1 => format!("server [::1]:{port}"),
            2 => format!("server localhost:{port}"),
            3 if self.chance(0.2) => format!("server localhost:{port} resolve"),
            4 => "server 127.0.0.1".to_owned(),
            _ => format!("server 127.0.0.1:{port}"),
        };
        if knows_backup && self.chance(0.2) {
            line.push_str(" backup");
        }
        for word in [
            " down",
            " weight=3",
            " max_fails=0",
            " fail_timeout=1s",
            " max_conns=2",
        ] {
            if self.chance(0.1) {
                line.push_str(word);
            }
        }
        line
    }

    fn foreign_line(&mut self) -> String {
        let upstream = self.upstream_name();
        match self.rng.random_range(0..11) {
            0 => format!("add_upstream {upstream}"),
            1 => "combine_server_singlets".into(),
            2 => "order per_request".into(),
            3 => "next_upstream_statuses 5xx".into(),
            4 => "dynamic_upstrand $d a".into(),
            5 => format!("upstream {upstream}"),
            6 => "zone z1 64k".into(),
            7 => "extend_single_peers".into(),
            8 => "include nosuch".into(),
            9 => "proxy_pass http://127.0.0.1:9".into(),
            _ => "no_such_directive on".into(),
        }
    }

    fn new_upstrand_name(&mut self) -> String {
        if self.hostile() {
            let long = self.rng.random_range(1..1500);
            return match self.rng.random_range(0..8) {
                0 => "\"\"".into(),
                1 => "y".repeat(long),
                2 => "path".into(),
                3 => "Addr".into(),
                4 => format!("é{BAD_BYTE}"),
                5 => "\"a b\"".into(),
                6 => "a".into(),
                _ => "$a".into(),
            };
        }
        let number = self.upstrands.len();
        format!("{}{number}", self.pick(&["a", "A", "strand_"]))
    }

    fn upstrand_name(&mut self) -> String {
        if self.hostile() {
            return self.wrong_word();
        }
        match self.upstrands.choose(&mut self.rng) {
            Some(name) => name.clone(),
            None => "none".into(),
        }
    }

    fn upstrand(&mut self, out: &mut String) {
        let name = self.new_upstrand_name();
        let mut lines = Vec::new();
        for _ in 0..self.rng.random_range(1..5) {
            let member = match self.rng.random_range(0..8) {
                0 => "~.".into(),
                1 => "~^u[0-9]+$".into(),
                2 => "~_s_".into(),
                3 if self.chance(0.2) => "~nothing".into(),
                _ => self.upstream_name(),
            };
            let mut line = format!("upstream {member}");
            match self.rng.random_range(0..6) {
                0 => line.push_str(" backup"),
                1 => write!(line, " tier={}", self.rng.random_range(0..5)).unwrap(),
                _ => {}
            }
            if self.chance(0.3) {
                let interval = self.pick(&["0", "1", "500ms", "1m30s", "520w"]);
                write!(line, " blacklist_interval={interval}").unwrap();
            }
            lines.push(line);
        }
        if self.chance(0.4) {
            let order = self.pick(&["start_random", "per_request", "per_request start_random"]);
            lines.push(format!("order {order}"));
        }
        for directive in ["next_upstream_statuses", "intercept_statuses"] {
            for _ in 0..self.rng.random_range(0..3) {
                let mut line = directive.to_owned();
                for _ in 0..self.rng.random_range(1..5) {
                    let status = self.pick(&[
                        "error",
                        "timeout",
                        "invalid_header",
                        "4xx",
                        "5xx",
                        "2xx",
                        "101",
                        "200",
                        "404",
                        "502",
                        "503",
                        "599",
                        "500-504",
                    ]);
                    write!(line, " {status}").unwrap();
                }
                if directive == "intercept_statuses" {
                    let uri =
                        self.pick(&["/", "/x?y=1", "@named", "/$uri", "$uri", "/ü", "/${uri}"]);
                    write!(line, " {uri}").unwrap();
                } else if self.chance(0.3) {
                    line.push_str(" non_idempotent");
                }
                lines.push(line);
            }
        }
        if self.chance(0.3) {
            let time = self.pick(&["0", "1ms", "1s", "1h 1m", "24w", "9223372036854775807ms"]);
            let time = time.replace(' ', "");
            lines.push(format!("next_upstream_timeout {time}"));
        }
        if self.chance(0.3) {
            let tries = self.pick(&["0", "1", "4294967295"]);
            lines.push(format!("next_upstream_tries {tries}"));
        }
        if self.chance(0.3) {
            let number = self.rng.random_range(0..4);
            let size = self.pick(&[" 64k", " 64k", " 64k", " 64k", " 64k", " 1m", ""]);
            let mine = self.pick(&["s", "s", "s", "z"]);
            lines.push(format!("zone {mine}{number}{size}"));
        }
        if self.hostile() {
            let line = self.foreign_line();
            lines.push(line);
        }
        for n in 1..lines.len() {
            let other = self.rng.random_range(0..=n);
            lines.swap(n, other);
        }
        let mut body = String::new();
        for line in lines {
            self.line(&mut body, &line);
        }
        if self.hostile() {
            body.push_str("upstrand nested {\nupstream u0;\n}\n");
        }
        writeln!(out, "upstrand {name} {{").unwrap();
        self.lines(out, &body);
        out.push_str("}\n");
        self.upstrands.push(name);
    }

    fn variable(&mut self) -> String {
        if self.hostile() {
            return self.wrong_word();
        }
        match self.rng.random_range(0..6) {
            0 => format!("$upstrand_{}", self.upstrand_name()),
            1 => "$dynamic".into(),
            2 => format!(
                "$upstrand_{}",
                self.pick(&["path", "addr", "status", "reason", "tries", "upstream", "name"])
            ),
            3 => "$upstream_addr".into(),
            _ => self
                .pick(&["$uri", "$arg_x", "$http_y", "$cookie_z"])
                .into(),
        }
    }

    fn server(&mut self, out: &mut String) {
        let mut body = String::new();
        self.line(&mut body, "listen 127.0.0.1:18999");
        if self.chance(0.5) {
            self.dynamic(&mut body);
        }
        body.push_str("location @named { return 204; }\n");
        for n in 0..self.rng.random_range(1..5) {
            writeln!(body, "location /{n} {{").unwrap();
            self.location(&mut body);
            body.push_str("}\n");
        }
        out.push_str("server {\n");
        self.lines(out, &body);
        out.push_str("}\n");
    }

    fn dynamic(&mut self, out: &mut String) {
        let mut line = "dynamic_upstrand $dynamic".to_owned();
        for source in [
            "$arg_x",
            "$http_y",
            "$upstrand_path",
            "$mapped_not",
            "$dynamic",
        ] {
            let is_wrong = ["$mapped_not", "$dynamic"].contains(&source);
            if self.chance(if is_wrong { self.hostility } else { 0.3 }) {
                write!(line, " {source}").unwrap();
            }
        }
        let literal = self.upstrand_name();
        write!(line, " {literal}").unwrap();
        self.line(out, &line);
    }

    fn location(&mut self, out: &mut String) {
        if self.chance(0.3) {
            self.dynamic(out);
        }
        if self.chance(0.3) {
            let variable = self.variable();
            self.line(out, &format!("set $x {variable}"));
        }
        if self.chance(0.3) {
            let variable = self.variable();
            self.line(out, &format!("add_header X {variable}"));
        }
        if self.chance(0.2) {
            let variable = self.variable();
            writeln!(out, "if ({variable}) {{").unwrap();
            self.dynamic(out);
            out.push_str("}\n");
        }
        if self.hostile() {
            let line = self.foreign_line();
            self.line(out, &line);
        }
        let target = match self.upstrands.choose(&mut self.rng) {
            Some(name) if self.rng.random_bool(0.8) => format!("$upstrand_{name}"),
            _ => "$dynamic".into(),
        };
        let pass = match self.rng.random_range(0..8) {
            0 => "fastcgi_pass ",
            1 => "uwsgi_pass ",
            2 => "scgi_pass ",
            3 => "grpc_pass grpc://",
            4 => "proxy_pass https://",
            _ => "proxy_pass http://",
        };
        writeln!(out, "{pass}{target};").unwrap();
        if self.chance(0.2) {
            writeln!(out, "proxy_intercept_errors on;").unwrap();
        }
    }

    /// Damages the text: cuts it off, drops or doubles something that structures it. A character
    /// is only put in after white space, so that no address becomes a name to be looked up.
    fn shred(&mut self, text: &mut String) {
        let structure: Vec<usize> = text
            .char_indices()
            .filter(|(_, c)| "{};\"$~".contains(*c))
            .map(|(at, _)| at)
            .collect();
        let Some(at) = structure.choose(&mut self.rng).copied() else {
            return;
        };
        match self.rng.random_range(0..4) {
            0 => text.truncate(at),
            1 => {
                text.remove(at);
            }
            2 => text.insert(at, '\u{feff}'),
            _ => {
                let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
                if let Some(end) = ends.choose(&mut self.rng) {
                    let what = self.pick(&["{", "}", ";", "\"", "'", "\\", "$", "#", "upstrand"]);
                    text.insert_str(*end, what);
                }
            }
        }
    }
}
