# next_upstream_timeout: the time that a walk may take until its answer begins.

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

# A port for --- tcp_listen.

$ENV{TEST_NGINX_TCP_PORT} =
    IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport();

# A port on which connections hang: its queue is full.

my $full = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
    or die "cannot listen: $!";

my @queue = map {
    IO::Socket::INET->new(PeerAddr => '127.0.0.1', Blocking => 0,
                          PeerPort => $full->sockport());
} 1 .. 4;

$ENV{TEST_NGINX_FULL_PORT} = $full->sockport();

# A filter of bodies: what took another time than it should becomes another body.

our $began;

sub began { $began = Time::HiRes::time(); return '' }

sub took {
    my ($min, $max) = @_;

    return sub {
        my $body = shift;
        my $took = Time::HiRes::time() - $began;

        return $took < $min ? "only $took s: $body"
             : $took > $max ? "$took s: $body"
             : $body;
    };
}

add_block_preprocessor(sub { began() });

run_tests();

__DATA__

=== it cuts an upstream that is silent, and asks nobody else
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_timeout 300ms; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- error_code: 504
--- response_headers
X-Path: u1
--- response_body_like: 504 Gateway Time-out
--- response_body_filters eval: ::took(0.28, 1.5)



=== it counts from the first upstream on, and cuts the second
--- http_config
backend u1 { return 503 "u1\n"; }
upstream u2 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u3 { return 200 "u3\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 5xx timeout; next_upstream_timeout 300ms;
}
log_format why '$status $upstrand_path $upstrand_reason';
--- config
location = /t {
    access_log $TEST_NGINX_HTML_DIR/why.log why;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /why.log"]
--- error_code eval
[504, 200]
--- response_body eval
[qr/504 Gateway Time-out/, "504 u1 -> u2 (u1) http_503 (u2) deadline\n"]
--- response_body_filters eval: ::took(0.28, 1.5)



=== the time in all servers of an upstream counts
--- http_config
upstream u1 {
    server 127.0.0.1:$TEST_NGINX_SILENT_PORT;
    server 127.0.0.1:$TEST_NGINX_SILENT_PORT;
    server 127.0.0.1:$TEST_NGINX_SILENT_PORT;
}
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_timeout 500ms; }
--- config
location /t {
    add_header X-Path $upstrand_path always;
    proxy_read_timeout 200ms;
    proxy_pass http://$upstrand_a;
}
--- request
GET /t
--- error_code: 504
--- response_headers
X-Path: u1
--- response_body_like: 504 Gateway Time-out
--- response_body_filters eval: ::took(0.45, 1.5)



=== it cuts a connection that does not come about
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_FULL_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_timeout 300ms; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- error_code: 504
--- response_headers
X-Path: u1
--- response_body_like: 504 Gateway Time-out
--- response_body_filters eval: ::took(0.28, 1.5)



=== it cuts half a header
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_timeout 300ms; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_no_close
--- tcp_reply eval
"HTTP/1.1 200 OK\r\nContent-Le"
--- request
GET /t
--- error_code: 504
--- response_headers
X-Path: u1
--- response_body_like: 504 Gateway Time-out
--- response_body_filters eval: ::took(0.28, 1.5)



=== it cuts the last upstream, too
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
upstrand a { upstream u1; next_upstream_timeout 300ms; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request
GET /t
--- error_code: 504
--- response_body_like: 504 Gateway Time-out
--- response_body_filters eval: ::took(0.28, 1.5)



=== it does not cut a body that has begun
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { limit_rate 1500; root html; }
upstrand a {
    upstream u1; upstream u2; order per_request;
    next_upstream_statuses 5xx; next_upstream_timeout 300ms;
}
--- config
location /on { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
location /off { add_header X-Path $upstrand_path; proxy_buffering off; proxy_pass http://$upstrand_a; }
--- user_files eval
[["on", "x" x 3000], ["off", "x" x 3000]]
--- request eval
["GET /on", "GET /off"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u1 -> u2"]
--- response_body eval
["x" x 3000, "x" x 3000]
--- response_body_filters eval: ::took(0.9, 9)



=== 0 sets no limit, and what ends in time is not touched
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_timeout 0; }
upstrand b { upstream u1; upstream u2; order per_request; next_upstream_timeout 2s; }
upstrand c { upstream u1; upstream u2; order per_request; }
--- config
proxy_read_timeout 150ms;
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
location /c { proxy_pass http://$upstrand_c; }
--- request eval
["GET /a", "GET /b", "GET /c"]
--- response_body eval
["u2\n", "u2\n", "u2\n"]



=== every request has its own time
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_timeout 500ms; }
--- config
location /t { proxy_read_timeout 200ms; proxy_pass http://$upstrand_a; }
--- pipelined_requests eval
[("GET /t") x 4]
--- response_body eval
[("u2\n") x 4]
--- response_body_filters eval: ::took(0.75, 3)



=== a POST is cut as well
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1; upstream u2; order per_request;
    next_upstream_statuses timeout non_idempotent; next_upstream_timeout 300ms;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request
POST /t
body
--- error_code: 504
--- response_headers
X-Path: u1



=== a HEAD that is cut has no body
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
upstrand a { upstream u1; next_upstream_timeout 200ms; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /ok { return 200 "ok\n"; }
--- pipelined_requests eval
["HEAD /t", "HEAD /ok"]
--- error_code eval
[504, 200]



=== after it intercept_statuses may act, and may take its time
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1; upstream u2; order per_request;
    next_upstream_timeout 200ms; intercept_statuses 504 /f;
}
backend f { limit_rate 1000; root html; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; add_header X-Path $upstrand_path; proxy_pass http://f; }
--- user_files eval
[["f", "x" x 2000]]
--- request
GET /t
--- response_headers
X-Path: u1 -> <intercepted>
--- response_body eval
"x" x 2000
--- response_body_filters eval: ::took(1.1, 9)



=== an upstream that was cut is marked when no other one took longer
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1 blacklist_interval=60s; upstream u2; order per_request;
    next_upstream_timeout 200ms;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[504, 200]
--- response_headers eval
["X-Path: u1", "X-Path: u2"]



=== an upstream that was cut is not marked when no timeout is listed
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1 blacklist_interval=60s; upstream u2; order per_request;
    next_upstream_statuses error; next_upstream_timeout 150ms;
}
upstrand b {
    upstream u1 blacklist_interval=60s; upstream u2; order per_request;
    next_upstream_statuses 504; next_upstream_timeout 150ms;
}
--- config
location /a { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
location /b { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_b; }
--- request eval
["GET /a", "GET /a", "GET /b", "GET /b"]
--- error_code eval
[504, 504, 504, 200]
--- response_headers eval
["X-Path: u1", "X-Path: u1", "X-Path: u1", "X-Path: u2"]



=== an upstream that merely came late is not marked
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u2 {
    location / { proxy_read_timeout 250ms; proxy_pass http://127.0.0.1:$TEST_NGINX_SILENT_PORT; error_page 504 =200 /late; }
    location /late { internal; return 200 "late\n"; }
}
upstrand a {
    upstream u1 blacklist_interval=60s; upstream u2 blacklist_interval=60s;
    order per_request; next_upstream_timeout 500ms;
}
--- config
location /t {
    add_header X-Path $upstrand_path always;
    proxy_read_timeout 350ms;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[504, 200]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u2"]
--- response_body eval
[qr/504 Gateway Time-out/, "late\n"]



=== the log has the status that the client got, and the time of the cut
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
upstrand a { upstream u1; next_upstream_timeout 300ms; }
log_format cut '$status $upstrand_status $upstrand_response_time';
--- config
location = /t {
    access_log $TEST_NGINX_HTML_DIR/cut.log cut;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /cut.log"]
--- error_code eval
[504, 200]
--- response_body eval
[qr/504 Gateway Time-out/, qr/\A504 \(u1\) 504 \(u1\) 0\.(?:29|[3-9]\d)\d\n\z/]
