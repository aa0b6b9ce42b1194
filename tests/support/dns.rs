//! A small DNS server: A records that a test changes while it runs.

use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

type Records = Arc<Mutex<HashMap<String, Vec<Ipv4Addr>>>>;

/// The server; it answers with a time to live of one second.
pub struct Dns {
    pub address: String,
    records: Records,
    asked: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Dns {
    pub fn new() -> Dns {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a UDP port");
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .expect("a time-out");
        let server = Dns {
            address: socket.local_addr().expect("its address").to_string(),
            records: Records::default(),
            asked: Arc::default(),
            stop: Arc::default(),
        };
        let (records, asked) = (server.records.clone(), server.asked.clone());
        let stop = server.stop.clone();
        thread::spawn(move || {
            let mut packet = [0; 1024];
            while !stop.load(Ordering::Relaxed) {
                let Ok((len, from)) = socket.recv_from(&mut packet) else {
                    continue;
                };
                asked.fetch_add(1, Ordering::Relaxed);
                if let Some(reply) = reply(&packet[..len], &records) {
                    let _ = socket.send_to(&reply, from);
                }
            }
        });
        server
    }

    /// Says what a name stands for from now on.
    pub fn set(&self, name: &str, addresses: &[Ipv4Addr]) {
        self.records
            .lock()
            .unwrap()
            .insert(name.to_string(), addresses.to_vec());
    }

    /// Questions so far.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The reply to a packet with one question.
fn reply(query: &[u8], records: &Records) -> Option<Vec<u8>> {
    const A: [u8; 2] = [0, 1];
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let len = usize::from(*query.get(at)?);
        at += 1;
        if len == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + len)?).to_string());
        at += len;
    }
    let question = query.get(12..at + 4)?;
    let records = records.lock().unwrap();
    let known = records.get(&labels.join("."));
    let addresses = match known {
        Some(addresses) if query.get(at..at + 2)? == A => addresses.as_slice(),
        _ => &[],
    };
    let mut reply = query.get(..2)?.to_vec();
    let no_such_name = u8::from(known.is_none()) * 3;
    reply.extend([0x81, 0x80 | no_such_name, 0, 1]);
    reply.extend((addresses.len() as u16).to_be_bytes());
    reply.extend([0; 4]);
    reply.extend(question);
    for address in addresses {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        reply.extend(address.octets());
    }
    Some(reply)
}
