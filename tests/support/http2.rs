//! A small HTTP/2 client that has several requests under way in one connection, without TLS.
//! Curl of Debian 12 fails at that.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No read or write of a test takes longer.
const LIMIT: Duration = Duration::from_secs(12);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// How much may come without a word from us: more than any test has sent.
const WINDOW: u32 = 1 << 26;

/// A request.
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub body: Vec<u8>,
}

/// Status and body.
pub type Answer = (u16, Vec<u8>);

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u32;
    let mut bytes = len.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A header with a name of HPACK's static table, and a value of less than 127 bytes.
fn header(name: u8, value: &str) -> Vec<u8> {
    // Not to be kept in a table; four bits for the number of the name, or one byte more.
    let mut bytes = if name < 15 {
        vec![name]
    } else {
        vec![15, name - 15]
    };
    assert!(value.len() < 127, "a long value");
    bytes.push(value.len() as u8);
    bytes.extend(value.as_bytes());
    bytes
}

/// The status stands first in a block, but for a change of the table's size.
fn status(block: &[u8]) -> Result<u16, String> {
    let known = [200, 204, 206, 304, 400, 404, 500];
    match block {
        [size, rest @ ..] if size >> 5 == 1 => status(rest),
        [index @ 0x88..=0x8e, ..] => Ok(known[usize::from(index - 0x88)]),
        [0x48 | 0x08, 3, digits @ ..] if digits.len() >= 3 => {
            let digits = String::from_utf8_lossy(&digits[..3]);
            digits.parse().map_err(|_| format!("status {digits:?}"))
        }
        _ => Err(format!("no status first: {block:x?}")),
    }
}

/// Asks all at once over one connection; the answers in the order of the requests. All bodies
/// together have to be shorter than 64k, which is what HTTP/2 lets a client send unasked.
pub fn together(port: u16, requests: &[Request]) -> Result<Vec<Answer>, String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|e| e.to_string())?;
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(LIMIT));
    let _ = stream.set_write_timeout(Some(LIMIT));

    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // 4 is the window of a stream.
    let window = [&[0, 4][..], &WINDOW.to_be_bytes()].concat();
    bytes.extend(frame(SETTINGS, 0, 0, &window));
    bytes.extend(frame(WINDOW_UPDATE, 0, 0, &WINDOW.to_be_bytes()));
    let id = |i: usize| 2 * i as u32 + 1;
    for (i, request) in requests.iter().enumerate() {
        let len = request.body.len();
        let mut block = header(2, request.method);
        block.extend(header(6, "http"));
        block.extend(header(4, &request.path));
        block.extend(header(1, "test"));
        if request.method == "PATCH" {
            block.extend(header(31, "application/json"));
        }
        if len > 0 {
            block.extend(header(28, &len.to_string()));
        }
        let end = if len > 0 { 0 } else { END_STREAM };
        bytes.extend(frame(HEADERS, END_HEADERS | end, id(i), &block));
    }
    // The bodies come in two parts, between those of the others.
    for second in [false, true] {
        for (i, request) in requests.iter().enumerate() {
            let (first, last) = request.body.split_at(request.body.len() / 2);
            match (request.body.is_empty(), second) {
                (true, _) => {}
                (false, false) => bytes.extend(frame(DATA, 0, id(i), first)),
                (false, true) => bytes.extend(frame(DATA, END_STREAM, id(i), last)),
            }
        }
    }
    stream.write_all(&bytes).map_err(|e| e.to_string())?;

    let mut answers: BTreeMap<u32, Answer> = BTreeMap::new();
    let mut ended = 0;
    while ended < requests.len() {
        let mut head = [0; 9];
        read(&mut stream, &mut head, ended)?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let stream_id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; len];
        read(&mut stream, &mut payload, ended)?;
        match kind {
            HEADERS if flags & END_HEADERS == 0 || flags & PADDED != 0 => {
                return Err("headers of another form than nginx's".to_string());
            }
            HEADERS => {
                let answer = (status(&payload)?, Vec::new());
                if answers.insert(stream_id, answer).is_some() {
                    return Err(format!("two answers in stream {stream_id}"));
                }
            }
            DATA if flags & PADDED != 0 => return Err("padding".to_string()),
            DATA => match answers.get_mut(&stream_id) {
                Some((_, body)) => body.extend(payload),
                None => return Err(format!("a body before its header in {stream_id}")),
            },
            SETTINGS if flags & ACK == 0 => {
                let ack = frame(SETTINGS, ACK, 0, b"");
                stream.write_all(&ack).map_err(|e| e.to_string())?;
            }
            // The answer is whole; the rest of the request's body is not wanted.
            RST_STREAM if payload == [0; 4] && answers.contains_key(&stream_id) => {}
            RST_STREAM | GOAWAY | CONTINUATION => {
                return Err(format!(
                    "frame {kind} in stream {stream_id}: {payload:x?}, {ended} streams ended"
                ));
            }
            _ => {}
        }
        if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
            ended += 1;
        }
    }
    let all = (0..requests.len()).map(|i| answers.remove(&id(i)));
    all.collect::<Option<_>>()
        .ok_or_else(|| "a stream that nobody opened".to_string())
}

fn read(stream: &mut TcpStream, bytes: &mut [u8], ended: usize) -> Result<(), String> {
    stream
        .read_exact(bytes)
        .map_err(|e| format!("{e} after {ended} streams"))
}
