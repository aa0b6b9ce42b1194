# upstrand{}: the block, its name, members, order, and what is refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

run_tests();

__DATA__

=== TEST 1: members take turns in the order of their lines
--- http
upstrand a {
    upstream u2;
    upstream u1;
    upstream u3;
}
--- answers: 2 1 3 2



=== TEST 2: upper and lower case of a member's name are the same
--- http
upstrand a {
    upstream U1;
}
--- paths
200 u1



=== TEST 3: a member that fails is followed by the next one
--- http
upstrand a {
    upstream dead;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 dead -> u1



=== TEST 4: a combined upstream may be a member
--- http
upstream d {
    add_upstream u1;
    add_upstream u2;
}
upstrand a {
    upstream d;
}
--- answers: 1 2



=== TEST 5: a member named twice is kept once, at its first place
--- http
upstrand a {
    upstream dead;
    upstream bad;
    upstream dead;
    next_upstream_statuses error 5xx;
    order per_request;
}
--- paths
503 dead -> bad



=== TEST 6: a member named twice keeps its first parameters
--- http
upstrand a {
    upstream dead blacklist_interval=1h;
    upstream u1;
    upstream dead;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 7: a member of two tiers is visited once, in the first one named
--- http
upstrand a {
    upstream dead backup;
    upstream dead;
    upstream bad;
    next_upstream_statuses error 5xx;
    order per_request;
}
--- paths
502 bad -> dead



=== TEST 8: a member named and matched is kept once, at its first place
--- http
upstrand a {
    upstream bad;
    upstream ~^(dead|bad)$;
    upstream dead backup;
    next_upstream_statuses error 5xx;
    order per_request;
}
--- paths
502 bad -> dead



=== TEST 9: backup members are visited when the others have failed
--- http
upstrand a {
    upstream u1 backup;
    upstream dead;
}
--- paths
200 dead -> u1



=== TEST 10: an upstrand of backup members only
--- http
upstrand a {
    upstream u1 backup;
    upstream u2 backup;
}
--- answers: 1 2



=== TEST 11: tiers are visited in the order of their numbers: backup is 1
--- http
upstream d { server 127.0.0.1:1; }
upstrand a {
    upstream u1 tier=7;
    upstream bad tier=2;
    upstream dead backup;
    upstream d tier=0;
    next_upstream_statuses error 5xx;
}
--- paths
200 d -> dead -> bad -> u1



=== TEST 12: tier=1 and backup are the same tier
--- http
upstrand a {
    upstream bad;
    upstream u1 backup;
    upstream u2 tier=1;
    next_upstream_statuses 503;
}
--- paths
200 bad -> u1
200 bad -> u2



=== TEST 13: a lone member of a high tier
--- http
upstrand a {
    upstream u1 tier=4294967295;
}
--- paths
200 u1



=== TEST 14: blacklist_interval= keeps a failed member away
--- http
upstrand a {
    upstream dead blacklist_interval=1h;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 u1



=== TEST 15: blacklist_interval=0 is none
--- http
upstrand a {
    upstream dead blacklist_interval=0;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> u1
200 dead -> u1



=== TEST 16: backup and blacklist_interval= in this order
--- http
upstrand a {
    upstream bad blacklist_interval=1h;
    upstream dead backup blacklist_interval=1h;
    upstream u1 tier=2;
    next_upstream_statuses error 503;
}
--- paths
200 bad -> dead -> u1
200 u1



=== TEST 17: blacklist_interval= and backup in this order
--- http
upstrand a {
    upstream bad blacklist_interval=1h;
    upstream dead blacklist_interval=1h backup;
    upstream u1 tier=2;
    next_upstream_statuses error 503;
}
--- paths
200 bad -> dead -> u1
200 u1



=== TEST 18: tier= and blacklist_interval= in any order
--- http
upstrand a {
    upstream bad blacklist_interval=1h tier=3;
    upstream dead tier=4 blacklist_interval=1h;
    upstream u1 tier=5;
    next_upstream_statuses error 503;
}
--- paths
200 bad -> dead -> u1
200 u1



=== TEST 19: a regex takes the upstreams above in the order of their declaration
--- http
upstrand a {
    upstream ~^u[321]$;
}
--- answers: 1 2 3 1



=== TEST 20: a regex is not anchored
--- http
upstrand a {
    upstream ~3;
    upstream ~ea;
    order per_request;
}
--- paths
200 u3



=== TEST 21: a regex is case-sensitive
--- http
upstrand a {
    upstream ~^U;
    upstream u1;
}
--- warning
http.conf:2: no upstream matches "~^U" in upstrand "a"
--- paths
200 u1
200 u1



=== TEST 22: a regex may ask for any case
--- http
upstrand a {
    upstream ~(?i)^U2;
}
--- paths
200 u2



=== TEST 23: a regex may be quoted
--- http
upstrand a {
    upstream "~^u{1}[2]$";
    upstream '~^nothing;{}$' backup;
}
--- warning
http.conf:3: no upstream matches "~^nothing;{}$" in upstrand "a"
--- paths
200 u2



=== TEST 24: parameters of a regex hold for all that it takes
--- http
upstrand a {
    upstream ~^(bad|dead)$ blacklist_interval=1h;
    upstream ~^u[12]$ backup;
    next_upstream_statuses error 5xx;
}
--- paths
200 bad -> dead -> u1
200 u2
200 u1



=== TEST 25: a regex takes singlets
--- http
upstream c {
    add_upstream u2;
    add_upstream u1;
    combine_server_singlets _s_;
}
upstrand a {
    upstream ~^c_s_\d$;
}
--- answers: 2 1



=== TEST 26: a regex does not take what only a proxy_pass has
--- http
server {
    listen unix:$DIR/x.sock;
    location / { proxy_pass http://127.0.0.1:9; }
    location /h { proxy_pass http://localhost:9; }
}
upstrand a {
    upstream ~^(127|localhost|u1);
}
--- paths
200 u1
200 u1



=== TEST 27: a regex does not take what is declared below
--- http
upstrand a {
    upstream ~^(u1|below)$;
}
upstream below { server unix:$DIR/s3.sock; }
--- answers: 1 1



=== TEST 28: a regex that matches nothing beside a good member is a warning
--- http
upstrand a {
    upstream u1;

    upstream ~^zz$ backup;
}
--- warning
http.conf:4: no upstream matches "~^zz$" in upstrand "a"
--- paths
200 u1



=== TEST 29: each regex that matches nothing has its warning
--- http
upstrand a {
    upstream ~^zz;
    upstream u1;
    upstream ~^yy;
}
upstrand b {
    upstream ~^zz;
    upstream u1;
}
--- warning
http.conf:2: no upstream matches "~^zz" in upstrand "a"
http.conf:4: no upstream matches "~^yy" in upstrand "a"
http.conf:7: no upstream matches "~^zz" in upstrand "b"
--- paths
200 u1



=== TEST 30: order per_request begins each walk with the first member
--- http
upstrand a {
    upstream u1;
    upstream u2;
    order per_request;
}
--- answers: 1 1 1



=== TEST 31: order start_random
--- http
upstrand a {
    upstream u1;
    upstream u2;
    order start_random;
}
--- request
GET /t
--- response_body_like: ^[12]$



=== TEST 32: order start_random per_request
--- http
upstrand a {
    upstream u1;
    upstream u2;
    order start_random per_request;
}
--- request
GET /t
--- response_body_like: ^[12]$



=== TEST 33: order per_request start_random
--- http
upstrand a {
    upstream u1;
    upstream u2;
    order per_request start_random;
}
--- request
GET /t
--- response_body_like: ^[12]$



=== TEST 34: order start_random per_request with one group empty
--- http
upstrand a {
    upstream u1 backup;
    upstream u2 backup;
    order start_random per_request;
}
--- request
GET /t
--- response_body_like: ^[12]$



=== TEST 35: order start_random without per_request takes turns from where it began
--- http
upstrand a {
    upstream u1;
    order start_random;
}
--- answers: 1 1



=== TEST 36: the name of an upstrand is the same in upper and lower case
--- http
upstrand A1 {
    upstream u1;
}
--- server
location /t { proxy_pass http://$upstrand_a1; }
location /u { proxy_pass http://$UPSTRAND_A1; }
--- request eval
["GET /t", "GET /u"]
--- response_body eval
["1\n", "1\n"]



=== TEST 37: an upstrand may be used above its declaration
--- http
server {
    listen unix:$DIR/x.sock;
    location / { proxy_pass http://$upstrand_b; }
}
upstrand b {
    upstream u2;
}
--- server
location /t { proxy_pass http://unix:$DIR/x.sock; }
--- answers: 2



=== TEST 38: an upstrand and an upstream may have one name
--- http
upstrand u1 {
    upstream u2;
}
--- server
location /t { proxy_pass http://$upstrand_u1; }
location /u { proxy_pass http://u1; }
--- request eval
["GET /t", "GET /u"]
--- response_body eval
["2\n", "1\n"]



=== TEST 39: several upstrands, and an upstream in several of them
--- http
upstrand a {
    upstream u1;
}
upstrand b {
    upstream u1 backup;
    upstream u2;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location /u { proxy_pass http://$upstrand_b; }
--- request eval
["GET /t", "GET /u"]
--- response_body eval
["1\n", "2\n"]



=== TEST 40: hundreds of upstrands
--- http eval
CORE::join '', map { "upstrand n$_ { upstream u1; upstream u2; }\n" } 1 .. 400
--- server
location /t { proxy_pass http://$upstrand_n400; }
--- answers: 1 2



=== TEST 41: hundreds of members
--- http eval
CORE::join '', map({ "upstream m$_ { server 127.0.0.1:1; }\n" } 1 .. 300),
         "upstrand a {\n", map({ "upstream m$_;\n" } 1 .. 300),
         "upstream u1 backup; }\n"
--- server
location /t { proxy_pass http://$upstrand_a; add_header X-N $upstrand_tries; }
--- request
GET /t
--- response_headers
X-N: 301



=== TEST 42: words may be quoted, lines broken and commented
--- http
upstrand "a" { # a comment
    "upstream" 'dead'
        "blacklist_interval=1h"; upstream u1 # another one
        'backup';
    'order' "per_request";
    next_upstream_statuses 'error' "5xx";
}
--- server
location /t {
    proxy_pass http://$upstrand_a;
    add_header X-Path $upstrand_path;
}
--- paths
200 dead -> u1
200 u1



=== TEST 43: include works inside the block
--- http
upstrand a {
    upstream dead;
    include $DIR/more.conf;
    order per_request;
}
--- more
upstream u1;
next_upstream_statuses error;
--- paths
200 dead -> u1



=== TEST 44: include works inside the block with a mask, also one that nothing fits
--- http
upstrand a {
    include $DIR/mor[e].conf;
    include $DIR/nothing*.conf;
}
--- more
upstream u2;
--- paths
200 u2



=== TEST 45: the block may stand in an included file
--- http
include $DIR/more.conf;
--- more
upstrand a {
    upstream u3;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
--- answers: 3



=== TEST 46: what is wrong in an included file is told with that file's line
--- http
upstrand a {
    upstream u1;
    include $DIR/more.conf;
}
--- more
# a comment
order frob;
--- must_die
--- emerg
more.conf:2: invalid value "frob"



=== TEST 47: include of a file that is not there is refused
--- http
upstrand a {
    upstream u1;
    include /nonexistent/x.conf;
}
--- must_die
--- emerg
http.conf:3: open() "/nonexistent/x.conf" failed (2: No such file or directory)



=== TEST 48: include without an argument is refused
--- http
upstrand a {
    upstream u1;
    include;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "include" directive



=== TEST 49: an empty block is refused
--- http
upstrand a {

}
--- must_die
--- emerg
http.conf:3: no upstream registered in upstrand "a"



=== TEST 50: a block without members is refused
--- http
upstrand a {
    order per_request;
    next_upstream_statuses 5xx;
}
--- must_die
--- emerg
http.conf:4: no upstream registered in upstrand "a"



=== TEST 51: a regex that matches nothing, and no other member: refused, with the regex
--- http
upstrand a {
    order per_request;
    upstream ~^zz blacklist_interval=1s;
}
--- must_die
--- emerg
http.conf:3: no upstream matches "~^zz", and none else is registered in upstrand "a"



=== TEST 52: several regexes that match nothing: refused, with the first one
--- http
upstrand a {
    upstream ~^zz;
    upstream ~^yy backup;
}
--- must_die
--- emerg
http.conf:2: no upstream matches "~^zz", and none else is registered in upstrand "a"



=== TEST 53: a regex that matches only what is declared below: refused
--- http
upstrand a {
    upstream ~^below;
}
upstream below { server 127.0.0.1:9; }
--- must_die
--- emerg
http.conf:2: no upstream matches "~^below", and none else is registered in upstrand "a"



=== TEST 54: a regex that matches only what a proxy_pass has: refused
--- http
server {
    listen unix:$DIR/x.sock;
    location / { proxy_pass http://127.0.0.1:9; }
}
upstrand a {
    upstream ~^127;
}
--- must_die
--- emerg
http.conf:6: no upstream matches "~^127", and none else is registered in upstrand "a"



=== TEST 55: a regex that does not compile is refused with PCRE's message
--- http
upstrand a {
    upstream u1;
    upstream ~^(u;
}
--- must_die
--- emerg
http.conf:3: pcre2_compile() failed: ... in "^(u"



=== TEST 56: a lone ~ is a name
--- http
upstrand a {
    upstream ~;
}
--- must_die
--- emerg
http.conf:2: upstream "~" is not found



=== TEST 57: an unknown member is refused
--- http
upstrand a {
    upstream u1;
    upstream nope;
}
--- must_die
--- emerg
http.conf:3: upstream "nope" is not found



=== TEST 58: an empty name of a member is refused
--- http
upstrand a {
    upstream "";
}
--- must_die
--- emerg
http.conf:2: upstream "" is not found



=== TEST 59: a member declared below is refused
--- http
upstrand a {
    upstream below;
}
upstream below { server 127.0.0.1:9; }
--- must_die
--- emerg
http.conf:2: upstream "below" is not found



=== TEST 60: an upstrand is no member
--- http
upstrand b {
    upstream u1;
}
upstrand a {
    upstream b;
}
--- must_die
--- emerg
http.conf:5: upstream "b" is not found



=== TEST 61: 127.0.0.1, which only a proxy_pass above has, is no member
--- http
server {
    listen unix:$DIR/x.sock;
    location / { proxy_pass http://127.0.0.1:9; }
}
upstrand a {
    upstream 127.0.0.1;
}
--- must_die
--- emerg
http.conf:6: upstream "127.0.0.1" is not found



=== TEST 62: localhost, which only a proxy_pass above has, is no member
--- http
server {
    listen unix:$DIR/x.sock;
    location / { proxy_pass http://localhost:9; }
}
upstrand a {
    upstream localhost;
}
--- must_die
--- emerg
http.conf:6: upstream "localhost" is not found



=== TEST 63: "u2" is no parameter of a member
--- http
upstrand a {
    upstream u1 u2;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "u2"



=== TEST 64: "back" is no parameter of a member
--- http
upstrand a {
    upstream u1 back;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "back"



=== TEST 65: "backupxyz" is no parameter of a member
--- http
upstrand a {
    upstream u1 backupxyz;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "backupxyz"



=== TEST 66: "Backup" is no parameter of a member
--- http
upstrand a {
    upstream u1 Backup;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "Backup"



=== TEST 67: "backup=1" is no parameter of a member
--- http
upstrand a {
    upstream u1 backup=1;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "backup=1"



=== TEST 68: "backup=" is no parameter of a member
--- http
upstrand a {
    upstream u1 backup=;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "backup="



=== TEST 69: "tier" is no parameter of a member
--- http
upstrand a {
    upstream u1 tier;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier"



=== TEST 70: "tier=" is no parameter of a member
--- http
upstrand a {
    upstream u1 tier=;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier="



=== TEST 71: "tier=x" is no parameter of a member
--- http
upstrand a {
    upstream u1 tier=x;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=x"



=== TEST 72: "tier=two" is no parameter of a member
--- http
upstrand a {
    upstream u1 tier=two;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=two"



=== TEST 73: "tier=-1" is no parameter of a member
--- http
upstrand a {
    upstream u1 tier=-1;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=-1"



=== TEST 74: "tier=+1" is no parameter of a member
--- http
upstrand a {
    upstream u1 tier=+1;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=+1"



=== TEST 75: "tier=1.5" is no parameter of a member
--- http
upstrand a {
    upstream u1 tier=1.5;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=1.5"



=== TEST 76: "tier=0x1" is no parameter of a member
--- http
upstrand a {
    upstream u1 tier=0x1;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=0x1"



=== TEST 77: "tier=4294967296" is no parameter of a member
--- http
upstrand a {
    upstream u1 tier=4294967296;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=4294967296"



=== TEST 78: "Tier=1" is no parameter of a member
--- http
upstrand a {
    upstream u1 Tier=1;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "Tier=1"



=== TEST 79: "blacklist_interval" is no parameter of a member
--- http
upstrand a {
    upstream u1 blacklist_interval;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval"



=== TEST 80: "blacklist_interval=" is no parameter of a member
--- http
upstrand a {
    upstream u1 blacklist_interval=;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval="



=== TEST 81: "blacklist_interval=abc" is no parameter of a member
--- http
upstrand a {
    upstream u1 blacklist_interval=abc;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=abc"



=== TEST 82: "blacklist_interval=1x" is no parameter of a member
--- http
upstrand a {
    upstream u1 blacklist_interval=1x;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=1x"



=== TEST 83: "blacklist_interval=-1" is no parameter of a member
--- http
upstrand a {
    upstream u1 blacklist_interval=-1;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=-1"



=== TEST 84: "blacklist_interval=1.5s" is no parameter of a member
--- http
upstrand a {
    upstream u1 blacklist_interval=1.5s;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=1.5s"



=== TEST 85: "blacklist_interval=1s1s" is no parameter of a member
--- http
upstrand a {
    upstream u1 blacklist_interval=1s1s;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=1s1s"



=== TEST 86: "blacklist_interval=99999999999999999999" is no parameter of a member
--- http
upstrand a {
    upstream u1 blacklist_interval=99999999999999999999;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=99999999999999999999"



=== TEST 87: "weight=2" is no parameter of a member
--- http
upstrand a {
    upstream u1 weight=2;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "weight=2"



=== TEST 88: an empty parameter of a member is refused
--- http
upstrand a {
    upstream u1 "";
}
--- must_die
--- emerg
http.conf:2: invalid parameter ""



=== TEST 89: a space before a time is refused
--- http
upstrand a {
    upstream u1 "blacklist_interval= 1s";
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval= 1s"



=== TEST 90: a wrong parameter of a regex is refused
--- http
upstrand a {
    upstream ~^u frob;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "frob"



=== TEST 91: a wrong parameter after a right one is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=1s backup2;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "backup2"



=== TEST 92: backup twice is refused
--- http
upstrand a {
    upstream u1 backup backup;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "backup"



=== TEST 93: tier= twice is refused
--- http
upstrand a {
    upstream u1 tier=1 tier=2;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=2"



=== TEST 94: tier= after backup is refused
--- http
upstrand a {
    upstream u1 backup tier=2;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=2"



=== TEST 95: backup after tier= is refused
--- http
upstrand a {
    upstream u1 tier=0 backup;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "backup"



=== TEST 96: blacklist_interval= twice is refused
--- http
upstrand a {
    upstream u1 blacklist_interval=0 blacklist_interval=2s;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=2s"



=== TEST 97: upstream without an argument is refused
--- http
upstrand a {
    upstream;
}
--- must_die
--- emerg
http.conf:2: invalid number of arguments in "upstream" directive



=== TEST 98: upstream with four arguments is refused
--- http
upstrand a {
    upstream u1 backup blacklist_interval=1s frob;
}
--- must_die
--- emerg
http.conf:2: invalid number of arguments in "upstream" directive



=== TEST 99: upstream with a block is refused
--- http
upstrand a {
    upstream d {
        server 127.0.0.1:9;
    }
}
--- must_die
--- emerg
http.conf:2: directive "upstream" is not terminated by ";"



=== TEST 100: order "frob" is refused
--- http
upstrand a {
    upstream u1;
    order frob;
}
--- must_die
--- emerg
http.conf:3: invalid value "frob"



=== TEST 101: order "random" is refused
--- http
upstrand a {
    upstream u1;
    order random;
}
--- must_die
--- emerg
http.conf:3: invalid value "random"



=== TEST 102: order "per-request" is refused
--- http
upstrand a {
    upstream u1;
    order per-request;
}
--- must_die
--- emerg
http.conf:3: invalid value "per-request"



=== TEST 103: order "Per_request" is refused
--- http
upstrand a {
    upstream u1;
    order Per_request;
}
--- must_die
--- emerg
http.conf:3: invalid value "Per_request"



=== TEST 104: order "start_random2" is refused
--- http
upstrand a {
    upstream u1;
    order start_random2;
}
--- must_die
--- emerg
http.conf:3: invalid value "start_random2"



=== TEST 105: an empty order is refused
--- http
upstrand a {
    upstream u1;
    order "";
}
--- must_die
--- emerg
http.conf:3: invalid value ""



=== TEST 106: a wrong word of order after a right one is refused
--- http
upstrand a {
    upstream u1;
    order per_request frob;
}
--- must_die
--- emerg
http.conf:3: invalid value "frob"



=== TEST 107: order with start_random twice is refused
--- http
upstrand a {
    upstream u1;
    order start_random start_random;
}
--- must_die
--- emerg
http.conf:3: duplicate value "start_random"



=== TEST 108: order with per_request twice is refused
--- http
upstrand a {
    upstream u1;
    order per_request per_request;
}
--- must_die
--- emerg
http.conf:3: duplicate value "per_request"



=== TEST 109: a second order is refused
--- http
upstrand a {
    order start_random;
    upstream u1;
    order per_request;
}
--- must_die
--- emerg
http.conf:4: "order" directive is duplicate



=== TEST 110: order without an argument is refused
--- http
upstrand a {
    upstream u1;
    order;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "order" directive



=== TEST 111: order with three arguments is refused
--- http
upstrand a {
    upstream u1;
    order start_random per_request frob;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "order" directive



=== TEST 112: "frob" is no directive of the block
--- http
upstrand a {
    upstream u1;
    frob x;
}
--- must_die
--- emerg
http.conf:3: unknown directive "frob"



=== TEST 113: "UPSTREAM" is no directive of the block
--- http
upstrand a {
    upstream u1;
    UPSTREAM x;
}
--- must_die
--- emerg
http.conf:3: unknown directive "UPSTREAM"



=== TEST 114: "Order" is no directive of the block
--- http
upstrand a {
    upstream u1;
    Order x;
}
--- must_die
--- emerg
http.conf:3: unknown directive "Order"



=== TEST 115: "upstream_order" is no directive of the block
--- http
upstrand a {
    upstream u1;
    upstream_order x;
}
--- must_die
--- emerg
http.conf:3: unknown directive "upstream_order"



=== TEST 116: "blacklist_interval" is no directive of the block
--- http
upstrand a {
    upstream u1;
    blacklist_interval x;
}
--- must_die
--- emerg
http.conf:3: unknown directive "blacklist_interval"



=== TEST 117: "server 127.0.0.1:9" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    server 127.0.0.1:9;
}
--- must_die
--- emerg
http.conf:3: "server" directive is not allowed here



=== TEST 118: "keepalive 3" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    keepalive 3;
}
--- must_die
--- emerg
http.conf:3: "keepalive" directive is not allowed here



=== TEST 119: "least_conn" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    least_conn;
}
--- must_die
--- emerg
http.conf:3: "least_conn" directive is not allowed here



=== TEST 120: "add_upstream u1" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    add_upstream u1;
}
--- must_die
--- emerg
http.conf:3: "add_upstream" directive is not allowed here



=== TEST 121: "combine_server_singlets" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    combine_server_singlets;
}
--- must_die
--- emerg
http.conf:3: "combine_server_singlets" directive is not allowed here



=== TEST 122: "extend_single_peers" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    extend_single_peers;
}
--- must_die
--- emerg
http.conf:3: "extend_single_peers" directive is not allowed here



=== TEST 123: "dynamic_upstrand $d a" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    dynamic_upstrand $d a;
}
--- must_die
--- emerg
http.conf:3: "dynamic_upstrand" directive is not allowed here



=== TEST 124: "proxy_pass http://u1" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    proxy_pass http://u1;
}
--- must_die
--- emerg
http.conf:3: "proxy_pass" directive is not allowed here



=== TEST 125: "proxy_next_upstream error" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    proxy_next_upstream error;
}
--- must_die
--- emerg
http.conf:3: "proxy_next_upstream" directive is not allowed here



=== TEST 126: "error_log stderr" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    error_log stderr;
}
--- must_die
--- emerg
http.conf:3: "error_log" directive is not allowed here



=== TEST 127: "worker_processes 2" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    worker_processes 2;
}
--- must_die
--- emerg
http.conf:3: "worker_processes" directive is not allowed here



=== TEST 128: "load_module x.so" of other blocks is not taken
--- http
upstrand a {
    upstream u1;
    load_module x.so;
}
--- must_die
--- emerg
http.conf:3: "load_module" directive is not allowed here



=== TEST 129: a block "server" inside the block is refused
--- http
upstrand a {
    upstream u1;
    server {
        upstream u2;
    }
}
--- must_die
--- emerg
http.conf:3: "server" directive is not allowed here



=== TEST 130: a block "location /" inside the block is refused
--- http
upstrand a {
    upstream u1;
    location / {
        upstream u2;
    }
}
--- must_die
--- emerg
http.conf:3: "location" directive is not allowed here



=== TEST 131: a block "upstrand b" inside the block is refused
--- http
upstrand a {
    upstream u1;
    upstrand b {
        upstream u2;
    }
}
--- must_die
--- emerg
http.conf:3: "upstrand" directive is not allowed here



=== TEST 132: a block "events" inside the block is refused
--- http
upstrand a {
    upstream u1;
    events {
        upstream u2;
    }
}
--- must_die
--- emerg
http.conf:3: "events" directive is not allowed here



=== TEST 133: a block "http" inside the block is refused
--- http
upstrand a {
    upstream u1;
    http {
        upstream u2;
    }
}
--- must_die
--- emerg
http.conf:3: "http" directive is not allowed here



=== TEST 134: upstream of the block is not taken in a location
--- server
location /t {
    upstream x y;
}
--- must_die
--- emerg
server.conf:2: "upstream" directive is not allowed here



=== TEST 135: order of the block is not taken in a location
--- server
location /t {
    order x y;
}
--- must_die
--- emerg
server.conf:2: "order" directive is not allowed here



=== TEST 136: next_upstream_statuses of the block is not taken in a location
--- server
location /t {
    next_upstream_statuses x y;
}
--- must_die
--- emerg
server.conf:2: "next_upstream_statuses" directive is not allowed here



=== TEST 137: next_upstream_timeout of the block is not taken in a location
--- server
location /t {
    next_upstream_timeout x y;
}
--- must_die
--- emerg
server.conf:2: "next_upstream_timeout" directive is not allowed here



=== TEST 138: next_upstream_tries of the block is not taken in a location
--- server
location /t {
    next_upstream_tries x y;
}
--- must_die
--- emerg
server.conf:2: "next_upstream_tries" directive is not allowed here



=== TEST 139: intercept_statuses of the block is not taken in a location
--- server
location /t {
    intercept_statuses x y;
}
--- must_die
--- emerg
server.conf:2: "intercept_statuses" directive is not allowed here



=== TEST 140: zone of the block is not taken in a location
--- server
location /t {
    zone x y;
}
--- must_die
--- emerg
server.conf:2: "zone" directive is not allowed here



=== TEST 141: order of the block is not taken in http
--- http
order x;
--- must_die
--- emerg
http.conf:1: "order" directive is not allowed here



=== TEST 142: next_upstream_statuses of the block is not taken in http
--- http
next_upstream_statuses x;
--- must_die
--- emerg
http.conf:1: "next_upstream_statuses" directive is not allowed here



=== TEST 143: next_upstream_timeout of the block is not taken in http
--- http
next_upstream_timeout x;
--- must_die
--- emerg
http.conf:1: "next_upstream_timeout" directive is not allowed here



=== TEST 144: next_upstream_tries of the block is not taken in http
--- http
next_upstream_tries x;
--- must_die
--- emerg
http.conf:1: "next_upstream_tries" directive is not allowed here



=== TEST 145: intercept_statuses of the block is not taken in http
--- http
intercept_statuses x;
--- must_die
--- emerg
http.conf:1: "intercept_statuses" directive is not allowed here



=== TEST 146: zone of the block is not taken in http
--- http
zone x;
--- must_die
--- emerg
http.conf:1: "zone" directive is not allowed here



=== TEST 147: order of the block is not taken in an upstream
--- http
upstream c {
    server 127.0.0.1:9;
    order x;
}
--- must_die
--- emerg
http.conf:3: "order" directive is not allowed here



=== TEST 148: next_upstream_statuses of the block is not taken in an upstream
--- http
upstream c {
    server 127.0.0.1:9;
    next_upstream_statuses x;
}
--- must_die
--- emerg
http.conf:3: "next_upstream_statuses" directive is not allowed here



=== TEST 149: next_upstream_timeout of the block is not taken in an upstream
--- http
upstream c {
    server 127.0.0.1:9;
    next_upstream_timeout x;
}
--- must_die
--- emerg
http.conf:3: "next_upstream_timeout" directive is not allowed here



=== TEST 150: next_upstream_tries of the block is not taken in an upstream
--- http
upstream c {
    server 127.0.0.1:9;
    next_upstream_tries x;
}
--- must_die
--- emerg
http.conf:3: "next_upstream_tries" directive is not allowed here



=== TEST 151: intercept_statuses of the block is not taken in an upstream
--- http
upstream c {
    server 127.0.0.1:9;
    intercept_statuses x;
}
--- must_die
--- emerg
http.conf:3: "intercept_statuses" directive is not allowed here



=== TEST 152: order of the block is not taken in the main context
--- main_config
order per_request;
--- must_die
--- error_log eval
qr/\[emerg\] .*"order" directive is not allowed here in \S+nginx\.conf:\d+$/



=== TEST 153: next_upstream_tries of the block is not taken in the main context
--- main_config
next_upstream_tries 1;
--- must_die
--- error_log eval
qr/\[emerg\] .*"next_upstream_tries" directive is not allowed here in \S+nginx\.conf:\d+$/



=== TEST 154: an upstream of nginx is an upstream still
--- http
upstream c {
    zone z 64k;
    server unix:$DIR/s1.sock;
}
upstrand b {
    upstream c;
}
upstream d {
    server unix:$DIR/s1.sock;
}
--- answers: 1



=== TEST 155: two upstrands of one name are refused
--- http
upstrand a { upstream u1; }
upstrand a { upstream u2; }
--- must_die
--- emerg
http.conf:2: duplicate upstrand "a"



=== TEST 156: two upstrands of one name in other letters are refused
--- http
upstrand a { upstream u1; }
upstrand b { upstream u1; }
upstrand A { upstream u2; }
--- must_die
--- emerg
http.conf:3: duplicate upstrand "A"



=== TEST 157: an upstrand can't be named "path": the variable is taken
--- http
upstrand path {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_path" variable



=== TEST 158: an upstrand can't be named "addr": the variable is taken
--- http
upstrand addr {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_addr" variable



=== TEST 159: an upstrand can't be named "cache_status": the variable is taken
--- http
upstrand cache_status {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_cache_status" variable



=== TEST 160: an upstrand can't be named "connect_time": the variable is taken
--- http
upstrand connect_time {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_connect_time" variable



=== TEST 161: an upstrand can't be named "header_time": the variable is taken
--- http
upstrand header_time {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_header_time" variable



=== TEST 162: an upstrand can't be named "response_length": the variable is taken
--- http
upstrand response_length {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_response_length" variable



=== TEST 163: an upstrand can't be named "response_time": the variable is taken
--- http
upstrand response_time {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_response_time" variable



=== TEST 164: an upstrand can't be named "status": the variable is taken
--- http
upstrand status {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_status" variable



=== TEST 165: an upstrand can't be named "name": the variable is taken
--- http
upstrand name {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_name" variable



=== TEST 166: an upstrand can't be named "upstream": the variable is taken
--- http
upstrand upstream {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_upstream" variable



=== TEST 167: an upstrand can't be named "tries": the variable is taken
--- http
upstrand tries {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_tries" variable



=== TEST 168: an upstrand can't be named "reason": the variable is taken
--- http
upstrand reason {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_reason" variable



=== TEST 169: an upstrand can't be named "Addr": the variable is taken
--- http
upstrand Addr {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_Addr" variable



=== TEST 170: an upstrand whose variable a map above has made is refused
--- http
map $uri $upstrand_a { default 1; }

upstrand a {
    upstream u1;
}
--- must_die
--- emerg
http.conf:3: the duplicate "upstrand_a" variable



=== TEST 171: a map of an upstrand's variable is refused by nginx
--- http
upstrand a {
    upstream u1;
}
map $uri $upstrand_a { default 1; }
--- must_die
--- emerg
http.conf:4: the duplicate "upstrand_a" variable



=== TEST 172: set of an upstrand's variable is refused by nginx
--- http
upstrand a {
    upstream u1;
}
--- server
set $upstrand_a x;
--- must_die
--- emerg
server.conf:1: the duplicate "upstrand_a" variable



=== TEST 173: the variable of an unknown upstrand is refused by nginx
--- http
upstrand a {
    upstream u1;
}
--- server
location /t { proxy_pass http://$upstrand_b; }
--- must_die
--- emerg
- unknown "upstrand_b" variable



=== TEST 174: an empty name is refused
--- http
upstrand "" {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: invalid upstrand name ""



=== TEST 175: no name is refused
--- http
upstrand {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: invalid number of arguments in "upstrand" directive



=== TEST 176: two names are refused
--- http
upstrand a b {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: invalid number of arguments in "upstrand" directive



=== TEST 177: an upstrand without a block is refused
--- http
upstrand a;
--- must_die
--- emerg
http.conf:1: directive "upstrand" has no opening "{"



=== TEST 178: a block that is not closed is refused
--- http
upstrand a {
    upstream u1;
--- must_die
--- emerg
http.conf:3: unexpected end of file, expecting "}"



=== TEST 179: a brace too many is refused
--- http
upstrand a {
    upstream u1;
}
}
--- must_die
--- emerg
http.conf:4: unexpected "}"



=== TEST 180: a line that is not closed is refused
--- http
upstrand a {
    upstream u1
}
--- must_die
--- emerg
http.conf:3: unexpected "}"



=== TEST 181: outside http{} it is refused
--- main_config
upstrand a { }
--- must_die
--- error_log eval
qr/\[emerg\] .*"upstrand" directive is not allowed here in \S+nginx\.conf:\d+$/



=== TEST 182: in a server it is refused
--- server
upstrand a {
    upstream u1;
}
--- must_die
--- emerg
server.conf:1: "upstrand" directive is not allowed here



=== TEST 183: in a location it is refused
--- server
location /t {
    upstrand a {
        upstream u1;
    }
}
--- must_die
--- emerg
server.conf:2: "upstrand" directive is not allowed here



=== TEST 184: in an upstream it is refused
--- http
upstream c {
    server 127.0.0.1:9;
    upstrand a {
        upstream u1;
    }
}
--- must_die
--- emerg
http.conf:3: "upstrand" directive is not allowed here
