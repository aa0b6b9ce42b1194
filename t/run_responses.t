# Responses after a fail-over: as if there had been none.

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

our $long = join '', map { "line $_\n" } 1 .. 100_000;      # more than 1 MB

sub gunzip {
    my ($text) = @_;

    require Compress::Zlib;

    my $plain = Compress::Zlib::memGunzip($text);

    return defined $plain ? $plain : "not gzip: $text";
}

# In each block: upstrand a is bad, good; good serves files.

add_block_preprocessor(sub {
    my $block = shift;

    my $http = $block->http_config;

    $block->set_value(http_config => <<'_EOC_' . (defined $http ? $http : ''));
backend bad { add_header X-Bad 1 always; return 503 "bad\n"; }
backend good { root html; }
upstrand a {
    upstream bad; upstream good; order per_request;
    next_upstream_statuses error timeout 5xx;
}
_EOC_

    $block->set_value(config => $block->config . <<'_EOC_');
add_header X-Path $upstrand_path always;
location = /raw { proxy_pass http://127.0.0.1:$TEST_NGINX_RELAY_PORT; }
_EOC_

    $block->set_value(user_files => [
        ['t/page', 'a page of text'],
        ['t/long', $long],
    ]) if !defined $block->user_files;
});

run_tests();

__DATA__

=== status, headers and body are those of the last upstream alone
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request
GET /t/page
--- response_headers
X-Path: bad -> good
X-Bad:
Content-Length: 14
--- response_body chop
a page of text



=== a long body: buffered, unbuffered, through a file, through small buffers
--- config
location /t/ { proxy_pass http://$upstrand_a; }
location /off/ { rewrite ^/off(.*) /t$1 break; proxy_buffering off; proxy_pass http://$upstrand_a; }
location /nofile/ { rewrite ^/nofile(.*) /t$1 break; proxy_max_temp_file_size 0; proxy_pass http://$upstrand_a; }
location /small/ { rewrite ^/small(.*) /t$1 break; proxy_buffer_size 1k; proxy_buffers 2 1k; proxy_busy_buffers_size 1k; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t/long", "GET /off/long", "GET /nofile/long", "GET /small/long"]
--- response_headers eval
[("X-Path: bad -> good") x 4]
--- response_body eval
[($::long) x 4]



=== a URI in proxy_pass, with variables
--- config
location /fix { proxy_pass http://$upstrand_a/t/page; }
location ~ ^/re/(.*)$ { proxy_pass http://$upstrand_a/t/$1$is_args$args; }
location /uri { set $u /t/page; proxy_pass http://$upstrand_a$u; }
--- request eval
["GET /fix/x?y", "GET /re/page?x=1", "GET /uri"]
--- response_headers eval
[("X-Path: bad -> good") x 3]
--- response_body eval
[("a page of text") x 3]



=== a chunked body
--- http_config
backend chunked { sub_filter_types *; sub_filter "no such text" ""; root html; }
upstrand c { upstream bad; upstream chunked; order per_request; next_upstream_statuses 5xx; }
--- config
proxy_http_version 1.1;
location /t/ { proxy_pass http://$upstrand_c; }
location /off/ { rewrite ^/off(.*) /t$1 break; proxy_buffering off; proxy_pass http://$upstrand_c; }
--- request eval
["GET /t/long", "GET /off/long"]
--- response_headers eval
[("X-Path: bad -> chunked\nTransfer-Encoding: chunked") x 2]
--- response_body eval
[($::long) x 2]



=== HEAD
--- config
location /t { proxy_pass http://$upstrand_a; }
--- pipelined_requests eval
["HEAD /t/page", "HEAD /t/long", "HEAD /t/none"]
--- error_code eval
[200, 200, 404]
--- response_headers eval
["X-Path: bad -> good\nContent-Length: 14", "X-Path: bad -> good\nContent-Length: " . length $::long, "X-Path: bad -> good"]



=== ranges, served by the upstream
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t/page", "GET /t/page", "GET /t/page"]
--- more_headers eval
["Range: bytes=2-5", "Range: bytes=-4", "Range: bytes=99-"]
--- error_code eval
[206, 206, 416]
--- response_headers eval
["X-Path: bad -> good\nContent-Range: bytes 2-5/14\nContent-Length: 4", "X-Path: bad -> good\nContent-Range: bytes 10-13/14", "Content-Range: bytes */14"]
--- response_body eval
["page", "text", qr/416 Requested Range Not Satisfiable/]



=== ranges, cut out by proxy_force_ranges
--- http_config
backend plain { return 200 "0123456789abcdefghij"; }
upstrand p { upstream bad; upstream plain; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_force_ranges on; proxy_pass http://$upstrand_p; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- more_headers eval
["Range: bytes=15-18", "Range: bytes=0-0,19-", ""]
--- error_code eval
[206, 200, 200]
--- response_headers eval
["Content-Range: bytes 15-18/20\nX-Path: bad -> plain", "X-Path: bad -> plain", "X-Path: bad -> plain"]
--- response_body eval
["fghi", ("0123456789abcdefghij") x 2]



=== conditional requests, answered by the upstream
--- config
location /t { proxy_pass http://$upstrand_a; }
--- user_files eval
[["t/page", "a page of text", "201501010000.00"]]
--- request eval
["GET /t/page", "GET /t/page", "GET /t/page"]
--- more_headers eval
["If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT", 'If-None-Match: "54a48e00-e"', 'If-Match: "other"']
--- error_code eval
[304, 304, 412]
--- response_headers eval
[("X-Path: bad -> good") x 3]



=== gzip
--- config
gzip on;
gzip_types *;
gzip_proxied any;
location /t { proxy_pass http://$upstrand_a; }
location /off { rewrite ^/off(.*) /t$1 break; proxy_buffering off; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t/long", "GET /off/long"]
--- more_headers
Accept-Encoding: gzip
--- response_headers eval
[("Content-Encoding: gzip\nX-Path: bad -> good") x 2]
--- response_body_filters eval: \&::gunzip
--- response_body eval
[$::long, $::long]



=== gunzip
--- http_config
backend zip { gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; gzip_http_version 1.0; root html; }
upstrand z { upstream bad; upstream zip; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { gunzip on; proxy_set_header Accept-Encoding gzip; proxy_pass http://$upstrand_z; }
location /keep { rewrite ^/keep(.*) /t$1 break; proxy_set_header Accept-Encoding gzip; proxy_pass http://$upstrand_z; }
--- request eval
["GET /t/long", "GET /keep/page"]
--- response_headers eval
["! Content-Encoding\nX-Path: bad -> zip", "Content-Encoding: gzip\nX-Path: bad -> zip"]
--- response_body eval
[$::long, qr/\A\x1f\x8b/]



=== sub_filter
--- config
location /t { sub_filter_types *; sub_filter_once off; sub_filter line word; proxy_pass http://$upstrand_a; }
--- request
GET /t/long
--- response_headers
X-Path: bad -> good
--- response_body eval
(my $words = $::long) =~ s/line/word/g;
$words



=== charset
--- http_config
charset_map iso-8859-1 utf-8 { E9 C3A9; }
backend utf { charset utf-8; default_type text/html; root html; }
upstrand u { upstream bad; upstream utf; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { charset iso-8859-1; override_charset on; proxy_pass http://$upstrand_u; }
--- user_files eval
[["t/page", "caf\xc3\xa9"]]
--- request
GET /t/page
--- response_headers
Content-Type: text/html; charset=iso-8859-1
X-Path: bad -> utf
--- response_body eval
"caf\xe9"



=== SSI in the response, which includes the same upstrand, another one, a plain location
--- http_config
backend html { default_type text/html; root html; }
backend v1 { return 503; }
backend v2 { return 200 "v2"; }
upstrand h { upstream bad; upstream html; order per_request; next_upstream_statuses 5xx; }
upstrand v { upstream ~^v; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { ssi on; proxy_pass http://$upstrand_h; }
location /v { proxy_pass http://$upstrand_v; }
location /p { return 200 "p"; }
--- user_files
>>> t/page
1<!--# include virtual="/t/in" -->2<!--# include virtual="/v" -->3<!--# include virtual="/p" -->4
>>> t/in
inner
--- request eval
["GET /t/page", "GET /asked.log"]
--- response_body_like eval
["\\A1inner\n2v23p4\n\\z", "\\Abad\n(?=(?s:.*)html\n(?s:.*)html\n)(?=(?s:.*)bad\n)(?=(?s:.*)v1\n(?s:.*)v2\n)(?:.*\n){5}\\z"]



=== a page whose SSI includes upstrands, slow and fast, failing and good
--- http_config
backend v1 { return 503 "v1\n"; }
backend v2 { limit_rate 2000; root html; }
upstrand v { upstream ~^v; order per_request; next_upstream_statuses 5xx; }
upstrand b { upstream bad; next_upstream_statuses 5xx; }
dead d1;
upstrand d { upstream d1; upstream good; order per_request; }
--- config
location /page { ssi on; }
location /t { proxy_pass http://$upstrand_a; }
location /s { proxy_pass http://$upstrand_v; }
location /b { proxy_pass http://$upstrand_b; }
location /d { proxy_pass http://$upstrand_d; }
--- user_files eval
[["page.html", join '', map { "<!--# include virtual=\"$_\" -->|" } qw(/s/slow /t/page /b /d/page /t/none /s/slow)],
 ["t/page", "page"], ["d/page", "dpage"], ["s/slow", "s" x 3000]]
--- request
GET /page.html
--- response_body_like eval
my $slow = 's' x 3000;
qr/\A$slow\|page\|bad\n\|dpage\|.*404 Not Found.*\|$slow\|\z/s



=== SSI: wait, set, and a stub for an upstrand that fails
--- http_config
upstrand b { upstream bad; next_upstream_statuses 5xx; }
--- config
location /page { ssi on; }
location /t { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
--- user_files
>>> page.html
<!--# block name="stub" -->stub<!--# endblock --><!--# include virtual="/t/page" set="one" wait="yes" -->[<!--# echo var="one" -->][<!--# include virtual="/b" stub="stub" -->]
>>> t/page
page
--- request
GET /page.html
--- response_body_like
\[page
\]\[bad
\]



=== SSI: a stub stands in for an upstrand of which nobody answers
--- http_config
dead d1;
dead d2;
upstrand d { upstream d1; upstream d2; }
upstrand g { upstream d1; upstream good; order per_request; }
--- config
location /page { ssi on; }
location /d { proxy_pass http://$upstrand_d; }
location /g { proxy_pass http://$upstrand_g/t/page; }
--- user_files
>>> page.html
<!--# block name="stub" -->stub<!--# endblock -->[<!--# include virtual="/d" stub="stub" -->][<!--# include virtual="/g" stub="stub" -->]
>>> t/page
page
--- request eval
["GET /page.html", "GET /page.html"]
--- response_body eval
[("[stub][page\n]\n") x 2]



=== text added before and after
--- http_config
backend html { default_type text/html; root html; }
upstrand h { upstream bad; upstream html; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { add_before_body /before; add_after_body /u/after; proxy_pass http://$upstrand_h; }
location /u { rewrite ^/u(.*) /t$1 break; proxy_pass http://$upstrand_a; }
location /before { return 200 "before "; }
--- user_files eval
[["t/page", "page"], ["t/after", " after"]]
--- request
GET /t/page
--- response_headers
X-Path: bad -> html
--- response_body chop
before page after



=== a page with texts of upstrands around it
--- config
location /p { addition_types *; add_before_body /t/before; add_after_body /t/after; }
location /t { proxy_pass http://$upstrand_a; }
--- user_files eval
[["p", "page"], ["t/before", "before "], ["t/after", " after"]]
--- request
GET /p
--- response_body chop
before page after



=== slices, after a fail-over and with turns, come from one upstream
--- http_config
backend one { root html/one; }
backend two { root html/two; }
upstrand s { upstream bad; upstream one; upstream two; next_upstream_statuses 5xx; }
--- config
location /t { slice 1k; proxy_set_header Range $slice_range; proxy_pass http://$upstrand_s; }
--- user_files eval
[["one/t", "1" x 9000, "201501010000.00"], ["two/t", "2" x 9000, "201501010000.00"]]
--- request eval
["GET /t", "GET /t", "GET /t", "GET /t"]
--- more_headers eval
["", "", "", "Range: bytes=1000-5000"]
--- error_code eval
[200, 200, 200, 206]
--- response_body eval
["1" x 9000, "1" x 9000, "2" x 9000, "1" x 4001]



=== a mirror beside an upstrand, and into one
--- http_config
backend m { return 200 "m"; }
--- config
location /t { mirror /m1; mirror /m2; proxy_pass http://$upstrand_a; }
location = /m1 { internal; proxy_pass http://m; }
location = /m2 { internal; proxy_pass http://$upstrand_a/t/page; }
location /ok { return 200 "ok"; }
--- request eval
["GET /t/long", "GET /ok", "GET /asked.log"]
--- response_body eval
[$::long, "ok", qr/\A(?=(?s:.*)m\n)(?=(?s:.*)bad\n(?s:.*)bad\n)(?=(?s:.*)good\n(?s:.*)good\n)(?:.*\n){5}\z/]



=== auth_request asks by an upstrand, the content comes by another
--- http_config
backend v1 { return 503; }
backend v2 { add_header X-Who me; if ($http_ok) { return 204; } return 403; }
upstrand v { upstream ~^v; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { auth_request /auth; auth_request_set $who $upstream_http_x_who; add_header X-Who $who; add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
location = /auth { internal; proxy_pass http://$upstrand_v; }
--- request eval
["GET /t/page", "GET /t/page", "GET /asked.log"]
--- more_headers eval
["Ok: 1", "", ""]
--- error_code eval
[200, 403, 200]
--- response_headers eval
["X-Who: me\nX-Path: bad -> good", "! X-Who", "! X-Who"]
--- response_body eval
["a page of text", qr/403 Forbidden/, "v1\nv2\nbad\ngood\nv1\nv2\n"]



=== auth_request asks once, before the walk
--- http_config
backend v { return 204; }
--- config
location /t { auth_request /auth; proxy_pass http://$upstrand_a; }
location = /auth { internal; proxy_pass http://v; }
--- request eval
["GET /t/page", "GET /asked.log"]
--- response_body eval
["a page of text", "v\nbad\ngood\n"]



=== trailers that nginx adds
--- config
location /t {
    sub_filter_types *; sub_filter text words;
    add_trailer X-Tail $upstrand_path;
    proxy_pass http://$upstrand_a;
}
--- request eval
::raw("GET /t/page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
--- response_body_like eval
qr{\AHTTP/1\.1 200 .*\r\nTransfer-Encoding: chunked\r\n.*\r\n0\r\nX-Tail: bad -> good\r\n\r\n\z}s



=== trailers of the upstream
--- skip_nginx: 3: < 1.27.2
--- http_config
upstream tail { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
upstrand t { upstream bad; upstream tail; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_http_version 1.1; proxy_pass_trailers on; proxy_pass http://$upstrand_t; }
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply eval
"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Tail: tail\r\n\r\n"
--- request eval
::raw("GET /t HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: close\r\n\r\n")
--- response_body_like eval
qr{\r\n\r\n5\r\nhello\r\n0\r\nX-Tail: tail\r\n\r\n\z}s



=== a truncated body is no failure, and the client sees the cut
--- http_config
upstream cut { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
upstrand t { upstream bad; upstream cut; upstream good; order per_request; next_upstream_statuses error 5xx; }
--- config
location /t { proxy_http_version 1.1; proxy_pass http://$upstrand_t; }
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply eval
"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
--- request eval
::raw("GET /t HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
--- response_body_like eval
qr{\AHTTP/1\.1 200 .*\r\nX-Path: bad -> cut\r\n\r\n5\r\nhello\r\n\z}s
--- error_log
upstream prematurely closed connection while reading upstream



=== a truncated body with a length
--- http_config
upstream cut { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
upstrand t { upstream bad; upstream cut; upstream good; order per_request; next_upstream_statuses error 5xx; }
--- config
location /t { proxy_buffering off; proxy_pass http://$upstrand_t; }
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply eval
"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"
--- request eval
::raw("GET /t HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
--- response_body_like eval
qr{\AHTTP/1\.1 200 .*\r\nContent-Length: 100\r\n.*\r\n\r\nhello\z}s



=== all failed: the last one's own answer, or nginx's page
--- http_config
backend v2 { add_header X-V2 1 always; return 500 "v2\n"; }
dead v3;
upstrand v { upstream bad; upstream v2; order per_request; next_upstream_statuses error 5xx; }
upstrand w { upstream bad; upstream v3; order per_request; next_upstream_statuses error 5xx; }
--- config
location /v { proxy_pass http://$upstrand_v; }
location /w { proxy_pass http://$upstrand_w; }
--- request eval
["GET /v", "GET /w"]
--- error_code eval
[500, 502]
--- response_headers eval
["X-V2: 1\n! X-Bad\nX-Path: bad -> v2", "! X-Bad\nX-Path: bad -> v3"]
--- response_body eval
["v2\n", qr/502 Bad Gateway/]



=== a large failed body, slow or not, is dropped and delays nobody
--- http_config
backend big { error_page 404 =503 /big; location /t { return 404; } location /big { limit_rate_after 100k; limit_rate 1k; root html; } }
upstrand b { upstream big; upstream good; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_b; }
location /off { rewrite ^/off(.*) /t$1 break; proxy_buffering off; proxy_pass http://$upstrand_b; }
--- user_files eval
[["big", "x" x 1_000_000], ["t/page", "page"]]
--- timeout: 1
--- request eval
["GET /t/page", "GET /off/page"]
--- response_headers eval
[("X-Path: big -> good\nContent-Length: 4") x 2]
--- response_body eval
["page", "page"]



=== Location, Refresh and cookies are rewritten as in a direct answer
--- http_config
backend r { add_header Refresh "1; url=http://r/x"; add_header Set-Cookie "a=1; path=/x/; domain=r"; return 302 http://r/there; }
upstrand r { upstream bad; upstream r; order per_request; next_upstream_statuses 5xx; }
--- config
proxy_redirect http://r/ http://front/p/;
proxy_cookie_path /x/ /y/;
proxy_cookie_domain r front.test;
location /t { proxy_pass http://$upstrand_r; }
location /direct { proxy_pass http://r; }
--- request eval
["GET /t", "GET /direct"]
--- error_code eval
[302, 302]
--- response_headers eval
[("Location: http://front/p/there\nSet-Cookie: a=1; path=/y/; domain=front.test") x 2]



=== expires, add_header and $status
--- config
location /t { add_header X-Status $status; add_header X-Path $upstrand_path; expires 1h; proxy_pass http://$upstrand_a; }
--- request
GET /t/page
--- response_headers
X-Status: 200
X-Path: bad -> good
Cache-Control: max-age=3600
--- response_body chop
a page of text
