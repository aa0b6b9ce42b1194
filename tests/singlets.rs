//! `combine_server_singlets` at run time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use std::net::Ipv4Addr;

use support::dns::Dns;
use support::nginx::at_least;
use support::{eventually, skip, Backend, Dead, Setup};

const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const TWO: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn resolves(test: &str) -> bool {
    let can = at_least([1, 27, 3]);
    if !can {
        skip(test, "nginx before 1.27.3 resolves no servers at run time");
    }
    can
}

#[test]
fn a_singlet_follows_the_address_of_its_server() {
    if !resolves("a_singlet_follows_the_address_of_its_server") {
        return;
    }
    // Two addresses with the same port.
    let first = Backend::new("first", 200);
    let port = first.port();
    let second = Backend::at("second", vec![200.into()], &format!("{TWO}:{port}"));
    let other = Backend::new("other", 200);
    let dns = Dns::new();
    dns.set("name.test", &[ONE]);
    let servers = format!("server name.test:{port} resolve; server <other>;");
    let singlets = "combine_server_singlets; combine_server_singlets _n_ nobackup;";
    let resolver = "resolver <dns> valid=1s;";
    let nginx = Setup::new()
        .at("dns", &dns)
        .at("other", &other)
        .http(&format!(
            "upstream u {{ zone z 512k; {resolver} {servers} {singlets} }}\n\
             upstream v {{ {servers} {singlets} {resolver} zone y 512k; }}\n"
        ))
        .server("location / { proxy_pass http://$arg_u; }\n")
        .workers(2)
        .start();
    let get = |name: &str| nginx.get(&format!("/?u={name}"));
    let all_say = |text: &str| {
        for name in ["u_n_1", "v_n_1", "u1", "v1"] {
            eventually(&format!("{name} says {text}"), || {
                (0..6).all(|_| get(name).text() == text)
            });
        }
    };
    all_say("first");
    assert_eq!(get("u_n_2").text(), "other");
    dns.set("name.test", &[TWO]);
    all_say("second");
    // A name that is gone leaves the singlet without a server, or with its backups.
    dns.set("name.test", &[]);
    eventually("no address", || {
        (0..4).all(|_| get("u_n_1").status == 502 && get("u1").text() == "other")
    });
    dns.set("name.test", &[ONE]);
    eventually("the address is back", || get("u_n_1").text() == "first");
    // A reload keeps what is resolved: no request finds it without an address.
    nginx.reload();
    for _ in 0..8 {
        assert_eq!(get("u_n_1").text(), "first");
    }
    drop(second);
}

#[test]
fn a_singlet_resolves_by_the_resolver_of_the_http_level() {
    if !resolves("a_singlet_resolves_by_the_resolver_of_the_http_level") {
        return;
    }
    let (a, b) = (Backend::new("a", 200), Backend::new("b", 200));
    let dns = Dns::new();
    dns.set("name.test", &[ONE]);
    let nginx = Setup::new()
        .at("dns", &dns)
        .at("b", &b)
        .http(&format!(
            "resolver <dns>; upstream u {{ server <b>; server name.test:{} resolve; \
             combine_server_singlets _n_ nobackup; zone z 1m; }}\n\
             upstrand s {{ upstream ~^u_n_; order per_request; }}\n",
            a.port()
        ))
        .server(
            "location /n2 { proxy_pass http://u_n_2; }\n\
             location /s { proxy_pass http://$upstrand_s; }\n",
        )
        .start();
    eventually("the name is resolved", || nginx.get("/n2").text() == "a");
    assert_eq!(nginx.get("/s").text(), "b");
    assert!(dns.asked() > 0);
}

#[test]
fn other_servers_step_in_unless_nobackup_says_no() {
    let (dead, b) = (Dead::new(), Backend::new("b", 200));
    let nginx = Setup::new()
        .at("dead", &dead)
        .at("b", &b)
        .http(
            "upstream u { server <dead>; server <b>; combine_server_singlets; \
             combine_server_singlets _n_ nobackup; }\n",
        )
        .server(
            "location /1 { proxy_pass http://u1; }\n\
             location /n1 { proxy_pass http://u_n_1; }\n\
             location /n2 { proxy_pass http://u_n_2; }\n",
        )
        .start();
    for _ in 0..3 {
        assert_eq!(nginx.get("/1").text(), "b");
        assert_eq!(nginx.get("/n1").status, 502);
        assert_eq!(nginx.get("/n2").text(), "b");
    }
    assert_eq!(b.count(), 6);
    let lines = nginx.log(9);
    let mut lone = lines.iter().filter(|line| &line["uri"] == "/n1");
    // A server that has failed is left alone for a while; the singlet's name stands for no server.
    assert!(lone.all(|line| ["<dead>", "u_n_1"].contains(&&line["upstream_addr"])));
}

#[test]
fn servers_that_are_down_or_backup_keep_what_the_reference_says() {
    let (a, b) = (Backend::new("a", 200), Backend::new("b", 200));
    let nginx = Setup::new()
        .at("a", &a)
        .at("b", &b)
        .http(
            "upstream d { server <a> down; server <b>; combine_server_singlets _n_ nobackup; \
             combine_server_singlets; }\n\
             upstream k { server <a>; server <b> backup; combine_server_singlets _n_ nobackup; \
             combine_server_singlets; }\n",
        )
        .server("location / { proxy_pass http://$arg_u; }\n")
        .start();
    for (upstream, status, text) in [
        ("d_n_1", 502, ""),
        ("d1", 200, "b"),
        ("d_n_2", 200, "b"),
        ("k_n_1", 200, "a"),
        ("k_n_2", 200, "b"),
        ("k1", 200, "a"),
        ("k2", 200, "b"),
    ] {
        for _ in 0..2 {
            let response = nginx.get(&format!("/?u={upstream}"));
            assert_eq!(response.status, status, "{upstream}");
            if status == 200 {
                assert_eq!(response.text(), text, "{upstream}");
            }
        }
    }
}

#[test]
fn d28_byname_reaches_ipv6_and_unix_servers() {
    let six = Backend::at("six", vec![200.into()], "[::1]:0");
    let four = Backend::new("four", 200);
    let setup = Setup::new();
    let unix = Backend::unix("unix", 200, setup.dir());
    let (six_port, four_port) = (six.port(), four.port());
    let nginx = setup
        .at("six", &six)
        .at("four", &four)
        .at("unix", &unix)
        .http(
            "upstream u { server <six>; server <four>; server <unix>; \
             combine_server_singlets byname nobackup; \
             combine_server_singlets _s_ byname nobackup; }\n\
             upstrand s { upstream ~^u_s_; }\n\
             upstrand only { upstream ~^u_s_unix_; }\n",
        )
        .server(&format!(
            "location /six {{ set $name u[__1]_{six_port}; proxy_pass http://$name; }}\n\
             location /four {{ proxy_pass http://u127.0.0.1_{four_port}; }}\n\
             location /unix {{ proxy_pass http://$upstrand_only; }}\n\
             location /all {{ proxy_pass http://$upstrand_s; }}\n"
        ))
        .start();
    for name in ["six", "four", "unix"] {
        assert_eq!(nginx.get(&format!("/{name}")).text(), name);
    }
    let all: Vec<String> = (0..3).map(|_| nginx.get("/all").text()).collect();
    assert_eq!(all, ["six", "four", "unix"]);
}

#[test]
fn d26_names_of_250_characters_are_whole() {
    let (a, b) = (Backend::new("a", 200), Backend::new("b", 200));
    let suffix = format!("_{}_", "n".repeat(238));
    let nginx = Setup::new()
        .at("a", &a)
        .at("b", &b)
        .http(&format!(
            "upstream u {{ server <a>; server <b>; combine_server_singlets {suffix} 9 nobackup; \
             combine_server_singlets _w_ 200 nobackup; }}\n\
             upstrand s {{ upstream ~_000000002$; }}\n"
        ))
        .server(&format!(
            "location /s {{ proxy_pass http://$upstrand_s; }}\n\
             location /plain {{ proxy_pass http://u{suffix}000000001; }}\n\
             location /wide {{ set $name u_w_{}2; proxy_pass http://$name; }}\n",
            "0".repeat(199)
        ))
        .start();
    assert_eq!(nginx.get("/s").text(), "b");
    assert_eq!(nginx.get("/plain").text(), "a");
    assert_eq!(nginx.get("/wide").text(), "b");
    let name = format!("u{suffix}000000002");
    assert_eq!(name.len(), 250);
    assert_eq!(&nginx.log(1)[0]["path"], name);
}

#[test]
fn singlets_of_a_least_conn_host_fall_back_by_least_conn() {
    let dead = Dead::new();
    let busy = Backend::new("busy", support::Act::Hang);
    let free = Backend::new("free", 200);
    let nginx = Setup::new()
        .at("dead", &dead)
        .at("busy", &busy)
        .at("free", &free)
        .http(
            "upstream u { least_conn; server <dead>; server <busy>; server <free>; \
             combine_server_singlets; }\n",
        )
        .server("location / { proxy_pass http://u1; }\n")
        .start();
    // Ask until the busy one has a request, which stays; then all others go to the free one.
    let mut waiting = Vec::new();
    eventually("the busy one is asked", || {
        let mut client = nginx.client();
        client.start("/");
        waiting.push(client);
        support::within(support::ms(100), || busy.count() > 0)
    });
    for _ in 0..6 {
        assert_eq!(nginx.get("/").text(), "free");
    }
    assert_eq!(busy.count(), 1);
}

#[test]
fn singlets_of_other_methods_serve_their_server() {
    let (a, b) = (Backend::new("a", 200), Backend::new("b", 200));
    for method in [
        "ip_hash;",
        "hash $uri;",
        "hash $uri consistent;",
        "random;",
        "zone z 128k;",
    ] {
        let nginx = Setup::new()
            .at("a", &a)
            .at("b", &b)
            .http(&format!(
                "upstream u {{ {method} server <a>; server <b>; combine_server_singlets; \
                 combine_server_singlets _n_ nobackup; }}\n"
            ))
            .server("location / { proxy_pass http://$arg_u; }\n")
            .start();
        for (upstream, text) in [("u1", "a"), ("u2", "b"), ("u_n_1", "a"), ("u_n_2", "b")] {
            for i in 0..3 {
                let response = nginx.get(&format!("/{i}?u={upstream}"));
                assert_eq!(response.text(), text, "{method} {upstream}");
            }
        }
    }
}
