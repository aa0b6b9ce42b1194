//! Upgraded connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use support::{
    eventually, noise, within, Act, Address, Backend, Client, Dead, Nginx, Setup, FAILURES,
};

fn start(u1: &impl Address, u2: &Backend, members: &str) -> Nginx {
    Setup::new()
        .upstream("u1", u1)
        .upstream("u2", u2)
        .upstrand_with(
            &format!("{members} order per_request; {FAILURES}"),
            "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; \
             proxy_set_header Connection upgrade;",
        )
        .start()
}

fn upgraded(nginx: &Nginx) -> Client {
    let mut client = nginx.client();
    client.send(
        b"GET /chat HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    );
    let response = client.read(false).expect("an answer");
    assert_eq!(response.status, 101);
    assert_eq!(response.header("Upgrade"), Some("websocket"));
    client
}

/// Bytes both ways, several times.
fn talk(client: &mut Client) {
    for len in [5, 1000, 100_000] {
        let said: Vec<u8> = noise(len).iter().map(|byte| b'a' + byte % 26).collect();
        let mut sent = client.stream.try_clone().expect("a second handle");
        let back = std::thread::scope(|scope| {
            let said = &said;
            scope.spawn(move || std::io::Write::write_all(&mut sent, said));
            client.exactly(len).expect("an echo")
        });
        assert!(back == said.to_ascii_uppercase());
    }
}

#[test]
fn d12_bytes_go_both_ways_through_the_second_upstream() {
    for u1 in [Act::from(503), Act::Reset, Act::Close] {
        let (u1, u2) = (Backend::new("u1", u1), Backend::new("u2", Act::Upgrade));
        let nginx = start(&u1, &u2, "upstream u1; upstream u2;");
        let mut client = upgraded(&nginx);
        talk(&mut client);
        drop(client);
        eventually("u2's connection is closed", || u2.open() == 0);
        let line = &nginx.log(1)[0];
        assert_eq!((&line["status"], &line["path"]), ("101", "u1 -> u2"));
    }
}

#[test]
fn d12_bytes_go_both_ways_past_a_dead_upstream() {
    let (u1, u2) = (Dead::new(), Backend::new("u2", Act::Upgrade));
    let nginx = start(&u1, &u2, "upstream u1; upstream u2;");
    talk(&mut upgraded(&nginx));
    assert_eq!(u2.last().header("Upgrade"), Some("websocket"));
}

#[test]
fn many_tunnels_are_open_at_once_and_outlive_a_deadline() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", Act::Upgrade));
    let nginx = start(
        &u1,
        &u2,
        "upstream u1; upstream u2; next_upstream_timeout 500ms;",
    );
    let mut clients: Vec<Client> = (0..10).map(|_| upgraded(&nginx)).collect();
    assert!(!within(support::ms(700), || u2.open() < 10));
    clients.iter_mut().for_each(talk);
}

#[test]
fn bytes_that_follow_the_request_at_once_reach_the_second_upstream() {
    let (u1, u2) = (Backend::new("u1", 503), Backend::new("u2", Act::Upgrade));
    let nginx = start(&u1, &u2, "upstream u1; upstream u2;");
    let mut client = nginx.client();
    client.send(
        b"GET /chat HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello",
    );
    assert_eq!(client.read(false).expect("an answer").status, 101);
    assert_eq!(client.exactly(5).expect("an echo"), b"HELLO");
}
