# extend_single_peers: where it may stand, what it does, and what is refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

run_tests();

__DATA__

=== TEST 1: a lone server that failed is not asked again
--- http
upstream c {
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- error_code eval
[502, 502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c", "X-Asked: c"]



=== TEST 2: without it a lone server is asked for every request
--- http
upstream c {
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: 127.0.0.1:1"]



=== TEST 3: a lone server and a lone backup that failed are not asked again
--- http
upstream c {
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    server 127.0.0.1:1 backup max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1, 127.0.0.1:1", "X-Asked: c"]



=== TEST 4: its place among the servers does not matter
--- http
upstream c {
    extend_single_peers;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 5: the server that is added is never asked
--- http
upstream c {
    server unix:$DIR/s1.sock;
    extend_single_peers;
}
--- answers: 1 1 1 1



=== TEST 6: several servers are left as they are
--- http
upstream c {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    extend_single_peers;
}
--- answers: 1 2 1 2



=== TEST 7: a server of add_upstream is one
--- http
upstream c {
    add_upstream dead;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 8: below least_conn a lone server that failed is not asked again
--- http
upstream c {
    least_conn;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 9: below least_conn the server that is added is never asked
--- http
upstream c {
    least_conn;
    server unix:$DIR/s1.sock;
    extend_single_peers;
}
--- answers: 1 1 1 1



=== TEST 10: below ip_hash a lone server that failed is not asked again
--- http
upstream c {
    ip_hash;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 11: below ip_hash the server that is added is never asked
--- http
upstream c {
    ip_hash;
    server unix:$DIR/s1.sock;
    extend_single_peers;
}
--- answers: 1 1 1 1



=== TEST 12: below hash $uri a lone server that failed is not asked again
--- http
upstream c {
    hash $uri;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 13: below hash $uri the server that is added is never asked
--- http
upstream c {
    hash $uri;
    server unix:$DIR/s1.sock;
    extend_single_peers;
}
--- answers: 1 1 1 1



=== TEST 14: below hash $uri consistent a lone server that failed is not asked again
--- http
upstream c {
    hash $uri consistent;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 15: below hash $uri consistent the server that is added is never asked
--- http
upstream c {
    hash $uri consistent;
    server unix:$DIR/s1.sock;
    extend_single_peers;
}
--- answers: 1 1 1 1



=== TEST 16: below random a lone server that failed is not asked again
--- http
upstream c {
    random;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 17: below random the server that is added is never asked
--- http
upstream c {
    random;
    server unix:$DIR/s1.sock;
    extend_single_peers;
}
--- answers: 1 1 1 1



=== TEST 18: below random two a lone server that failed is not asked again
--- http
upstream c {
    random two;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 19: below random two the server that is added is never asked
--- http
upstream c {
    random two;
    server unix:$DIR/s1.sock;
    extend_single_peers;
}
--- answers: 1 1 1 1



=== TEST 20: "zone z 64k" may stand above it
--- http
upstream c {
    zone z 64k;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 21: "zone z 64k" may stand below it
--- http
upstream c {
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
    zone z 64k;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 22: "keepalive 4" may stand above it
--- http
upstream c {
    keepalive 4;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 23: "keepalive 4" may stand below it
--- http
upstream c {
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    extend_single_peers;
    keepalive 4;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_addr always; }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[502, 502]
--- response_headers eval
["X-Asked: 127.0.0.1:1", "X-Asked: c"]



=== TEST 24: a balancing method below it is warned of by nginx
--- http
upstream c {
    server unix:$DIR/s1.sock;
    extend_single_peers;
    least_conn;
}
--- warning
http.conf:4: load balancing method redefined
--- answers: 1



=== TEST 25: a resolve server with a zone
--- http
resolver 127.0.0.1:1;
upstream c {
    zone z 64k;
    server name.test:9 resolve;
    extend_single_peers;
}
--- request
GET /t
--- error_code: 502
--- skip_nginx
2: < 1.27.3: no resolve



=== TEST 26: twice it is refused
--- http
upstream c {
    server 127.0.0.1:9;
    extend_single_peers;
    extend_single_peers;
}
--- must_die
--- emerg
http.conf:4: "extend_single_peers" directive is duplicate



=== TEST 27: an argument is refused
--- http
upstream c {
    server 127.0.0.1:9;
    extend_single_peers on;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "extend_single_peers" directive



=== TEST 28: a block is refused
--- http
upstream c {
    server 127.0.0.1:9;
    extend_single_peers { }
}
--- must_die
--- emerg
http.conf:3: directive "extend_single_peers" is not terminated by ";"



=== TEST 29: it makes no upstream of one without servers
--- http
upstream c {
    extend_single_peers;
}
--- must_die
--- emerg
http.conf:3: no servers are inside upstream



=== TEST 30: it makes no main server beside a lone backup
--- http
upstream c {
    server 127.0.0.1:9 backup;
    extend_single_peers;
}
--- must_die
--- emerg
http.conf:1: no servers in upstream "c"



=== TEST 31: outside upstream{} it is refused: in http
--- http
extend_single_peers;
--- must_die
--- emerg
http.conf:1: "extend_single_peers" directive is not allowed here



=== TEST 32: outside upstream{} it is refused: in a location
--- server
location /t {
    extend_single_peers;
}
--- must_die
--- emerg
server.conf:2: "extend_single_peers" directive is not allowed here
