//! Where nginx puts the module among its filters.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by a panic"
)]

mod support;

use support::nginx::built_with;
use support::{answer, skip, Backend, Setup};

/// `ngx_module_order` puts the filter right before ngx_http_copy_filter_module, as nginx's own
/// build puts a filter of type HTTP_AUX_FILTER: below the not-modified filter, which therefore sees
/// also the answers that are dropped, and says so in a debug log. At the top, where a module
/// without an order comes, the filter would drop them first.
#[test]
fn the_filter_is_below_the_one_that_makes_answers_conditional() {
    if !built_with().contains("--with-debug") {
        return skip(
            "the_filter_is_below_the_one_that_makes_answers_conditional",
            "nginx was built without --with-debug",
        );
    }
    let dated = |day: u32| {
        let line = format!("Last-Modified: Thu, {day:02} Jan 2015 00:00:00 GMT");
        answer(200).header(&line)
    };
    let (u1, u2) = (Backend::new("u1", dated(1)), Backend::new("u2", dated(8)));
    let nginx = Setup::new()
        .upstream("u1", &u1)
        .upstream("u2", &u2)
        .http("proxy_cache_path <dir>/cache keys_zone=c:1m;\n")
        .upstrand_with(
            "upstream u1; upstream u2; order per_request; next_upstream_statuses 200;",
            // nginx leaves answers alone that it does not cache.
            "proxy_cache c; proxy_cache_valid 200 1m;",
        )
        .main("error_log <dir>/debug.log debug;")
        .start();
    let since = "If-Modified-Since: Thu, 15 Jan 2015 00:00:00 GMT\r\n";
    let response = nginx.ask("GET", "/", since, b"");
    assert_eq!((response.status, response.text()), (200, "u2".to_string()));
    assert_eq!((u1.count(), u2.count()), (1, 1));

    let log = std::fs::read_to_string(nginx.dir().join("debug.log")).expect("a debug log");
    let seen = log.lines().filter(|line| line.contains("http ims:"));
    assert_eq!(seen.count(), 2, "answers seen by the not-modified filter");
}
