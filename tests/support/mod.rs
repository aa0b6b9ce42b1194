//! What the tests share: an nginx, backends, a DNS server and a client, all on loopback, all of
//! them bounded in time and gone when their variable is.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code, unused_imports)]

pub mod backend;
pub mod client;
pub mod dns;
pub mod http2;
pub mod nginx;
pub mod schema;
pub mod sockets;

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use backend::{answer, Act, Answer, Backend};
pub use client::{Client, Response};
pub use nginx::{Address, Nginx, Setup};
pub use sockets::{Dead, Full};

/// Failures that any upstream can have.
pub const FAILURES: &str = "next_upstream_statuses error timeout 5xx;";

/// What nginx needs to reuse connections to upstreams.
pub const KEEPALIVE: &str = "proxy_http_version 1.1; proxy_set_header Connection '';";

/// Milliseconds.
pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Waits.
pub fn sleep(n: u64) {
    thread::sleep(ms(n));
}

/// Waits until something is so, for ten seconds at most.
#[track_caller]
pub fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    assert!(within(ms(10_000), is_so), "still not so: {what}");
}

/// Waits until something is so; false if it does not get so in time.
pub fn within(time: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        sleep(10);
    }
}

/// Does something n times at once; the results in order.
pub fn together<T: Send>(n: usize, body: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let body = &body;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n).map(|i| scope.spawn(move || body(i))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread that ends"))
            .collect()
    })
}

/// Says, past the test runner's capture, why a test can't run here.
pub fn skip(test: &str, why: &str) {
    let line = format!("test {test} ... skipped: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Bytes that repeat nothing short.
pub fn noise(len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes.extend_from_slice(&x.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Clients that ask again and again, each time over a new connection, until stopped.
pub struct Load {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    bad: Arc<Mutex<Vec<String>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts the clients; `good` judges each answer.
    pub fn start(clients: usize, port: u16, good: fn(&Response) -> bool) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(AtomicUsize::new(0));
        let bad = Arc::new(Mutex::new(Vec::new()));
        let threads = (0..clients)
            .map(|_| {
                let (stop, asked, bad) = (stop.clone(), asked.clone(), bad.clone());
                thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        match client::get(port, "/") {
                            Ok(response) if good(&response) => {}
                            other => bad.lock().unwrap().push(format!("{other:?}")),
                        }
                        asked.fetch_add(1, Ordering::Relaxed);
                        sleep(3);
                    }
                })
            })
            .collect();
        Load {
            stop,
            asked,
            bad,
            threads,
        }
    }

    /// Answers so far.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Stops the clients; the answers that were not good.
    pub fn stop(mut self) -> Vec<String> {
        self.end();
        let bad = self.bad.lock().unwrap();
        bad.clone()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}
