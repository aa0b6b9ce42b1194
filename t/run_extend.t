# extend_single_peers at run time: a lone server is held for failed like any
# other, and the peer added for this is never asked.

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

=== without it a lone server is tried for every request
--- http_config
upstream u { server 127.0.0.1:1; }
--- config
location /t { add_header X-Addr $upstream_addr always; proxy_pass http://u; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- error_code eval
[502, 502, 502]
--- response_headers eval
[("X-Addr: 127.0.0.1:1") x 3]



=== with it a lone server that failed is left alone
--- http_config
upstream u { server 127.0.0.1:1; extend_single_peers; }
--- config
location /t { add_header X-Addr $upstream_addr always; proxy_pass http://u; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- error_code eval
[502, 502, 502]
--- response_headers eval
["X-Addr: 127.0.0.1:1", "X-Addr: u", "X-Addr: u"]
--- grep_error_log eval
qr/no live upstreams|connect\(\) failed/
--- grep_error_log_out
connect() failed
no live upstreams
no live upstreams



=== max_fails is respected
--- http_config
upstream u { server 127.0.0.1:1 max_fails=2; extend_single_peers; }
--- config
location /t { add_header X-Addr $upstream_addr always; proxy_pass http://u; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- error_code eval
[502, 502, 502]
--- response_headers eval
["X-Addr: 127.0.0.1:1", "X-Addr: 127.0.0.1:1", "X-Addr: u"]



=== a lone server that works is the only one asked
--- http_config
backend x { return 200 "x\n"; }
upstream u { server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; }
--- config
location /t { add_header X-Status $upstream_status; proxy_pass http://u; }
--- request eval
[("GET /t") x 5]
--- response_headers eval
[("X-Status: 200") x 5]
--- response_body eval
[("x\n") x 5]



=== two servers need no help
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream u {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    extend_single_peers;
}
--- config
location /t { add_header X-Status $upstream_status; proxy_pass http://u; }
--- request eval
[("GET /t") x 4]
--- response_headers eval
[("X-Status: 200") x 4]
--- response_body eval
["x\n", "y\n", "x\n", "y\n"]



=== one main and one backup server, both dead: the first request tries both, later ones none
--- http_config
upstream u {
    server 127.0.0.1:1;
    server 127.0.0.1:2 backup;
    extend_single_peers;
}
--- config
location /t { add_header X-Addr $upstream_addr always; proxy_pass http://u; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- error_code eval
[502, 502, 502]
--- response_headers_like eval
["X-Addr: 127\\.0\\.0\\.1:1, 127\\.0\\.0\\.1:2.*", "X-Addr: u", "X-Addr: u"]



=== every balancing method holds the lone server for failed
--- http_config
upstream u1 { ip_hash; server 127.0.0.1:1; extend_single_peers; }
upstream u2 { least_conn; server 127.0.0.1:1; extend_single_peers; }
upstream u3 { hash $uri; server 127.0.0.1:1; extend_single_peers; }
upstream u4 { hash $uri consistent; server 127.0.0.1:1; extend_single_peers; }
upstream u5 { random; server 127.0.0.1:1; extend_single_peers; }
upstream u6 { zone u6 64k; server 127.0.0.1:1; extend_single_peers; }
upstream u7 { zone u7 64k; random two; server 127.0.0.1:1; extend_single_peers; }
--- config
location ~ ^/t(\d) {
    add_header X-Addr $upstream_addr always;
    proxy_pass http://u$1;
}
--- request eval
[map { ("GET /t$_") x 2 } 1 .. 7]
--- error_code eval
[(502) x 14]
--- response_headers eval
[map { ("X-Addr: 127.0.0.1:1", "X-Addr: u$_") } 1 .. 7]



=== no balancing method ever takes the added peer while the server works
--- http_config
backend x { return 200 "x\n"; }
upstream u1 { ip_hash; server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; }
upstream u2 { least_conn; server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; }
upstream u3 { hash $request_uri; server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; }
upstream u4 { hash $request_uri consistent; server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; }
upstream u5 { random; server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; }
upstream u6 { zone u6 64k; server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; }
upstream u7 { zone u7 64k; random two; server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; }
--- config
location ~ ^/t(\d) {
    add_header X-Status $upstream_status;
    proxy_pass http://u$1;
}
--- request eval
[map { my $k = $_; map { "GET /t$k?$_" } 1 .. 6 } 1 .. 7]
--- response_headers eval
[("X-Status: 200") x 42]
--- response_body eval
[("x\n") x 42]



=== a method set below it takes its effect away
--- http_config
upstream u { server 127.0.0.1:1; extend_single_peers; least_conn; }
--- config
location /t { add_header X-Addr $upstream_addr always; proxy_pass http://u; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Addr: 127.0.0.1:1", "X-Addr: 127.0.0.1:1"]



=== keepalive works on either side of it
--- http_config
backend x { return 200 "$connection_requests\n"; }
upstream u1 { server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; keepalive 2; }
upstream u2 { server unix:$TEST_NGINX_HTML_DIR/x.sock; keepalive 2; extend_single_peers; }
--- config
proxy_http_version 1.1;
proxy_set_header Connection "";
location /1 { proxy_pass http://u1; }
location /2 { proxy_pass http://u2; }
--- request eval
["GET /1", "GET /1", "GET /2", "GET /2"]
--- response_body eval
["1\n", "2\n", "1\n", "2\n"]



=== its place among the server lines does not matter
--- http_config
upstream u { extend_single_peers; server 127.0.0.1:1; }
--- config
location /t { add_header X-Addr $upstream_addr always; proxy_pass http://u; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Addr: 127.0.0.1:1", "X-Addr: u"]



=== singlets of an extended host are not extended
--- http_config
upstream h {
    server 127.0.0.1:1;
    extend_single_peers;
    combine_server_singlets;
}
--- config
location /h { add_header X-Addr $upstream_addr always; proxy_pass http://h; }
location /1 { add_header X-Addr $upstream_addr always; proxy_pass http://h1; }
--- request eval
["GET /h", "GET /h", "GET /1", "GET /1"]
--- error_code eval
[502, 502, 502, 502]
--- response_headers eval
["X-Addr: 127.0.0.1:1", "X-Addr: h", "X-Addr: 127.0.0.1:1", "X-Addr: 127.0.0.1:1"]



=== in a walk an upstream held for failed is passed at once, and is in the log
--- http_config
upstream u1 { server 127.0.0.1:1; extend_single_peers; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses error; }
--- config
location /t {
    add_header X-Path $upstrand_path;
    add_header X-Addr $upstrand_addr;
    add_header X-Status $upstrand_status;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
my $u2 = "unix:$ENV{TEST_NGINX_HTML_DIR}/u2.sock";
["X-Path: u1 -> u2\nX-Addr: (u1) 127.0.0.1:1 (u2) $u2\nX-Status: (u1) 502 (u2) 200",
 "X-Path: u1 -> u2\nX-Addr: (u1) u1 (u2) $u2\nX-Status: (u1) 502 (u2) 200"]
--- response_body eval
["u2\n", "u2\n"]



=== statuses of proxy_next_upstream count as failures of a lone server
--- http_config
backend x { return 503 "x\n"; }
upstream u1 { server unix:$TEST_NGINX_HTML_DIR/x.sock; extend_single_peers; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses error 5xx; }
--- config
location /t {
    add_header X-Path $upstrand_path;
    proxy_next_upstream error http_503;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /t", "GET /t", "GET /asked.log"]
--- response_headers eval
[("X-Path: u1 -> u2") x 3, "! X-Path"]
--- response_body eval
["u2\n", "u2\n", "u2\n", "x\nu2\nu2\nu2\n"]
