# next_upstream_timeout and next_upstream_tries inside upstrand{}, and the units
# of times: what is taken and what is refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

run_tests();

__DATA__

=== TEST 1: next_upstream_tries bounds the upstreams visited
--- http
upstrand a {
    upstream bad;
    upstream dead;
    upstream u1;
    order per_request;
    next_upstream_statuses error 5xx;
    next_upstream_tries 2;
}
--- paths
502 bad -> dead



=== TEST 2: next_upstream_tries 1 lets a walk visit one upstream
--- http
upstrand a {
    upstream bad;
    upstream u1;
    order per_request;
    next_upstream_statuses error 5xx;
    next_upstream_tries 1;
}
--- paths
503 bad



=== TEST 3: next_upstream_tries 0 bounds nothing here
--- http
upstrand a {
    upstream bad;
    upstream dead;
    upstream u1;
    order per_request;
    next_upstream_statuses error 5xx;
    next_upstream_tries 0;
}
--- paths
200 bad -> dead -> u1



=== TEST 4: next_upstream_tries 00 bounds nothing here
--- http
upstrand a {
    upstream bad;
    upstream dead;
    upstream u1;
    order per_request;
    next_upstream_statuses error 5xx;
    next_upstream_tries 00;
}
--- paths
200 bad -> dead -> u1



=== TEST 5: next_upstream_tries 9 bounds nothing here
--- http
upstrand a {
    upstream bad;
    upstream dead;
    upstream u1;
    order per_request;
    next_upstream_statuses error 5xx;
    next_upstream_tries 9;
}
--- paths
200 bad -> dead -> u1



=== TEST 6: next_upstream_tries 4294967295 bounds nothing here
--- http
upstrand a {
    upstream bad;
    upstream dead;
    upstream u1;
    order per_request;
    next_upstream_statuses error 5xx;
    next_upstream_tries 4294967295;
}
--- paths
200 bad -> dead -> u1



=== TEST 7: next_upstream_tries "-1" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries -1;
}
--- must_die
--- emerg
http.conf:3: invalid value "-1"



=== TEST 8: next_upstream_tries "+1" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries +1;
}
--- must_die
--- emerg
http.conf:3: invalid value "+1"



=== TEST 9: next_upstream_tries "1.5" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 1.5;
}
--- must_die
--- emerg
http.conf:3: invalid value "1.5"



=== TEST 10: next_upstream_tries "1x" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 1x;
}
--- must_die
--- emerg
http.conf:3: invalid value "1x"



=== TEST 11: next_upstream_tries "x" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries x;
}
--- must_die
--- emerg
http.conf:3: invalid value "x"



=== TEST 12: next_upstream_tries "4294967296" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 4294967296;
}
--- must_die
--- emerg
http.conf:3: invalid value "4294967296"



=== TEST 13: next_upstream_tries "99999999999999999999" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 99999999999999999999;
}
--- must_die
--- emerg
http.conf:3: invalid value "99999999999999999999"



=== TEST 14: next_upstream_tries "unlimited" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries unlimited;
}
--- must_die
--- emerg
http.conf:3: invalid value "unlimited"



=== TEST 15: next_upstream_tries "off" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries off;
}
--- must_die
--- emerg
http.conf:3: invalid value "off"



=== TEST 16: an empty next_upstream_tries is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries "";
}
--- must_die
--- emerg
http.conf:3: invalid value ""



=== TEST 17: a second next_upstream_tries is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 1;
    next_upstream_tries 2;
}
--- must_die
--- emerg
http.conf:4: "next_upstream_tries" directive is duplicate



=== TEST 18: a second next_upstream_tries after 0 is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 0;
    next_upstream_tries 0;
}
--- must_die
--- emerg
http.conf:4: "next_upstream_tries" directive is duplicate



=== TEST 19: next_upstream_tries without an argument is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "next_upstream_tries" directive



=== TEST 20: next_upstream_tries with two arguments is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 1 2s;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "next_upstream_tries" directive



=== TEST 21: next_upstream_timeout ends a walk whose upstream does not answer
--- http
limit_req_zone $request_method zone=slow:64k rate=1r/m;
server { listen unix:$DIR/l.sock; limit_req zone=slow burst=9; location / { empty_gif; } }
upstream slow { server unix:$DIR/l.sock; }
upstrand a {
    upstream slow;
    upstream u1;
    order per_request;
    next_upstream_timeout 100ms;
}
--- paths
200 slow
504 slow



=== TEST 22: next_upstream_timeout 100ms is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 100ms;
}
--- paths
200 dead -> u1



=== TEST 23: next_upstream_timeout 1s is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 1s;
}
--- paths
200 dead -> u1



=== TEST 24: next_upstream_timeout 5 is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 5;
}
--- paths
200 dead -> u1



=== TEST 25: next_upstream_timeout 1m is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 1m;
}
--- paths
200 dead -> u1



=== TEST 26: next_upstream_timeout 2h is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 2h;
}
--- paths
200 dead -> u1



=== TEST 27: next_upstream_timeout 1d is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 1d;
}
--- paths
200 dead -> u1



=== TEST 28: next_upstream_timeout 1w is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 1w;
}
--- paths
200 dead -> u1



=== TEST 29: next_upstream_timeout 1m30s is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 1m30s;
}
--- paths
200 dead -> u1



=== TEST 30: next_upstream_timeout 1s500ms is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 1s500ms;
}
--- paths
200 dead -> u1



=== TEST 31: next_upstream_timeout 0 is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 0;
}
--- paths
200 dead -> u1



=== TEST 32: next_upstream_timeout 0s is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 0s;
}
--- paths
200 dead -> u1



=== TEST 33: next_upstream_timeout 0ms is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 0ms;
}
--- paths
200 dead -> u1



=== TEST 34: blacklist_interval=500ms is taken
--- http
upstrand a {
    upstream dead blacklist_interval=500ms;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 35: blacklist_interval=5 is taken
--- http
upstrand a {
    upstream dead blacklist_interval=5;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 36: blacklist_interval=1s is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1s;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 37: blacklist_interval=1m is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1m;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 38: blacklist_interval=2h is taken
--- http
upstrand a {
    upstream dead blacklist_interval=2h;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 39: blacklist_interval=1d is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1d;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 40: blacklist_interval=1w is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1w;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 41: blacklist_interval=1m30s is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1m30s;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 42: blacklist_interval=1s500ms is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1s500ms;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 43: next_upstream_timeout 1M is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 1M;
}
--- paths
200 dead -> u1



=== TEST 44: next_upstream_timeout 1y is taken
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_timeout 1y;
}
--- paths
200 dead -> u1



=== TEST 45: blacklist_interval=1M is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1M;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 46: blacklist_interval=1y is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1y;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 47: the largest times are taken, and do not wrap round
--- http
upstrand a {
    upstream dead blacklist_interval=9223372036854775807ms;
    upstream u1;
    next_upstream_timeout 9223372036854775807ms;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 48: a time of several parts may have spaces
--- http
upstrand a {
    upstream dead "blacklist_interval=1h 30m";
    upstream u1;
    next_upstream_timeout "1m 30s";
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 49: a blacklist_interval in milliseconds is over after these
--- http
upstrand a {
    upstream dead blacklist_interval=100ms;
    upstream u1;
    order per_request;
}
--- server eval
"add_header X-Path \$upstrand_path;
location /t { proxy_pass http://\$upstrand_a; }
location /slow { limit_rate 1000; return 200 '" . 'x' x 1500 . "'; }
"
--- request eval
["GET /t", "GET /t", "GET /slow", "GET /t"]
--- response_headers eval
["X-Path: dead -> u1", "X-Path: u1", "! X-Path", "X-Path: dead -> u1"]



=== TEST 50: next_upstream_timeout "abc" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout abc;
}
--- must_die
--- emerg
http.conf:3: invalid value "abc"



=== TEST 51: next_upstream_timeout "-1" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout -1;
}
--- must_die
--- emerg
http.conf:3: invalid value "-1"



=== TEST 52: next_upstream_timeout "+1" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout +1;
}
--- must_die
--- emerg
http.conf:3: invalid value "+1"



=== TEST 53: next_upstream_timeout "1.5" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 1.5;
}
--- must_die
--- emerg
http.conf:3: invalid value "1.5"



=== TEST 54: next_upstream_timeout "1.5s" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 1.5s;
}
--- must_die
--- emerg
http.conf:3: invalid value "1.5s"



=== TEST 55: next_upstream_timeout "1x" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 1x;
}
--- must_die
--- emerg
http.conf:3: invalid value "1x"



=== TEST 56: next_upstream_timeout "5q" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 5q;
}
--- must_die
--- emerg
http.conf:3: invalid value "5q"



=== TEST 57: next_upstream_timeout "s" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout s;
}
--- must_die
--- emerg
http.conf:3: invalid value "s"



=== TEST 58: next_upstream_timeout "1s1s" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 1s1s;
}
--- must_die
--- emerg
http.conf:3: invalid value "1s1s"



=== TEST 59: next_upstream_timeout "1s1m" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 1s1m;
}
--- must_die
--- emerg
http.conf:3: invalid value "1s1m"



=== TEST 60: next_upstream_timeout "1ms1s" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 1ms1s;
}
--- must_die
--- emerg
http.conf:3: invalid value "1ms1s"



=== TEST 61: next_upstream_timeout "99999999999999999999" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 99999999999999999999;
}
--- must_die
--- emerg
http.conf:3: invalid value "99999999999999999999"



=== TEST 62: next_upstream_timeout "999999999999999999y" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 999999999999999999y;
}
--- must_die
--- emerg
http.conf:3: invalid value "999999999999999999y"



=== TEST 63: next_upstream_timeout "off" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout off;
}
--- must_die
--- emerg
http.conf:3: invalid value "off"



=== TEST 64: blacklist_interval=abc is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=abc;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=abc"



=== TEST 65: blacklist_interval=-1 is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=-1;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=-1"



=== TEST 66: blacklist_interval=1.5 is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=1.5;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=1.5"



=== TEST 67: blacklist_interval=1x is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=1x;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=1x"



=== TEST 68: blacklist_interval=5q is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=5q;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=5q"



=== TEST 69: blacklist_interval=s is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=s;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=s"



=== TEST 70: blacklist_interval=1s1s is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=1s1s;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=1s1s"



=== TEST 71: blacklist_interval=1s1m is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=1s1m;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=1s1m"



=== TEST 72: blacklist_interval=1ms1s is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=1ms1s;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=1ms1s"



=== TEST 73: blacklist_interval=99999999999999999999 is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=99999999999999999999;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=99999999999999999999"



=== TEST 74: blacklist_interval=off is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=off;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=off"



=== TEST 75: an empty next_upstream_timeout is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout "";
}
--- must_die
--- emerg
http.conf:3: invalid value ""



=== TEST 76: a second next_upstream_timeout is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 1s;
    next_upstream_timeout 1s;
}
--- must_die
--- emerg
http.conf:4: "next_upstream_timeout" directive is duplicate



=== TEST 77: a second next_upstream_timeout after 0 is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 0;
    next_upstream_timeout 2s;
}
--- must_die
--- emerg
http.conf:4: "next_upstream_timeout" directive is duplicate



=== TEST 78: next_upstream_timeout without an argument is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "next_upstream_timeout" directive



=== TEST 79: next_upstream_timeout with two arguments is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 1s 2s;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "next_upstream_timeout" directive
