# dynamic_upstrand at run time: which upstrand a request gets.

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
# In each block: upstrand one is a1 (503), a2; upstrand two is b1 (503), b2.

add_block_preprocessor(sub {
    my $block = shift;

    my $http = $block->http_config;

    $block->set_value(http_config => <<'_EOC_' . (defined $http ? $http : ''));
backend a1 { return 503 "a1\n"; }
backend a2 { return 200 "a2 $request_uri\n"; }
backend b1 { return 503 "b1\n"; }
backend b2 { return 200 "b2 $request_uri\n"; }
upstrand one { upstream ~^a; order per_request; next_upstream_statuses 5xx; }
upstrand two { upstream ~^b; order per_request; next_upstream_statuses 5xx; }
_EOC_
});

run_tests();

__DATA__

=== the first source that has a value names the upstrand, and it fails over
--- config
dynamic_upstrand $d $arg_x $arg_y two;
location /t { add_header X-Walk "$upstrand_name: $upstrand_path"; proxy_pass http://$d; }
--- request eval
["GET /t?x=one", "GET /t?y=one", "GET /t", "GET /t?x=&y=one", "GET /t?x=two&y=one", "GET /asked.log"]
--- response_headers eval
[(map { "X-Walk: $_" } 'one: a1 -> a2', 'one: a1 -> a2', 'two: b1 -> b2', 'one: a1 -> a2', 'two: b1 -> b2'), "! X-Walk"]
--- response_body eval
["a2 /t?x=one\n", "a2 /t?y=one\n", "b2 /t\n", "a2 /t?x=&y=one\n", "b2 /t?x=two&y=one\n", "a1\na2\na1\na2\nb1\nb2\na1\na2\nb1\nb2\n"]



=== names ignore case
--- config
location /t { dynamic_upstrand $d $arg_x; proxy_pass http://$d; }
--- request
GET /t?x=OnE
--- response_body
a2 /t?x=OnE



=== no value, an unknown name: 500, and nobody is asked
--- config
location /t { dynamic_upstrand $d $arg_x $arg_y; add_header X-D "<$d>" always; proxy_pass http://$d; }
--- request eval
["GET /t", "GET /t?x=nope", "GET /t?x=nope&y=one", "GET /asked.log"]
--- error_code eval
[500, 500, 500, 200]
--- response_headers eval
["X-D: <>", "X-D: <>", "X-D: <>", "! X-D"]
--- response_body eval
[(qr/500 Internal Server Error/) x 3, ""]
--- error_log
invalid URL prefix



=== names of the status variables, and odd ones, are no upstrands
--- config
location /t { dynamic_upstrand $d $arg_x; proxy_pass http://$d; }
--- request eval
[map { "GET /t?x=$_" } qw(path addr status name upstream tries reason cache_status one%20 %00 ../one one/x one; $host), 'x' x 2000, 'one']
--- error_code eval
[(500) x 15, 200]
--- response_body eval
[(qr/500 Internal Server Error/) x 15, "a2 /t?x=one\n"]
--- error_log
invalid URL prefix



=== an inner line for the same variable wins
--- config
dynamic_upstrand $d one;
location /in { dynamic_upstrand $d two; proxy_pass http://$d; }
location /out { proxy_pass http://$d; }
--- request eval
["GET /in", "GET /out"]
--- response_body eval
["b2 /in\n", "a2 /out\n"]



=== lines for different variables add up
--- config
dynamic_upstrand $d one;
location /t {
    dynamic_upstrand $e two;
    if ($arg_e) { proxy_pass http://$e; break; }
    proxy_pass http://$d;
}
--- request eval
["GET /t", "GET /t?e=1"]
--- response_body eval
["a2 /t\n", "b2 /t?e=1\n"]



=== a line goes inwards through locations
--- config
dynamic_upstrand $d $arg_x two;
location /t { location /t/in { location /t/in/deep { proxy_pass http://$d; } } }
--- request eval
["GET /t/in/deep", "GET /t/in/deep?x=one"]
--- response_body eval
["b2 /t/in/deep\n", "a2 /t/in/deep?x=one\n"]



=== in if, with a line of its own and with that of the location
--- config
location /own { if ($arg_x) { dynamic_upstrand $d $arg_x two; proxy_pass http://$d; break; } return 404; }
location /loc { dynamic_upstrand $d one; if ($arg_x) { proxy_pass http://$d; break; } return 404; }
--- request eval
["GET /own?x=one", "GET /own", "GET /loc?x=1", "GET /loc"]
--- error_code eval
[200, 404, 200, 404]
--- response_body eval
["a2 /own?x=one\n", qr/404/, "a2 /loc?x=1\n", qr/404/]



=== where no line is in force the variable is empty
--- config
location /t { dynamic_upstrand $d one; proxy_pass http://$d; }
location /else { proxy_pass http://$d; }
location /show { return 200 "<$d>\n"; }
--- request eval
["GET /else", "GET /show", "GET /t"]
--- error_code eval
[500, 200, 200]
--- response_body eval
[qr/500 Internal Server Error/, "<>\n", "a2 /t\n"]



=== the source may be a map, a captured name, a cookie
--- http_config
map $http_x_beta $wanted { yes two; default one; }
--- config
location /map { dynamic_upstrand $d $wanted; proxy_pass http://$d; }
location ~ ^/re/(?<who>\w+) { dynamic_upstrand $d $who; proxy_pass http://$d; }
location /cookie { dynamic_upstrand $d $cookie_who one; proxy_pass http://$d; }
--- request eval
["GET /map", "GET /map", "GET /re/two", "GET /cookie"]
--- more_headers eval
["", "X-Beta: yes", "", "Cookie: who=two"]
--- response_body eval
["a2 /map\n", "b2 /map\n", "b2 /re/two\n", "b2 /cookie\n"]



=== in a header it names the upstream of the answer
--- config
location /t { dynamic_upstrand $d one; add_header X-D $d; proxy_pass http://$d; }
--- request
GET /t
--- response_headers
X-D: a2
--- response_body
a2 /t



=== read elsewhere it names whom a walk would ask first
--- config
location /t { dynamic_upstrand $d $arg_x one; return 200 "$d\n"; }
--- request eval
["GET /t", "GET /t?x=two", "GET /t?x=nope"]
--- response_body eval
["a1\n", "b1\n", "\n"]



=== includes of one page each get their own
--- config
location /page { ssi on; }
location /t { dynamic_upstrand $d $arg_x; proxy_pass http://$d; }
--- user_files
>>> page.html
<!--# include virtual="/t?x=one" --><!--# include virtual="/t?x=two" --><!--# include virtual="/t?x=one" -->
--- request
GET /page.html
--- response_body eval
"a2 /t?x=one\nb2 /t?x=two\na2 /t?x=one\n\n"



=== a fail-over does not read the source again
--- config
location /t { dynamic_upstrand $d $cookie_who two; proxy_set_header X-D $d; proxy_pass http://$d; }
--- request
GET /t
--- more_headers
Cookie: who=one
--- response_body
a2 /t



=== the marks of the upstrand count
--- http_config
upstrand three { upstream a1 blacklist_interval=60s; upstream a2; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { dynamic_upstrand $d $arg_x; add_header X-Path $upstrand_path; proxy_pass http://$d; }
--- request eval
["GET /t?x=three", "GET /t?x=three", "GET /t?x=one"]
--- response_headers eval
["X-Path: a1 -> a2", "X-Path: a2", "X-Path: a1 -> a2"]
