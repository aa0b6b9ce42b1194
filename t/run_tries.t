# next_upstream_tries: how many upstreams a request visits at most.

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

=== the last upstream allowed gives the answer
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 500 "u2\n"; }
backend u3 { return 200 "u3\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 5xx; next_upstream_tries 2;
}
--- config
location /t {
    add_header X-Path $upstrand_path always;
    add_header X-Tries $upstrand_tries always;
    proxy_pass http://$upstrand_a;
}
--- request eval
["GET /t", "GET /asked.log"]
--- error_code eval
[500, 200]
--- response_headers eval
["X-Path: u1 -> u2\nX-Tries: 2", "! X-Path"]
--- response_body eval
["u2\n", "u1\nu2\n"]



=== 1 asks one upstream, and the turn moves on
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
upstrand a { upstream ~^u; next_upstream_statuses 5xx; next_upstream_tries 1; }
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t", "GET /t", "GET /asked.log"]
--- error_code eval
[503, 503, 503, 200]
--- response_body eval
["u1\n", "u2\n", "u1\n", "u1\nu2\nu1\n"]



=== 0 sets no limit
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
backend u3 { return 200 "u3\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 5xx; next_upstream_tries 0;
}
--- config
location /t { add_header X-Path $upstrand_path; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_headers
X-Path: u1 -> u2 -> u3
--- response_body
u3



=== a limit above the number of members changes nothing
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 5xx; next_upstream_tries 9;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- error_code: 503
--- response_headers
X-Path: u1 -> u2
--- response_body
u2



=== it counts over all tiers
--- http_config
backend u1 { return 503 "u1\n"; }
backend b1 { return 503 "b1\n"; }
backend c1 { return 200 "c1\n"; }
upstrand a {
    upstream u1; upstream b1 backup; upstream c1 tier=2;
    next_upstream_statuses 5xx; next_upstream_tries 2;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- error_code: 503
--- response_headers
X-Path: u1 -> b1
--- response_body
b1



=== it counts upstreams, not servers
--- http_config
backend u2 { return 200 "u2\n"; }
upstream u1 { server 127.0.0.1:1; server 127.0.0.1:2; server 127.0.0.1:3; }
upstrand a {
    upstream u1; upstream u2; order per_request;
    next_upstream_tries 2;
}
--- config
location /t { add_header X-Status $upstrand_status; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_headers
X-Status: (u1) 502, 502, 502 (u2) 200
--- response_body
u2



=== blacklisted upstreams do not count
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
backend u3 { return 200 "u3\n"; }
upstrand a {
    upstream u1 blacklist_interval=60s; upstream u2; upstream u3;
    order per_request; next_upstream_statuses 5xx; next_upstream_tries 2;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[503, 200]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u2 -> u3"]



=== after the limit intercept_statuses may act
--- http_config
backend u1 { return 503 "u1\n"; }
backend u2 { return 200 "u2\n"; }
upstrand a {
    upstream ~^u; order per_request;
    next_upstream_statuses 5xx; next_upstream_tries 1; intercept_statuses 5xx /f;
}
--- config
location /t { add_header X-Path $upstrand_path always; proxy_pass http://$upstrand_a; }
location /f { internal; return 200 "instead\n"; }
--- request eval
["GET /t", "GET /asked.log"]
--- response_body eval
["instead\n", "u1\n"]



=== the log tells why it ended
--- http_config
log_format why '$upstrand_tries $upstrand_reason';
backend u1 { return 503 "u1\n"; }
backend u2 { return 503 "u2\n"; }
upstrand a { upstream ~^u; next_upstream_statuses 5xx; order per_request; next_upstream_tries 1; }
upstrand b { upstream ~^u; next_upstream_statuses 5xx; order per_request; }
--- config
access_log $TEST_NGINX_HTML_DIR/why.log why;
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
--- request eval
["GET /a", "GET /b", "GET /why.log"]
--- error_code eval
[503, 503, 200]
--- response_body eval
["u1\n", "u2\n", "1 (u1) tries\n2 (u1) http_503 (u2) exhausted\n"]
