# What was wrong in the C module that this one replaces: a test for each defect,
# which fails where the defect is present.
#
# Not here but among the tests in Rust, since they need several workers: D39.

use strict;
use warnings;

use IO::Socket::INET;
use POSIX ();
use Socket ();
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

# A slow client: it waits and then reads little by little through a small buffer.
# /slow answers with the length of what it got.

my $slow = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1')
    or die "cannot listen: $!";

$ENV{TEST_NGINX_SLOW_PORT} = $slow->sockport();

$ENV{TEST_NGINX_SNDBUF_PORT} =
    IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport();

# A name server that knows one address for every name.

my $names = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1')
    or die "no port: $!";

$ENV{TEST_NGINX_DNS_PORT} = $names->sockport();

# Freed and fresh memory is no longer all zeros.

$ENV{MALLOC_PERTURB_} = 190;

my @servers = map { background($_) } \&slow_clients, \&name_server;

END { kill 'KILL', @servers if @servers }

sub background {
    my ($code) = @_;

    my $pid = fork();

    die "fork: $!" if !defined $pid;

    return $pid if $pid;

    $SIG{PIPE} = 'IGNORE';
    $code->();
    POSIX::_exit(0);
}

sub slow_clients {
    while (my $client = $slow->accept()) {
        sysread $client, my $request, 65536;

        # before connect(), or the window is large already

        socket my $server, Socket::PF_INET(), Socket::SOCK_STREAM(), 0 or next;
        setsockopt $server, Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 4096;
        connect $server, Socket::pack_sockaddr_in(
            $ENV{TEST_NGINX_SNDBUF_PORT}, Socket::inet_aton('127.0.0.1'))
            or next;

        syswrite $server, "GET /t HTTP/1.0\r\n\r\n";
        Time::HiRes::sleep(0.4);

        my $answer = '';

        while (sysread $server, $answer, 4096, length $answer) {
            Time::HiRes::sleep(0.01);
        }

        $answer =~ s/\A.*?\r\n\r\n//s;

        my $text = length($answer) . "\n";

        print $client "HTTP/1.0 200 OK\r\nContent-Length: " . length($text)
                      . "\r\n\r\n$text";
        close $client;
    }
}

sub name_server {
    while (defined $names->recv(my $query, 512)) {
        my ($name, $type) = $query =~ /\A.{12}(.*?\0)(..)/s or next;

        my $answer = substr($query, 0, 2) . pack('n5', 0x8180, 1,
                                                 $type eq "\0\1" ? 1 : 0, 0, 0)
            . $name . $type . "\0\1";

        $answer .= pack 'nnnNnC4', 0xc00c, 1, 1, 60, 4, 127, 0, 0, 1
            if $type eq "\0\1";

        $names->send($answer);
    }
}

# In each block: u1 fails with 503, u2 is good.

add_block_preprocessor(sub {
    my $block = shift;

    my $http = $block->http_config;

    if (defined $block->must_die) {
        $block->set_value(no_error_log => '[alert]');
    }

    $block->set_value(http_config => <<'_EOC_' . (defined $http ? $http : ''));
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
_EOC_

    $block->set_value(config => ($block->config || '') . <<'_EOC_');
location = /raw { proxy_pass http://127.0.0.1:$TEST_NGINX_RELAY_PORT; }
_EOC_
});

run_tests();

__DATA__

=== D01: start_random per_request with one group empty
--- http_config
upstrand a { upstream u1; upstream u2; order start_random per_request; next_upstream_statuses 5xx; }
upstrand b { upstream u1 backup; upstream u2 backup; order start_random per_request; next_upstream_statuses 5xx; }
--- config
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
--- request eval
["GET /a", "GET /b", "GET /a", "GET /b"]
--- response_body eval
[("u2\n") x 4]



=== D02: add_upstream of one that only a proxy_pass above names
--- http_config
server { listen unix:$TEST_NGINX_HTML_DIR/x.sock; location / { proxy_pass http://later; } }
upstream c { add_upstream later; }
--- config
--- must_die
--- error_log
upstream "later" not found



=== D03: auth_request by an upstrand that fails over, the same one as that of the content
--- http_config
backend no { return 403; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
upstrand n { upstream u1; upstream no; order per_request; next_upstream_statuses 5xx; }
--- config
location /yes { auth_request /auth; proxy_pass http://$upstrand_a; }
location /no { auth_request /deny; proxy_pass http://$upstrand_n; }
location = /auth { internal; proxy_pass http://$upstrand_a; }
location = /deny { internal; proxy_pass http://$upstrand_n; }
--- request eval
["GET /yes", "GET /no", "GET /asked.log"]
--- error_code eval
[200, 403, 200]
--- response_body eval
["u2\n", qr/403 Forbidden/, "u1\nu2\nu1\nu2\nu1\nno\n"]



=== D04: a blacklisted upstream is passed by, and so are several in a row
--- http_config
backend u3 { return 503; }
upstrand a { upstream u1 blacklist_interval=60s; upstream u3 blacklist_interval=60s; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /t", "GET /asked.log"]
--- response_body eval
["u2\n", "u2\n", "u2\n", "u1\nu3\nu2\nu2\nu2\n"]



=== D05: dynamic_upstrand with an upstrand whose own variable is used nowhere
--- http_config
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { dynamic_upstrand $d a; proxy_pass http://$d; }
--- request eval
["GET /t", "GET /asked.log"]
--- response_body eval
["u2\n", "u1\nu2\n"]



=== D06: a request body in a file
--- http_config
backend len { return 200 "$http_content_length\n"; }
upstrand a { upstream u1; upstream len; order per_request; next_upstream_statuses non_idempotent 5xx; }
--- config
location /t { client_body_buffer_size 8k; proxy_pass http://$upstrand_a; }
location /only { client_body_in_file_only clean; proxy_pass http://$upstrand_a; }
--- request eval
["POST /t\n" . "x" x 50_000, "POST /only\nhello"]
--- response_body eval
["50000\n", "5\n"]
--- no_error_log
[alert]
[crit]



=== D07: proxy_request_buffering off
--- http_config
dead d;
upstrand a { upstream d; upstream u2; order per_request; next_upstream_statuses error non_idempotent 5xx; }
upstrand b { upstream u1; upstream u2; order per_request; next_upstream_statuses error non_idempotent 5xx; }
--- config
proxy_request_buffering off;
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
--- request eval
["POST /a\nhello", "POST /b\n" . "x" x 100_000]
--- error_code eval
[200, 503]
--- response_body eval
["u2\n", "u1\n"]



=== D08: more than fifty upstreams
--- http_config eval
join('', map { "upstream m$_ { server unix:\$TEST_NGINX_HTML_DIR/u1.sock; }\n" } 100 .. 169)
. 'upstrand a { upstream ~^m; upstream u2; order per_request; next_upstream_statuses 5xx; }
upstrand b { upstream ~^m; order per_request; next_upstream_statuses 5xx; intercept_statuses 5xx /f; }'
--- config
location /a { add_header X-Tries $upstrand_tries; proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
location /f { internal; add_header X-Tries $upstrand_tries; return 200 "f\n"; }
--- request eval
["GET /a", "GET /b"]
--- response_headers eval
["X-Tries: 71", "X-Tries: 70"]
--- response_body eval
["u2\n", "f\n"]



=== D09: filters of the body
--- http_config
charset_map iso-8859-1 utf-8 { E9 C3A9; }
backend page {
    location / { default_type "text/html; charset=utf-8"; root html; }
    location /zip/ { gzip on; gzip_types *; gzip_min_length 1; gzip_http_version 1.0; gzip_proxied any; root html; }
    location /range { return 200 "0123456789abcdefghij"; }
}
upstrand a { upstream u1; upstream page; order per_request; next_upstream_statuses 5xx; }
--- config
add_header X-Path $upstrand_path;
location /sub/ { sub_filter_types *; sub_filter old new; proxy_pass http://$upstrand_a; }
location /ssi/ { ssi on; ssi_types *; proxy_pass http://$upstrand_a; }
location /charset/ { charset iso-8859-1; override_charset on; charset_types *; proxy_pass http://$upstrand_a; }
location /after/ { addition_types *; add_after_body /more; proxy_pass http://$upstrand_a; }
location /zip/ { gunzip on; proxy_set_header Accept-Encoding gzip; proxy_pass http://$upstrand_a; }
location /range { proxy_force_ranges on; proxy_pass http://$upstrand_a; }
location /more { return 200 "more"; }
--- user_files eval
[["sub/t", "an old text"], ["ssi/t", '<!--# echo var="arg_x" -->'], ["charset/t", "\xc3\xa9"], ["after/t", "page "], ["zip/t", "plain text " x 20]]
--- request eval
["GET /sub/t", "GET /ssi/t?x=1", "GET /charset/t", "GET /after/t", "GET /zip/t", "GET /range"]
--- more_headers eval
[("") x 5, "Range: bytes=15-19"]
--- error_code eval
[(200) x 5, 206]
--- response_headers eval
["X-Path: u1 -> page", "X-Path: u1 -> page", "X-Path: u1 -> page", "X-Path: u1 -> page", "X-Path: u1 -> page\n! Content-Encoding", "X-Path: u1 -> page\nContent-Range: bytes 15-19/20"]
--- response_body eval
["an new text", "1", "\xe9", "page more", "plain text " x 20, "fghij"]



=== D10: trailers
--- http_config
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { sub_filter_types *; sub_filter u2 U2; add_trailer X-Tail $upstrand_path; proxy_pass http://$upstrand_a; }
--- request eval
::raw("GET /t HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
--- response_body_like eval
qr{\r\nU2\n\r\n0\r\nX-Tail: u1 -> u2\r\n\r\n\z}



=== D11: HEAD with all refused, with an interception, out of a cache after a fail-over
--- http_config
proxy_cache_path $TEST_NGINX_HTML_DIR/cache keys_zone=c:1m;
dead d;
upstream e { server 127.0.0.1:2; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
upstrand d { upstream d; upstream e; order per_request; }
upstrand i { upstream u1; intercept_statuses 5xx /f; }
--- config
location /c { proxy_cache c; proxy_cache_valid 200 1m; proxy_pass http://$upstrand_a; }
location /d { proxy_pass http://$upstrand_d; }
location /i { proxy_pass http://$upstrand_i; }
location /f { internal; return 503 "f\n"; }
--- pipelined_requests eval
["HEAD /d", "HEAD /i", "HEAD /c", "HEAD /c", "HEAD /c"]
--- error_code eval
[502, 503, 200, 200, 200]



=== D12: an upgrade after a fail-over
--- http_config
upstream ws { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
upstrand a { upstream u1; upstream ws; order per_request; next_upstream_statuses 5xx; }
--- config
location /t {
    proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection upgrade;
    proxy_pass http://$upstrand_a;
}
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply eval
"HTTP/1.1 101 Switching Protocols\r\nUpgrade: new\r\nConnection: upgrade\r\n\r\nbytes"
--- request eval
::raw("GET /t HTTP/1.1\r\nHost: x\r\nUpgrade: new\r\nConnection: upgrade\r\n\r\n")
--- response_body_like eval
qr{\AHTTP/1\.1 101 Switching Protocols\r\n.*\r\n\r\nbytes\z}s



=== D13: values of an upstream that refused, timed out, has no live server, is cached
--- http_config
proxy_cache_path $TEST_NGINX_HTML_DIR/cache keys_zone=c:1m;
dead d;
upstream down { server 127.0.0.1:1 down; }
upstream silent { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
upstrand a { upstream d; upstream down; upstream silent; upstream u2; order per_request; }
--- config
location /t {
    proxy_cache c; proxy_cache_valid any 1m; proxy_read_timeout 150ms;
    add_header X-Addr $upstrand_addr; add_header X-Status $upstrand_status; add_header X-Cache $upstrand_cache_status;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
my ($s, $html) = @ENV{qw(TEST_NGINX_SILENT_PORT TEST_NGINX_HTML_DIR)};
["X-Addr: (d) 127.0.0.1:1 (down) down (silent) 127.0.0.1:$s (u2) unix:$html/u2.sock\n"
 . "X-Status: (d) 502 (down) 502 (silent) 504 (u2) 200\n"
 . "X-Cache: (d) MISS (down) MISS (silent) MISS (u2) MISS",
 "X-Status: (d) 502 (down) 502 (silent) 504 (u2)\n"
 . "X-Cache: (d) MISS (down) MISS (silent) MISS (u2) HIT"]



=== D14: in add_header the group of the answering upstream
--- http_config
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Addr $upstrand_addr; add_header X-Status $upstrand_status; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_headers eval
my $html = $ENV{TEST_NGINX_HTML_DIR};
"X-Addr: (u1) unix:$html/u1.sock (u2) unix:$html/u2.sock\nX-Status: (u1) 503 (u2) 200"



=== D15: nginx's own variables after a fail-over
--- http_config
backend u3 { add_header X-Who u3; return 200 "u3\n"; }
backend u0 { add_header X-Who u0 always; return 503 "u0\n"; }
upstrand a { upstream u0; upstream u3; order per_request; next_upstream_statuses 5xx; }
log_format own '$upstream_addr|$upstream_status|$upstream_http_x_who';
--- config
access_log $TEST_NGINX_HTML_DIR/own.log own;
location = /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /own.log"]
--- response_body_like eval
my $html = $ENV{TEST_NGINX_HTML_DIR};
["u3", "\\Aunix:$html/u0.sock(?:,| :) unix:$html/u3.sock\\|503(?:,| :) 200\\|u3\n\\z"]



=== D16: X-Accel-Redirect of later requests that use no upstrand
--- http_config
backend x { add_header X-Accel-Redirect /e always; return 200 "x\n"; }
upstrand a { upstream u1; upstream x; order per_request; next_upstream_statuses 5xx; }
map $arg_w $to { volatile; default $upstrand_a; plain x; }
--- config
location /t { proxy_pass http://$to; }
location /e { return 200 "e\n"; }
--- request eval
["GET /t", "GET /t?w=plain", "GET /t"]
--- response_body eval
["x\n", "e\n", "x\n"]



=== D17: X-Accel-Redirect by the other gateways, of a failed and of the final answer
--- http_config
server { listen unix:$TEST_NGINX_HTML_DIR/h1.sock http2; add_header X-Accel-Redirect /e always; return 503 "h1\n"; }
server { listen unix:$TEST_NGINX_HTML_DIR/h2.sock http2; add_header X-Accel-Redirect /e always; return 200 "h2\n"; }
upstream h1 { server unix:$TEST_NGINX_HTML_DIR/h1.sock; }
upstream h2 { server unix:$TEST_NGINX_HTML_DIR/h2.sock; }
upstream sc { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
dead d;
upstrand h { upstream ~^h; order per_request; next_upstream_statuses 5xx; }
upstrand s { upstream sc; upstream d; order per_request; next_upstream_statuses 5xx; }
--- config
location /grpc { grpc_pass $upstrand_h; }
location /scgi { add_header X-Path $upstrand_path always; scgi_pass $upstrand_s; }
location /e { return 200 "e\n"; }
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply eval
"Status: 503 X\r\nX-Accel-Redirect: /e\r\n\r\nsc\n"
--- request eval
["GET /grpc", "GET /scgi"]
--- error_code eval
[200, 502]
--- response_headers eval
["! X-Accel-Redirect", "X-Path: sc -> d"]
--- response_body eval
["h2\n", qr/502 Bad Gateway/]



=== D18: an upstrand in a subrequest, beside others
--- http_config
backend v1 { return 503; }
backend v2 { default_type text/html; return 200 "v2 <!--# include virtual=\"/a\" -->"; }
backend m { return 200; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
upstrand v { upstream ~^v; order per_request; next_upstream_statuses 5xx; }
--- config
location /page { ssi on; }
location /a { proxy_pass http://$upstrand_a; }
location /v { ssi on; mirror /m; proxy_pass http://$upstrand_v; }
location /m { internal; proxy_pass http://$upstrand_a; }
location /p { return 200 "p\n"; }
--- user_files
>>> page.html
<!--# include virtual="/a" --><!--# include virtual="/p" --><!--# include virtual="/v" --><!--# include virtual="/a" -->
--- request eval
["GET /page.html", "GET /v"]
--- response_body eval
["u2\np\nv2 u2\nu2\n\n", "v2 u2\n"]



=== D19: slices come from one upstream
--- http_config
backend one { root html/one; }
backend two { root html/two; }
upstrand a { upstream one; upstream two; }
--- config
location /t { slice 1k; proxy_set_header Range $slice_range; proxy_pass http://$upstrand_a; }
--- user_files eval
[["one/t", "1" x 5000, "201501010000.00"], ["two/t", "2" x 5000, "201501010000.00"]]
--- request eval
["GET /t", "GET /t"]
--- response_body eval
["1" x 5000, "2" x 5000]



=== D20: the variable read by set, by a map, in a plain location
--- http_config
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
map $arg_x $to { default $upstrand_a; }
--- config
location /set { set $x $upstrand_a; proxy_pass http://$x; }
location /map { proxy_pass http://$to; }
location /plain { add_header X-Up $upstrand_a; return 200 "plain\n"; }
--- request eval
["GET /set", "GET /map", "GET /plain"]
--- error_code eval
[503, 200, 200]
--- response_body eval
["u1\n", "u2\n", "plain\n"]



=== D21: a cached 502 of an upstream is no error
--- http_config
proxy_cache_path $TEST_NGINX_HTML_DIR/cache keys_zone=c:1m;
backend b { return 502 "b\n"; }
upstrand a { upstream b; upstream u2; order per_request; next_upstream_statuses error; }
--- config
location /t { add_header X-Cache $upstrand_cache_status always; proxy_cache c; proxy_cache_valid any 1m; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Cache: (b) MISS", "X-Cache: (b) HIT"]
--- response_body eval
["b\n", "b\n"]



=== D22: what nginx made of a proxy_pass is no upstream
--- http_config
server { listen unix:$TEST_NGINX_HTML_DIR/x.sock; location / { proxy_pass http://127.0.0.1:9; } }
upstrand a { upstream ~.; next_upstream_statuses 5xx error; order per_request; }
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_headers
X-Path: u1 -> u2



=== D22: neither for a member by name
--- http_config
server { listen unix:$TEST_NGINX_HTML_DIR/x.sock; location / { proxy_pass http://127.0.0.1:9; } }
upstrand a { upstream 127.0.0.1; }
--- config
--- must_die
--- error_log
[emerg]
127.0.0.1



=== D22: nor for add_upstream
--- http_config
server { listen unix:$TEST_NGINX_HTML_DIR/x.sock; location / { proxy_pass http://127.0.0.1:9; } }
upstream c { add_upstream 127.0.0.1; }
--- config
--- must_die
--- error_log
upstream "127.0.0.1" not found



=== D23: with start_random backups take turns
--- http_config
backend b1 { return 200 "b1\n"; }
backend b2 { return 200 "b2\n"; }
upstrand a { upstream u1; upstream b1 backup; upstream b2 backup; order start_random; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
[("GET /t") x 4, "GET /asked.log"]
--- response_body_like eval
[("b[12]") x 4, "\\A(?:(?:u1\nb1\nu1\nb2\n){2}|(?:u1\nb2\nu1\nb1\n){2})\\z"]



=== D24: half a word in add_upstream
--- http_config
upstream c { add_upstream u1 backupxyz; }
--- config
--- must_die
--- error_log
invalid parameter "backupxyz"



=== D24: a product of weights that overflows
--- http_config
upstream big { server 127.0.0.1:1 weight=9223372036854775807; }
upstream c { add_upstream big weight=3; }
--- config
--- must_die
--- error_log
[emerg]
weight



=== D24: backup under a method that has none
--- http_config
upstream c { ip_hash; server 127.0.0.1:1; add_upstream u1 backup; }
--- config
--- must_die
--- error_log
balancing method does not support parameter "backup"



=== D25: singlets before there is a server
--- http_config
upstream c { combine_server_singlets; server 127.0.0.1:1; }
--- config
--- must_die
--- error_log
no server so far declared to build singlets



=== D26: long names of singlets
--- http_config eval
my $suffix = '_' . 's' x 200 . '_';
"upstream h { server unix:\$TEST_NGINX_HTML_DIR/u1.sock; server unix:\$TEST_NGINX_HTML_DIR/u2.sock;
combine_server_singlets $suffix nobackup; combine_server_singlets _w_ 150 nobackup; }
upstrand a { upstream h${suffix}2; }
upstrand b { upstream ~^h_w_0+2\$; }"
--- config
location /a { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
location /b { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_b; }
--- request eval
["GET /a", "GET /b"]
--- response_headers eval
["X-Path: h_" . 's' x 200 . '_2', "X-Path: h_w_" . '0' x 149 . '2']
--- response_body eval
["u2\n", "u2\n"]



=== D27: singlets of a server with resolve
--- skip_nginx: 4: < 1.27.3
--- http_config
resolver 127.0.0.1:$TEST_NGINX_DNS_PORT ipv6=off;
server { listen 127.0.0.1:$TEST_NGINX_RAND_PORT_1; return 200 "resolved\n"; }
upstream h {
    zone h 256k;
    server name.test:$TEST_NGINX_RAND_PORT_1 resolve;
    server unix:$TEST_NGINX_HTML_DIR/u2.sock;
    combine_server_singlets _s_ nobackup;
}
--- config
location /1 { proxy_pass http://h_s_1; }
location /2 { proxy_pass http://h_s_2; }
--- request eval
["GET /2", ["GET ", { value => "/1", delay_before => 0.5 }]]
--- response_body eval
["u2\n", "resolved\n"]



=== D28: a singlet by the name of a unix socket
--- http_config
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/u1.sock;
    server unix:$TEST_NGINX_HTML_DIR/u2.sock;
    combine_server_singlets byname nobackup;
}
upstrand a { upstream ~^hunix_; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /asked.log"]
--- response_body eval
["u2\n", "u1\nu2\n"]



=== D29: next_upstream_timeout twice
--- http_config
upstrand a { upstream u1; next_upstream_timeout 0; next_upstream_timeout 5s; }
--- config
--- must_die
--- error_log
"next_upstream_timeout" directive is duplicate



=== D29: a status that cannot be
--- http_config
upstrand a { upstream u1; next_upstream_statuses 600; }
--- config
--- must_die
--- error_log
[emerg]
"600"



=== D29: status 0
--- http_config
upstrand a { upstream u1; next_upstream_statuses 0; }
--- config
--- must_die
--- error_log
[emerg]
"0"



=== D29: intercept_statuses without a URI
--- http_config
upstrand a { upstream u1; intercept_statuses 502 503; }
--- config
--- must_die
--- error_log
[emerg]
"503"



=== D29: two upstrands of one name
--- http_config
upstrand a { upstream u1; }
upstrand a { upstream u2; }
--- config
--- must_die
--- error_log
[emerg]
"a"



=== D30: a literal that names no upstrand
--- http_config
upstrand a { upstream u1; }
--- config
location /t { dynamic_upstrand $d nope; proxy_pass http://$d; }
--- must_die
--- error_log
[emerg]
"nope"



=== D30: a word after the literal
--- http_config
upstrand a { upstream u1; }
upstrand b { upstream u2; }
--- config
location /t { dynamic_upstrand $d a b; proxy_pass http://$d; }
--- must_die
--- error_log
[emerg]
"b"



=== D30: two lines for one variable at one level
--- http_config
upstrand a { upstream u1; }
--- config
location /t { dynamic_upstrand $d a; dynamic_upstrand $d $arg_x a; proxy_pass http://$d; }
--- must_die
--- error_log
[emerg]
duplicate



=== D31: try_files, an index and X-Accel-Redirect in the location of an interception
--- http_config
backend x { add_header X-Accel-Redirect /accel; return 200 "x\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f/$arg_f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f/try { internal; try_files /none /found; }
location /f/dir/ { internal; index page; }
location /f/accel { internal; proxy_pass http://x; }
location /accel { return 200 "accel\n"; }
location /found { return 200 "found\n"; }
--- user_files
>>> f/dir/page
page
--- request eval
["GET /t?f=try", "GET /t?f=dir/", "GET /t?f=accel"]
--- response_body eval
["found\n", "page\n", "accel\n"]



=== D32: arguments, a named location, and add_header of the location
--- http_config
upstrand a { upstream u1; intercept_statuses 5xx /f?x=1; }
upstrand b { upstream u1; intercept_statuses 5xx @f; }
--- config
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
location = /f { internal; add_header X-F f; return 200 "$uri $arg_x\n"; }
location @f { add_header X-F named; return 200 "named\n"; }
--- request eval
["GET /a", "GET /b"]
--- response_headers eval
["X-F: f", "X-F: named"]
--- response_body eval
["/f 1\n", "named\n"]



=== D33: proxy_intercept_errors, when all fail
--- http_config
upstrand a { upstream u1; next_upstream_statuses 5xx; }
--- config
location /t { proxy_intercept_errors on; error_page 503 /e; proxy_pass http://$upstrand_a; }
location /e { return 200 "e\n"; }
--- request
GET /t
--- error_code: 503
--- response_body
u1



=== D34: a client that leaves during the second upstream
--- http_config
log_format left '$status $upstrand_path';
upstream silent { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
upstrand a { upstream u1; upstream silent; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { access_log $TEST_NGINX_HTML_DIR/left.log left; proxy_pass http://$upstrand_a; }
location = /via { proxy_read_timeout 200ms; proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/t; }
--- request eval
["GET /via", "GET /left.log"]
--- error_code eval
[504, 200]
--- response_body eval
[qr/504 Gateway Time-out/, "499 u1 -> silent\n"]



=== D35: a status of proxy_next_upstream marks a lone server
--- http_config
upstream h { server unix:$TEST_NGINX_HTML_DIR/u1.sock; extend_single_peers; }
--- config
location /t { add_header X-Addr $upstream_addr always; proxy_next_upstream http_503; proxy_pass http://h; }
--- request eval
["GET /t", "GET /t", "GET /asked.log"]
--- error_code eval
[503, 502, 200]
--- response_headers eval
["X-Addr: unix:$ENV{TEST_NGINX_HTML_DIR}/u1.sock", "X-Addr: h", "! X-Addr"]
--- response_body eval
["u1\n", qr/502 Bad Gateway/, "u1\n"]



=== D36: the status of an interception marks nobody
--- http_config
backend n { return 404 "n\n"; }
upstrand a { upstream n blacklist_interval=60s; upstream u2 backup; next_upstream_statuses 5xx; intercept_statuses 4xx /f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; return 503 "f\n"; }
--- request eval
["GET /t", "GET /t", "GET /asked.log"]
--- error_code eval
[503, 503, 200]
--- response_body eval
["f\n", "f\n", "n\nn\n"]



=== D37: a refresh in the background asks as the request did
--- http_config
proxy_cache_path $TEST_NGINX_HTML_DIR/cache keys_zone=c:1m;
backend one { add_header Cache-Control max-age=1; return 200 "one\n"; }
backend two { add_header Cache-Control max-age=1; return 200 "two\n"; }
upstrand a { upstream one; upstream two; order per_request; }
--- config
location /t {
    proxy_cache c; proxy_cache_key $uri;
    proxy_cache_use_stale updating; proxy_cache_background_update on;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", ["GET ", { value => "/t", delay_before => 2.1 }], ["GET ", { value => "/t", delay_before => 0.2 }], "GET /asked.log"]
--- response_body eval
["one\n", "one\n", "one\n", "one\none\n"]



=== D38: $status after a refusal
--- http_config
dead d;
upstrand a { upstream d; upstream u2; order per_request; }
log_format st '$status';
--- config
access_log $TEST_NGINX_HTML_DIR/st.log st;
location = /t { add_header X-Status $status; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /st.log"]
--- response_headers eval
["X-Status: 200", "! X-Status"]
--- response_body eval
["u2\n", "200\n"]



=== D40: names of singlets in memory that is not zeroed
--- http_config
upstream h {
    server unix:$TEST_NGINX_HTML_DIR/u1.sock;
    server unix:$TEST_NGINX_HTML_DIR/u2.sock;
    combine_server_singlets _w_ 2;
    combine_server_singlets _x_ 10 nobackup;
    combine_server_singlets;
}
--- config
location ~ ^/t/(.*) { add_header X-Host $proxy_host; proxy_pass http://h$1; }
--- request eval
[map { "GET /t/$_" } qw(_w_02 _x_0000000002 2)]
--- response_headers eval
[map { "X-Host: h$_" } qw(_w_02 _x_0000000002 2)]
--- response_body eval
["u2\n", "u2\n", "u2\n"]



=== D41: a client that reads slowly
--- http_config
backend big { root html; }
upstrand a { upstream u1; upstream big; order per_request; next_upstream_statuses 5xx; }
server {
    listen 127.0.0.1:$TEST_NGINX_SNDBUF_PORT sndbuf=8k;
    send_timeout 2s;
    location /t { proxy_pass http://$upstrand_a; }
}
--- config
location = /slow { proxy_pass http://127.0.0.1:$TEST_NGINX_SLOW_PORT; }
--- user_files eval
[["t", "x" x 150_000]]
--- timeout: 10
--- request
GET /slow
--- response_body
150000
