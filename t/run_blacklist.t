# blacklist_interval: who is marked, who is passed by, and for how long.

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
# A port that takes connections and requests, and never answers.

my $silent = IO::Socket::INET->new(Listen => 128, LocalAddr => '127.0.0.1')
    or die "cannot listen: $!";

$ENV{TEST_NGINX_SILENT_PORT} = $silent->sockport();

run_tests();

__DATA__

=== an upstream that failed is really passed by
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1 blacklist_interval=60s; upstream u2;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /t", "GET /asked.log"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u2", "X-Path: u2", "! X-Path"]
--- response_body eval
["u2\n", "u2\n", "u2\n", "u1\nu2\nu2\nu2\n"]



=== several in a row are passed by
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
backend u3 { return 503 "u3\n"; }
backend u4 { return 200 "u4\n"; }
upstrand a {
    upstream ~^u blacklist_interval=60s;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2 -> u3 -> u4", "X-Path: u4"]



=== without an interval nobody is marked
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1; upstream u2 blacklist_interval=60s;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u1 -> u2"]



=== a good answer marks nobody
--- http_config
backend u1 { return 404 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream ~^u blacklist_interval=60s;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[404, 404]
--- response_body eval
["u1\n", "u1\n"]



=== an upstream that refuses is marked
--- http_config
dead u1;
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1 blacklist_interval=60s; upstream u2; order per_request; }
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u2"]



=== a turn that falls on a blacklisted upstream goes to the next one
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
backend u3 { return 200 "u3\n"; }
upstrand a {
    upstream u1 blacklist_interval=60s; upstream u2; upstream u3;
    next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 6]
--- response_headers eval
[map { "X-Path: $_" } 'u1 -> u2', qw(u2 u3 u2 u2 u3)]



=== when a whole tier is blacklisted the next tier comes at once
--- http_config
backend u1 { return 503 "u1\n"; }
backend b1 { return 503 "b1\n"; }
backend c1 { return 200 "c1\n"; }
upstrand a {
    upstream u1 blacklist_interval=60s;
    upstream b1 backup blacklist_interval=60s;
    upstream c1 tier=2;
    next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1 -> b1 -> c1", "X-Path: c1"]
--- no_error_log
whitelisting
[alert]



=== all blacklisted: the last resort is to walk through all of them, with one line in the log
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
upstrand a {
    upstream ~^u blacklist_interval=60s;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- error_code eval
[503, 503, 503]
--- response_headers eval
[("X-Path: u1 -> u2") x 3]
--- response_body eval
["u2\n", "u2\n", "u2\n"]
--- wait: 0.05
--- grep_error_log eval
qr/\[error\].*?whitelisting them/
--- grep_error_log_out eval
qr/\A(?:\[error\] [^\n]*all upstreams in upstrand "a" are blacklisted, whitelisting them\n){2}\z/



=== all blacklisted: marks stay until an answer says otherwise
--- http_config
backend u1 { if ($arg_good = "u1") { return 200 "u1\n"; } return 503 "u1\n"; }
backend u2 { if ($arg_good = "u2") { return 200 "u2\n"; } return 503 "u2\n"; }
upstrand a {
    upstream ~^u blacklist_interval=60s;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t?good=u2", "GET /t?good=u2", "GET /t?good=u1", "GET /t?good=u1"]
--- error_code eval
[503, 200, 200, 503, 200]
--- response_headers eval
[map { "X-Path: $_" } 'u1 -> u2', 'u1 -> u2', 'u2', 'u2', 'u1']



=== one blacklisted upstream alone is asked nevertheless
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1 blacklist_interval=60s; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- error_code eval
[503, 503, 503]
--- response_body eval
["u1\n", "u1\n", "u1\n"]
--- grep_error_log eval
qr/whitelisting them/
--- grep_error_log_out
whitelisting them
whitelisting them



=== a POST that is not retried marks its upstream
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream ~^u blacklist_interval=60s;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["POST /t\nbody", "GET /t", "POST /t\nbody"]
--- error_code eval
[503, 200, 200]
--- response_body eval
["u1\n", "u2\n", "u2\n"]



=== a walk that ends by its limit of tries marks the last upstream
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream ~^u blacklist_interval=60s;
    order per_request; next_upstream_statuses 5xx; next_upstream_tries 1;
}
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[503, 200]
--- response_body eval
["u1\n", "u2\n"]



=== an interception does not mark: the location's answer is nobody's failure
--- http_config
backend u1 { return 404 "u1\n"; }
backend b1 { return 200 "b1\n"; }
upstrand a {
    upstream u1 blacklist_interval=60s; upstream b1 backup;
    next_upstream_statuses 5xx; intercept_statuses 4xx /f;
}
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; add_header X-Path $upstrand_path always; return 503 "instead\n"; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[503, 503]
--- response_headers_like eval
["X-Path: u1 -> <intercepted>", "X-Path: u1 -> <intercepted>"]
--- response_body eval
["instead\n", "instead\n"]



=== upstrands have marks of their own
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1 blacklist_interval=60s; upstream u2; order per_request; next_upstream_statuses 5xx; }
upstrand b { upstream u1 blacklist_interval=60s; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
add_header X-Path $upstrand_path;
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
--- request eval
["GET /a", "GET /a", "GET /b", "GET /b"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u2", "X-Path: u1 -> u2", "X-Path: u2"]



=== upstrands of one zone have marks of their own
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { zone z 256k; upstream u1 blacklist_interval=60s; upstream u2; order per_request; next_upstream_statuses 5xx; }
upstrand b { zone z; upstream u1 blacklist_interval=60s; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
add_header X-Path $upstrand_path;
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
--- request eval
["GET /a", "GET /a", "GET /b", "GET /b"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u2", "X-Path: u1 -> u2", "X-Path: u2"]



=== after the interval the upstream is asked again, and a good answer clears the mark
--- http_config
backend u1 { if ($arg_bad) { return 503 "u1\n"; } return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1 blacklist_interval=300ms; upstream u2;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t?bad=1", "GET /t",
 [{ value => "GET ", delay_before => 0 }, { value => "/t", delay_before => 0.5 }], "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u2", "X-Path: u1", "X-Path: u1"]



=== a probe that fails arms the mark anew
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1 blacklist_interval=300ms; upstream u2;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t",
 [{ value => "GET ", delay_before => 0 }, { value => "/t", delay_before => 0.5 }], "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u1 -> u2", "X-Path: u2"]



=== while one request probes the others still pass the upstream by
--- http_config
backend u1 {
    location /bad { return 503 "u1\n"; }
    location /slow { proxy_read_timeout 600ms; proxy_pass http://127.0.0.1:$TEST_NGINX_SILENT_PORT; error_page 504 =200 /late; }
    location /late { internal; return 200 "late\n"; }
}
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1 blacklist_interval=200ms; upstream u2;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /bad { proxy_pass http://$upstrand_a; }
location /slow { proxy_pass http://$upstrand_a; }
location /both { ssi on; root html; }
--- user_files
>>> both/page.html
<!--# include virtual="/slow/1" --><!--# include virtual="/slow/2" --><!--# include virtual="/slow/3" -->
--- request eval
["GET /bad",
 [{ value => "GET ", delay_before => 0 }, { value => "/both/page.html", delay_before => 0.4 }],
 "GET /asked.log"]
--- response_body_like eval
["u2\n", "late\nu2\nu2\n", "\\Au1\nu2\nu2\nu2\nu1\n\\z"]



=== a cached failure moves the walk on without a mark
--- http_config
proxy_cache_path $TEST_NGINX_HTML_DIR/cache keys_zone=c:1m;
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1 blacklist_interval=60s; upstream u2;
    order per_request; next_upstream_statuses 5xx;
}
--- config
proxy_cache c;
proxy_cache_valid any 1m;
proxy_cache_key $proxy_host;
location /plain { proxy_pass http://u1; }
location /t {
    add_header X-Path $upstrand_path;
    add_header X-Cache $upstrand_cache_status;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /plain", "GET /t", "GET /t", "GET /asked.log"]
--- error_code eval
[503, 200, 200, 200]
--- response_headers eval
["! X-Path", "X-Path: u1 -> u2\nX-Cache: (u1) HIT (u2) MISS", "X-Path: u1 -> u2\nX-Cache: (u1) HIT (u2) HIT", "! X-Path"]
--- response_body eval
["u1\n", "u2\n", "u2\n", "u1\nu2\n"]



=== the singlets of one upstream are marked each for itself
--- http_config
backend x { return 503 "x\n"; }
backend y { return 200 "y\n"; }
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets _s_ nobackup;
}
upstrand a {
    upstream ~^h_s_ blacklist_interval=60s;
    order per_request;
    next_upstream_statuses error timeout non_idempotent 5xx;
    intercept_statuses 5xx /f;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
location /f { internal; return 503 "instead\n"; }
--- request eval
["GET /t", "GET /t", "GET /asked.log"]
--- response_headers eval
["X-Path: h_s_1 -> h_s_2", "X-Path: h_s_2", "! X-Path"]
--- response_body eval
["y\n", "y\n", "x\ny\ny\n"]
