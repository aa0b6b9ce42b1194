# Clients: connections that go on after a fail-over, old and odd clients.

use strict;
use warnings;

use IO::Socket::INET;
use POSIX ();
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

# A relay for what Test::Nginx does not show: it sends the body of its request,
# byte by byte as it is, to the server under test, and answers with all the bytes
# that come back.  raw(TEXT...) is such a request.

my $relay = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1')
    or die "cannot listen: $!";

$ENV{TEST_NGINX_RELAY_PORT} = $relay->sockport();

my $relay_pid = fork();

die "fork: $!" if !defined $relay_pid;

if ($relay_pid == 0) {
    $SIG{PIPE} = 'IGNORE';

    while (my $client = $relay->accept()) {
        relay($client);
    }

    POSIX::_exit(0);
}

END { kill 'KILL', $relay_pid if $relay_pid }

sub relay {
    my ($client) = @_;

    my ($text, $answer) = ('', '');

    while ($text !~ /\r\n\r\n/) {
        sysread $client, $text, 65536, length $text or return;
    }

    my ($length) = $text =~ /^Content-Length: (\d+)/mi or return;

    $text =~ s/\A.*?\r\n\r\n//s;

    while (length $text < $length) {
        sysread $client, $text, 65536, length $text or return;
    }

    my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                       PeerPort => server_port())
        or return;

    syswrite $server, pack 'H*', $text;

    1 while sysread $server, $answer, 65536, length $answer;

    print $client "HTTP/1.0 200 OK\r\nContent-Length: " . length($answer)
                  . "\r\n\r\n$answer";
}

sub raw {
    return "POST /raw\n" . unpack 'H*', join '', @_;
}

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(config => $block->config . <<'_EOC_');
location = /raw { proxy_pass http://127.0.0.1:$TEST_NGINX_RELAY_PORT; }
location = /ok { return 200 "ok\n"; }
_EOC_

    my $http = $block->http_config;

    $block->set_value(http_config => <<'_EOC_' . (defined $http ? $http : ''));
backend u1 { return 503 "u1 u1\n"; }
backend u2 { return 200 "u2 $request_method\n"; }
dead d1;
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses non_idempotent 5xx; }
_EOC_
});

run_tests();

__DATA__

=== HTTP/1.0: the answer ends with the connection
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
::raw("GET /t HTTP/1.0\r\n\r\n")
--- response_body_like eval
qr{\AHTTP/1\.1 200 OK\r\n.*Content-Length: 7\r\nConnection: close\r\n\r\nu2 GET\n\z}s



=== HTTP/1.0: no chunks, though the length is unknown
--- config
location /t { sub_filter_types *; sub_filter u2 U2; proxy_pass http://$upstrand_a; }
--- request eval
::raw("GET /t HTTP/1.0\r\n\r\n")
--- response_body_like eval
qr{\AHTTP/1\.1 200 OK\r\n(?!.*Transfer-Encoding).*Connection: close\r\n\r\nU2 GET\n\z}s



=== HTTP/1.0 with keep-alive
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
::raw("GET /t HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /ok HTTP/1.0\r\n\r\n")
--- response_body_like eval
qr{\AHTTP/1\.1 200 OK\r\n.*Connection: keep-alive\r\n\r\nu2 GET\nHTTP/1\.1 200 OK\r\n.*\r\n\r\nok\n\z}s



=== pipelined requests after a fail-over are answered in their order
--- config
location /t { proxy_pass http://$upstrand_a; }
--- pipelined_requests eval
["GET /t", "GET /ok", "POST /t\nbody", "GET /t", "GET /ok"]
--- response_body eval
["u2 GET\n", "ok\n", "u2 POST\n", "u2 GET\n", "ok\n"]



=== twenty requests on one connection
--- config
location /t { proxy_pass http://$upstrand_a; }
--- pipelined_requests eval
[("GET /t") x 20]
--- response_body eval
[("u2 GET\n") x 20]



=== one connection, with bodies in files, HEAD, and interceptions between
--- http_config
upstrand i { upstream u1; intercept_statuses 5xx /f; }
--- config
client_body_buffer_size 1k;
location /t { proxy_pass http://$upstrand_a; }
location /i { proxy_pass http://$upstrand_i; }
location /f { internal; return 200 "f\n"; }
--- pipelined_requests eval
my $body = 'x' x 5000;
["POST /t\n$body", "POST /i\n$body", "GET /i", "PUT /t\n$body", "GET /t"]
--- response_body eval
["u2 POST\n", "f\n", "f\n", "u2 PUT\n", "u2 GET\n"]



=== chunked answers on one connection
--- config
location /t { sub_filter_types *; sub_filter u2 U2; proxy_pass http://$upstrand_a; }
--- pipelined_requests eval
["GET /t", "GET /ok", "GET /t"]
--- response_body eval
["U2 GET\n", "ok\n", "U2 GET\n"]



=== HEAD leaves the connection in step: good, all failed, all refused, intercepted
--- http_config
upstream d2 { server 127.0.0.1:2; }
upstrand f { upstream u1; next_upstream_statuses 5xx; }
upstrand d { upstream d1; upstream d2; order per_request; }
upstrand i { upstream u1; intercept_statuses 5xx /f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /fail { proxy_pass http://$upstrand_f; }
location /dead { proxy_pass http://$upstrand_d; }
location /i { proxy_pass http://$upstrand_i; }
location /f { internal; return 200 "f\n"; }
--- pipelined_requests eval
["HEAD /t", "HEAD /fail", "HEAD /dead", "HEAD /i", "HEAD /ok"]
--- error_code eval
[200, 503, 502, 200, 200]
--- response_headers eval
["Content-Length: 8", "Content-Length: 6", "Connection: keep-alive", "Content-Length: 2", "Content-Length: 3"]



=== an upgrade after a fail-over: 101, and the bytes of the new protocol
--- http_config
upstream ws { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
upstrand w { upstream u1; upstream d1; upstream ws; order per_request; next_upstream_statuses error 5xx; }
log_format path '$upstrand_path $status';
--- config
location /t {
    access_log $TEST_NGINX_HTML_DIR/path.log path;
    proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection upgrade;
    proxy_pass http://$upstrand_w;
}
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply eval
"HTTP/1.1 101 Switching Protocols\r\nUpgrade: new\r\nConnection: upgrade\r\n\r\nbytes of the new protocol"
--- request eval
[::raw("GET /t HTTP/1.1\r\nHost: x\r\nUpgrade: new\r\nConnection: upgrade\r\n\r\n"), "GET /path.log"]
--- response_body_like eval
["\\AHTTP/1\\.1 101 Switching Protocols\r\n(?s:.*)\r\n\r\nbytes of the new protocol\\z", "\\Au1 -> d1 -> ws 101\n\\z"]



=== an upgrade that the last upstream refuses is a plain answer
--- config
location /t {
    proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection upgrade;
    proxy_pass http://$upstrand_a;
}
--- request
GET /t
--- more_headers
Upgrade: new
--- response_body
u2 GET



=== Expect: 100-continue
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
::raw("POST /t HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody")
--- response_body_like eval
qr{\A(?:HTTP/1\.1 100 Continue\r\n\r\n)?HTTP/1\.1 200 OK\r\n.*\r\n\r\nu2 POST\n\z}s



=== large header lines reach the next upstream
--- http_config
large_client_header_buffers 8 32k;
backend v2 { large_client_header_buffers 8 32k; return 200 $http_x_large; }
upstrand v { upstream u1; upstream v2; order per_request; next_upstream_statuses 5xx; }
server { listen unix:$TEST_NGINX_HTML_DIR/big1.sock; large_client_header_buffers 8 32k; return 503; }
upstream big1 { server unix:$TEST_NGINX_HTML_DIR/big1.sock; }
upstrand big { upstream big1; upstream v2; order per_request; next_upstream_statuses 5xx; }
--- config
large_client_header_buffers 8 32k;
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_big; }
--- request
GET /t
--- more_headers eval
"X-Large: " . "0123456789" x 2000 . "\nX-More: " . "abc" x 5000
--- response_headers
X-Path: big1 -> v2
--- response_body eval
"0123456789" x 2000



=== a client that leaves in the second upstream: one line, status 499, both tries in it
--- http_config
log_format left '$status $upstrand_path $upstrand_reason';
upstream slow { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
upstrand s { upstream u1; upstream slow; upstream u2; order per_request; next_upstream_statuses error timeout 5xx; }
--- config
location /t { access_log $TEST_NGINX_HTML_DIR/left.log left; proxy_pass http://$upstrand_s; }
location /page { access_log off; ssi on; root html; }
location = /via { proxy_read_timeout 200ms; proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/t; }
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_no_close
--- tcp_reply eval
"HTTP/1.0 "
--- request eval
["GET /via", "GET /left.log", "GET /asked.log"]
--- error_code eval
[504, 200, 200]
--- response_body eval
[qr/504 Gateway Time-out/, "499 u1 -> slow (u1) http_503 (slow) aborted\n", "u1\n"]



=== a client that leaves where proxy_ignore_client_abort is on: the walk goes on
--- http_config
log_format left '$status $upstrand_path';
upstream slow { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
upstrand s { upstream slow; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { access_log $TEST_NGINX_HTML_DIR/left.log left; proxy_ignore_client_abort on; proxy_pass http://$upstrand_s; }
location = /via { proxy_read_timeout 150ms; proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/t; }
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply_delay: 400ms
--- tcp_reply eval
"HTTP/1.0 503 Slow\r\nContent-Length: 0\r\n\r\n"
--- request eval
["GET /via", ["GET /left", { value => ".log", delay_before => 0.6 }], "GET /asked.log"]
--- error_code eval
[504, 200, 200]
--- response_body eval
[qr/504 Gateway Time-out/, qr/\A\d+ slow -> u2\n\z/, "u2\n"]



=== a request with an error of its own starts no walk
--- config
location /t { limit_except GET { deny all; } proxy_pass http://$upstrand_a; }
location /big { client_max_body_size 2; proxy_pass http://$upstrand_a; }
--- request eval
["POST /t\nbody", "POST /big\nbody", "GET /t", "GET /asked.log"]
--- error_code eval
[403, 413, 200, 200]
--- response_body eval
[qr/403/, qr/413/, "u2 GET\n", "u1\nu2\n"]
