# The variables of a walk, nginx's own ones beside them, and the upstrand's
# variable itself.

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

our $html = $ENV{TEST_NGINX_HTML_DIR};

add_block_preprocessor(sub {
    my $block = shift;

    my $http = $block->http_config;

    $block->set_value(http_config => <<'_EOC_' . (defined $http ? $http : ''));
log_format all '$status [$upstrand_name][$upstrand_upstream][$upstrand_tries][$upstrand_path][$upstrand_addr][$upstrand_status][$upstrand_response_length][$upstrand_cache_status][$upstrand_reason]';
log_format times '[$upstrand_connect_time][$upstrand_header_time][$upstrand_response_time]';
log_format native '$status [$upstream_addr][$upstream_status][$upstream_response_length][$upstream_response_time]';
_EOC_
});

run_tests();

__DATA__

=== one upstream fails, the next one is good: each variable in its exact form
--- http_config
backend u1 { return 503 "u1 u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /all.log"]
--- response_body eval
["u2\n", "200 [a][u2][2][u1 -> u2][(u1) unix:$::html/u1.sock (u2) unix:$::html/u2.sock][(u1) 503 (u2) 200][(u1) 6 (u2) 3][(u1)  (u2) ][(u1) http_503 (u2) final]\n"]



=== the times, in seconds with milliseconds
--- http_config
backend u1 { return 503 "u1\n"; }
upstream u2 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
backend u3 { return 200 "u3\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx timeout; }
--- config
access_log $TEST_NGINX_HTML_DIR/times.log times;
location = /t { proxy_read_timeout 200ms; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /times.log"]
--- response_body eval
["u3\n", qr/\A\[\(u1\) \d\.\d{3} \(u2\) \d\.\d{3} \(u3\) \d\.\d{3}\]\[\(u1\) \d\.\d{3} \(u2\) - \(u3\) \d\.\d{3}\]\[\(u1\) \d\.\d{3} \(u2\) 0\.[2-9]\d\d \(u3\) \d\.\d{3}\]\n\z/]



=== several servers of an upstream
--- http_config
backend x { return 503 "x\n"; }
backend u2 { return 200 "u2\n"; }
upstream u1 { server 127.0.0.1:1; server unix:$TEST_NGINX_HTML_DIR/x.sock; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /all.log"]
--- response_body eval
["u2\n", "200 [a][u2][2][u1 -> u2][(u1) 127.0.0.1:1, unix:$::html/x.sock (u2) unix:$::html/u2.sock][(u1) 502, 503 (u2) 200][(u1) 0, 2 (u2) 3][(u1)  (u2) ][(u1) http_503 (u2) final]\n"]



=== the first one refused: its address, 502, and the status that the client got
--- http_config
dead u1;
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
access_log $TEST_NGINX_HTML_DIR/native.log native;
location = /t { add_header X-Status $status; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /all.log", "GET /native.log"]
--- response_headers eval
["X-Status: 200", "! X-Status", "! X-Status"]
--- response_body_like eval
["\\Au2\n\\z",
 "\\A\Q200 [a][u2][2][u1 -> u2][(u1) 127.0.0.1:1 (u2) unix:$::html/u2.sock][(u1) 502 (u2) 200][(u1) 0 (u2) 3][(u1)  (u2) ][(u1) error (u2) final]\E\n",
 "\\A200 \\[127.0.0.1:1(?:,| :) unix:$::html/u2.sock\\]\\[502(?:,| :) 200\\]\\[0(?:,| :) 3\\]\\[\\d\\.\\d{3}(?:,| :) \\d\\.\\d{3}\\]\n"]



=== all refused
--- http_config
dead u1;
upstream u2 { server 127.0.0.1:2; }
upstrand a { upstream u1; upstream u2; order per_request; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /all.log"]
--- error_code eval
[502, 200]
--- response_body eval
[qr/502 Bad Gateway/, "502 [a][u2][2][u1 -> u2][(u1) 127.0.0.1:1 (u2) 127.0.0.1:2][(u1) 502 (u2) 502][(u1) 0 (u2) 0][(u1)  (u2) ][(u1) error (u2) exhausted]\n"]



=== no live server: the upstream's name for an address
--- http_config
upstream u1 { server 127.0.0.1:1 down; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /all.log"]
--- response_body eval
["u2\n", qr/\A\Q200 [a][u2][2][u1 -> u2][(u1) u1 (u2) unix:$::html\E\/u2\.sock\Q][(u1) 502 (u2) 200][(u1)\E [0-]?\Q (u2) 3][(u1)  (u2) ][(u1) error (u2) final]\E\n\z/]



=== intercepted by return: a group without an upstream
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 500 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; intercept_statuses 5xx /f; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t { proxy_pass http://$upstrand_a; }
location /f { internal; return 418 "f\n"; }
--- request eval
["GET /t", "GET /all.log"]
--- error_code eval
[418, 200]
--- response_body eval
["f\n", "418 [a][u2][2][u1 -> u2 -> <intercepted>][(u1) unix:$::html/u1.sock (u2) unix:$::html/u2.sock (<intercepted>) ][(u1) 503 (u2) 500 (<intercepted>) ][(u1) 3 (u2) 3 (<intercepted>) ][(u1)  (u2)  (<intercepted>) ][(u1) http_503 (u2) exhausted (<intercepted>) ]\n"]



=== intercepted by a location that proxies: its upstream is in the last group
--- http_config
backend u1 { return 503 "u1\n"; }
backend f { return 207 "f f\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t { proxy_pass http://$upstrand_a; }
location /f { internal; proxy_pass http://f; }
--- request eval
["GET /t", "GET /all.log"]
--- error_code eval
[207, 200]
--- response_body eval
["f f\n", "207 [a][u1][1][u1 -> <intercepted>][(u1) unix:$::html/u1.sock (<intercepted>) unix:$::html/f.sock][(u1) 503 (<intercepted>) 207][(u1) 3 (<intercepted>) 4][(u1)  (<intercepted>) ][(u1) final (<intercepted>) ]\n"]



=== out of the cache: the status of the cache, and no address
--- http_config
proxy_cache_path $TEST_NGINX_HTML_DIR/cache keys_zone=c:1m;
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t { proxy_cache c; proxy_cache_valid any 1m; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /all.log"]
--- response_body eval
["u2\n", "u2\n", "200 [a][u2][2][u1 -> u2][(u1) unix:$::html/u1.sock (u2) unix:$::html/u2.sock][(u1) 503 (u2) 200][(u1) 3 (u2) 3][(u1) MISS (u2) MISS][(u1) http_503 (u2) final]\n"
 . "200 [a][u2][2][u1 -> u2][(u1) unix:$::html/u1.sock (u2) ][(u1) 503 (u2) ][(u1) 3 (u2) ][(u1) MISS (u2) HIT][(u1) http_503 (u2) final]\n"]



=== in add_header the group of the answer is there
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { add_header X-Own u2; return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t {
    add_header X-Path $upstrand_path;
    add_header X-Addr $upstrand_addr;
    add_header X-Status $upstrand_status;
    add_header X-Time $upstrand_header_time;
    add_header X-Name "$upstrand_name $upstrand_upstream $upstrand_tries";
    add_header X-Native $upstream_http_x_own;
    add_header X-Var $upstrand_a;
    proxy_pass http://$upstrand_a;
}
--- request
GET /t
--- response_headers_like eval
"X-Path: u1 -> u2
X-Addr: \\(u1\\) unix:$::html/u1.sock \\(u2\\) unix:$::html/u2.sock
X-Status: \\(u1\\) 503 \\(u2\\) 200
X-Time: \\(u1\\) \\d\\.\\d{3} \\(u2\\) \\d\\.\\d{3}
X-Name: a u2 2
X-Native: u2
X-Var: u2"
--- response_body
u2



=== in add_header of a first and good answer, too
--- http_config
backend u1 { return 200 "u1\n"; }
upstrand a { upstream u1; }
--- config
location /t { add_header X-All "$upstrand_path $upstrand_addr $upstrand_status"; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_headers eval
"X-All: u1 (u1) unix:$::html/u1.sock (u1) 200"



=== why a walk ended
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 502 "u2\n"; }
upstream s { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
dead d;
backend ok { return 404 "ok\n"; }
log_format why '$upstrand_reason';
upstrand post { upstream d; upstream u1; upstream ok; order per_request; next_upstream_statuses error 5xx; }
upstrand time { upstream s; upstream u2; upstream ok; order per_request; next_upstream_statuses timeout 502; }
upstrand end { upstream u1; upstream d; order per_request; next_upstream_statuses 5xx; }
upstrand few { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; next_upstream_tries 1; }
upstrand late { upstream u1; upstream s; upstream ok; order per_request; next_upstream_statuses 5xx timeout; next_upstream_timeout 100ms; }
--- config
access_log $TEST_NGINX_HTML_DIR/why.log why;
proxy_read_timeout 150ms;
location = /post { proxy_pass http://$upstrand_post; }
location = /time { proxy_pass http://$upstrand_time; }
location = /end { proxy_pass http://$upstrand_end; }
location = /few { proxy_pass http://$upstrand_few; }
location = /late { proxy_pass http://$upstrand_late; }
--- request eval
["POST /post\nbody", "GET /time", "GET /end", "GET /few", "GET /late", "GET /why.log"]
--- error_code eval
[503, 404, 502, 503, 504, 200]
--- response_body_like eval
[(".") x 5, "\\A" . quotemeta(join '', map { "$_\n" }
    '(d) error (u1) non_idempotent',
    '(s) timeout (u2) http_502 (ok) final',
    '(u1) http_503 (d) exhausted',
    '(u1) tries',
    '(u1) http_503 (s) deadline') . "\\z"]



=== without a walk nothing is found
--- http_config
backend u1 { return 200 "u1\n"; }
upstrand a { upstream u1; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
access_log $TEST_NGINX_HTML_DIR/times.log times;
location = /plain { proxy_pass http://u1; }
location = /return { return 200 "<$upstrand_path><$upstrand_addr><$upstrand_status><$upstrand_tries><$upstrand_name>\n"; }
location = /read { return 200 "<$upstrand_a><$upstrand_path><$upstrand_tries>\n"; }
--- request eval
["GET /plain", "GET /return", "GET /read", "GET /all.log", "GET /times.log"]
--- response_body eval
["u1\n", "<><><><><>\n", "<u1><><>\n", "200 [-][-][-][-][-][-][-][-][-]\n" x 3, "[-][-][-]\n" x 4]



=== each request of a connection has its own values
--- http_config
backend u1 { if ($arg_bad) { return 503 "u1\n"; } return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
location /none { add_header X-Path "none$upstrand_path"; return 200 "none\n"; }
--- pipelined_requests eval
["GET /t?bad=1", "GET /t", "GET /none", "GET /t?bad=1"]
--- response_headers eval
[map { "X-Path: $_" } 'u1 -> u2', 'u1', 'none', 'u1 -> u2']



=== nginx's own variables show every try
--- http_config
backend u1 { return 503 "u1 u1\n"; }
backend u2 { add_header X-Own u2; return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
access_log $TEST_NGINX_HTML_DIR/native.log native;
location = /t {
    add_header X-Addr $upstream_addr;
    add_header X-Status $upstream_status;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /native.log"]
--- response_headers_like eval
["X-Addr: unix:$::html/u1.sock(?:,| :) unix:$::html/u2.sock\nX-Status: 503(?:,| :) 200", "Content-Type: .*"]
--- response_body_like eval
["u2", "\\A200 \\[unix:$::html/u1.sock(?:,| :) unix:$::html/u2.sock\\]\\[503(?:,| :) 200\\]\\[6(?:,| :) 3\\]\\[\\d\\.\\d{3}(?:,| :) \\d\\.\\d{3}\\]\n\\z"]



=== set freezes the value: the request goes there, without a walk
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t { set $x $upstrand_a; proxy_pass http://$x; }
--- request eval
["GET /t", "GET /all.log", "GET /asked.log"]
--- error_code eval
[503, 200, 200]
--- response_body eval
["u1\n", "503 [-][-][-][-][-][-][-][-][-]\n", "u1\n"]



=== a map is as good as the variable in it: read before the pass, it walks nevertheless
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
map $arg_x $to { default $upstrand_a; }
--- config
location = /t { set $y $to; add_header X-Y $y; add_header X-To $to; proxy_pass http://$to; }
--- request eval
["GET /t", "GET /asked.log"]
--- response_headers eval
["X-Y: u1\nX-To: u2", "! X-Y"]
--- response_body eval
["u2\n", "u1\nu2\n"]



=== a volatile map in front of the upstrand walks
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
backend plain { return 200 "plain\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
map $arg_x $to { volatile; default $upstrand_a; plain plain; }
--- config
location = /t { add_header X-Path $upstrand_path; proxy_pass http://$to; }
--- request eval
["GET /t", "GET /t?x=plain", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2", "! X-Path", "X-Path: u1 -> u2"]
--- response_body eval
["u2\n", "plain\n", "u2\n"]



=== maps made of the upstrand's variable follow the walk, cached ones as well
--- http_config
backend u1 { if ($http_x_for = "one 1") { return 503 "u1\n"; } return 200 "u1 got $http_x_for\n"; }
backend u2 { return 200 "u2 got $http_x_for\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
map $upstrand_a $for { volatile; u1 one; u2 two; default none; }
map $upstrand_upstream $nth { u1 1; u2 2; default none; }
--- config
location = /t { proxy_set_header X-For "$for $nth"; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_body
u2 got two 2



=== maps made of $proxy_host follow the walk, too
--- http_config
backend u1 { return 503 "u1 got $http_x_for\n"; }
backend u2 { return 200 "u2 got $http_x_for\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
map $proxy_host $for { u1 one; u2 two; default none; }
map "$for:$proxy_port" $both { default "$for:$proxy_port"; }
--- config
location = /t { proxy_set_header X-For "$for $both"; proxy_pass http://$upstrand_a; }
location = /plain { proxy_set_header X-For "$for $both"; proxy_pass http://u2; }
--- request eval
["GET /t", "GET /plain"]
--- response_body eval
[("u2 got two two:80\n") x 2]



=== proxy_set_header with the upstrand's variable names the upstream that gets it
--- http_config
log_format got '$server_name $http_x_up $http_host';
server { listen unix:$TEST_NGINX_HTML_DIR/s1.sock; server_name s1; access_log $TEST_NGINX_HTML_DIR/got.log got; location / { return 503; } }
server { listen unix:$TEST_NGINX_HTML_DIR/s2.sock; server_name s2; access_log $TEST_NGINX_HTML_DIR/got.log got; location / { return 200 "s2\n"; } }
upstream u1 { server unix:$TEST_NGINX_HTML_DIR/s1.sock; }
upstream u2 { server unix:$TEST_NGINX_HTML_DIR/s2.sock; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location = /t { proxy_set_header X-Up $upstrand_a; proxy_set_header Host $proxy_host; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /got.log"]
--- response_body eval
["s2\n", "s1 u1 u1\ns2 u2 u2\n"]



=== another upstrand read in the same request is read, not walked
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2 got $http_x_b\n"; }
backend v1 { return 200 "v1\n"; }
backend v2 { return 200 "v2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
upstrand b { upstream ~^v; }
--- config
location = /t { proxy_set_header X-B $upstrand_b; proxy_pass http://$upstrand_a; }
location = /b { proxy_pass http://$upstrand_b; }
--- request eval
["GET /t", "GET /t", "GET /b", "GET /asked.log"]
--- response_body eval
["u2 got v1\n", "u2 got v1\n", "v1\n", "u1\nu2\nu1\nu2\nv1\n"]
--- no_error_log
prohibited
[alert]



=== the variable in if, in return, in a header of a plain location
--- http_config
backend u1 { return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream ~^u; }
--- config
location = /if { if ($upstrand_a = u1) { return 200 "yes\n"; } return 200 "no\n"; }
location = /header { add_header X-Up $upstrand_a; return 200 "whole\n"; }
location = /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /if", "GET /header", "GET /t", "GET /if", "GET /t", "GET /if"]
--- response_headers eval
["! X-Up", "X-Up: u1", ("! X-Up") x 4]
--- response_body eval
["yes\n", "whole\n", "u1\n", "no\n", "u2\n", "yes\n"]



=== names of upstrands may be the beginning of one another, and ignore case
--- http_config
backend u1 { return 200 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand ab { upstream u1; }
upstrand a { upstream u2; }
--- config
location = /ab { proxy_pass http://$upstrand_ab; }
location = /a { proxy_pass http://$upstrand_a; }
location = /A { proxy_pass http://$UPSTRAND_A; }
--- request eval
["GET /ab", "GET /a", "GET /A"]
--- response_body eval
["u1\n", "u2\n", "u2\n"]



=== one line in the log for a walk of several
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
backend u3 { return 200 "u3\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
log_format one '$request $status $body_bytes_sent';
--- config
access_log $TEST_NGINX_HTML_DIR/one.log one;
location = /t { log_subrequest on; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /one.log"]
--- response_body eval
["u3\n", "GET /t HTTP/1.1 200 3\n"]



=== values longer than a block of the request's pool
--- http_config eval
my $long = 'n' x 700;
my $text = "backend bad { return 503 'bad'; }\nbackend good { return 200 'good'; }\n";
$text .= "upstream $long$_ { server unix:$::html/bad.sock; }\n" for 10 .. 21;
$text .= "upstream ${long}22 { server unix:$::html/good.sock; }\n";
$text . "upstrand a { upstream ~^nnn; order per_request; next_upstream_statuses 5xx; }\n"
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /all.log"]
--- response_body eval
my @bad = map { ('n' x 700) . $_ } 10 .. 21;
my $good = ('n' x 700) . 22;
my $group = sub {
    my ($of_bad, $of_good) = @_;
    '[' . join(' ', (map { "($_) $of_bad" } @bad), "($good) $of_good") . ']'
};
["good", "200 [a][$good][13][" . join(' -> ', @bad, $good) . ']'
    . $group->("unix:$::html/bad.sock", "unix:$::html/good.sock") . $group->(503, 200)
    . $group->(3, 4) . $group->('', '') . $group->('http_503', 'final') . "\n"]



=== one try with a name of nearly each length, whatever room the pool's block has left
--- http_config eval
my $text = "backend good { return 200 'good'; }\n";
for my $n (map { $_ * 61 } 1 .. 66) {
    my $name = 'n' x $n;
    $text .= "upstream $name { server unix:$::html/good.sock; }\n"
             . "upstrand a$n { upstream $name; }\n";
}
"variables_hash_max_size 4096;\n$text"
--- config eval
join('', "access_log $::html/all.log all;\n",
     map { "location = /t$_ { proxy_pass http://\$upstrand_a$_; }\n" } map { $_ * 61 } 1 .. 66)
--- request eval
[(map { "GET /t$_" } map { $_ * 61 } 1 .. 66), "GET /all.log"]
--- response_body eval
my $log = '';
for my $n (map { $_ * 61 } 1 .. 66) {
    my $name = 'n' x $n;
    $log .= "200 [a$n][$name][1][$name][($name) unix:$::html/good.sock][($name) 200][($name) 4]"
            . "[($name) ][($name) final]\n";
}
[("good") x 66, $log]



=== a first try that runs while its variables are read, and one that is over
--- config
access_log $TEST_NGINX_HTML_DIR/all.log all;
location = /t {
    proxy_set_header X-So-Far "$upstrand_path|$upstrand_tries|$upstrand_status|$upstrand_addr|$upstrand_reason";
    proxy_pass http://$upstrand_one;
}
location = /u { proxy_pass http://$upstrand_a; }
--- http_config
backend u1 { return 200 "$http_x_so_far"; }
backend u2 { location / { empty_gif; } }
upstrand one { upstream u1; }
upstrand a { upstream u2; }
--- request eval
["GET /t", "GET /u", "GET /all.log"]
--- response_body_like eval
["\\A\Qu1|1|(u1) |(u1) |(u1) running\E\\z", "\\AGIF89a",
 "\\A\Q200 [one][u1][1][u1][(u1) unix:$::html/u1.sock][(u1) 200][(u1) 29][(u1) ][(u1) final]\E\n"
 . "\Q200 [a][u2][1][u2][(u2) unix:$::html/u2.sock][(u2) 200][(u2) 43][(u2) ][(u2) final]\E\n\\z"]
