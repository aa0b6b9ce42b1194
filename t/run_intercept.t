# intercept_statuses: what the client gets instead of a final answer.

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
run_tests();

__DATA__

=== the location's answer replaces status, headers and body of the last upstream
--- http_config
backend u1 { add_header X-From u1 always; return 503 "u1\n"; }
backend u2 { add_header X-From u2 always; return 503 "u2\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 5xx; intercept_statuses 5xx /f;
}
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f {
    internal;
    add_header X-Path $upstrand_path always;
    add_header X-Name f always;
    return 418 "instead\n";
}
--- request eval
["GET /t", "GET /asked.log"]
--- error_code eval
[418, 200]
--- response_headers eval
["! X-From\nX-Name: f\nX-Path: u1 -> u2 -> <intercepted>\nContent-Length: 8", "! X-From"]
--- response_body eval
["instead\n", "u1\nu2\n"]



=== a good answer is left alone
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 5xx; intercept_statuses 5xx /f;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
location /f { internal; return 200 "instead\n"; }
--- request
GET /t
--- response_headers
X-Path: u1 -> u2
--- response_body
u2



=== the first line that matches wins; a status that no line matches is passed on
--- http_config
backend u503 { return 503 "u503\n"; }
backend u500 { return 500 "u500\n"; }
backend u404 { return 404 "u404\n"; }
backend u200 { return 200 "u200\n"; }
backend u410 { return 410 "u410\n"; }
upstrand a {
    upstream ~^u;
    intercept_statuses 503 404 /a; intercept_statuses 500-504 /b; intercept_statuses 2xx /c;
}
--- config
location /t { proxy_pass http://$upstrand_a; }
location /a { internal; return 200 "a\n"; }
location /b { internal; return 200 "b\n"; }
location /c { internal; return 200 "c\n"; }
--- request eval
[("GET /t") x 5]
--- error_code eval
[200, 200, 200, 200, 410]
--- response_body eval
["a\n", "b\n", "a\n", "c\n", "u410\n"]



=== error and timeout are the statuses that nginx made
--- http_config
dead u1;
backend u2 { return 502 "u2\n"; }
upstrand a { upstream u1; upstream u2; next_upstream_statuses 404; intercept_statuses error /f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; return 200 "instead\n"; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 502]
--- response_body eval
["instead\n", "u2\n"]



=== arguments of the URI are those of the location
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f?why=down; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location = /f { internal; return 200 "$uri [$args] [$arg_why] [$arg_x]\n"; }
--- request
GET /t?x=1
--- response_body
/f [why=down] [down] []



=== variables in the URI are evaluated for each request
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f/$arg_x?m=$request_method; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f/ { internal; return 200 "$uri $args\n"; }
--- request eval
["GET /t?x=one", "GET /t?x=two"]
--- response_body eval
["/f/one m=GET\n", "/f/two m=GET\n"]



=== a named location
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx @f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location @f { add_header X-F f always; return 503 "instead of $uri\n"; }
--- request
GET /t
--- error_code: 503
--- response_headers
X-F: f
--- response_body
instead of /t



=== the location sees the client's request
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f; }
--- config
location /t { set $kept "kept"; proxy_pass http://$upstrand_a; }
location = /f { internal; return 200 "$uri $request_uri $http_x_client $kept\n"; }
--- request
GET /t?x=1
--- more_headers
X-Client: me
--- response_body
/f /t?x=1 me kept



=== a static file, an unknown file
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /files/$arg_f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /files/ { internal; root html; }
--- user_files eval
[["files/sorry.html", "0123456789" x 50_000]]
--- request eval
["GET /t?f=sorry.html", "GET /t?f=none"]
--- error_code eval
[200, 404]
--- response_body eval
["0123456789" x 50_000, qr/404 Not Found/]



=== try_files, an index, a rewrite in the location
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx $arg_u; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /try { internal; try_files /none.html @found; }
location @found { return 200 "found\n"; }
location /dir/ { internal; root html; index page.html; }
location /rw { internal; rewrite ^ /moved last; }
location /moved { internal; return 200 "moved\n"; }
--- user_files
>>> dir/page.html
page
--- request eval
["GET /t?u=/try", "GET /t?u=/dir/", "GET /t?u=/rw"]
--- response_body eval
["found\n", "page\n", "moved\n"]



=== the location proxies to another upstream
--- http_config
backend u1 { return 503 "u1\n"; }
backend f { return 200 "$request_method $request_uri\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location = /f {
    internal;
    add_header X-Addr $upstrand_addr;
    add_header X-Status $upstrand_status;
    proxy_pass http://f/sub;
}
--- request eval
["GET /t", "GET /asked.log"]
--- response_headers eval
my $html = $ENV{TEST_NGINX_HTML_DIR};
["X-Addr: (u1) unix:$html/u1.sock (<intercepted>) unix:$html/f.sock\nX-Status: (u1) 503 (<intercepted>) 200", "! X-Addr"]
--- response_body eval
["GET /sub\n", "u1\nf\n"]



=== the location's upstream is dead, or follows X-Accel-Redirect
--- http_config
backend u1 { return 503 "u1\n"; }
dead d;
backend x { add_header X-Accel-Redirect /accel; return 200 "x\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f/$arg_f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f/d { internal; proxy_pass http://d; }
location /f/x { internal; proxy_pass http://x; }
location /accel { internal; return 200 "accel\n"; }
--- request eval
["GET /t?f=d", "GET /t?f=x"]
--- error_code eval
[502, 200]
--- response_body eval
[qr/502 Bad Gateway/, "accel\n"]



=== the location uses another upstrand, with a walk of its own
--- http_config
backend u1 { return 503 "u1\n"; }
backend v1 { return 503 "v1\n"; }
backend v2 { return 200 "v2\n"; }
upstrand a { upstream u1; next_upstream_statuses 5xx; intercept_statuses 5xx /f; }
upstrand b { upstream ~^v; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f {
    internal;
    add_header X-Name "$upstrand_name $upstrand_upstream";
    add_header X-Status $upstrand_status;
    proxy_pass http://$upstrand_b;
}
--- request eval
["GET /t", "GET /asked.log"]
--- response_headers eval
["X-Name: b v2\nX-Status: (u1) 503 (<intercepted>)  (v1) 503 (v2) 200", "! X-Name"]
--- response_body eval
["v2\n", "u1\nv1\nv2\n"]



=== a URI that leads into the upstrand's own location does not loop
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 5xx; intercept_statuses 5xx /t/again;
}
--- config
location /t { proxy_pass http://$upstrand_a; }
location /ok { return 200 "ok\n"; }
--- request eval
["GET /t", "GET /asked.log", "GET /ok"]
--- error_code eval
[503, 200, 200]
--- response_body eval
["u2\n", qr/\A(?:u1\nu2\n){1,2}\z/, "ok\n"]



=== the location's own failure is not intercepted again
--- http_config
backend u1 { return 503 "u1\n"; }
backend f { return 503 "f\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f; intercept_statuses 404 /g; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; proxy_pass http://f; }
location /g { internal; return 200 "g\n"; }
--- request eval
["GET /t", "GET /asked.log"]
--- error_code eval
[503, 200]
--- response_body eval
["f\n", "u1\nf\n"]



=== error_page is off in the walk, and acts again in the location
--- http_config
backend u1 { return 503 "u1\n"; }
backend f { return 500 "f\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f; }
--- config
error_page 500 502 503 /e;
proxy_intercept_errors on;
location /t { proxy_pass http://$upstrand_a; }
location = /f { internal; proxy_pass http://f; }
location /e { return 200 "error_page\n"; }
--- request eval
["GET /t", "GET /asked.log"]
--- error_code eval
[500, 200]
--- response_body eval
["error_page\n", "u1\nf\n"]



=== a variable that is no URI: the upstream's own answer, and a line in the log
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx $arg_u; }
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
location /f { internal; return 200 "f\n"; }
--- request eval
["GET /t", "GET /t?u=no-uri", "GET /t?u=/f"]
--- error_code eval
[503, 503, 200]
--- response_headers eval
["X-Path: u1", "X-Path: u1", "! X-Path"]
--- response_body eval
["u1\n", "u1\n", "f\n"]
--- error_log
[error]
no-uri



=== what a client makes of the variable stays in its line and in its quotes
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx $x; }
--- config
location ~ "(?s)^/t/(?<x>.*)$" { proxy_pass http://$upstrand_a; }
--- request
GET /t/a%0Ab%22%5C%1B%7F%C3%BC
--- error_code: 503
--- error_log
invalid URI "a\x0Ab\x22\x5C\x1B\x7F\xC3\xBC" in "intercept_statuses" of upstrand "a"



=== HEAD: the header of the location, and no body
--- http_config
backend u1 { return 503 "u1\n"; }
dead u2;
upstrand a { upstream ~^u; next_upstream_statuses 404; intercept_statuses 5xx /f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; return 503 "instead\n"; }
--- pipelined_requests eval
["HEAD /t", "HEAD /t", "HEAD /t"]
--- error_code eval
[503, 503, 503]
--- response_headers eval
[("Content-Length: 8") x 3]



=== a POST that was not retried, and whose body is in memory or in a file
--- http_config
client_body_buffer_size 1k;
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 5xx; intercept_statuses 5xx /f;
}
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; return 503 "instead\n"; }
--- pipelined_requests eval
["POST /t\nbody", "POST /t\n" . "x" x 20_000, "POST /t\nbody"]
--- error_code eval
[503, 503, 503]
--- response_body eval
[("instead\n") x 3]



=== the location runs as a GET, whatever the client's method is
--- http_config
backend u1 { return 503 "u1\n"; }
backend f { return 200 "$request_method\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; proxy_pass http://f; }
--- request
POST /t
body
--- response_body
GET



=== 204 and a redirection
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f/$arg_s; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f/204 { internal; return 204; }
location /f/302 { internal; return 302 http://example.test/; }
--- pipelined_requests eval
["GET /t?s=204", "GET /t?s=302", "GET /t?s=204"]
--- error_code eval
[204, 302, 204]
--- response_headers eval
["! Content-Length", "Location: http://example.test/", "! Content-Length"]



=== the log has the status that the client got
--- http_config
log_format st '$status $upstrand_status';
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f; }
--- config
access_log $TEST_NGINX_HTML_DIR/st.log st;
location = /t { proxy_pass http://$upstrand_a; }
location /f { internal; return 207 "instead\n"; }
--- request eval
["GET /t", "GET /st.log"]
--- error_code eval
[207, 200]
--- response_body eval
["instead\n", "207 (u1) 503 (<intercepted>) \n"]



=== a large failed body neither shows nor delays
--- http_config
backend u1 { limit_rate 1000; error_page 404 =503 /big; location /t { return 404; } location /big { root html; } }
upstrand a { upstream u1; intercept_statuses 5xx /f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { internal; return 200 "instead\n"; }
--- user_files eval
[["big", "x" x 300_000]]
--- timeout: 1
--- request
GET /t
--- response_body
instead



=== filters act on the location's answer
--- http_config
gzip on;
gzip_min_length 1;
gzip_types *;
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f/$arg_f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f/gzip { internal; return 200 "long text long text long text long text\n"; }
location /f/sub { internal; gzip off; sub_filter_types *; sub_filter long short; sub_filter_once off; return 200 "long text long text\n"; }
--- request eval
["GET /t?f=gzip", "GET /t?f=sub"]
--- more_headers
Accept-Encoding: gzip
--- response_headers eval
["Content-Encoding: gzip", "! Content-Encoding"]
--- response_body_like eval
["\\A\x1f\x8b", "\\Ashort text short text\n\\z"]



=== a location may refuse
--- http_config
backend u1 { return 503 "u1\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f; }
--- config
location /t { proxy_pass http://$upstrand_a; }
location /f { deny all; return 200 "instead\n"; }
location /ok { return 200 "ok\n"; }
--- request eval
["GET /t", "GET /ok"]
--- error_code_like eval
["200|403", "200"]
--- response_body_like eval
["instead|403 Forbidden", "ok"]



=== in a subrequest the interception is the subrequest's
--- http_config
backend u1 { return 503 "u1\n"; }
backend v1 { return 503 "v1\n"; }
backend v2 { return 200 "v2\n"; }
upstrand a { upstream u1; intercept_statuses 5xx /f; }
upstrand b { upstream ~^v; order per_request; next_upstream_statuses 5xx; }
--- config
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
location /page { ssi on; }
location /f { internal; return 503 "instead\n"; }
--- user_files
>>> page.html
1<!--# include virtual="/a" -->2<!--# include virtual="/b" -->3
--- request
GET /page.html
--- response_body
1instead
2v2
3
