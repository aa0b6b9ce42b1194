# Numbers and edges: many upstreams, redirections that are off, limits, and the
# ways in which nginx comes to a location.

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
$ENV{TEST_NGINX_TCP_PORT} =
    IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport();

our $took;

add_block_preprocessor(sub { $took = Time::HiRes::time(); });

# A body that came after more than 2 seconds becomes another one.

sub quick {
    my ($body) = @_;

    my $seconds = Time::HiRes::time() - $took;

    return $seconds < 2 ? $body : "after $seconds s: $body";
}

# N upstreams m001, m002, ... that fail, the last one of them good if wanted.

sub many {
    my ($n, $last) = @_;

    return "backend bad { return 503 \"bad\\n\"; }\n"
        . "backend good { return 200 \"good\\n\"; }\n"
        . join('', map {
            my $to = $_ == $n && $last ? 'good' : 'bad';
            sprintf "upstream m%03d { server unix:"
                    . "\$TEST_NGINX_HTML_DIR/$to.sock; }\n", $_;
        } 1 .. $n);
}

run_tests();

__DATA__

=== sixty failing upstreams, then a good one
--- http_config eval: ::many(61, 1) . 'upstrand a { upstream ~^m; order per_request; next_upstream_statuses 5xx; }'
--- config
location /t { add_header X-Tries $upstrand_tries; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Tries: 61", "X-Tries: 61"]
--- response_body eval
["good\n", "good\n"]
--- no_error_log
[alert]
cycle



=== three hundred
--- http_config eval: ::many(301, 1) . 'upstrand a { upstream ~^m; order per_request; next_upstream_statuses 5xx; }'
--- config
location /t { add_header X-Tries $upstrand_tries; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_headers
X-Tries: 301
--- response_body
good
--- no_error_log
[alert]
cycle



=== three hundred that fail: the last one's answer
--- http_config eval: ::many(300) . 'upstrand a { upstream ~^m; order per_request; next_upstream_statuses 5xx; }'
--- config
location /t { add_header X-Tries $upstrand_tries always; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- error_code: 503
--- response_headers
X-Tries: 300
--- response_body
bad



=== sixty that fail, and an interception
--- http_config eval: ::many(60) . 'upstrand a { upstream ~^m; order per_request; next_upstream_statuses 5xx; intercept_statuses 5xx /f; }'
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; add_header X-Tries $upstrand_tries; return 200 "f\n"; }
--- request
GET /t
--- response_headers
X-Tries: 60
--- response_body
f



=== sixty that are refused, with a body in a file
--- http_config eval
join('', map { "upstream m$_ { server 127.0.0.1:1; }\n" } 10 .. 69) . <<'_EOC_'
backend good { return 200 "good\n"; }
upstrand a { upstream ~^m; upstream good; order per_request; }
_EOC_
--- config
location /t { client_body_buffer_size 1k; add_header X-Tries $upstrand_tries; proxy_pass http://$upstrand_a; }
--- request eval
"POST /t\n" . "x" x 50_000
--- response_headers
X-Tries: 61
--- response_body
good



=== X-Accel-Redirect is not followed, neither of a failed nor of the final answer, and hidden
--- http_config
backend u1 { add_header X-Accel-Redirect /e always; return 503 "u1\n"; }
backend u2 { add_header X-Accel-Redirect /e always; return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
location /e { return 200 "e\n"; }
--- request
GET /t
--- response_headers
X-Path: u1 -> u2
! X-Accel-Redirect
--- response_body
u2



=== X-Accel-Redirect of other requests of the same location is followed
--- http_config
backend u1 { add_header X-Accel-Redirect /e always; return 503 "u1\n"; }
backend u2 { add_header X-Accel-Redirect /e always; return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
map $arg_w $to { volatile; default $upstrand_a; plain u2; }
--- config
location /t { proxy_pass http://$to; }
location /e { return 200 "e\n"; }
--- request eval
["GET /t?w=plain", "GET /t", "GET /t?w=plain"]
--- response_body eval
["e\n", "u2\n", "e\n"]



=== a location reached by X-Accel-Redirect may use an upstrand
--- http_config
backend front { add_header X-Accel-Redirect /t; return 200 "front\n"; }
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /front { proxy_pass http://front; }
location /t { internal; proxy_pass http://$upstrand_a; }
--- request eval
["GET /front", "GET /asked.log"]
--- response_body eval
["u2\n", "front\nu1\nu2\n"]



=== X-Accel-Limit-Rate of a failed answer does not throttle the next one
--- http_config
backend u1 { add_header X-Accel-Limit-Rate 1000 always; return 503 "u1\n"; }
backend u2 { root html; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- user_files eval
[["t", "x" x 10_000]]
--- request
GET /t
--- response_body_filters eval: \&::quick
--- response_body eval
"x" x 10_000



=== X-Accel-Limit-Rate of the answer does
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { add_header X-Accel-Limit-Rate 4000; root html; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- user_files eval
[["t", "x" x 10_000]]
--- request
GET /t
--- response_body_filters eval: \&::quick
--- response_body_like: ^after \d+\.\d+ s: x{10000}$



=== limit_rate of the location does, too
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { root html; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { limit_rate 4000; proxy_pass http://$upstrand_a; }
--- user_files eval
[["t", "x" x 10_000]]
--- request
GET /t
--- response_body_filters eval: \&::quick
--- response_body_like: ^after \d+\.\d+ s: x{10000}$



=== a rate that set has made is the same after a failed answer with another one
--- http_config
backend u1 { add_header X-Accel-Limit-Rate 1000000 always; return 503 "u1\n"; }
backend u2 { root html; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { set $limit_rate 4000; proxy_pass http://$upstrand_a; }
--- user_files eval
[["t", "x" x 10_000]]
--- request
GET /t
--- response_body_filters eval: \&::quick
--- response_body_like: ^after \d+\.\d+ s: x{10000}$



=== X-Accel-Buffering and X-Accel-Charset of a failed answer have no effect
--- http_config
backend u1 { add_header X-Accel-Charset koi8-r always; add_header X-Accel-Buffering no always; default_type text/html; return 503 "u1\n"; }
backend u2 { default_type text/html; return 200 "u2\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_headers
X-Path: u1 -> u2
Content-Type: text/html



=== error_page acts neither in the walk nor on its end
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
dead u3;
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
upstrand b { upstream u1; next_upstream_statuses 5xx; }
upstrand c { upstream u1; upstream u3; order per_request; next_upstream_statuses 5xx; }
--- config
error_page 502 503 504 /e;
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
location /c { proxy_pass http://$upstrand_c; }
location /e { return 200 "e\n"; }
--- request eval
["GET /a", "GET /b", "GET /c"]
--- error_code eval
[200, 503, 502]
--- response_body eval
["u2\n", "u1\n", qr/502 Bad Gateway/]



=== proxy_intercept_errors does not, with an error_page and without
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 404 "u2\n"; }
upstrand a { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
--- config
proxy_intercept_errors on;
location /a { error_page 404 503 /e; proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_a; }
location /e { return 200 "e\n"; }
--- request eval
["GET /a", "GET /b"]
--- error_code eval
[404, 404]
--- response_body eval
["u2\n", "u2\n"]



=== other requests of the same server keep their error_page
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; next_upstream_statuses 5xx; }
map $arg_w $to { volatile; default $upstrand_a; plain u1; }
--- config
error_page 503 /e;
proxy_intercept_errors on;
location /t { proxy_pass http://$to; }
location /e { return 200 "e\n"; }
--- request eval
["GET /t?w=plain", "GET /t", "GET /t?w=plain"]
--- error_code eval
[503, 503, 503]
--- response_body eval
["e\n", "u1\n", "e\n"]



=== reached by rewrite, try_files, error_page, a named location, if, a regex
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2 $request_uri\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /rewrite { rewrite ^/rewrite(.*)$ /t$1?added=1 last; }
location /break { rewrite ^/break(.*)$ /new$1 break; proxy_pass http://$upstrand_a; }
location /try { try_files /none @n; }
location @n { proxy_pass http://$upstrand_a; }
location /error { error_page 404 = @n; return 404; }
location /if { if ($arg_x) { proxy_pass http://$upstrand_a; break; } return 404; }
location ~ ^/re/(\w+)\.(\w+)$ { proxy_pass http://$upstrand_a/$2/$1?q=$arg_q; }
--- request eval
["GET /rewrite/x?y=1", "GET /break/x?y=1", "GET /try/x?y=1", "GET /error/x", "GET /if?x=1", "GET /re/one.two?q=3", "GET /asked.log"]
--- response_body eval
["u2 /t/x?added=1&y=1\n", "u2 /new/x?y=1\n", "u2 /try/x?y=1\n", "u2 /error/x\n", "u2 /if?x=1\n", "u2 /two/one?q=3\n", "u1\nu2\n" x 6]



=== what set, rewrite and captures have made holds for every upstream
--- http_config
log_format got '$server_name $request_uri $http_x_v';
server { listen unix:$TEST_NGINX_HTML_DIR/s1.sock; server_name s1; access_log $TEST_NGINX_HTML_DIR/got.log got; location / { return 503; } }
server { listen unix:$TEST_NGINX_HTML_DIR/s2.sock; server_name s2; access_log $TEST_NGINX_HTML_DIR/got.log got; location / { return 200 "s2\n"; } }
upstream u1 { server unix:$TEST_NGINX_HTML_DIR/s1.sock; }
upstream u2 { server unix:$TEST_NGINX_HTML_DIR/s2.sock; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location ~ ^/t/(?<what>\w+) {
    set $v "$what $arg_q";
    set $args "$args&added=1";
    proxy_set_header X-V $v;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t/one?q=2", "GET /got.log"]
--- response_body eval
["s2\n", "s1 /t/one?q=2&added=1 one 2\ns2 /t/one?q=2&added=1 one 2\n"]



=== limit_req and limit_conn count a walk once
--- http_config
limit_req_zone $server_name zone=r:64k rate=1r/m;
limit_conn_zone $server_name zone=c:64k;
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
backend u3 { return 200 "u3\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { limit_req zone=r burst=1 nodelay; limit_req_status 429; limit_conn c 1; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- error_code eval
[200, 200, 429]
--- response_body eval
["u3\n", "u3\n", qr/429 Too Many Requests/]



=== satisfy, allow and basic authentication come before the walk
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2 $http_authorization\n"; }
upstrand a { upstream ~^u; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { auth_basic x; auth_basic_user_file $TEST_NGINX_HTML_DIR/users; proxy_pass http://$upstrand_a; }
--- user_files
>>> users
me:{PLAIN}secret
--- request eval
["GET /t", "GET /t", "GET /asked.log"]
--- more_headers eval
["", "Authorization: Basic bWU6c2VjcmV0", ""]
--- error_code eval
[401, 200, 200]
--- response_body eval
[qr/401/, "u2 Basic bWU6c2VjcmV0\n", "u1\nu2\n"]



=== a port behind the variable is nginx's affair, and no crash
--- http_config
backend u1 { return 200 "u1\n"; }
upstrand a { upstream u1; }
--- config
location /p { proxy_pass http://$upstrand_a:1; }
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /p", "GET /t"]
--- error_code eval
[502, 200]
--- response_body eval
[qr/502 Bad Gateway/, "u1\n"]



=== over https an upstream that speaks no TLS is an error
--- http_config
backend u1 { return 200 "u1\n"; }
upstrand a { upstream u1; intercept_statuses error /f; }
upstrand b { upstream u1; intercept_statuses 404 /f; }
--- config
location /a { proxy_pass https://$upstrand_a; }
location /b { add_header X-Status $upstrand_status always; proxy_pass https://$upstrand_b; }
location /f { internal; return 200 "f\n"; }
--- request eval
["GET /a", "GET /b"]
--- error_code eval
[200, 502]
--- response_headers eval
["! X-Status", "X-Status: (u1) 502"]
--- response_body eval
["f\n", qr/502 Bad Gateway/]
--- error_log
SSL_do_handshake() failed
