# zone NAME [SIZE] inside upstrand{}: what is taken and what is refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

run_tests();

__DATA__

=== TEST 1: an upstrand with a zone takes turns and keeps marks
--- http
upstrand a {
    zone z 64k;
    upstream dead blacklist_interval=1h;
    upstream u1;
    upstream u2;
}
--- paths
200 dead -> u1
200 u1
200 u2



=== TEST 2: a zone of 32k is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1h;
    upstream u1;
    order per_request;
    zone z 32k;
}
--- paths
200 dead -> u1
200 u1



=== TEST 3: a zone of 64K is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1h;
    upstream u1;
    order per_request;
    zone z 64K;
}
--- paths
200 dead -> u1
200 u1



=== TEST 4: a zone of 65536 is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1h;
    upstream u1;
    order per_request;
    zone z 65536;
}
--- paths
200 dead -> u1
200 u1



=== TEST 5: a zone of 1m is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1h;
    upstream u1;
    order per_request;
    zone z 1m;
}
--- paths
200 dead -> u1
200 u1



=== TEST 6: a zone of 1M is taken
--- http
upstrand a {
    upstream dead blacklist_interval=1h;
    upstream u1;
    order per_request;
    zone z 1M;
}
--- paths
200 dead -> u1
200 u1



=== TEST 7: upstrands share a zone whose size the first one says; marks are each one's own
--- http
upstrand a {
    upstream dead blacklist_interval=1h;
    upstream u1;
    order per_request;
    zone z 64k;
}
upstrand b {
    upstream dead blacklist_interval=1h;
    upstream u2;
    order per_request;
    zone z;
}
--- server
add_header X-Path $upstrand_path;
location /a { proxy_pass http://$upstrand_a; }
location /b { proxy_pass http://$upstrand_b; }
--- request eval
["GET /a", "GET /b", "GET /a", "GET /b"]
--- response_headers eval
["X-Path: dead -> u1", "X-Path: dead -> u2", "X-Path: u1", "X-Path: u2"]



=== TEST 8: upstrands share a zone whose size the last one says
--- http
upstrand a {
    upstream u1;
    zone z;
}
upstrand b {
    upstream u1;
    zone z 64k;
}
--- paths
200 u1



=== TEST 9: upstrands share a zone whose size each one says
--- http
upstrand a {
    upstream u1;
    zone z 64k;
}
upstrand b {
    upstream u1;
    zone z 65536;
}
--- paths
200 u1



=== TEST 10: several zones
--- http
upstrand a {
    upstream u1;
    zone y 64k;
}
upstrand b {
    upstream u1;
    zone z 1m;
}
--- paths
200 u1



=== TEST 11: a zone's name is case-sensitive
--- http
upstrand a {
    upstream u1;
    zone z 64k;
}
upstrand b {
    upstream u1;
    zone Z 1m;
}
--- paths
200 u1



=== TEST 12: order start_random with a zone
--- http
upstrand a {
    upstream u1;
    upstream u2 backup;
    order start_random;
    zone z 64k;
}
--- answers: 1 1



=== TEST 13: a zone just large enough for its upstrand is taken
--- http eval
CORE::join '', map({ sprintf "upstream a_long_one_%04d { server 127.0.0.1:1; }\n", $_ } 1 .. 300),
         "upstrand a {\n    upstream u1;\n    zone z 124k;\n",
         "    upstream ~^a_long backup blacklist_interval=1s;\n}\n"
--- paths
200 u1
--- skip_eval
4: use POSIX (); POSIX::sysconf(POSIX::_SC_PAGESIZE()) != 4096



=== TEST 14: a zone a page smaller is refused with the size that it needs
--- http eval
CORE::join '', map({ sprintf "upstream a_long_one_%04d { server 127.0.0.1:1; }\n", $_ } 1 .. 300),
         "upstrand a {\n    upstream u1;\n    zone z 120k;\n",
         "    upstream ~^a_long backup blacklist_interval=1s;\n}\n"
--- must_die
--- emerg
http.conf:303: zone "z" is too small: its upstrands need 124k
--- skip_eval
2: use POSIX (); POSIX::sysconf(POSIX::_SC_PAGESIZE()) != 4096



=== TEST 15: a zone that is large enough for each of its upstrands, but not for all, is refused
--- http eval
CORE::join '', map({ sprintf "upstream a_long_one_%04d { server 127.0.0.1:1; }\n", $_ } 1 .. 300),
         "upstrand a { upstream ~^a_long; zone z 124k; }\n",
         "upstrand b { upstream ~^a_long; zone z; }\n"
--- must_die
--- emerg
http.conf:301: zone "z" is too small: its upstrands need ...k
--- skip_eval
2: use POSIX (); POSIX::sysconf(POSIX::_SC_PAGESIZE()) != 4096



=== TEST 16: a zone too small is told with the line that says its size
--- http eval
CORE::join '', map({ sprintf "upstream a_long_one_%04d { server 127.0.0.1:1; }\n", $_ } 1 .. 300),
         "upstrand a { upstream ~^a_long; zone z; }\n",
         "upstrand b { upstream ~^a_long; zone z 124k; }\n"
--- must_die
--- emerg
http.conf:302: zone "z" is too small: its upstrands need ...k
--- skip_eval
2: use POSIX (); POSIX::sysconf(POSIX::_SC_PAGESIZE()) != 4096



=== TEST 17: a zone of 0 is refused
--- http
upstrand a {
    upstream u1;
    zone z 0;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "0"



=== TEST 18: a zone of 1 is refused: nginx wants eight pages
--- http
upstrand a {
    upstream u1;
    zone z 1;
}
--- must_die
--- emerg
http.conf:3: zone "z" is too small: its upstrands need ...k



=== TEST 19: a zone of 1k is refused: nginx wants eight pages
--- http
upstrand a {
    upstream u1;
    zone z 1k;
}
--- must_die
--- emerg
http.conf:3: zone "z" is too small: its upstrands need ...k



=== TEST 20: a zone of 28k is refused: nginx wants eight pages
--- http
upstrand a {
    upstream u1;
    zone z 28k;
}
--- must_die
--- emerg
http.conf:3: zone "z" is too small: its upstrands need ...k



=== TEST 21: a zone of 31k is refused: nginx wants eight pages
--- http
upstrand a {
    upstream u1;
    zone z 31k;
}
--- must_die
--- emerg
http.conf:3: zone "z" is too small: its upstrands need ...k



=== TEST 22: a zone of 32767 is refused: nginx wants eight pages
--- http
upstrand a {
    upstream u1;
    zone z 32767;
}
--- must_die
--- emerg
http.conf:3: zone "z" is too small: its upstrands need ...k



=== TEST 23: "-1" is no size
--- http
upstrand a {
    upstream u1;
    zone z -1;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "-1"



=== TEST 24: "+64k" is no size
--- http
upstrand a {
    upstream u1;
    zone z +64k;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "+64k"



=== TEST 25: "64q" is no size
--- http
upstrand a {
    upstream u1;
    zone z 64q;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "64q"



=== TEST 26: "64kb" is no size
--- http
upstrand a {
    upstream u1;
    zone z 64kb;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "64kb"



=== TEST 27: "1.5m" is no size
--- http
upstrand a {
    upstream u1;
    zone z 1.5m;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "1.5m"



=== TEST 28: "k" is no size
--- http
upstrand a {
    upstream u1;
    zone z k;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "k"



=== TEST 29: "x" is no size
--- http
upstrand a {
    upstream u1;
    zone z x;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "x"



=== TEST 30: "99999999999999999999" is no size
--- http
upstrand a {
    upstream u1;
    zone z 99999999999999999999;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "99999999999999999999"



=== TEST 31: "9999999999999999999k" is no size
--- http
upstrand a {
    upstream u1;
    zone z 9999999999999999999k;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "9999999999999999999k"



=== TEST 32: an empty size is refused
--- http
upstrand a {
    upstream u1;
    zone z "";
}
--- must_die
--- emerg
http.conf:3: invalid zone size ""



=== TEST 33: an empty name is refused
--- http
upstrand a {
    upstream u1;
    zone "" 64k;
}
--- must_die
--- emerg
http.conf:3: invalid zone name ""



=== TEST 34: a zone whose size no line says is refused with the size that it needs
--- http
upstrand a {
    upstream u1;
    zone z;
}
upstrand b {
    upstream u1;
    zone z;
}
--- must_die
--- emerg
http.conf:3: zone "z" has no size: its upstrands need 32k
--- skip_eval
2: use POSIX (); POSIX::sysconf(POSIX::_SC_PAGESIZE()) != 4096



=== TEST 35: two sizes of one zone are refused by nginx
--- http
upstrand a {
    upstream u1;
    zone z 64k;
}
upstrand b {
    upstream u1;
    zone z 128k;
}
--- must_die
--- emerg
http.conf:7: the size 131072 of shared memory zone "z" conflicts with already declared size 65536



=== TEST 36: a zone of an upstream is refused by nginx
--- http
upstream c {
    server 127.0.0.1:9;
    zone z 64k;
}
upstrand a {
    upstream u1;
    zone z 64k;
}
--- must_die
--- emerg
http.conf:7: the shared memory zone "z" is already declared for a different use



=== TEST 37: an upstream with the zone of an upstrand is refused by nginx
--- http
upstrand a {
    upstream u1;
    zone z 64k;
}
upstream c {
    server 127.0.0.1:9;
    zone z 64k;
}
--- must_die
--- emerg
http.conf:7: the shared memory zone "z" is already declared for a different use



=== TEST 38: a zone of limit_conn_zone is refused by nginx
--- http
limit_conn_zone $uri zone=z:64k;
upstrand a {
    upstream u1;
    zone z;
}
--- must_die
--- emerg
http.conf:4: the shared memory zone "z" is already declared for a different use



=== TEST 39: a second zone is refused
--- http
upstrand a {
    upstream u1;
    zone z 64k;
    zone y 64k;
}
--- must_die
--- emerg
http.conf:4: "zone" directive is duplicate



=== TEST 40: the same zone twice is refused
--- http
upstrand a {
    upstream u1;
    zone z 64k;
    zone z;
}
--- must_die
--- emerg
http.conf:4: "zone" directive is duplicate



=== TEST 41: zone without an argument is refused
--- http
upstrand a {
    upstream u1;
    zone;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "zone" directive



=== TEST 42: zone with three arguments is refused
--- http
upstrand a {
    upstream u1;
    zone z 64k x;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "zone" directive



=== TEST 43: zone with a block is refused
--- http
upstrand a {
    upstream u1;
    zone z { }
}
--- must_die
--- emerg
http.conf:3: directive "zone" is not terminated by ";"
