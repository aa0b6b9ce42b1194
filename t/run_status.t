# upstrand_status: what it says, of what, in which format.

use strict;
use warnings;

use IO::Socket::INET;
use JSON::PP;
use Test::Nginx::Socket 'no_plan';

log_level('notice');
no_long_string();
no_shuffle();

# Two words for --- http_config: "backend NAME { ... }" makes an upstream NAME of
# one server, which does what stands in the braces; "dead NAME;" makes an
# upstream that refuses connections.
#
# --- says has lines "N PATH VALUE" of what the answer to request N says as JSON,
# N from 0 on.  Steps of a path are keys, indices, or names of elements; "#" is
# the number of elements.  The value is one of JSON, or a regex in slashes.

# A port that takes connections and requests, and never answers.

my $silent = IO::Socket::INET->new(Listen => 128, LocalAddr => '127.0.0.1')
    or die "cannot listen: $!";

$ENV{TEST_NGINX_SILENT_PORT} = $silent->sockport();

add_block_preprocessor(sub {
    my ($block) = @_;

    my $http = defined $block->http_config ? $block->http_config : '';
    my $html = '$TEST_NGINX_HTML_DIR';

    $http =~ s/^dead (\w+);/upstream $1 { server 127.0.0.1:1; }/mg;
    $http =~ s/^backend (\w+) \{((?:[^{}]++|(\{(?:[^{}]++|(?3))*\}))*)\}/
        my ($name, $does) = ($1, $2);
        "upstream $name { server unix:$html\/$name.sock; }\n"
        . "server { listen unix:$html\/$name.sock; $does }"/mge;

    $block->set_value(http_config => $http);

    $block->says;

    if (defined $block->asks) {
        my (@requests, @codes, @headers);

        for my $line (grep { /\S/ } split /\n/, $block->asks) {
            $line =~ /^(\d+) ([^|]+?)(?: \| (.*))?$/ or die "no request: $line";
            push @codes, $1;
            push @headers, defined $3 ? join("\n", split / && /, $3) : '';
            push @requests, $2 =~ s/ (\{.*|body:.*)$/\n$1/r =~ s/\nbody:/\n/r;
        }

        if (@requests > 1) {
            $block->set_value(request => \@requests);
            $block->set_value(error_code => \@codes);
            $block->set_value(more_headers => \@headers);

            my $expected = $block->response_headers;

            $block->set_value(response_headers => [($expected) x @requests])
                if defined $expected && !ref $expected;
        } else {
            $block->set_value(request => $requests[0]);
            $block->set_value(error_code => $codes[0]);
            $block->set_value(more_headers => $headers[0]);
        }
    }

    $block->set_value(no_error_log => '[alert]')
        if !defined $block->no_error_log;
});

add_response_body_check(sub {
    my ($block, $body, $i, $repeated, $dry_run) = @_;

    return if $dry_run || !defined $block->says;

    my $json = JSON::PP->new->utf8->allow_nonref;
    my $said = eval { $json->decode($body) };
    my $name = $block->name;

    for my $line (grep { /\S/ } split /\n/, $block->says) {
        my ($n, $path, $want) = $line =~ /^(\d+) (\S+) (.*)$/
            or die "no expectation: $line";

        next if $n != $i;

        my $got = $said;

        for my $step (split m{/}, $path) {
            $step =~ s/%([0-9A-F]{2})/chr hex $1/ge;

            if (ref $got eq 'ARRAY') {
                ($got) = $step eq '#'      ? scalar @$got
                       : $step =~ /^\d+$/ ? $got->[$step]
                       : grep { $_->{name} eq $step } @$got;

            } elsif (ref $got eq 'HASH') {
                $got = $step eq '#'        ? scalar keys %$got
                     : exists $got->{$step} ? $got->{$step} : '(not there)';
            } else {
                $got = '(not there)';
            }
        }

        my $text = JSON::PP->new->ascii->canonical->allow_nonref->encode($got);

        if ($want =~ m{^/(.*)/$}) {
            like($text, qr/^$1$/, "$name - request $n says $path");
        } else {
            is($text, $want, "$name - request $n says $path");
        }
    }
});

run_tests();

__DATA__

=== nothing has been asked
--- http_config
dead u1;
dead u2;
upstream _x_ { server 127.0.0.1:2; }
upstrand a { upstream u1 blacklist_interval=10s; upstream u2 backup; upstream _x_ tier=7; }
--- config
location = /s { upstrand_status; }
--- asks
200 GET /s
--- response_headers
Content-Type: application/json
Cache-Control: no-store
! ETag
! Last-Modified
! Accept-Ranges
--- says
0 # 6
0 version 1
0 nginx /"1\.\d+\.\d+"/
0 module /"\d+\.\d+\.\d+"/
0 worker /\d+/
0 time /"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ"/
0 upstrands/# 1
0 upstrands/a/zone null
0 upstrands/a/walks 0
0 upstrands/a/failovers 0
0 upstrands/a/exhausted 0
0 upstrands/a/intercepted 0
0 upstrands/a/deadline_exceeded 0
0 upstrands/a/upstreams/# 3
0 upstrands/a/upstreams/0/name "u1"
0 upstrands/a/upstreams/0/tier 0
0 upstrands/a/upstreams/0/state "up"
0 upstrands/a/upstreams/0/reason ""
0 upstrands/a/upstreams/0/since null
0 upstrands/a/upstreams/0/draining false
0 upstrands/a/upstreams/0/blacklisted_until null
0 upstrands/a/upstreams/0/blacklist_interval 10000
0 upstrands/a/upstreams/0/tries 0
0 upstrands/a/upstreams/0/failures {"deadline":0,"error":0,"http":0,"timeout":0}
0 upstrands/a/upstreams/0/responses {"1xx":0,"2xx":0,"3xx":0,"4xx":0,"5xx":0}
0 upstrands/a/upstreams/0/last_failure null
0 upstrands/a/upstreams/0/peers_total 1
0 upstrands/a/upstreams/0/peers/0 {"active":0,"backup":false,"down":false,"fail_timeout":10000,"fails":0,"max_conns":0,"max_fails":1,"name":"127.0.0.1:1","server":"127.0.0.1:1","state":"up","weight":1}
0 upstrands/a/upstreams/u2/tier 1
0 upstrands/a/upstreams/u2/blacklist_interval 0
0 upstrands/a/upstreams/_x_/tier 7



=== no upstrand at all
--- config
location = /s { upstrand_status; }
--- asks
200 GET /s
200 GET /s?format=prometheus
200 GET /s?format=html
--- says
0 upstrands {}



=== formats by ?format=
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status; }
--- asks
200 GET /s?format=json | Accept: text/html
200 GET /s?format=prometheus | Accept: application/json
200 GET /s?format=html | Accept: text/plain
200 GET /s?x=1&format=html&format=json
200 GET /s?formatx=html&xformat=html&format
400 GET /s?format=xml
400 GET /s?format=
400 GET /s?format=JSON
400 GET /s?format=%22%5C%00
400 GET /s?format=json%20
200 GET /s?
--- response_headers eval
["Content-Type: application/json",
 "Content-Type: text/plain; version=0.0.4; charset=utf-8",
 "Content-Type: text/html; charset=utf-8",
 "Content-Type: text/html; charset=utf-8",
 "Content-Type: application/json",
 ("Content-Type: application/json\nCache-Control: no-store") x 5,
 "Content-Type: application/json"]
--- says
5 error/status 400
5 error/text "unknown format \"xml\": json, prometheus or html"
6 error/text "unknown format \"\": json, prometheus or html"
7 error/status 400
8 error/text "unknown format \"%22%5C%00\": json, prometheus or html"
9 error/status 400



=== a format that is not UTF-8
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status; }
--- raw_request eval
"GET /s?format=\xff\xfe\" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
--- error_code: 400
--- says
0 error/text "unknown format \"\\xFF\\xFE\"\": json, prometheus or html"



=== formats by Accept, and what it likes best
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status; }
--- asks
200 GET /s | Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8
200 GET /s | Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1
200 GET /s | Accept: */*
200 GET /s | Accept: application/json
200 GET /s | Accept: text/html;q=0.2, application/json;q=0.9
200 GET /s | Accept: text/html;q=0, text/plain;q=0
200 GET /s | Accept: TEXT/HTML
200 GET /s | Accept: image/png
200 GET /s | Accept: ;;;,,,q=,/,text/html;q=
200 GET /s | Accept: text/plain ; q=0.7 , text/html ; q=0.71
200 GET /s | Accept: text/html;q=0.001
200 GET /s | Accept: text/html;q=9999999999999999999999
200 GET /s | Accept: application/*;q=0.5, text/html;q=0.4
200 GET /s | Accept:
--- response_headers eval
["Content-Type: text/html; charset=utf-8",
 "Content-Type: text/plain; version=0.0.4; charset=utf-8",
 "Content-Type: application/json",
 "Content-Type: application/json",
 "Content-Type: application/json",
 "Content-Type: application/json",
 "Content-Type: text/html; charset=utf-8",
 "Content-Type: application/json",
 "Content-Type: application/json",
 "Content-Type: text/html; charset=utf-8",
 "Content-Type: text/html; charset=utf-8",
 "Content-Type: text/html; charset=utf-8",
 "Content-Type: application/json",
 "Content-Type: application/json"]



=== a format that the directive names is not to be chosen
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /j { upstrand_status json; }
location = /p { upstrand_status prometheus; }
location = /h { upstrand_status html; }
--- asks
200 GET /j?format=html | Accept: text/html
200 GET /p?format=html | Accept: text/html
200 GET /h | Accept: application/json
200 GET /h?format=json
200 GET /j?format=xml
--- response_headers eval
["Content-Type: application/json",
 "Content-Type: text/plain; version=0.0.4; charset=utf-8",
 "Content-Type: text/html; charset=utf-8",
 "Content-Type: application/json",
 "Content-Type: application/json"]



=== methods other than GET and HEAD
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status; }
--- asks
405 POST /s body:x
405 PUT /s body:x
405 DELETE /s
405 PATCH /s {"drain": true}
405 OPTIONS /s
405 POST /s?format=html body:x
--- response_headers
Allow: GET, HEAD
Cache-Control: no-store
Content-Type: application/json
--- says
0 error/status 405
0 error/text "the method is not allowed here"
5 error/status 405



=== unknown methods
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status; }
--- raw_request eval
"FROB /s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
--- error_code: 405
--- response_headers
Allow: GET, HEAD



=== HEAD: the header of GET, no body
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status; }
--- asks
200 HEAD /s
200 HEAD /s?format=prometheus
200 HEAD /s?format=html
400 HEAD /s?format=x
--- response_headers_like eval
["Content-Type: application/json\nContent-Length: \\d{3,}",
 "Content-Type: text/plain; version=0.0.4; charset=utf-8\nContent-Length: \\d{3,}",
 "Content-Type: text/html; charset=utf-8\nContent-Length: \\d{4,}",
 "Content-Type: application/json\nContent-Length: \\d{2}"]
--- response_body eval
["", "", "", ""]



=== HTTP/1.0, and a GET with a body
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status; }
--- raw_request eval
"GET /s HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"
--- error_code: 200
--- says
0 version 1



=== requests in one connection: bodies of refused ones are dropped
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status; }
--- pipelined_requests eval
["POST /s\n" . "x" x 10000, "GET /s", "POST /s\nGET /s HTTP/1.1", "GET /s?format=x", "GET /s"]
--- error_code eval
[405, 200, 405, 400, 200]
--- says
1 version 1
4 version 1



=== no answer is conditional, or a part
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status; }
--- asks
200 GET /s | Range: bytes=0-1
200 GET /s | If-None-Match: *
200 GET /s | If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT
200 GET /s | If-Unmodified-Since: Fri, 01 Jan 2000 00:00:00 GMT && If-Match: "x"
--- response_headers
! Content-Range



=== compressed
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
gzip on;
gzip_min_length 1;
gzip_types application/json text/plain;
location = /s { upstrand_status; }
--- asks
200 GET /s | Accept-Encoding: gzip
200 GET /s?format=prometheus | Accept-Encoding: gzip
200 GET /s?format=html | Accept-Encoding: gzip
--- response_headers
Content-Encoding: gzip



=== walks, their ends, and what became of each try
--- http_config
backend good { return 200 "good\n"; }
backend bad { return 503 "bad\n"; }
backend lost { return 404 "lost\n"; }
dead dead;
upstream silent { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
upstrand a { upstream bad; upstream dead; upstream silent; upstream good;
             order per_request; next_upstream_statuses error timeout 5xx; }
upstrand none { upstream bad; upstream dead; order per_request; next_upstream_statuses error timeout 5xx; }
upstrand once { upstream bad; upstream good; order per_request; next_upstream_statuses 5xx; next_upstream_tries 1; }
upstrand late { upstream silent; upstream good; order per_request; next_upstream_timeout 200ms; }
upstrand caught { upstream lost; order per_request; intercept_statuses 404 /found; }
upstrand post { upstream bad; upstream good; order per_request; next_upstream_statuses 5xx; }
--- config
proxy_read_timeout 300ms;
location = /found { return 200 "found\n"; }
location = /a { proxy_pass http://$upstrand_a; }
location = /none { proxy_pass http://$upstrand_none; }
location = /tries { proxy_pass http://$upstrand_once; }
location = /late { proxy_pass http://$upstrand_late; }
location = /caught { proxy_pass http://$upstrand_caught; }
location = /post { proxy_pass http://$upstrand_post; }
location = /s { upstrand_status; }
--- asks
200 GET /a
200 HEAD /a
502 GET /none
503 GET /tries
504 GET /late
200 GET /caught
503 POST /post body:x
200 GET /s
200 GET /s?format=prometheus
--- says
7 upstrands/a/walks 2
7 upstrands/a/failovers 6
7 upstrands/a/exhausted 0
7 upstrands/a/upstreams/bad/tries 2
7 upstrands/a/upstreams/bad/state "up"
7 upstrands/a/upstreams/bad/failures {"deadline":0,"error":0,"http":2,"timeout":0}
7 upstrands/a/upstreams/bad/responses {"1xx":0,"2xx":0,"3xx":0,"4xx":0,"5xx":2}
7 upstrands/a/upstreams/bad/last_failure/reason "http_503"
7 upstrands/a/upstreams/bad/last_failure/time /"20\d\d-.*Z"/
7 upstrands/a/upstreams/dead/failures {"deadline":0,"error":2,"http":0,"timeout":0}
7 upstrands/a/upstreams/dead/responses/5xx 2
7 upstrands/a/upstreams/dead/last_failure/reason "error"
7 upstrands/a/upstreams/silent/failures {"deadline":0,"error":0,"http":0,"timeout":2}
7 upstrands/a/upstreams/silent/last_failure/reason "timeout"
7 upstrands/a/upstreams/good/tries 2
7 upstrands/a/upstreams/good/responses {"1xx":0,"2xx":2,"3xx":0,"4xx":0,"5xx":0}
7 upstrands/a/upstreams/good/last_failure null
7 upstrands/none/walks 1
7 upstrands/none/failovers 1
7 upstrands/none/exhausted 1
7 upstrands/none/upstreams/dead/failures/error 1
7 upstrands/once/walks 1
7 upstrands/once/failovers 0
7 upstrands/once/exhausted 0
7 upstrands/once/upstreams/bad/failures/http 1
7 upstrands/once/upstreams/good/tries 0
7 upstrands/late/deadline_exceeded 1
7 upstrands/late/failovers 0
7 upstrands/late/upstreams/silent/failures {"deadline":1,"error":0,"http":0,"timeout":0}
7 upstrands/late/upstreams/silent/last_failure/reason "deadline"
7 upstrands/late/upstreams/silent/responses/5xx 1
7 upstrands/caught/intercepted 1
7 upstrands/caught/upstreams/lost/responses/4xx 1
7 upstrands/caught/upstreams/lost/failures/http 0
7 upstrands/post/failovers 0
7 upstrands/post/upstreams/bad/tries 1
7 upstrands/post/upstreams/bad/failures/http 1
--- response_body_like eval
[('^') x 8,
'(?sm)(?=.*^nginx_upstrand_walks_total\{upstrand="a"\} 2$)(?=.*^nginx_upstrand_failovers_total\{upstrand="a",from="bad",reason="http"\} 2$)(?=.*^nginx_upstrand_failovers_total\{upstrand="a",from="dead",reason="error"\} 2$)(?=.*^nginx_upstrand_failovers_total\{upstrand="a",from="silent",reason="timeout"\} 2$)(?=.*^nginx_upstrand_tries_total\{upstrand="a",upstream="good",result="final"\} 2$)(?=.*^nginx_upstrand_tries_total\{upstrand="none",upstream="dead",result="exhausted"\} 1$)(?=.*^nginx_upstrand_tries_total\{upstrand="once",upstream="bad",result="tries"\} 1$)(?=.*^nginx_upstrand_tries_total\{upstrand="late",upstream="silent",result="deadline"\} 1$)(?=.*^nginx_upstrand_tries_total\{upstrand="post",upstream="bad",result="non_idempotent"\} 1$)(?=.*^nginx_upstrand_intercepted_total\{upstrand="caught"\} 1$)(?=.*^nginx_upstrand_deadline_exceeded_total\{upstrand="late"\} 1$)(?=.*^nginx_upstrand_exhausted_total\{upstrand="none"\} 1$)(?=.*^nginx_upstrand_requests_total\{upstrand="a",upstream="good",code="2xx"\} 2$)(?=.*^nginx_upstrand_upstream_state\{upstrand="a",upstream="good"\} 1$)(?=.*^nginx_upstrand_try_duration_seconds_bucket\{upstrand="late",upstream="silent",le="0.1"\} 0$)(?=.*^nginx_upstrand_try_duration_seconds_bucket\{upstrand="late",upstream="silent",le="\+Inf"\} 1$)(?=.*^nginx_upstrand_try_duration_seconds_count\{upstrand="late",upstream="silent"\} 1$)(?=.*^nginx_upstrand_try_duration_seconds_sum\{upstrand="late",upstream="silent"\} 0\.\d+$)(?=.*^nginx_upstrand_shared\{upstrand="a"\} 0$)']



=== states: blacklisted, down, without a live server, full
--- http_config
backend bad { return 503; }
backend good { return 200 "good\n"; }
upstream down { server 127.0.0.1:1 down; server 127.0.0.1:2 down; }
upstream half { server 127.0.0.1:1 down; server 127.0.0.1:2; }
upstream failed { server 127.0.0.1:1 fail_timeout=60s; server 127.0.0.1:2 fail_timeout=60s; }
upstrand a { upstream bad blacklist_interval=60s; upstream good; upstream down; upstream half;
             upstream failed; order per_request; next_upstream_statuses 5xx; }
--- config
location = /a { proxy_pass http://$upstrand_a; }
location = /f { proxy_pass http://failed; }
location = /s { upstrand_status; }
--- asks
200 GET /a
502 GET /f
502 GET /f
200 GET /s
200 GET /s?format=prometheus
--- says
3 upstrands/a/upstreams/bad/state "unavail"
3 upstrands/a/upstreams/bad/reason "blacklisted after http_503"
3 upstrands/a/upstreams/bad/blacklisted_until /"20.*Z"/
3 upstrands/a/upstreams/bad/blacklist_interval 60000
3 upstrands/a/upstreams/bad/since /"20.*Z"/
3 upstrands/a/upstreams/good/state "up"
3 upstrands/a/upstreams/down/state "down"
3 upstrands/a/upstreams/down/reason "all servers are marked down"
3 upstrands/a/upstreams/down/peers/0/down true
3 upstrands/a/upstreams/down/peers/0/state "down"
3 upstrands/a/upstreams/half/state "up"
3 upstrands/a/upstreams/half/peers/0/state "down"
3 upstrands/a/upstreams/half/peers/1/state "up"
3 upstrands/a/upstreams/failed/state "unavail"
3 upstrands/a/upstreams/failed/reason "no live servers"
3 upstrands/a/upstreams/failed/blacklisted_until null
3 upstrands/a/upstreams/failed/peers/0/fails 1
3 upstrands/a/upstreams/failed/peers/0/state "unavail"
--- response_body_like eval
[('^') x 4,
'(?sm)(?=.*upstream_state\{upstrand="a",upstream="bad"\} 4$)(?=.*upstream_state\{upstrand="a",upstream="down"\} 3$)(?=.*upstream_state\{upstrand="a",upstream="failed"\} 4$)(?=.*upstream_tier\{upstrand="a",upstream="bad"\} 0$)']



=== a blacklisting that is over: checking, until a request has told
--- http_config
backend bad { return 503; }
backend good { return 200 "good\n"; }
upstrand a { upstream bad blacklist_interval=1ms; upstream good;
             order per_request; next_upstream_statuses 5xx; }
--- config
location = /a { proxy_pass http://$upstrand_a; }
location = /wait { proxy_read_timeout 50ms; error_page 504 = /s; proxy_pass http://127.0.0.1:$TEST_NGINX_SILENT_PORT; }
location = /s { upstrand_status; }
--- asks
200 GET /a
200 GET /wait
--- says
1 upstrands/a/upstreams/bad/state "checking"
1 upstrands/a/upstreams/bad/reason "the next request probes it, blacklisted after http_503"
1 upstrands/a/upstreams/bad/blacklisted_until null



=== servers as nginx holds them
--- http_config
upstream u { zone u 64k;
    server 127.0.0.1:1 weight=5 max_fails=3 fail_timeout=7s max_conns=9;
    server 127.0.0.1:2 down;
    server 127.0.0.1:3 backup weight=2;
    server unix:/nope.sock;
    server localhost:4 max_fails=0; }
upstrand a { upstream u; }
--- config
location = /s { upstrand_status; }
--- asks
200 GET /s
--- says
0 upstrands/a/upstreams/u/peers_total /[56]/
0 upstrands/a/upstreams/u/peers/0 {"active":0,"backup":false,"down":false,"fail_timeout":7000,"fails":0,"max_conns":9,"max_fails":3,"name":"127.0.0.1:1","server":"127.0.0.1:1","state":"up","weight":5}
0 upstrands/a/upstreams/u/peers/1/down true
0 upstrands/a/upstreams/u/peers/2/server "unix:/nope.sock"
0 upstrands/a/upstreams/u/peers/3/server "127.0.0.1:4"
0 upstrands/a/upstreams/u/peers/3/name "localhost:4"
0 upstrands/a/upstreams/u/peers/3/max_fails 0
0 upstrands/a/upstreams/u/peers/127.0.0.1:3/backup true
0 upstrands/a/upstreams/u/peers/127.0.0.1:3/weight 2



=== methods of nginx's own
--- http_config
upstream hash { hash $uri; server 127.0.0.1:1; server 127.0.0.1:2 weight=3; }
upstream consistent { hash $uri consistent; server 127.0.0.1:1; server 127.0.0.1:2; }
upstream ip_hash { ip_hash; server 127.0.0.1:1; server 127.0.0.1:2 down; }
upstream least { least_conn; server 127.0.0.1:1; server 127.0.0.1:2; }
upstream random { random two least_conn; zone r 64k; server 127.0.0.1:1; server 127.0.0.1:2; }
upstream kept { server 127.0.0.1:1; server 127.0.0.1:2; keepalive 4; }
upstrand a { upstream ~.; }
--- config
location = /s { upstrand_status; }
location = /a { proxy_pass http://$upstrand_a; }
--- asks
502 GET /a
200 GET /s
--- says
1 upstrands/a/upstreams/# 6
1 upstrands/a/upstreams/hash/peers_total 2
1 upstrands/a/upstreams/hash/peers/1/weight 3
1 upstrands/a/upstreams/consistent/peers_total 2
1 upstrands/a/upstreams/ip_hash/peers/1/down true
1 upstrands/a/upstreams/least/peers_total 2
1 upstrands/a/upstreams/random/peers_total 2
1 upstrands/a/upstreams/kept/peers_total 2



=== copies, singlets, and lone servers, whose second one is nobody's business
--- http_config
upstream u1 { server 127.0.0.1:1; server 127.0.0.1:2; combine_server_singlets _single_; }
upstream lone { server 127.0.0.1:3; extend_single_peers; }
upstream backups { server 127.0.0.1:3 backup; server 127.0.0.1:4; extend_single_peers; }
upstream all { server 127.0.0.1:5; add_upstream u1 weight=2; add_upstream lone backup; }
upstrand a { upstream ~^u1_single_; upstream lone; upstream backups; upstream all; }
--- config
location = /s { upstrand_status; }
location = /l { proxy_pass http://lone; }
--- asks
502 GET /l
200 GET /s
--- says
1 upstrands/a/upstreams/# 5
1 upstrands/a/upstreams/u1_single_1/peers_total 2
1 upstrands/a/upstreams/u1_single_1/peers/0/backup false
1 upstrands/a/upstreams/u1_single_1/peers/1/backup true
1 upstrands/a/upstreams/lone/peers_total 1
1 upstrands/a/upstreams/lone/peers/# 1
1 upstrands/a/upstreams/lone/peers/0/fails 1
1 upstrands/a/upstreams/backups/peers_total 2
1 upstrands/a/upstreams/all/peers_total 4



=== active connections
--- http_config
upstream u { server 127.0.0.1:$TEST_NGINX_SILENT_PORT max_conns=1; }
upstrand a { upstream u; }
--- config
location = /s { upstrand_status; }
location = /mirrored { mirror /m; proxy_read_timeout 100ms; error_page 504 = /s; proxy_pass http://127.0.0.1:$TEST_NGINX_SILENT_PORT; }
location = /m { internal; proxy_read_timeout 1s; proxy_pass http://u; }
--- asks
200 GET /mirrored
--- says
0 upstrands/a/upstreams/u/peers/0/active 1
0 upstrands/a/upstreams/u/peers/0/max_conns 1
0 upstrands/a/upstreams/u/peers/0/state "unavail"
0 upstrands/a/upstreams/u/state "unavail"
--- timeout: 5



=== odd names
--- http_config
upstream 'a b' { server 127.0.0.1:1; }
upstream 'q"uote' { server 127.0.0.1:1; }
upstream 'back\slash' { server 127.0.0.1:1; }
upstream 'sl/ash' { server 127.0.0.1:1; }
upstream 'per%cent' { server 127.0.0.1:1; }
upstream UPPER { server 127.0.0.1:1; }
upstrand X { upstream 'a b'; upstream 'q"uote'; upstream 'back\slash'; upstream 'sl/ash'; upstream 'per%cent'; upstream UPPER; }
--- config
location = /s { upstrand_status; }
--- asks
200 GET /s
200 GET /s?format=prometheus
--- says
0 upstrands/X/upstreams/0/name "a b"
0 upstrands/X/upstreams/1/name "q\"uote"
0 upstrands/X/upstreams/2/name "back\\slash"
0 upstrands/X/upstreams/3/name "sl/ash"
0 upstrands/X/upstreams/4/name "per%cent"
0 upstrands/X/upstreams/5/name "UPPER"
--- response_body_like eval
['^', '(?sm)(?=.*,upstream="a b"\} 1$)(?=.*,upstream="q\\\\"uote"\} 1$)(?=.*,upstream="back\\\\\\\\slash"\} 1$)(?=.*,upstream="sl/ash"\} 1$)(?=.*,upstream="per%cent"\} 1$)(?=.*,upstream="UPPER"\} 1$)(?=.*upstrand="X")']



=== names that are not UTF-8, or control characters
--- http_config eval
"upstream \"a\xff\xfeb\" { server 127.0.0.1:1; }\nupstream \"l\\nf\" { server 127.0.0.1:1; }\nupstream \"\xd1\x8f\" { server 127.0.0.1:1; }\nupstrand a { upstream \"a\xff\xfeb\"; upstream \"l\\nf\"; upstream \"\xd1\x8f\"; }\n"
--- config
location = /s { upstrand_status; }
--- asks
200 GET /s
200 GET /s?format=prometheus
--- says
0 upstrands/a/upstreams/0/name "a\\xFF\\xFEb"
0 upstrands/a/upstreams/1/name "l\nf"
0 upstrands/a/upstreams/2/name "\u044f"
--- response_body_like eval
['^', '(?sm)(?=.*,upstream="a\\\\\\\\xFF\\\\\\\\xFEb"\} 1$)(?=.*,upstream="l\\\\nf"\} 1$)']



=== subrequests: included by SSI, twice
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status json; }
location = /page { ssi on; ssi_types text/plain; default_type text/plain; return 200 '[<!--# include virtual="/s" -->,<!--# include virtual="/s" -->]'; }
location = /static.txt { ssi on; ssi_types text/plain; }
--- user_files
>>> static.txt
[<!--# include virtual="/s" -->,<!--# include virtual="/s" -->]
--- asks
200 GET /static.txt
--- says
0 0/version 1
0 1/version 1



=== an error page, and an internal redirect of another method
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /s { upstrand_status json; }
location = /gone { error_page 404 /s; return 404; }
location = /ok { error_page 404 =200 /s; return 404; }
location = /post { error_page 403 = /s; deny all; }
location = /own { error_page 405 400 /ok; upstrand_status; }
--- asks
404 GET /gone
200 GET /ok
200 POST /post body:x
405 POST /own body:x
400 GET /own?format=x
--- says
0 version 1
1 version 1
3 error/status 405
4 error/status 400



=== through a pass to itself, which must not cache it
--- http_config
dead u1;
upstrand a { upstream u1; }
proxy_cache_path $TEST_NGINX_HTML_DIR/cache keys_zone=c:1m;
--- config
location = /s { upstrand_status json; }
location = /p { proxy_cache c; proxy_cache_valid any 1h; proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/s; add_header X-Cache $upstream_cache_status; }
--- asks
200 GET /p
200 GET /p
--- response_headers
X-Cache: MISS
--- says
1 version 1



=== a status of many members is whole
--- http_config eval
join('', map { "upstream u$_ { server 127.0.0.1:1; server 127.0.0.1:2; }\n" } 1 .. 300) . "upstrand a { upstream ~^u; }\nupstrand b { upstream ~^u; zone z 2m; }\n"
--- config
location = /s { upstrand_status json; }
location = /api/ { upstrand_api; }
--- asks
200 GET /s
200 GET /s?
--- says
0 upstrands/a/upstreams/# 300
0 upstrands/a/upstreams/299/peers/# 2
0 upstrands/a/upstreams/299/name "u300"
0 upstrands/b/zone "z"
0 upstrands/b/upstreams/# 300



=== of very many servers the first few are shown, and all are counted
--- http_config eval
"upstream u { " . join('', map { "server 127.0.0.1:$_;" } 1 .. 5100) . " }\nupstream v { server 127.0.0.1:1; }\nupstrand a { upstream u; upstream v; }\n"
--- config
location = /s { upstrand_status json; }
--- asks
200 GET /s
--- says
0 upstrands/a/upstreams/u/peers_total 5100
0 upstrands/a/upstreams/u/peers/# 2500
0 upstrands/a/upstreams/v/peers/# 1



=== access is nginx's own business
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location = /deny { deny all; upstrand_status; }
location = /auth { auth_basic closed; auth_basic_user_file nope; upstrand_status; }
location = /any { satisfy any; allow 127.0.0.1; auth_basic closed; auth_basic_user_file nope; deny all; upstrand_status; }
location = /internal { internal; upstrand_status; }
--- asks
403 GET /deny
401 GET /auth
200 GET /any
404 GET /internal
