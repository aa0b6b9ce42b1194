//! A small HTTP/1.1 client that believes nothing: an answer is whole, or it is an error.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::sockets;

/// No read or write of a test takes longer.
const LIMIT: Duration = Duration::from_secs(12);

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body without the newline at its end.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim_end().to_string()
    }
}

/// One GET over a connection of its own.
pub fn get(port: u16, path: &str) -> Result<Response, String> {
    request(port, "GET", path, "", b"")
}

/// One request over a connection of its own; `headers` are whole lines.
pub fn request(
    port: u16,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> Result<Response, String> {
    let mut client = Client::new(port)?;
    client.ask(
        method,
        path,
        &format!("{headers}Connection: close\r\n"),
        body,
    )
}

/// A connection.
pub struct Client {
    pub stream: TcpStream,
    pub buffer: Vec<u8>,
}

impl Client {
    /// Connects.
    pub fn new(port: u16) -> Result<Client, String> {
        TcpStream::connect(("127.0.0.1", port))
            .map(Client::of)
            .map_err(|e| format!("connect: {e}"))
    }

    /// Connects with a receive buffer of that many bytes.
    pub fn small(port: u16, bytes: i32) -> Client {
        Client::of(sockets::connect_small(port, bytes))
    }

    fn of(stream: TcpStream) -> Client {
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(LIMIT));
        let _ = stream.set_write_timeout(Some(LIMIT));
        Client {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        // nginx may have answered and closed before it has read all of them.
        let _ = self.stream.write_all(bytes);
    }

    /// Asks for a path and keeps the connection, without waiting for the answer.
    pub fn start(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes());
    }

    /// A GET that keeps the connection.
    pub fn get(&mut self, path: &str) -> Result<Response, String> {
        self.ask("GET", path, "", b"")
    }

    /// A request; `headers` are whole lines.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Result<Response, String> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{headers}");
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        self.send(head.as_bytes());
        self.send(body);
        self.read(method != "HEAD")
    }

    /// Reads one answer, with its body if there has to be one.
    pub fn read(&mut self, with_body: bool) -> Result<Response, String> {
        let head = self.until(b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&head).to_string();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 "))
            .and_then(|line| line.get(..3)?.parse().ok())
            .ok_or_else(|| format!("no status line: {head:?}"))?;
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        let bodyless = status < 200 || status == 204 || status == 304;
        if !with_body || bodyless {
            return Ok(response);
        }
        response.body = if response.header("Transfer-Encoding") == Some("chunked") {
            self.chunks()?
        } else if let Some(len) = response.header("Content-Length") {
            let len = len.parse().map_err(|_| format!("length {len:?}"))?;
            self.exactly(len)?
        } else {
            self.rest()?
        };
        Ok(response)
    }

    fn chunks(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n")?;
            let line = String::from_utf8_lossy(&line).to_string();
            let len = usize::from_str_radix(line.trim_end(), 16)
                .map_err(|_| format!("chunk length {line:?} after {} bytes", body.len()))?;
            body.extend(self.exactly(len)?);
            if self.exactly(2)? != b"\r\n" {
                return Err("a chunk longer than it says".to_string());
            }
            if len == 0 {
                return Ok(body);
            }
        }
    }

    /// Reads some more bytes into the buffer; false at the end.
    pub fn more(&mut self) -> Result<bool, String> {
        let mut bytes = [0; 16384];
        let len = loop {
            match self.stream.read(&mut bytes) {
                // A read with a time limit ends so when the machine or the process was stopped.
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let len = len.map_err(|e| format!("{e} after {} bytes", self.buffer.len()))?;
        self.buffer.extend_from_slice(&bytes[..len]);
        Ok(len > 0)
    }

    /// Reads up to and with a mark.
    pub fn until(&mut self, mark: &[u8]) -> Result<Vec<u8>, String> {
        loop {
            let found = self.buffer.windows(mark.len()).position(|w| w == mark);
            if let Some(at) = found {
                return Ok(self.buffer.drain(..at + mark.len()).collect());
            }
            if !self.more()? {
                return Err(format!("closed after {} bytes", self.buffer.len()));
            }
        }
    }

    /// Reads that many bytes.
    pub fn exactly(&mut self, len: usize) -> Result<Vec<u8>, String> {
        while self.buffer.len() < len {
            if !self.more()? {
                return Err(format!("cut: {} of {len} bytes", self.buffer.len()));
            }
        }
        Ok(self.buffer.drain(..len).collect())
    }

    /// Reads all until the end.
    pub fn rest(&mut self) -> Result<Vec<u8>, String> {
        while self.more()? {}
        Ok(std::mem::take(&mut self.buffer))
    }
}
