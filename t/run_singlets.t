# combine_server_singlets at run time: whom a singlet asks, and what it keeps of
# its host.

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

=== a singlet asks its own server
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets;
}
--- config
location /1 { proxy_pass http://h1; }
location /2 { proxy_pass http://h2; }
--- request eval
["GET /1", "GET /1", "GET /2", "GET /2"]
--- response_body eval
["x\n", "x\n", "y\n", "y\n"]



=== when its server is gone, the others stand in
--- http_config
backend y { return 200 "y\n"; }
upstream h {
    server 127.0.0.1:1;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets;
}
--- config
location /t { proxy_pass http://h1; }
--- request eval
["GET /t", "GET /t"]
--- response_body eval
["y\n", "y\n"]
--- error_log
connect() failed



=== with nobackup nobody stands in
--- http_config
backend y { return 200 "y\n"; }
upstream h {
    server 127.0.0.1:1;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets _s_ nobackup;
}
--- config
location /1 { proxy_pass http://h_s_1; }
location /2 { proxy_pass http://h_s_2; }
--- request eval
["GET /1", "GET /2", "GET /asked.log"]
--- error_code eval
[502, 200, 200]
--- response_body eval
[qr/502 Bad Gateway/, "y\n", "y\n"]



=== a backup server of the host is the active one of its singlet
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock backup;
    combine_server_singlets;
    combine_server_singlets _n_ nobackup;
}
--- config
location /2 { proxy_pass http://h2; }
location /n { proxy_pass http://h_n_2; }
--- request eval
["GET /2", "GET /2", "GET /n", "GET /n"]
--- response_body eval
["y\n", "y\n", "y\n", "y\n"]



=== a server that is down stays down
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/x.sock down;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets;
    combine_server_singlets _n_ nobackup;
}
--- config
location /1 { proxy_pass http://h1; }
location /n { proxy_pass http://h_n_1; }
--- request eval
["GET /1", "GET /n", "GET /asked.log"]
--- error_code eval
[200, 502, 200]
--- response_body eval
["y\n", qr/502 Bad Gateway/, "y\n"]



=== numbers are padded to the width, and may be longer
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets _w_ 2;
    combine_server_singlets _x_ 10;
    combine_server_singlets _0_ 0;
    combine_server_singlets "" 3;
}
--- config
location ~ ^/t/(.*) { proxy_pass http://h$1; }
--- request eval
[map { "GET /t/$_" } qw(_w_01 _w_02 _x_0000000002 _0_1 002)]
--- response_body eval
["x\n", "y\n", "y\n", "x\n", "y\n"]



=== byname takes the text of the server, with _ for the colons
--- http_config
upstream h {
    server 127.0.0.1:$TEST_NGINX_RAND_PORT_1;
    server 127.0.0.1:$TEST_NGINX_RAND_PORT_2;
    combine_server_singlets _ byname nobackup;
    combine_server_singlets byname nobackup;
}
server { listen 127.0.0.1:$TEST_NGINX_RAND_PORT_1; return 200 "x\n"; }
server { listen 127.0.0.1:$TEST_NGINX_RAND_PORT_2; return 200 "y\n"; }
upstrand a { upstream h_127.0.0.1_$TEST_NGINX_RAND_PORT_2; }
--- config
location /x { set $n h127.0.0.1_$TEST_NGINX_RAND_PORT_1; proxy_pass http://$n; }
location /y { set $n h127.0.0.1_$TEST_NGINX_RAND_PORT_2; proxy_pass http://$n; }
location /a { proxy_pass http://$upstrand_a; }
--- request eval
["GET /x", "GET /y", "GET /a", "GET /a"]
--- response_body eval
["x\n", "y\n", "y\n", "y\n"]



=== a name with several addresses makes one singlet
--- http_config
backend y { return 200 "y\n"; }
upstream h {
    server localhost:$TEST_NGINX_RAND_PORT_1;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets _s_ nobackup;
}
server { listen 127.0.0.1:$TEST_NGINX_RAND_PORT_1; return 200 "x\n"; }
upstrand a { upstream ~^h_s_; next_upstream_statuses error; }
--- config
location /1 { proxy_pass http://h_s_1; }
location /2 { proxy_pass http://h_s_2; }
location /a { add_header X-Up $upstrand_upstream; proxy_pass http://$upstrand_a; }
--- request eval
["GET /1", "GET /2", "GET /a", "GET /a", "GET /a"]
--- response_headers eval
["! X-Up", "! X-Up", "X-Up: h_s_1", "X-Up: h_s_2", "X-Up: h_s_1"]
--- response_body eval
["x\n", "y\n", "x\n", "y\n", "x\n"]



=== a server below the line is in no singlet
--- http_config
backend y { return 200 "y\n"; }
upstream h {
    server 127.0.0.1:1;
    combine_server_singlets;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
}
--- config
location /h { proxy_pass http://h; }
location /1 { proxy_pass http://h1; }
--- request eval
["GET /h", "GET /1"]
--- error_code eval
[200, 502]
--- response_body eval
["y\n", qr/502 Bad Gateway/]



=== keepalive below the line holds for the singlets
--- http_config
backend x { return 200 "$connection_requests\n"; }
backend y { return 200 "y\n"; }
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets;
    keepalive 4;
}
--- config
proxy_http_version 1.1;
proxy_set_header Connection "";
location /t { proxy_pass http://h1; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- response_body eval
["1\n", "2\n", "3\n"]



=== keepalive above the line, with its limits, holds for the singlets
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "$connection_requests\n"; }
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    keepalive 4;
    keepalive_requests 2;
    combine_server_singlets _s_ nobackup;
}
--- config
proxy_http_version 1.1;
proxy_set_header Connection "";
location /t { proxy_pass http://h_s_2; }
--- request eval
["GET /t", "GET /t", "GET /t", "GET /t", "GET /t"]
--- response_body eval
["1\n", "2\n", "1\n", "2\n", "1\n"]



=== a failed singlet's connection is kept for the next request
--- http_config
backend x { add_header X-N $connection_requests always; return 503 "x\n"; }
backend y { return 200 "$connection_requests\n"; }
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    keepalive 4;
    combine_server_singlets _s_ nobackup;
}
upstrand a { upstream ~^h_s_; order per_request; next_upstream_statuses 5xx; }
--- config
proxy_http_version 1.1;
proxy_set_header Connection "";
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
location /x { proxy_pass http://h_s_1; }
--- request eval
["GET /t", "GET /t", "GET /t", "GET /x"]
--- error_code eval
[200, 200, 200, 503]
--- response_headers eval
[("X-Path: h_s_1 -> h_s_2") x 3, "X-N: 4"]
--- response_body eval
["1\n", "2\n", "3\n", "x\n"]



=== the host's least_conn rules the servers that stand in
--- http_config
backend y { return 200 "y\n"; }
backend z { return 200 "z\n"; }
upstream h {
    least_conn;
    server 127.0.0.1:1;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    server unix:$TEST_NGINX_HTML_DIR/z.sock;
    combine_server_singlets;
}
--- config
location /t { proxy_pass http://h1; }
--- request eval
[("GET /t") x 4]
--- response_body eval
["y\n", "z\n", "y\n", "z\n"]



=== a host with hash has singlets that ask their own server
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream h {
    hash $request_uri;
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets;
    combine_server_singlets _n_ nobackup;
}
--- config
location /1 { proxy_pass http://h1; }
location /2 { proxy_pass http://h2; }
location /n { proxy_pass http://h_n_2; }
--- request eval
[map { "GET $_" } qw(/1 /1/a /1/b /2 /2/a /2/b /n /n/a /n/b)]
--- response_body eval
[("x\n") x 3, ("y\n") x 6]



=== a host with a zone has singlets
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream h {
    zone h 128k;
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets _s_ 2 nobackup;
}
--- config
location /1 { proxy_pass http://h_s_01; }
location /2 { proxy_pass http://h_s_02; }
--- request eval
["GET /1", "GET /1", "GET /2"]
--- response_body eval
["x\n", "x\n", "y\n"]



=== a sticky choice: the cookie names a singlet, and the others stand in for a dead one
--- http_config
backend y {
    add_header Set-Cookie "route=2; path=/";
    return 200 "y\n";
}
upstream h {
    server 127.0.0.1:1;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets;
}
--- config
location /t { proxy_pass http://h$cookie_route; }
--- request
GET /t
--- more_headers
Cookie: route=1
--- response_headers
Set-Cookie: route=2; path=/
--- response_body
y
--- error_log
connect() failed
