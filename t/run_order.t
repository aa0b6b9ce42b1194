# The order in which a walk visits the upstreams: turns, random starts, tiers.

use strict;
use warnings;

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
run_tests();

__DATA__

=== requests take turns, and the turn moves once per request, not once per upstream visited
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
backend u3 { return 200 "u3\n"; }
upstrand a { upstream u1; upstream u2; upstream u3; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 5]
--- response_headers eval
[map { "X-Path: $_" } 'u1 -> u2', 'u2', 'u3', 'u1 -> u2', 'u2']
--- response_body eval
["u2\n", "u2\n", "u3\n", "u2\n", "u2\n"]



=== a walk wraps around from where it started, and visits nobody twice
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
backend u3 { return 503 "u3\n"; }
upstrand a { upstream u1; upstream u2; upstream u3; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 3]
--- error_code eval
[(503) x 3]
--- response_headers eval
[map { "X-Path: $_" } 'u1 -> u2 -> u3', 'u2 -> u3 -> u1', 'u3 -> u1 -> u2']
--- response_body eval
["u3\n", "u1\n", "u2\n"]



=== per_request: each request begins with the first upstream
--- http_config
backend u1 { return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 3]
--- response_body eval
["u1\n", "u1\n", "u1\n"]



=== backups are asked after the others, and take turns as well
--- http_config
backend u1 { return 503 "u1\n"; }
backend b1 { return 200 "b1\n"; }
backend b2 { return 200 "b2\n"; }
upstrand a {
    upstream b1 backup; upstream u1; upstream b2 backup;
    next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 4]
--- response_headers eval
[map { "X-Path: u1 -> $_" } qw(b1 b2 b1 b2)]



=== a backup has its turn only when backups are asked
--- http_config
backend u1 { if ($arg_bad) { return 503 "u1\n"; } return 200 "u1\n"; }
backend b1 { return 200 "b1\n"; }
backend b2 { return 200 "b2\n"; }
upstrand a {
    upstream u1; upstream b1 backup; upstream b2 backup;
    next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t?bad=1", "GET /t", "GET /t", "GET /t?bad=1", "GET /t", "GET /t?bad=1"]
--- response_headers eval
[map { "X-Path: $_" } 'u1 -> b1', 'u1', 'u1', 'u1 -> b2', 'u1', 'u1 -> b1']



=== nothing but backups: they take turns, and one follows the other
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1 backup; upstream u2 backup; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 3]
--- response_headers eval
[map { "X-Path: $_" } 'u1 -> u2', 'u2', 'u1 -> u2']



=== tiers are visited by their numbers; a normal member is tier 0, a backup tier 1
--- http_config
backend a0 { return 503 "a0\n"; }
backend b1 { return 503 "b1\n"; }
backend c1 { return 503 "c1\n"; }
backend d7 { return 200 "d7\n"; }
upstrand a {
    upstream d7 tier=7; upstream b1 backup; upstream c1 tier=1; upstream a0 tier=0;
    order per_request; next_upstream_statuses 5xx;
}
upstrand gap {
    upstream d7 tier=900; upstream c1 tier=3;
    next_upstream_statuses 5xx;
}
--- config
location /a { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
location /gap { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_gap; }
--- request eval
["GET /a", "GET /gap", "GET /gap"]
--- response_headers eval
[map { "X-Path: $_" } 'a0 -> b1 -> c1 -> d7', 'c1 -> d7', 'c1 -> d7']



=== a later tier takes turns of its own
--- http_config
backend a { return 503 "a\n"; }
backend b { return 200 "b\n"; }
backend c { return 200 "c\n"; }
upstrand s { upstream a; upstream b tier=2; upstream c tier=2; next_upstream_statuses 5xx; }
upstrand p { upstream a; upstream b tier=2; upstream c tier=2; next_upstream_statuses 5xx; order per_request; }
--- config
location /s { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_s; }
location /p { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_p; }
--- request eval
["GET /s", "GET /s", "GET /s", "GET /p", "GET /p"]
--- response_headers eval
[map { "X-Path: $_" } 'a -> b', 'a -> c', 'a -> b', 'a -> b', 'a -> b']



=== a regex takes the upstreams above it in the order of their declaration
--- http_config
backend m2 { return 503 "m2\n"; }
backend m1 { return 503 "m1\n"; }
backend x3 { return 503 "x3\n"; }
upstrand a { upstream ~^m\d$; order per_request; next_upstream_statuses 5xx; }
backend m9 { return 503 "m9\n"; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- error_code: 503
--- response_headers
X-Path: m2 -> m1



=== a member named or matched again keeps its first place
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
backend u3 { return 503 "u3\n"; }
upstrand a {
    upstream u2; upstream ~^u; upstream u1; upstream ~. backup;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- error_code: 503
--- response_headers
X-Path: u2 -> u1 -> u3



=== a member that is its own backup is visited once
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; upstream u1 backup; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /asked.log"]
--- error_code eval
[503, 200]
--- response_headers eval
["X-Path: u1", "! X-Path"]
--- response_body eval
["u1\n", "u1\n"]



=== one upstream alone: its answer is the answer
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /asked.log"]
--- error_code eval
[503, 503, 200]
--- response_body eval
["u1\n", "u1\n", "u1\nu1\n"]



=== start_random: an unknown start, then turns
--- http_config
backend u1 { return 200 "1\n"; }
backend u2 { return 200 "2\n"; }
backend u3 { return 200 "3\n"; }
upstrand a { upstream ~^u; order start_random; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 6, "GET /asked.log"]
--- response_body_like eval
[(qr/\A[123]\n\z/) x 6, qr/\A(?:u1\nu2\nu3\n|u2\nu3\nu1\n|u3\nu1\nu2\n){2}\z/]



=== start_random: from the random start on, the whole group is walked
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
backend u3 { return 200 "u3\n"; }
upstrand a { upstream ~^u; order start_random; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 3, "GET /asked.log"]
--- response_body eval
[("u3\n") x 3, qr/\A(?=(?s:.*)u1\nu2\nu3\n)(?:u1\nu2\nu3\n|u2\nu3\n|u3\n){3}\z/]



=== start_random per_request: every request draws anew
--- http_config
backend u1 { return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order start_random per_request; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 50, "GET /asked.log"]
--- response_body_like eval
[(qr/\Au[12]\n\z/) x 50, qr/\A(?=(?s:.*)u1\nu1\n)(?=(?s:.*)u2\nu2\n)(?=(?s:.*)u1\nu2\n)(?:u[12]\n){50}\z/]



=== start_random per_request: backups are drawn, too
--- http_config
backend u1 { return 503 "u1\n"; }
backend b1 { return 200 "b1\n"; }
backend b2 { return 200 "b2\n"; }
upstrand a {
    upstream u1; upstream b1 backup; upstream b2 backup;
    order per_request start_random; next_upstream_statuses 5xx;
}
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 50, "GET /asked.log"]
--- response_body_like eval
[(qr/\Ab[12]\n\z/) x 50, qr/\A(?=(?s:.*)b1\n)(?=(?s:.*)b2\n)(?:u1\nb[12]\n){50}\z/]



=== upstrands with the same members have turns of their own
--- http_config
backend u1 { return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream ~^u; }
upstrand b { upstream ~^u; }
--- config
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
--- request eval
["GET /a", "GET /b", "GET /a", "GET /b"]
--- response_body eval
["u1\n", "u1\n", "u2\n", "u2\n"]



=== upstrands of one zone have turns of their own
--- http_config
backend u1 { return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { zone z 128k; upstream ~^u; }
upstrand b { zone z; upstream ~^u; }
--- config
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
--- request eval
["GET /a", "GET /b", "GET /a", "GET /b"]
--- response_body eval
["u1\n", "u1\n", "u2\n", "u2\n"]



=== nginx asks the servers of one upstream by its own rules first
--- http_config
backend x { return 503 "x\n"; }
backend y { return 503 "y\n"; }
backend u2 { return 200 "u2\n"; }
upstream u1 {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
}
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
location /one { proxy_pass http://$upstrand_a; }
location /all {
    proxy_next_upstream http_503;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /one", "GET /asked.log", "GET /all", "GET /asked.log"]
--- response_body eval
["u2\n", "x\nu2\n", "u2\n", "x\nu2\ny\nx\nu2\n"]



=== proxy_next_upstream off: one server of an upstream, then the next upstream
--- http_config
backend y { return 200 "y\n"; }
backend u2 { return 200 "u2\n"; }
upstream u1 {
    server 127.0.0.1:1;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
}
upstrand a { upstream u1; upstream u2; order per_request; }
--- config
location /t {
    proxy_next_upstream off;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /asked.log"]
--- response_body eval
["u2\n", "u2\n"]



=== proxy_next_upstream_tries counts within each upstream
--- http_config
backend x { return 200 "x\n"; }
backend u2 { return 200 "u2\n"; }
upstream u1 {
    server 127.0.0.1:1;
    server 127.0.0.1:2;
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
}
upstream v1 {
    server 127.0.0.1:1;
    server unix:$TEST_NGINX_HTML_DIR/u2.sock;
}
upstrand a { upstream u1; upstream v1; order per_request; }
--- config
location /t {
    add_header X-Status $upstrand_status;
    proxy_next_upstream_tries 2;
    proxy_pass http://$upstrand_a;
}
--- request
GET /t
--- response_headers
X-Status: (u1) 502, 502 (v1) 502, 200
--- response_body
u2



=== every balancing method works in a member
--- http_config
backend x { return 503 "x\n"; }
backend y { return 503 "y\n"; }
backend z { return 200 "z\n"; }
upstream u1 {
    zone z1 64k; least_conn;
    server unix:$TEST_NGINX_HTML_DIR/x.sock; server unix:$TEST_NGINX_HTML_DIR/y.sock;
    keepalive 2;
}
upstream u2 {
    hash $uri consistent;
    server unix:$TEST_NGINX_HTML_DIR/x.sock; server unix:$TEST_NGINX_HTML_DIR/y.sock;
}
upstream u3 {
    ip_hash;
    server unix:$TEST_NGINX_HTML_DIR/x.sock; server unix:$TEST_NGINX_HTML_DIR/y.sock;
}
upstream u4 {
    zone z4 64k; random two;
    server unix:$TEST_NGINX_HTML_DIR/z.sock; server unix:$TEST_NGINX_HTML_DIR/z.sock;
}
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t/1", "GET /t/2", "GET /t/3"]
--- response_headers eval
[("X-Path: u1 -> u2 -> u3 -> u4") x 3]
--- response_body eval
["z\n", "z\n", "z\n"]



=== an upstream whose servers are all held for failed is listed, and left at once
--- http_config
backend u2 { return 200 "u2\n"; }
upstream u1 {
    server 127.0.0.1:1 fail_timeout=60s;
    server 127.0.0.1:2 fail_timeout=60s;
}
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses error; }
--- config
location /t {
    add_header X-Addr $upstrand_addr;
    add_header X-Status $upstrand_status;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
my $u2 = "unix:$ENV{TEST_NGINX_HTML_DIR}/u2.sock";
["X-Addr: (u1) 127.0.0.1:1, 127.0.0.1:2 (u2) $u2\nX-Status: (u1) 502, 502 (u2) 200",
 "X-Addr: (u1) u1 (u2) $u2\nX-Status: (u1) 502 (u2) 200"]
--- response_body eval
["u2\n", "u2\n"]



=== reading the variable elsewhere shows who would be first, and takes no turn
--- http_config
backend u1 { return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; }
--- config
location /look { return 200 "$upstrand_a\n"; }
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /look", "GET /look", "GET /t", "GET /look", "GET /t", "GET /asked.log"]
--- response_body eval
["u1\n", "u1\n", "u1\n", "u2\n", "u2\n", "u1\nu2\n"]
