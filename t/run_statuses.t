# next_upstream_statuses: which answers count as failures and lead to the next
# upstream. A failure of a GET ends at "ok"; everything else is what the first
# upstream answered.

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

# For each [WORDS, UPSTREAM] an upstrand of UPSTREAM and ok, at /0, /1, ...

our @table;

sub upstrands {
    @table = @_;

    my $i = 0;

    return join '', map {
        my ($words, $upstream) = @$_;

        "upstrand a" . $i++ . " {\n"
        . "    upstream $upstream; upstream ok; order per_request;\n"
        . ($words eq '' ? '' : "    next_upstream_statuses $words;\n")
        . "}\n"
    } @table;
}

sub locations {
    return join '', map {
        "location = /$_ {\n    proxy_read_timeout 150ms;\n"
        . "    proxy_pass http://\$upstrand_a$_;\n}\n"
    } 0 .. $#table;
}

sub requests {
    my $method = shift || 'GET';

    return [map { "$method /$_" . ($method eq 'GET' ? '' : "\nbody") }
            0 .. $#table];
}

run_tests();

__DATA__

=== a number is that status, and no other
--- http_config eval
<<'_EOC_' . ::upstrands(map { [$_, "s$_"] } 200, 204, 206, 302, 304, 404, 429, 499, 500, 502, 503, 504, 599)
backend s200 { return 200 "s200\n"; }
backend s204 { return 204; }
backend s206 { return 206 "s206\n"; }
backend s302 { return 302 /x; }
backend s304 { return 304; }
backend s404 { return 404 "s404\n"; }
backend s429 { return 429 "s429\n"; }
backend s499 { return 499 "s499\n"; }
backend s500 { return 500 "s500\n"; }
backend s502 { return 502 "s502\n"; }
backend s503 { return 503 "s503\n"; }
backend s504 { return 504 "s504\n"; }
backend s599 { return 599 "s599\n"; }
backend ok { return 200 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: ::requests()
--- response_body eval
[("ok\n") x 13]



=== a status that is not listed is the answer
--- http_config eval
<<'_EOC_' . ::upstrands(['204', 's200'], ['503', 's502'], ['503', 's504'], ['404', 's410'], ['', 's503'], ['non_idempotent', 's503'])
backend s200 { return 200 "s200\n"; }
backend s410 { return 410 "s410\n"; }
backend s502 { return 502 "s502\n"; }
backend s503 { return 503 "s503\n"; }
backend s504 { return 504 "s504\n"; }
backend ok { return 200 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: [@{ ::requests() }, "GET /asked.log"]
--- error_code eval
[200, 502, 504, 410, 503, 503, 200]
--- response_body eval
["s200\n", "s502\n", "s504\n", "s410\n", "s503\n", "s503\n", "s200\ns502\ns504\ns410\ns503\ns503\n"]



=== 2xx, 3xx, 4xx, 5xx: a class is all of its hundred
--- http_config eval
<<'_EOC_' . ::upstrands(['2xx', 's200'], ['2xx', 's299'], ['3xx', 's302'], ['3xx', 's304'], ['4xx', 's400'], ['4xx', 's499'], ['5xx', 's500'], ['5xx', 's599'])
backend s200 { return 200 "s200\n"; }
backend s299 { return 299 "s299\n"; }
backend s302 { return 302 /x; }
backend s304 { return 304; }
backend s400 { return 400 "s400\n"; }
backend s499 { return 499 "s499\n"; }
backend s500 { return 500 "s500\n"; }
backend s599 { return 599 "s599\n"; }
backend ok { return 206 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: ::requests()
--- error_code eval
[(206) x 8]
--- response_body eval
[("ok\n") x 8]



=== a class ends with its hundred
--- http_config eval
<<'_EOC_' . ::upstrands(['3xx 5xx', 's499'], ['4xx', 's500'], ['4xx', 's302'])
backend s302 { return 302 /x; }
backend s499 { return 499 "s499\n"; }
backend s500 { return 500 "s500\n"; }
backend ok { return 200 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: ::requests()
--- error_code eval
[499, 500, 302]
--- response_body eval
["s499\n", "s500\n", qr/302 Found/]



=== a range is its ends and all between
--- http_config eval
<<'_EOC_' . ::upstrands(map { ['500-504', $_] } qw(s500 s503 s504 s499 s505))
backend s499 { return 499 "s499\n"; }
backend s500 { return 500 "s500\n"; }
backend s503 { return 503 "s503\n"; }
backend s504 { return 504 "s504\n"; }
backend s505 { return 505 "s505\n"; }
backend ok { return 200 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: ::requests()
--- error_code eval
[200, 200, 200, 499, 505]
--- response_body eval
["ok\n", "ok\n", "ok\n", "s499\n", "s505\n"]



=== error: refused, closed, no live server, all servers down
--- http_config eval
<<'_EOC_' . ::upstrands(map { ['error', $_] } qw(gone closes off))
dead gone;
backend closes { return 444; }
upstream off { server 127.0.0.1:1 down; }
backend ok { return 200 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: ::requests()
--- response_body eval
["ok\n", "ok\n", "ok\n"]



=== error covers neither an upstream's own 502 nor a timeout
--- http_config eval
<<'_EOC_' . ::upstrands(map { ['error', $_] } qw(s502 silent))
backend s502 { return 502 "s502\n"; }
upstream silent { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend ok { return 200 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: [@{ ::requests() }, "GET /asked.log"]
--- error_code eval
[502, 504, 200]
--- response_body eval
["s502\n", qr/504 Gateway Time-out/, "s502\n"]



=== timeout: an upstream that is silent for too long, and nothing else
--- http_config eval
<<'_EOC_' . ::upstrands(map { ['timeout', $_] } qw(silent s504 gone))
upstream silent { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend s504 { return 504 "s504\n"; }
dead gone;
backend ok { return 200 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: [@{ ::requests() }, "GET /asked.log"]
--- error_code eval
[200, 504, 502, 200]
--- response_body eval
["ok\n", "s504\n", qr/502 Bad Gateway/, "ok\ns504\n"]



=== the numbers 502 and 504 take those that nginx made itself, too
--- http_config eval
<<'_EOC_' . ::upstrands(['502', 'gone'], ['504', 'silent'], ['5xx', 'gone'], ['5xx', 'silent'], ['504', 'gone'], ['502', 'silent'])
upstream silent { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
dead gone;
backend ok { return 200 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: ::requests()
--- error_code eval
[200, 200, 200, 200, 502, 504]
--- response_body eval
[("ok\n") x 4, qr/502 Bad Gateway/, qr/504 Gateway Time-out/]



=== without the directive it is error and timeout, as in proxy_next_upstream
--- http_config eval
<<'_EOC_' . ::upstrands(map { ['', $_] } qw(gone silent s503))
upstream silent { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
dead gone;
backend s503 { return 503 "s503\n"; }
backend ok { return 200 "ok\n"; }
_EOC_
--- config eval: ::locations()
--- request eval: ::requests()
--- error_code eval
[200, 200, 503]
--- response_body eval
["ok\n", "ok\n", "s503\n"]



=== invalid_header: an answer that cannot be parsed
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_TCP_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1; upstream u2; order per_request;
    next_upstream_statuses invalid_header;
}
--- config
location /t { add_header X-Reason $upstrand_status; proxy_pass http://$upstrand_a; }
--- tcp_listen eval: $ENV{TEST_NGINX_TCP_PORT}
--- tcp_reply eval
"HTTP/1.1 200 OK\r\nBad\x00Name: x\r\n\r\n"
--- request
GET /t
--- response_body
u2
--- error_log
upstream sent invalid header



=== several words and several lines add up
--- http_config
backend u1 { return 404 "u1\n"; }
dead u2;
backend u3 { return 500 "u3\n"; }
backend u4 { return 302 /x; }
backend u5 { return 200 "u5\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 404 error;
    next_upstream_statuses 5xx;
    next_upstream_statuses 300-303;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_headers
X-Path: u1 -> u2 -> u3 -> u4 -> u5
--- response_body
u5



=== POST, LOCK and PATCH stop at an answer; PUT, DELETE and others go on
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request eval
[map { "$_ /t\nbody" } qw(POST LOCK PATCH PUT DELETE OPTIONS PROPFIND)]
--- error_code eval
[(503) x 3, (200) x 4]
--- response_headers eval
[("X-Path: u1") x 3, ("X-Path: u1 -> u2") x 4]
--- response_body eval
[("u1\n") x 3, ("u2\n") x 4]



=== non_idempotent: POST, LOCK and PATCH go on as well
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream u1; upstream u2; order per_request;
    next_upstream_statuses 5xx non_idempotent;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request eval
[map { "$_ /t\nbody" } qw(POST LOCK PATCH)]
--- response_headers eval
[("X-Path: u1 -> u2") x 3]
--- response_body eval
[("u2\n") x 3]



=== a POST of which nothing was sent goes on without non_idempotent
--- http_config
dead u1;
upstream u2 { server 127.0.0.1:1 down; }
backend u3 { return 503 "u3\n"; }
backend u4 { return 200 "u4\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses error 5xx; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request
POST /t
body
--- error_code: 503
--- response_headers
X-Path: u1 -> u2 -> u3
--- response_body
u3



=== a POST that was sent and then timed out is not sent again
--- http_config
upstream u1 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses error timeout; }
upstrand b { upstream u1; upstream u2; order per_request; next_upstream_statuses error timeout non_idempotent; }
--- config
proxy_read_timeout 150ms;
location /a { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
location /b { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_b; }
--- request eval
["POST /a\nbody", "POST /b\nbody"]
--- error_code eval
[504, 200]
--- response_headers eval
["X-Path: u1", "X-Path: u1 -> u2"]



=== a POST that was sent to one that closed without an answer is not sent again
--- http_config
backend u1 { return 444; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses error timeout; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request
POST /t
body
--- error_code: 502
--- response_headers
X-Path: u1



=== a POST without a body stops at an answer, too
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request
POST /t
--- error_code: 503
--- response_body
u1
