# upstrand_api: what it answers, what it changes, and what it refuses.

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
        } else {
            $block->set_value(request => $requests[0]);
            $block->set_value(error_code => $codes[0]);
            $block->set_value(more_headers => $headers[0]);
        }
    }

    my $requests = $block->request;
    $requests = $block->pipelined_requests if !ref $requests;

    if (ref $requests) {
        for my $type (qw(more_headers response_headers response_headers_like)) {
            my $value = $block->$type;

            $block->set_value($type => [($value) x @$requests])
                if defined $value && !ref $value;
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

=== what there is to read
--- http_config
dead u1;
dead u2;
upstrand a { upstream u1; upstream u2 backup; }
upstrand b { zone z 64k; upstream u1 blacklist_interval=5s; }
--- config
location /api/ { upstrand_api; }
--- asks
200 GET /api/upstrands
200 GET /api/upstrands/b
200 GET /api/upstrands/a/explain
200 GET /api/upstrands/a/upstreams/u2
200 GET /api/upstrands/A/upstreams/U2
200 GET /api/upstrands?x=/y
200 GET //api//upstrands//a
200 GET /api/./upstrands/x/../a/explain#f
--- response_headers
Content-Type: application/json
Cache-Control: no-store
--- says
0 # 2
0 a/zone null
0 a/upstreams/# 2
0 b/zone "z"
0 b/upstreams/u1/blacklist_interval 5000
1 # 7
1 zone "z"
2 upstrand "a"
2 zone null
2 order "by turns"
2 last_resort false
2 upstreams/# 2
2 upstreams/0 {"name":"u1","position":1,"reason":"usable","tier":0}
2 upstreams/1 {"name":"u2","position":2,"reason":"usable","tier":1}
3 name "u2"
3 tier 1
4 name "u2"
5 # 2
6 upstreams/# 2
7 upstrand "a"



=== HEAD
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location /api/ { upstrand_api; }
--- asks
200 HEAD /api/upstrands
200 HEAD /api/upstrands/a
200 HEAD /api/upstrands/a/explain
200 HEAD /api/upstrands/a/upstreams/u1
404 HEAD /api/upstrands/b
--- response_headers_like
Content-Length: \d\d+
--- response_body eval
[('') x 5]



=== what there is not
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location /api/ { upstrand_api; }
--- asks
404 GET /api/
404 GET /api/upstrand
404 GET /api/upstrandsa
404 GET /api/upstrands/
404 GET /api/upstrands/b
404 GET /api/upstrands/a/
404 GET /api/upstrands/a/x
404 GET /api/upstrands/a/explain/
404 GET /api/upstrands/a/upstreams
404 GET /api/upstrands/a/upstreams/
404 GET /api/upstrands/a/upstreams/u2
404 GET /api/upstrands/a/upstreams/u1/
404 GET /api/upstrands/a/upstreams/u1/x
404 PATCH /api/upstrands/a/upstreams/u2 {"drain":true} | Content-Type: application/json
404 PUT /api/nope body:x
404 GET /api/x/upstrands
404 GET /api/upstrands/%22%5C
404 GET /api/UPSTRANDS
--- response_headers
Content-Type: application/json
Cache-Control: no-store
--- says
0 error {"status":404,"text":"there is nothing of this name"}
3 error/text "there is no upstrand \"\""
4 error/text "there is no upstrand \"b\""
5 error/text "there is nothing of this name"
10 error/text "there is no upstream \"u2\" in upstrand \"a\""
11 error/text "there is no upstream \"u1/\" in upstrand \"a\""
16 error/text "there is no upstrand \"\"\\\""



=== methods that are not allowed
--- http_config
dead u1;
upstrand a { zone z 64k; upstream u1; }
--- config
location /api/ { upstrand_api; }
--- asks
405 POST /api/upstrands {}
405 PATCH /api/upstrands/a {} | Content-Type: application/json
405 PUT /api/upstrands/a/explain {}
405 DELETE /api/upstrands/a
405 OPTIONS /api/upstrands
--- response_headers
Allow: GET, HEAD
--- says
0 error/status 405
1 error/text "the method is not allowed here"



=== methods that are not allowed for an upstream
--- http_config
dead u1;
upstrand a { zone z 64k; upstream u1; }
--- config
location /api/ { upstrand_api; }
--- asks
405 POST /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
405 PUT /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
405 DELETE /api/upstrands/a/upstreams/u1
--- response_headers
Allow: GET, HEAD, PATCH
--- says
0 error/status 405



=== a change, and what it logs
--- http_config
backend u1 { return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { zone z 64k; upstream u1; upstream u2; order per_request; }
--- config
location /api/ { upstrand_api; }
location = /a { proxy_pass http://$upstrand_a; }
--- asks
200 GET /a
200 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
200 GET /a
200 GET /api/upstrands/a/explain
200 PATCH /api/upstrands/a/upstreams/u1 {"drain":false} | Content-Type: APPLICATION/JSON; charset=utf-8
200 GET /a
200 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"30s"} | Content-Type: application/json
200 GET /a
200 GET /api/upstrands/a/explain
200 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":null} | Content-Type: application/json
200 GET /a
--- says
1 state "draining"
1 reason "drained by hand"
1 draining true
1 since /"20.*Z"/
3 upstreams/0 {"name":"u2","position":1,"reason":"usable","tier":0}
3 upstreams/1 {"name":"u1","position":null,"reason":"drained by hand","tier":0}
4 state "up"
4 draining false
6 state "unavail"
6 reason "blacklisted by hand"
6 blacklisted_until /"20.*Z"/
8 upstreams/1/reason /"blacklisted by hand until 20.*Z"/
9 state "up"
9 blacklisted_until null
--- response_body_like eval
['u1', '^', 'u2', '^', '^', 'u1', '^', 'u2', '^', '^', 'u1']
--- error_log eval
[qr/\[notice\] .*upstream "u1" in upstrand "a" is draining by request, client: 127\.0\.0\.1, .*request: "PATCH /,
 qr/\[notice\] .*upstream "u1" in upstrand "a" is taken back by request, client: 127\.0\.0\.1/,
 qr/\[notice\] .*upstream "u1" in upstrand "a" is blacklisted for 30000 ms by request, client: 127\.0\.0\.1/,
 qr/\[notice\] .*upstream "u1" in upstrand "a" is not blacklisted any more by request, client: 127\.0\.0\.1/]



=== bodies that are wrong
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- asks
400 PATCH /api/upstrands/a/upstreams/u1 | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 body:null | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 body:true | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 body:[true,null,"1s"] | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 body:[] | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain" | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true}} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} {"drain":true} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true,} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true,"drain":true} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true,"dr\u0061in":false} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":null,"blacklist":"1s"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":1} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":"true"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":null} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":[true]} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true,"force":1} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true,"force":null} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"force":true} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"force":true,"blacklist":"1s"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":30} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":true} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":["1s"]} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"Drain":true} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true,"x":{"y":[1]}} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {'drain':true} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} // x | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":NaN} | Content-Type: application/json
200 GET /api/upstrands/a/upstreams/u1
--- says
0 error/text "the body has to be a JSON object"
1 error/text "there is nothing to change: \"drain\" or \"blacklist\" is missing"
4 error/text "the body has to be a JSON object"
9 error/text /"trailing characters.*"/
11 error/text /"duplicate field `drain`.*"/
12 error/text /"duplicate field `drain`.*"/
14 error/text /"invalid type: integer `1`, expected a boolean.*"/
20 error/text /".*nothing to change.*"/
21 error/text "\"force\" goes with \"drain\" only"
25 error/text /"unknown field `Drain`.*"/
30 state "up"
30 since null
30 draining false



=== bodies that are odd, and right
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- asks
200 PATCH /api/upstrands/a/upstreams/u1 {"dr\u0061in":true} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u1 {"drain":false,"force":true} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u1 { "blacklist" : "1\u0073" , "drain" : true , "force" : false } | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":null,"drain":false} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u1 {"drain":false} | Content-Type: application/json
--- says
0 draining true
1 draining false
2 draining true
2 blacklisted_until /"20.*"/
3 draining false
3 blacklisted_until null
4 draining false



=== times
--- http_config
dead u1;
upstrand a { zone z 64k; upstream u1; }
--- config
location /api/ { upstrand_api; }
--- asks
200 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"500ms"} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"30"} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"1h 30m"} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"1M"} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"366d"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"367d"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"0"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"0ms"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":""} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":" "} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"-1s"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"1s\u0000"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"1x"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"99999999999999999999s"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"9223372036854775807"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"1.5s"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"\ud83d"} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"\"s"} | Content-Type: application/json
--- says
5 error/text "invalid time \"367d\" in \"blacklist\""
8 error/text "invalid time \"\" in \"blacklist\""
11 error/text "invalid time \"1s\u0000\" in \"blacklist\""
17 error/text "invalid time \"\"s\" in \"blacklist\""



=== types of the body
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- asks
415 PATCH /api/upstrands/a/upstreams/u1 {"drain":true}
415 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: text/plain
415 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/jsonx
415 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/merge-patch+json
415 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: x; application/json
415 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/x-www-form-urlencoded
415 PATCH /api/upstrands/a/upstreams/u1
200 GET /api/upstrands/a/upstreams/u1
--- says
0 error/status 415
0 error/text "the body's Content-Type has to be application/json"
7 draining false



=== bodies of 4096 bytes, and of more
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- request eval
["PATCH /api/upstrands/a/upstreams/u1\n{\"drain\":true" . ' ' x 4082 . '}',
 "PATCH /api/upstrands/a/upstreams/u1\n{\"drain\":false" . ' ' x 4082 . '}',
 "PATCH /api/upstrands/a/upstreams/u1\n{\"drain\":false" . ' ' x 200000 . '}',
 "GET /api/upstrands/a/upstreams/u1"]
--- more_headers
Content-Type: application/json
--- error_code eval
[200, 413, 413, 200]
--- says
0 draining true
1 error {"status":413,"text":"the body is longer than 4096 bytes"}
2 error/status 413
3 draining true



=== chunked, and longer than 4096 bytes
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- raw_request eval
"PATCH /api/upstrands/a/upstreams/u1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
. "e\r\n{\"drain\":true \r\n1000\r\n" . ' ' x 4096 . "\r\n1\r\n}\r\n0\r\n\r\n"
--- error_code: 413
--- says
0 error/status 413



=== chunked
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- raw_request eval
["PATCH /api/upstrands/a/upstreams/u1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\n{\"d\r\n",
 "5;x=y\r\nrain\"\r\n6\r\n:true}\r\n0\r\nTrailer: x\r\n\r\n"]
--- error_code: 200
--- says
0 draining true



=== HTTP/1.0
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- raw_request eval
"PATCH /api/upstrands/a/upstreams/u1 HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"drain\":true}"
--- error_code: 200
--- says
0 draining true



=== a body in a file
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; client_body_in_file_only clean; }
location /small/ { upstrand_api; client_body_buffer_size 1; }
--- asks
200 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"drain":tru} | Content-Type: application/json
200 PATCH /small/upstrands/a/upstreams/u1 {"drain":false} | Content-Type: application/json
--- says
0 draining true
1 error/status 400
2 draining false



=== a body in a file, longer than 4096 bytes
--- http_config
dead u1;
upstrand a { zone z 64k; upstream u1; }
--- config
location /api/ { upstrand_api; client_body_in_file_only clean; client_body_buffer_size 100; }
--- raw_request eval
"PATCH /api/upstrands/a/upstreams/u1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
. "d\r\n{\"drain\":true\r\n1000\r\n" . ' ' x 4096 . "\r\n1\r\n}\r\n0\r\n\r\n"
--- error_code: 413
--- says
0 error/status 413



=== requests in one connection, after refused bodies
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- pipelined_requests eval
["PATCH /api/upstrands/a/upstreams/u1\n" . '{' . ' ' x 5000 . '}',
 "PATCH /api/upstrands/nope/upstreams/u1\n{\"drain\":true}",
 "PATCH /api/upstrands/a/upstreams/u1\n{\"drain\":tru}",
 "PATCH /api/upstrands/a/upstreams/u1\n{\"drain\":true}",
 "GET /api/upstrands/a/upstreams/u1"]
--- more_headers
Content-Type: application/json
--- error_code eval
[413, 404, 400, 200, 200]
--- says
3 draining true
4 draining true



=== a change for a location without a body: no conditions
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- asks
200 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json && If-Match: "x"
200 GET /api/upstrands/a | If-Unmodified-Since: Fri, 01 Jan 2000 00:00:00 GMT
200 GET /api/upstrands/a | Range: bytes=0-0
--- says
0 draining true



=== without a zone nothing is changed
--- http_config
dead u1;
dead u2;
upstrand a { upstream u1; upstream u2; }
--- config
location /api/ { upstrand_api; }
--- asks
409 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
409 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"1s"} | Content-Type: application/json
409 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":null} | Content-Type: application/json
400 PATCH /api/upstrands/a/upstreams/u1 {"x":null} | Content-Type: application/json
200 GET /api/upstrands/a/upstreams/u1
--- says
0 error {"status":409,"text":"upstrand \"a\" has no zone: a change would be known to one worker only"}
4 draining false
4 blacklisted_until null



=== the last usable one
--- http_config
backend u1 { return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstream down { server 127.0.0.1:1 down; }
upstrand a { zone z 64k; upstream u1; upstream u2; upstream down; order per_request; intercept_statuses 502 /sorry; }
--- config
location /api/ { upstrand_api; }
location = /a { proxy_pass http://$upstrand_a; }
location = /sorry { return 200 "sorry\n"; }
--- asks
200 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
409 PATCH /api/upstrands/a/upstreams/u2 {"drain":true} | Content-Type: application/json
409 PATCH /api/upstrands/a/upstreams/u2 {"drain":true,"force":false,"blacklist":"1s"} | Content-Type: application/json
200 GET /a
200 PATCH /api/upstrands/a/upstreams/u2 {"drain":true,"force":true} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/down {"drain":true,"force":true} | Content-Type: application/json
200 GET /a
200 GET /api/upstrands/a
200 GET /api/upstrands/a/explain
200 PATCH /api/upstrands/a/upstreams/u2 {"drain":false} | Content-Type: application/json
200 GET /a
200 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
--- says
1 error {"status":409,"text":"no other upstream of upstrand \"a\" is usable: \"force\" drains \"u2\" all the same"}
2 error/status 409
7 upstreams/u2/blacklisted_until null
7 upstreams/u2/state "draining"
7 walks 2
7 intercepted 1
7 upstreams/u1/tries 0
7 upstreams/u2/tries 1
8 upstreams/# 3
8 upstreams/2/position null
--- response_body_like eval
['^', '^', '^', 'u2', '^', '^', 'sorry', '^', '^', '^', 'u2', '^']
--- error_log
all upstreams in upstrand "a" are draining



=== a blacklisted one, a draining one: not usable
--- http_config
backend u1 { return 200 "u1\n"; }
dead u2;
dead u3;
upstrand a { zone z 64k; upstream u1; upstream u2; upstream u3; order per_request; }
--- config
location /api/ { upstrand_api; }
location = /a { proxy_pass http://$upstrand_a; }
--- asks
200 PATCH /api/upstrands/a/upstreams/u2 {"blacklist":"30s"} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u3 {"drain":true} | Content-Type: application/json
409 PATCH /api/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
200 PATCH /api/upstrands/a/upstreams/u1 {"blacklist":"30s"} | Content-Type: application/json
200 GET /api/upstrands/a/explain
200 GET /a
200 GET /api/upstrands/a/upstreams/u1
--- says
4 last_resort true
4 upstreams/0/name "u1"
4 upstreams/0/reason "blacklisted by hand, but so are all others: last resort"
4 upstreams/2/reason "drained by hand"
6 state "unavail"
6 reason "blacklisted by hand"



=== explain: orders, tries
--- http_config
dead u1;
dead u2;
dead u3;
upstream down { server 127.0.0.1:1 down; }
upstrand turns { upstream u1; upstream u2; upstream u3; }
upstrand fixed { upstream u1; upstream u2; upstream u3 backup; order per_request; next_upstream_tries 2; }
upstrand lot { upstream u1; upstream u2; order per_request start_random; }
upstrand dead { upstream down; upstream u1; order per_request; }
--- config
location /api/ { upstrand_api; }
location = /a { proxy_pass http://$upstrand_turns; }
--- asks
502 GET /a
200 GET /api/upstrands/turns/explain
200 GET /api/upstrands/fixed/explain
200 GET /api/upstrands/lot/explain
200 GET /api/upstrands/dead/explain
--- says
1 order "by turns"
1 upstreams/0/name "u2"
1 upstreams/2/name "u1"
2 order "as configured"
2 upstreams/2 {"name":"u3","position":null,"reason":"usable, but next_upstream_tries ends the walk after 2","tier":1}
3 order "by lot"
3 upstreams/0/reason "usable; the first of its tier is drawn by lot"
4 upstreams/0/reason "all servers are marked down: it would fail at once"



=== locations of all kinds
--- http_config
dead u1;
upstrand a { upstream u1; }
--- config
location /v1 { upstrand_api; location /v1/in { upstrand_api; } }
location /upstrands { upstrand_api; }
location /x/upstrands/ { upstrand_api; }
location = /exact/upstrands/a { upstrand_api; }
location = /exactly/upstrands { upstrand_api; }
location ~ ^/re/\d+ { upstrand_api; }
location ~* \.API { upstrand_api; }
location /named { try_files /nope @api; }
location @api { upstrand_api; }
location /rewritten { rewrite ^/rewritten/(.*) /v1/upstrands/$1; }
--- asks
200 GET /v1/upstrands
200 GET /v1/upstrands/a
200 GET /v1/in/upstrands/a
404 GET /v1upstrands
404 GET /v1x/upstrands
200 GET /upstrands
200 GET /upstrands/a
404 GET /upstrands/upstrands
200 GET /x/upstrands/a
404 GET /x/upstrands/
200 GET /exact/upstrands/a
200 GET /exactly/upstrands
200 GET /re/7/upstrands/a
404 GET /re/7/upstrandsx/a
200 GET /foo.api/upstrands/a
200 GET /named/upstrands/a
200 GET /rewritten/a
404 GET /elsewhere/upstrands
--- says
0 # 1
1 zone null
4 error/status 404
5 a/zone null
6 zone null
8 zone null
10 zone null
11 a/zone null
12 zone null
14 zone null
15 zone null
16 zone null



=== a location at the root
--- http_config
dead u1;
upstrand a { upstream u1; }
upstrand upstrands { upstream u1; }
backend root { location / { upstrand_api; } }
--- config
location /root/ { proxy_pass http://root/; }
--- asks
200 GET /root/upstrands/a
200 GET /root/upstrands/upstrands/upstreams/u1
404 GET /root/
404 GET /root/x/upstrands
--- says
0 zone null
1 name "u1"



=== odd names, percent-encoded
--- http_config
upstream 'a b' { server 127.0.0.1:1; }
upstream 'q"uote' { server 127.0.0.1:1; }
upstream 'back\slash' { server 127.0.0.1:1; }
upstream 'sl/ash' { server 127.0.0.1:1; }
upstream 'per%41cent' { server 127.0.0.1:1; }
upstream 'x?y#z' { server 127.0.0.1:1; }
upstream UPPER { server 127.0.0.1:1; }
upstrand X { zone z 64k; upstream ~.; }
--- config
location /api/ { upstrand_api; }
--- asks
200 GET /api/upstrands/x/upstreams/a%20b
200 GET /api/upstrands/X/upstreams/q%22uote
200 GET /api/upstrands/X/upstreams/back%5cslash
200 GET /api/upstrands/X/upstreams/sl%2Fash
200 GET /api/upstrands/X/upstreams/sl/ash
200 GET /api/upstrands/X/upstreams/per%2541cent
200 GET /api/upstrands/X/upstreams/x%3Fy%23z
200 GET /api/upstrands/X/upstreams/upper
200 GET /api/%75pstrands/%58/upstreams/UPPER
200 PATCH /api/upstrands/X/upstreams/q%22uote {"drain":true} | Content-Type: application/json
404 GET /api/upstrands/X/upstreams/per%41cent
--- says
0 name "a b"
1 name "q\"uote"
2 name "back\\slash"
3 name "sl/ash"
4 name "sl/ash"
5 name "per%41cent"
6 name "x?y#z"
7 name "UPPER"
8 name "UPPER"
9 draining true
--- error_log
upstream "q"uote" in upstrand "X" is draining by request



=== a name that is not UTF-8
--- http_config eval
"upstream \"a\xffb\" { server 127.0.0.1:1; }\nupstream x { server 127.0.0.1:1; }\nupstrand a { zone z 64k; upstream \"a\xffb\"; upstream x; }\n"
--- config
location /api/ { upstrand_api; }
--- asks
200 GET /api/upstrands/a/upstreams/a%FFb
200 PATCH /api/upstrands/a/upstreams/a%ffb {"drain":true} | Content-Type: application/json
404 GET /api/upstrands/a/upstreams/a%FEb
--- says
0 name "a\\xFFb"
1 draining true
2 error/text "there is no upstream \"a\\xFEb\" in upstrand \"a\""



=== bytes that are not UTF-8 in the body
--- http_config
dead u1;
upstrand a { zone z 64k; upstream u1; }
--- config
location /api/ { upstrand_api; }
--- request eval
["PATCH /api/upstrands/a/upstreams/u1\n{\"\xff\":true}",
 "PATCH /api/upstrands/a/upstreams/u1\n\xef\xbb\xbf{\"drain\":true}",
 "PATCH /api/upstrands/a/upstreams/u1\n{\"blacklist\":\"\xff\"}",
 "PATCH /api/upstrands/a/upstreams/u1\n" . '{"drain":' . '[' x 2000,
 "PATCH /api/upstrands/a/upstreams/u1\n" . '{"blacklist":"' . 'x' x 3000 . '"}']
--- more_headers
Content-Type: application/json
--- error_code eval
[(400) x 5]
--- says
0 error/status 400
1 error/text "the body has to be a JSON object"
2 error/status 400
3 error/status 400
4 error/text /"invalid time \\"x{3000}\\" in \\"blacklist\\""/



=== who may ask is nginx's business
--- http_config
dead u1;
dead u2;
upstrand a { zone z 64k; upstream u1; upstream u2; }
--- config
location /deny/ { deny all; upstrand_api; }
location /read/ { upstrand_api; limit_except GET { deny all; } }
location /any/ { satisfy any; allow 127.0.0.1; deny all; auth_basic closed; auth_basic_user_file nope; upstrand_api; }
location /all/ { satisfy all; allow 127.0.0.1; deny all; auth_basic closed; auth_basic_user_file nope; upstrand_api; }
--- asks
403 PATCH /deny/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
403 PATCH /read/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
200 GET /read/upstrands/a/upstreams/u1
401 PATCH /all/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
200 GET /read/upstrands/a
200 PATCH /any/upstrands/a/upstreams/u1 {"drain":true} | Content-Type: application/json
--- says
2 draining false
4 upstreams/u1/draining false
5 draining true



=== not there unless written
--- http_config
dead u1;
upstrand a { zone z 64k; upstream u1; }
--- config
location = /s { upstrand_status; }
--- asks
404 GET /api/upstrands
405 PATCH /s {"drain":true} | Content-Type: application/json
404 GET /upstrands
