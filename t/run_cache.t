# proxy_cache and proxy_store with an upstrand.

use strict;
use warnings;

use IO::Socket::INET;
use Test::Nginx::Socket 'no_plan';

log_level('info');
no_long_string();

# Two words for --- http_config: "backend NAME { ... }" makes an upstream NAME of
# one server, which does what stands in the braces and writes NAME into
# /asked.log; "dead NAME;" makes an upstream that refuses connections.

add_block_preprocessor(sub {
    my $block = shift;

    my $http = $block->http_config;
    my $html = '$TEST_NGINX_HTML_DIR';

    $http =~ s/^dead (\w+);/upstream $1 { server 127.0.0.1:1; }/mg;
    $http =~ s/^backend (\w+) \{((?:[^{}]++|(\{(?:[^{}]++|(?3))*\}))*)\}/
        my ($name, $does) = ($1, $2);
        "upstream $name { server unix:$html\/$name.sock; }\n"
        . "server { listen unix:$html\/$name.sock; server_name $name;"
        . " access_log $html\/asked.log asked; $does }"/mge;

    $block->set_value(http_config =>
                      "log_format asked '\$server_name';\n$http");

    $block->set_value(no_error_log => '[alert]')
        if !defined $block->no_error_log;
});
# A port for --- tcp_listen.

$ENV{TEST_NGINX_TCP_PORT} =
    IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport();

# In each block: a cache "c", the upstreams bad and good, the upstrand a of both.

add_block_preprocessor(sub {
    my $block = shift;

    my $http = $block->http_config;

    $block->set_value(http_config => <<'_EOC_' . (defined $http ? $http : ''));
proxy_cache_path $TEST_NGINX_HTML_DIR/cache keys_zone=c:1m;
backend bad { return 503 "bad\n"; }
backend good { root html; }
upstrand a {
    upstream bad; upstream good; order per_request;
    next_upstream_statuses error timeout 5xx;
}
_EOC_

    $block->set_value(config => <<'_EOC_' . $block->config);
proxy_cache c;
add_header X-Path $upstrand_path always;
add_header X-Cache $upstrand_cache_status always;
_EOC_

    $block->set_value(user_files => <<'_EOC_') if !defined $block->user_files;
>>> t 201501010000.00
0123456789
_EOC_
});

run_tests();

__DATA__

=== with a key of its own a fail-over fills the cache, and then nobody is asked
--- config
location /t { proxy_cache_valid 200 1m; proxy_cache_key $uri; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /asked.log"]
--- response_headers eval
["X-Path: bad -> good\nX-Cache: (bad) MISS (good) MISS", "X-Path: bad\nX-Cache: (bad) HIT", "! X-Path"]
--- response_body eval
["0123456789\n", "0123456789\n", "bad\ngood\n"]



=== with the default key every upstream has its own entry, and the failure none
--- config
location /t { proxy_cache_valid any 1m; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /asked.log"]
--- response_headers eval
["X-Path: bad -> good\nX-Cache: (bad) MISS (good) MISS", "X-Path: bad -> good\nX-Cache: (bad) MISS (good) HIT", "! X-Path"]
--- response_body eval
["0123456789\n", "0123456789\n", "bad\ngood\nbad\n"]



=== a failure is not stored when it is the final answer, either
--- http_config
upstrand b { upstream bad; next_upstream_statuses 5xx; }
upstrand n { upstream bad; next_upstream_statuses 404; }
--- config
proxy_cache_valid any 1m;
location /b { proxy_pass http://$upstrand_b; }
location /n { proxy_pass http://$upstrand_n; }
--- request eval
["GET /b", "GET /b", "GET /n", "GET /n", "GET /asked.log"]
--- error_code eval
[503, 503, 503, 503, 200]
--- response_headers eval
["X-Cache: (bad) MISS", "X-Cache: (bad) MISS", "X-Cache: (bad) MISS", "X-Cache: (bad) HIT", "! X-Cache"]
--- response_body eval
["bad\n", "bad\n", "bad\n", "bad\n", "bad\nbad\nbad\n"]



=== a failure that is in the cache already moves the walk on
--- config
proxy_cache_valid any 1m;
location /plain { rewrite ^ /t break; proxy_cache_key $proxy_host; proxy_pass http://bad; }
location /t { proxy_cache_key $proxy_host; proxy_pass http://$upstrand_a; }
--- request eval
["GET /plain", "GET /t", "GET /t", "GET /asked.log"]
--- error_code eval
[503, 200, 200, 200]
--- response_headers eval
["! X-Cache", "X-Path: bad -> good\nX-Cache: (bad) HIT (good) MISS", "X-Path: bad -> good\nX-Cache: (bad) HIT (good) HIT", "! X-Path"]
--- response_body eval
["bad\n", "0123456789\n", "0123456789\n", "bad\ngood\n"]



=== the failure of one upstream does not stay under the key of another
--- http_config
upstrand late { upstream good; upstream bad; next_upstream_statuses 5xx; }
--- config
location /t { proxy_cache_valid any 1m; proxy_cache_key $uri; proxy_pass http://$upstrand_a; }
location /late { rewrite ^ /t break; proxy_cache_valid any 1m; proxy_cache_key $uri; proxy_pass http://$upstrand_late; }
--- request eval
["GET /t", "GET /late", "GET /late", "GET /asked.log"]
--- response_body eval
["0123456789\n", "0123456789\n", "0123456789\n", "bad\ngood\n"]



=== HEAD fills the cache and is answered from it, without a body
--- config
location /t { proxy_cache_valid 200 1m; proxy_pass http://$upstrand_a; }
--- pipelined_requests eval
["HEAD /t", "HEAD /t", "HEAD /t"]
--- response_headers eval
[("Content-Length: 11") x 3]



=== a GET after a HEAD has the body
--- config
location /t { proxy_cache_valid 200 1m; proxy_cache_key $uri; proxy_pass http://$upstrand_a; }
--- request eval
["HEAD /t", "GET /t", "GET /asked.log"]
--- response_body eval
["", "0123456789\n", "bad\ngood\n"]



=== ranges and conditional requests, filling and from the cache
--- config
location /t { proxy_cache_valid 200 1m; proxy_cache_key $uri; proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 5, "GET /asked.log"]
--- more_headers eval
["Range: bytes=2-4", "Range: bytes=5-6", "If-None-Match: \"54a48e00-b\"", "If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT", "", ""]
--- error_code eval
[206, 206, 304, 304, 200, 200]
--- response_body eval
["234", "56", "", "", "0123456789\n", "bad\ngood\n"]



=== a walk that the cache ends by a 412 has no place in the path
--- http_config
upstrand i { upstream bad; next_upstream_statuses 503; intercept_statuses 503 /t; }
--- config
location /t { proxy_cache_valid 200 1m; proxy_cache_key $uri; proxy_pass http://$upstrand_a; }
location /i { proxy_cache off; proxy_pass http://$upstrand_i; }
--- request eval
["GET /t", "GET /i"]
--- more_headers eval
["", "If-Match: \"none\""]
--- error_code eval
[200, 412]
--- response_headers eval
["X-Path: bad -> good", "X-Path: bad -> <intercepted>"]



=== an expired entry is refreshed by the upstream whose turn it is
--- config
location /t { proxy_cache_valid 200 1s; proxy_cache_key $uri; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", ["GET ", { value => "/t", delay_before => 2.1 }], "GET /t", "GET /asked.log"]
--- response_headers eval
["X-Cache: (bad) MISS (good) MISS", "X-Cache: (bad) EXPIRED (good) EXPIRED", "X-Cache: (bad) HIT", "! X-Cache"]
--- response_body eval
[("0123456789\n") x 3, "bad\ngood\nbad\ngood\n"]



=== revalidation goes on to the next upstream, too
--- config
location /t { proxy_cache_valid 200 1s; proxy_cache_revalidate on; proxy_cache_key $uri; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", ["GET ", { value => "/t", delay_before => 2.1 }], "GET /t", "GET /asked.log"]
--- response_headers eval
["X-Cache: (bad) MISS (good) MISS", "X-Cache: (bad) EXPIRED (good) REVALIDATED", "X-Cache: (bad) HIT", "! X-Cache"]
--- response_body eval
[("0123456789\n") x 3, "bad\ngood\nbad\ngood\n"]



=== use_stale: the last answer that was good, when all upstreams fail
--- http_config
backend one { if ($http_fail) { return 503 "one\n"; } return 200 "one\n"; }
dead two;
upstrand s { upstream one; upstream two; order per_request; next_upstream_statuses error 5xx; }
--- config
location /s {
    proxy_cache_valid 200 1s; proxy_cache_key $uri;
    proxy_cache_use_stale error http_503;
    proxy_pass http://$upstrand_s;
}
--- request eval
["GET /s", ["GET ", { value => "/s", delay_before => 2.1 }], "GET /asked.log"]
--- more_headers eval
["", "Fail: 1", ""]
--- error_code eval
[200, 200, 200]
--- response_body eval
["one\n", "one\n", "one\none\n"]



=== use_stale: while an upstream is left it is asked, and renews the entry
--- http_config
dead gone;
backend fails { if ($http_fail) { return 503 "fails\n"; } return 200 "fails\n"; }
backend renew { add_header Cache-Control "max-age=1"; location / { if ($http_second) { return 200 "second\n"; } return 200 "first\n"; } }
upstrand g { upstream gone; upstream renew; order per_request; }
upstrand f { upstream fails; upstream renew; order per_request; next_upstream_statuses error timeout 503; }
upstrand n { upstream fails; upstream renew; order per_request; }
--- config
proxy_cache_key $uri; proxy_cache_valid 200 1s;
proxy_cache_use_stale error http_503;
location /g { proxy_pass http://$upstrand_g; }
location /f { proxy_pass http://$upstrand_f; }
location /n { proxy_pass http://$upstrand_n; }
--- request eval
["GET /g", "GET /f", "GET /n", ["GET ", { value => "/g", delay_before => 2.1 }], "GET /f", "GET /n", "GET /g", "GET /f", "GET /asked.log"]
--- more_headers eval
["", "", "", ("Fail: 1\nSecond: 1") x 3, ("") x 3]
--- response_headers eval
["X-Cache: (gone) MISS (renew) MISS", "X-Cache: (fails) MISS", "X-Cache: (fails) MISS",
"X-Cache: (gone) STALE (renew) EXPIRED", "X-Cache: (fails) STALE (renew) EXPIRED", "X-Cache: (fails) STALE",
"X-Cache: (gone) HIT", "X-Cache: (fails) HIT", "! X-Cache"]
--- response_body eval
["first\n", "fails\n", "fails\n", "second\n", "second\n", "fails\n", "second\n", "second\n", "renew\nfails\nfails\nrenew\nfails\nrenew\nfails\n"]



=== use_stale: the slices of a request begin anew with each try
--- http_config
backend one { root html/one; if ($http_fail) { return 503; } }
backend two { root html/two; if ($http_fail = all) { return 503; } }
upstrand s { upstream one; upstream two; order per_request; next_upstream_statuses error 503; }
--- config
location /t {
    slice 1k; proxy_set_header Range $slice_range;
    proxy_cache_key $proxy_host$uri$slice_range; proxy_cache_valid 206 1s; proxy_cache_use_stale http_503;
    proxy_pass http://$upstrand_s;
}
--- user_files eval
[["one/t", "1" x 5000, "201501010000.00"], ["two/t", "2" x 5000, "201501010001.00"]]
--- request eval
["GET /t", ["GET ", { value => "/t", delay_before => 2.1 }], "GET /t"]
--- more_headers eval
["", "Fail: all", "Fail: one"]
--- response_headers eval
["X-Path: one", "X-Path: one -> two -> one", "X-Path: one -> two"]
--- response_body eval
["1" x 5000, "1" x 5000, "2" x 5000]



=== use_stale: the entry of an upstream that failed is given when all others fail, too
--- http_config
dead gone;
backend one { if ($http_fail) { return 503 "one\n"; } return 200 "one\n"; }
upstrand s { upstream one; upstream gone; order per_request; next_upstream_statuses error 503; intercept_statuses error 503 /never; }
log_format tries '$upstream_addr|$upstream_status|$upstrand_path|$upstrand_status|$upstrand_reason';
--- config
location /s {
    proxy_cache_valid 200 1s; proxy_cache_use_stale http_503;
    access_log $TEST_NGINX_HTML_DIR/tries.log tries;
    proxy_pass http://$upstrand_s;
}
location /tries.log { proxy_cache off; }
--- request eval
["GET /s", ["GET ", { value => "/s", delay_before => 2.1 }], "HEAD /s", "GET /asked.log", "GET /tries.log"]
--- more_headers eval
["", ("Fail: 1") x 2, "", ""]
--- response_headers eval
["X-Cache: (one) MISS", ("X-Cache: (one) STALE (gone) MISS (one) STALE") x 2, ("! X-Cache") x 2]
--- response_body_like eval
["^one\n\\z", "^one\n\\z", "^\\z", "^(one\n){3}\\z",
qr/^unix:\S+\|200\|one\|\(one\) 200\|\(one\) final
(unix:\S+ : 127.0.0.1:1\|503 : 502\|one -> gone -> one\|\(one\) 503 \(gone\) 502 \(one\) \|\(one\) http_503 \(gone\) exhausted \(one\) final
){2}\z/]
--- no_error_log
[alert]
no live upstreams



=== use_stale: a walk in the background goes on past an upstream that fails
--- http_config
dead gone;
backend renew { add_header Cache-Control "max-age=1"; location / { if ($http_second) { return 200 "second\n"; } return 200 "first\n"; } }
upstrand u { upstream gone; upstream renew; order per_request; }
--- config
location /t {
    proxy_cache_key $uri; proxy_cache_use_stale updating error;
    proxy_cache_background_update on;
    proxy_pass http://$upstrand_u;
}
--- request eval
["GET /t", ["GET ", { value => "/t", delay_before => 2.1 }], ["GET ", { value => "/t", delay_before => 0.2 }], "GET /asked.log"]
--- more_headers eval
["", "Second: 1", "", ""]
--- response_headers eval
["X-Cache: (gone) MISS (renew) MISS", "X-Cache: (gone) STALE", "X-Cache: (gone) HIT", "! X-Cache"]
--- response_body eval
["first\n", "first\n", "second\n", "renew\nrenew\n"]



=== use_stale: a failure behind a stale answer marks its upstream
--- http_config
backend one { if ($http_fail) { return 503 "one\n"; } return 200 "one\n"; }
upstrand s { upstream one blacklist_interval=1m; upstream good; order per_request; next_upstream_statuses error 503; next_upstream_tries 1; }
--- config
location /t { proxy_cache_valid 200 1s; proxy_cache_use_stale http_503; proxy_pass http://$upstrand_s; }
--- request eval
["GET /t", ["GET ", { value => "/t", delay_before => 2.1 }], "GET /t", "GET /asked.log"]
--- more_headers eval
["", "Fail: 1", "", ""]
--- response_headers eval
["X-Path: one", "X-Path: one", "X-Path: good", "! X-Cache"]
--- response_body eval
["one\n", "one\n", "0123456789\n", "one\none\ngood\n"]



=== use_stale: a failure for which a stale answer does marks its upstream like any other
--- http_config
backend one { if ($http_fail) { return 503 "one\n"; } return 200 "one\n"; }
backend two { return 200 "two\n"; }
upstrand s { upstream one blacklist_interval=1m; upstream two; order per_request; next_upstream_statuses error 5xx; }
--- config
location /s {
    proxy_cache_valid 200 1s; proxy_cache_key $uri;
    proxy_cache_use_stale error http_503;
    proxy_pass http://$upstrand_s;
}
--- request eval
["GET /s", ["GET ", { value => "/s", delay_before => 2.1 }], "GET /s", "GET /s/other", "GET /asked.log"]
--- more_headers eval
["", "Fail: 1", ("") x 3]
--- response_headers eval
["X-Cache: (one) MISS", "X-Cache: (one) STALE (two) EXPIRED", "X-Cache: (two) HIT", "X-Cache: (two) MISS", "! X-Cache"]
--- response_body eval
["one\n", "two\n", "two\n", "two\n", "one\none\ntwo\ntwo\n"]



=== use_stale: nginx's own error marks as well
--- http_config
dead one;
upstrand s { upstream one blacklist_interval=1m; upstream good; order per_request; }
upstrand g { upstream good; }
--- config
location /t {
    proxy_cache_valid 200 1s; proxy_cache_key $uri;
    proxy_cache_use_stale error;
    dynamic_upstrand $to $arg_to;
    proxy_pass http://$to;
}
--- request eval
["GET /t?to=g", ["GET ", { value => "/t?to=s", delay_before => 2.1 }], "GET /t?to=s"]
--- response_headers eval
["X-Cache: (good) MISS", "X-Cache: (one) STALE (good) EXPIRED", "X-Cache: (good) HIT"]



=== a revalidation is an answer: that of a probe ends the mark
--- http_config
backend one { root html; if ($http_fail) { return 503; } }
upstrand s { upstream one blacklist_interval=2s; upstream good; order per_request; next_upstream_statuses error 5xx; }
--- config
location /t {
    proxy_cache_valid 200 1s; proxy_cache_revalidate on; proxy_cache_key $uri;
    proxy_pass http://$upstrand_s;
}
--- user_files
>>> t 201501010000.00
0123456789
>>> tt 201501010000.00
tt
>>> ttt 201501010000.00
ttt
--- request eval
["GET /t", "GET /tt", ["GET ", { value => "/t", delay_before => 2.1 }], "GET /ttt"]
--- more_headers eval
["", "Fail: 1", "", ""]
--- response_headers eval
["X-Cache: (one) MISS", "X-Cache: (one) MISS (good) MISS", "X-Cache: (one) REVALIDATED", "X-Cache: (one) MISS"]



=== updating: the stale entry at once, and a walk in the background that renews it
--- http_config
backend renew { add_header Cache-Control "max-age=1"; location / { if ($http_second) { return 200 "second\n"; } return 200 "first\n"; } }
upstrand u { upstream bad; upstream renew; order per_request; next_upstream_statuses 5xx; }
--- config
location /t {
    proxy_cache_key $uri; proxy_cache_use_stale updating;
    proxy_cache_background_update on;
    proxy_pass http://$upstrand_u;
}
--- request eval
["GET /t", ["GET ", { value => "/t", delay_before => 2.1 }], ["GET ", { value => "/t", delay_before => 0.2 }], "GET /asked.log"]
--- more_headers eval
["", "Second: 1", "", ""]
--- response_headers_like eval
["X-Cache: \\(bad\\) MISS \\(renew\\) MISS", "X-Cache: .*STALE.*", "X-Cache: \\(bad\\) HIT", "Content-Length: .*"]
--- response_body eval
["first\n", "first\n", "second\n", "bad\nrenew\nbad\nrenew\n"]



=== proxy_cache_lock: one walk fills the entry for all
--- http_config
backend slow { location / { proxy_pass http://127.0.0.1:$TEST_NGINX_TCP_PORT; } }
upstrand l { upstream bad; upstream slow; order per_request; next_upstream_statuses error 5xx; }
--- config
location /page { proxy_cache off; ssi on; root html; }
location /t { proxy_cache_valid 200 1m; proxy_cache_key $uri; proxy_cache_lock on; proxy_cache_lock_timeout 3s; proxy_pass http://$upstrand_l; }
--- user_files
>>> page.html
<!--# include virtual="/t" --><!--# include virtual="/t" --><!--# include virtual="/t" -->
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply_delay: 300ms
--- tcp_reply eval
"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nslow"
--- request eval
["GET /page.html", "GET /asked.log"]
--- response_body eval
["slowslowslow\n", "bad\nslow\n"]



=== proxy_cache_bypass and proxy_no_cache
--- config
location /t {
    proxy_cache_valid 200 1m; proxy_cache_key $uri;
    proxy_cache_bypass $arg_b; proxy_no_cache $arg_n;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t?n=1", "GET /t", "GET /t?b=1", "GET /t"]
--- response_headers eval
[map { "X-Cache: $_" } '(bad) MISS (good) MISS', '(bad) MISS (good) MISS', '(bad) BYPASS (good) BYPASS', '(bad) HIT']



=== a truncated answer is not stored
--- http_config
upstream cut { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
upstrand k { upstream bad; upstream cut; upstream good; order per_request; next_upstream_statuses error 5xx; }
--- config
location /t { proxy_cache_valid 200 1m; proxy_cache_key $uri; proxy_pass http://$upstrand_k; }
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply eval
"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nhello"
--- request eval
["GET /t", "GET /t", "GET /t"]
--- response_headers eval
["X-Path: bad -> cut", "X-Path: bad -> cut -> good", "X-Cache: (bad) HIT"]
--- response_body eval
["hello", "0123456789\n", "0123456789\n"]



=== X-Accel-Expires of a failed answer has no effect on the next one
--- http_config
backend odd { add_header X-Accel-Expires 0 always; return 503 "odd\n"; }
upstrand x { upstream odd; upstream good; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_cache_valid 200 1m; proxy_cache_key $uri; proxy_pass http://$upstrand_x; }
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Cache: (odd) MISS (good) MISS", "X-Cache: (odd) HIT"]



=== proxy_store stores the good answer only
--- config
location /t { proxy_cache off; proxy_store $TEST_NGINX_HTML_DIR/stored/$upstrand_upstream; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /stored/good", "GET /stored/bad"]
--- error_code eval
[200, 200, 404]
--- response_body eval
["0123456789\n", "0123456789\n", qr/404 Not Found/]
