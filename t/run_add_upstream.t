# add_upstream at run time: which servers take part, and with which weight.

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

=== the copied servers take turns with the host's own
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
backend z { return 200 "z\n"; }
upstream u1 {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
}
upstream all {
    server unix:$TEST_NGINX_HTML_DIR/z.sock;
    add_upstream u1;
}
--- config
location /t { proxy_pass http://all; }
--- request eval
[("GET /t") x 6, "GET /asked.log"]
--- response_body eval
[(qr/^[xyz]$/) x 6, qr/\A(?=(?:.*\n)*x\n(?:.*\n)*x\n)(?=(?:.*\n)*y\n(?:.*\n)*y\n)(?=(?:.*\n)*z\n(?:.*\n)*z\n)(?:.\n){6}\z/]



=== neither weight nor backup of a copy gets back to its source
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream u1 {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
}
upstream five { add_upstream u1 weight=5; }
upstream standby {
    server 127.0.0.1:1 max_fails=0;
    add_upstream u1 backup;
}
--- config
location /t { proxy_pass http://u1; }
--- request eval
[("GET /t") x 4]
--- response_body eval
["x\n", "y\n", "x\n", "y\n"]



=== weight=N multiplies the weights that the servers have
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream u1 { server unix:$TEST_NGINX_HTML_DIR/x.sock weight=2; }
upstream all {
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    add_upstream u1 weight=3;
}
--- config
location /t { proxy_pass http://all; }
--- request eval
[("GET /t") x 7, "GET /asked.log"]
--- response_body eval
[(qr/^[xy]$/) x 7, qr/\A(?:x\n)*y\n(?:x\n)*\z/]



=== backup asks the copies only when the host's own servers are gone
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream u1 { server unix:$TEST_NGINX_HTML_DIR/x.sock; }
upstream live {
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    add_upstream u1 backup;
}
upstream gone {
    server 127.0.0.1:1;
    add_upstream u1 backup;
}
--- config
location /live { proxy_pass http://live; }
location /gone { proxy_pass http://gone; }
--- request eval
["GET /live", "GET /live", "GET /gone", "GET /gone"]
--- response_body eval
["y\n", "y\n", "x\n", "x\n"]



=== a backup server of the source is a backup server of the copy
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream u1 {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock backup;
}
upstream all { add_upstream u1; }
--- config
location /t { proxy_pass http://all; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- response_body eval
["x\n", "x\n", "x\n"]



=== down and weight are copied
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
backend z { return 200 "z\n"; }
upstream u1 {
    server unix:$TEST_NGINX_HTML_DIR/x.sock weight=3;
    server unix:$TEST_NGINX_HTML_DIR/y.sock down;
    server unix:$TEST_NGINX_HTML_DIR/z.sock;
}
upstream all { add_upstream u1; }
--- config
location /t { proxy_pass http://all; }
--- request eval
[("GET /t") x 4, "GET /asked.log"]
--- response_body eval
[(qr/^[xz]$/) x 4, qr/\A(?:x\n)*z\n(?:x\n)*\z/]



=== max_fails=0 is copied: the dead server is tried again and again
--- http_config
backend y { return 200 "y\n"; }
upstream u1 { server 127.0.0.1:1 max_fails=0; }
upstream all {
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    add_upstream u1;
}
log_format tried '$upstream_status';
--- config
location /t {
    access_log $TEST_NGINX_HTML_DIR/lines.log tried;
    proxy_pass http://all;
}
--- request eval
[("GET /t") x 8, "GET /lines.log"]
--- response_body eval
[("y\n") x 8, qr/\A(?:200\n)*502, 200\n(?:200\n)*502, 200\n(?:200\n)*502, 200\n(?:.*\n)*\z/]



=== the host's method, zone and keepalive rule the copies
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream u1 {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock weight=2;
}
upstream all {
    zone z 128k;
    hash $arg_k;
    add_upstream u1;
    keepalive 2;
}
--- config
location /t { proxy_pass http://all; }
--- request eval
[map { ("GET /t?k=$_") x 2 } 1 .. 6]
--- response_body_like eval
[(qr/\A[xy]\n\z/) x 12]
--- response_body_filters eval
# the same key twice in a row has to give the same server
do { my ($n, $last) = (0, ''); sub {
    my $got = shift;
    my $same = $n++ % 2 == 0 || $got eq $last;
    $last = $got;
    $same ? $got : "$got, but was $last";
} }



=== of a source named twice each server counts twice
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream u1 { server unix:$TEST_NGINX_HTML_DIR/x.sock; }
upstream all {
    add_upstream u1;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    add_upstream u1;
}
--- config
location /t { proxy_pass http://all; }
--- request eval
[("GET /t") x 6, "GET /asked.log"]
--- response_body eval
[(qr/^[xy]$/) x 6, qr/\A(?:(?:x\n)*y\n){2}(?:x\n)*\z/]



=== a combined upstream and a singlet can be sources
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream u1 {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
    combine_server_singlets _s_ nobackup;
}
upstream first { add_upstream u1_s_1; }
upstream again { add_upstream first; }
--- config
location /t { proxy_pass http://again; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- response_body eval
["x\n", "x\n", "x\n"]



=== only servers that stand above are copied
--- http_config
backend x { return 200 "x\n"; }
backend y { return 200 "y\n"; }
upstream half {
    server unix:$TEST_NGINX_HTML_DIR/x.sock;
}
upstream all {
    add_upstream half;
}
upstream later {
    add_upstream half;
    server unix:$TEST_NGINX_HTML_DIR/y.sock;
}
--- config
location /all { proxy_pass http://all; }
location /later { proxy_pass http://later; }
--- request eval
["GET /all", "GET /all", "GET /later", "GET /later"]
--- response_body eval
["x\n", "x\n", "x\n", "y\n"]



=== a combined upstream is a member like any other
--- http_config
backend x { return 503 "x\n"; }
backend y { return 503 "y\n"; }
backend u2 { return 200 "u2\n"; }
upstream all { add_upstream x; add_upstream y; }
upstrand a {
    upstream all; upstream u2;
    order per_request; next_upstream_statuses 5xx;
}
--- config
location /t {
    add_header X-Status $upstrand_status always;
    proxy_next_upstream http_503;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /asked.log"]
--- response_headers eval
["X-Status: (all) 503, 503 (u2) 200", "! X-Status"]
--- response_body eval
["u2\n", "x\ny\nu2\n"]
