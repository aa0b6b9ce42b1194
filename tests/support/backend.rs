//! Backends that do as they are told, one act for each request.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::sockets;

/// What a backend does with a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Answers.
    Answer(Answer),
    /// Answers with method, URI, the body's length and hash, and the headers.
    Echo,
    /// Reads the request, then resets the connection.
    Reset,
    /// Reads the request, then closes without a byte.
    Close,
    /// Reads the request and says nothing until the other side leaves.
    Hang,
    /// Reads the header only, never the body, and says nothing.
    Deaf,
    /// Sends these bytes, then says nothing until the other side leaves.
    Stall(Vec<u8>),
    /// Answers with this status and a body without end.
    Endless(u16),
    /// Answers 101 and then sends back in capitals what comes.
    Upgrade,
}

impl From<u16> for Act {
    fn from(status: u16) -> Act {
        answer(status).into()
    }
}

impl From<Answer> for Act {
    fn from(answer: Answer) -> Act {
        Act::Answer(answer)
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    body: Option<Vec<u8>>,
    headers: String,
    after: Duration,
    chunks: Option<(usize, Duration)>,
    missing: usize,
}

/// An answer with this status; its body is the backend's name.
pub fn answer(status: u16) -> Answer {
    Answer {
        status,
        body: None,
        headers: String::new(),
        after: Duration::ZERO,
        chunks: None,
        missing: 0,
    }
}

impl Answer {
    /// Its body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Answer {
        self.body = Some(body.into());
        self
    }

    /// One more header line.
    pub fn header(mut self, line: &str) -> Answer {
        self.headers += line;
        self.headers += "\r\n";
        self
    }

    /// Comes that many milliseconds after the request.
    pub fn after(mut self, ms: u64) -> Answer {
        self.after = Duration::from_millis(ms);
        self
    }

    /// Chunked: so many bytes a chunk, so many milliseconds between two.
    pub fn chunked(mut self, size: usize, pause: u64) -> Answer {
        self.chunks = Some((size, Duration::from_millis(pause)));
        self
    }

    /// Promises more than comes.
    pub fn cut(mut self, missing: usize) -> Answer {
        self.missing = missing;
        self
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub uri: String,
    pub version: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body is as long as the header says.
    pub whole: bool,
    /// When its header was there.
    pub at: Instant,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

struct Shared {
    name: String,
    script: Mutex<Vec<Act>>,
    requests: Mutex<Vec<Request>>,
    heads: AtomicUsize,
    connections: AtomicUsize,
    open: AtomicUsize,
    running: AtomicUsize,
    most_running: AtomicUsize,
    stop: AtomicBool,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> Option<TcpStream> {
        match self {
            Listener::Tcp(listener) => listener.accept().ok().map(|(stream, _)| stream),
            // A socket is a socket: std's TcpStream reads and writes this one as well.
            Listener::Unix(listener) => listener
                .accept()
                .ok()
                .map(|(stream, _)| OwnedFd::from(stream).into()),
        }
    }
}

/// A backend.
pub struct Backend {
    shared: Arc<Shared>,
    pub address: String,
}

impl Backend {
    /// One that does the same with each request.
    pub fn new(name: &str, act: impl Into<Act>) -> Backend {
        Backend::script(name, vec![act.into()])
    }

    /// One that has an act for each request; the last one stays.
    pub fn script(name: &str, acts: Vec<Act>) -> Backend {
        Backend::at(name, acts, "127.0.0.1:0")
    }

    /// One at an address.
    pub fn at(name: &str, acts: Vec<Act>, address: &str) -> Backend {
        let listener = TcpListener::bind(address).unwrap_or_else(|e| panic!("{address}: {e}"));
        let address = listener.local_addr().expect("its address").to_string();
        Backend::run(name, acts, Listener::Tcp(listener), address)
    }

    /// One at a unix socket.
    pub fn unix(name: &str, act: impl Into<Act>, dir: &Path) -> Backend {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.join(format!("{name}.sock"));
        let listener = UnixListener::bind(&path).expect("a unix socket");
        let all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&path, all).expect("open to all");
        let address = format!("unix:{}", path.display());
        Backend::run(name, vec![act.into()], Listener::Unix(listener), address)
    }

    fn run(name: &str, acts: Vec<Act>, listener: Listener, address: String) -> Backend {
        let shared = Arc::new(Shared {
            name: name.to_string(),
            script: Mutex::new(acts),
            requests: Mutex::default(),
            heads: AtomicUsize::default(),
            connections: AtomicUsize::default(),
            open: AtomicUsize::default(),
            running: AtomicUsize::default(),
            most_running: AtomicUsize::default(),
            stop: AtomicBool::default(),
        });
        let accepting = shared.clone();
        thread::spawn(move || {
            while let Some(stream) = listener.accept() {
                if accepting.stop.load(Relaxed) {
                    return;
                }
                accepting.connections.fetch_add(1, Relaxed);
                accepting.open.fetch_add(1, Relaxed);
                let shared = accepting.clone();
                thread::spawn(move || {
                    let _ = shared.serve(stream);
                    shared.open.fetch_sub(1, Relaxed);
                });
            }
        });
        Backend { shared, address }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        let port = self.address.rsplit(':').next();
        port.and_then(|port| port.parse().ok()).expect("a port")
    }

    /// From now on it does this.
    pub fn now(&self, act: impl Into<Act>) {
        *self.shared.script.lock().unwrap() = vec![act.into()];
    }

    /// How many requests came.
    pub fn count(&self) -> usize {
        self.shared.heads.load(Relaxed)
    }

    /// The requests that have come with their bodies.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The last request, when all that came are there with their bodies.
    pub fn last(&self) -> Request {
        super::eventually("the backend has read its requests", || {
            self.shared.requests.lock().unwrap().len() == self.count()
        });
        self.requests().pop().expect("a request")
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Relaxed)
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.shared.open.load(Relaxed)
    }

    /// How many requests were in work at the same time, at most.
    pub fn most_running(&self) -> usize {
        self.shared.most_running.load(Relaxed)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        // Wakes the thread that accepts.
        match self.address.strip_prefix("unix:") {
            Some(path) => drop(UnixStream::connect(PathBuf::from(path))),
            None => drop(TcpStream::connect(&self.address)),
        }
    }
}

impl Shared {
    fn next(&self) -> Act {
        let mut script = self.script.lock().unwrap();
        if script.len() > 1 {
            script.remove(0)
        } else {
            script.first().cloned().expect("an act")
        }
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let _ = stream.set_nodelay(true);
        stream.set_read_timeout(Some(Duration::from_millis(50)))?;
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        let mut connection = Connection {
            stream,
            buffer: Vec::new(),
            shared: self,
        };
        loop {
            let Some(mut request) = connection.head()? else {
                return Ok(());
            };
            self.heads.fetch_add(1, Relaxed);
            let running = self.running.fetch_add(1, Relaxed) + 1;
            self.most_running.fetch_max(running, Relaxed);
            let act = self.next();
            let done = connection.act(&act, &mut request);
            self.running.fetch_sub(1, Relaxed);
            let stays = request.version == "HTTP/1.1"
                && request
                    .header("Connection")
                    .is_none_or(|value| !value.eq_ignore_ascii_case("close"));
            if matches!(act, Act::Reset) {
                sockets::reset(connection.stream);
                return Ok(());
            }
            if !done? || !stays {
                return Ok(());
            }
        }
    }
}

struct Connection<'a> {
    stream: TcpStream,
    buffer: Vec<u8>,
    shared: &'a Shared,
}

impl Connection<'_> {
    /// Reads more; false at the end.
    fn more(&mut self) -> std::io::Result<bool> {
        let mut bytes = [0; 65536];
        while !self.shared.stop.load(Relaxed) {
            match self.stream.read(&mut bytes) {
                Ok(len) => {
                    self.buffer.extend_from_slice(&bytes[..len]);
                    return Ok(len > 0);
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }

    fn until(&mut self, mark: &[u8]) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            let found = self.buffer.windows(mark.len()).position(|w| w == mark);
            if let Some(at) = found {
                return Ok(Some(self.buffer.drain(..at + mark.len()).collect()));
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    fn exactly(&mut self, len: usize, to: &mut Vec<u8>) -> std::io::Result<bool> {
        while self.buffer.len() < len {
            if !self.more()? {
                to.append(&mut self.buffer);
                return Ok(false);
            }
        }
        to.extend(self.buffer.drain(..len));
        Ok(true)
    }

    fn head(&mut self) -> std::io::Result<Option<Request>> {
        let Some(head) = self.until(b"\r\n\r\n")? else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(&head).to_string();
        let mut lines = head.trim_end().split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let mut word = || words.next().unwrap_or_default().to_string();
        Ok(Some(Request {
            method: word(),
            uri: word(),
            version: word(),
            headers: lines
                .filter_map(|line| line.split_once(':'))
                .map(|(key, value)| (key.to_string(), value.trim().to_string()))
                .collect(),
            body: Vec::new(),
            whole: true,
            at: Instant::now(),
        }))
    }

    fn body(&mut self, request: &mut Request) -> std::io::Result<()> {
        let length = request.header("Content-Length").map(str::to_string);
        if request.header("Transfer-Encoding") == Some("chunked") {
            loop {
                let line = self.until(b"\r\n")?.unwrap_or_default();
                let line = String::from_utf8_lossy(&line).to_string();
                let Ok(len) = usize::from_str_radix(line.trim_end(), 16) else {
                    request.whole = false;
                    break;
                };
                request.whole = self.exactly(len, &mut request.body)?;
                if !request.whole || !self.exactly(2, &mut Vec::new())? || len == 0 {
                    break;
                }
            }
        } else if let Some(len) = length.and_then(|len| len.parse().ok()) {
            request.whole = self.exactly(len, &mut request.body)?;
        }
        Ok(())
    }

    /// Does it; false if the connection can't be used after it.
    fn act(&mut self, act: &Act, request: &mut Request) -> std::io::Result<bool> {
        if !matches!(act, Act::Deaf) {
            let read = self.body(request);
            let mut requests = self.shared.requests.lock().unwrap();
            requests.push(request.clone());
            drop(requests);
            read?;
        }
        match act {
            Act::Answer(answer) => self.answer(answer, request),
            Act::Echo => {
                let mut text = format!(
                    "{} {} {} {:016x}\n",
                    request.method,
                    request.uri,
                    request.body.len(),
                    hash(&request.body)
                );
                for (key, value) in &request.headers {
                    text += &format!("{key}: {value}\n");
                }
                self.answer(&answer(200).body(text), request)
            }
            Act::Reset | Act::Close => Ok(false),
            Act::Hang => self.wait(),
            Act::Deaf => {
                while !self.shared.stop.load(Relaxed) && self.stream.take_error()?.is_none() {
                    // Peeks, so that the other side's window stays as it is.
                    match self.stream.peek(&mut [0]) {
                        Ok(0) => break,
                        Ok(_) => thread::sleep(Duration::from_millis(50)),
                        Err(e)
                            if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                        Err(e) => return Err(e),
                    }
                }
                Ok(false)
            }
            Act::Stall(bytes) => {
                self.stream.write_all(bytes)?;
                self.wait()
            }
            Act::Endless(status) => {
                let head = format!("HTTP/1.1 {status} X\r\nContent-Type: text/plain\r\n\r\n");
                self.stream.write_all(head.as_bytes())?;
                while !self.shared.stop.load(Relaxed) {
                    self.stream.write_all(&[b'e'; 16384])?;
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(false)
            }
            Act::Upgrade => {
                let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                            Connection: Upgrade\r\n\r\n";
                self.stream.write_all(head.as_bytes())?;
                loop {
                    let bytes = std::mem::take(&mut self.buffer).to_ascii_uppercase();
                    self.stream.write_all(&bytes)?;
                    if !self.more()? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Waits until the other side leaves.
    fn wait(&mut self) -> std::io::Result<bool> {
        while self.more()? {}
        Ok(false)
    }

    fn answer(&mut self, answer: &Answer, request: &Request) -> std::io::Result<bool> {
        thread::sleep(answer.after);
        let name = format!("{}\n", self.shared.name).into_bytes();
        let body = answer.body.as_ref().unwrap_or(&name);
        let mut bytes = format!(
            "HTTP/1.1 {} X\r\nContent-Type: text/plain\r\nX-Backend: {}\r\n{}",
            answer.status, self.shared.name, answer.headers
        );
        bytes += &match answer.chunks {
            Some(_) => "Transfer-Encoding: chunked\r\n\r\n".to_string(),
            None => format!("Content-Length: {}\r\n\r\n", body.len() + answer.missing),
        };
        let mut bytes = bytes.into_bytes();
        let Some((size, pause)) = answer.chunks else {
            if request.method != "HEAD" {
                bytes.extend_from_slice(body);
            }
            // Header and body in one write.
            self.stream.write_all(&bytes)?;
            return Ok(answer.missing == 0);
        };
        for piece in body.chunks(size) {
            bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
            if !pause.is_zero() {
                self.stream.write_all(&std::mem::take(&mut bytes))?;
                thread::sleep(pause);
            }
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        self.stream.write_all(&bytes)?;
        Ok(true)
    }
}

/// FNV-1a.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
