# add_upstream NAME [backup] [weight=N]: what is taken and what is refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

run_tests();

__DATA__

=== TEST 1: the servers of all upstreams named stand in the host
--- http
upstream c {
    add_upstream u1;
    add_upstream u2;
}
--- answers: 1 2 1



=== TEST 2: the servers stand beside the host's own
--- http
upstream c {
    server unix:$DIR/s3.sock;
    add_upstream u1;
    server unix:$DIR/s2.sock;
}
--- answers: 3 1 2



=== TEST 3: upper and lower case of a name are the same
--- http
upstream c {
    add_upstream U1;
}
--- answers: 1 1



=== TEST 4: an upstream may be added twice: it has twice the servers
--- http
upstream c {
    add_upstream u1;
    add_upstream u2;
    add_upstream u1;
}
--- answers: 1 2 1 1



=== TEST 5: weight= gives a server without a weight of its own this weight
--- http
upstream c {
    add_upstream u1 weight=3;
    add_upstream u2;
}
--- answers: 1 1 2 1



=== TEST 6: weight= multiplies the weight that a server has
--- http
upstream heavy { server unix:$DIR/s1.sock weight=2; }
upstream c {
    add_upstream heavy weight=2;
    add_upstream u2;
}
--- answers: 1 1 2 1 1



=== TEST 7: weight=1 changes nothing
--- http
upstream c {
    add_upstream u1 weight=1;
    add_upstream u2;
}
--- answers: 1 2 1



=== TEST 8: leading zeros of a weight count for nothing
--- http
upstream c {
    add_upstream u1 weight=003;
    add_upstream u2;
}
--- answers: 1 1 2 1



=== TEST 9: backup makes every server of the source a backup
--- http
upstream two { server unix:$DIR/s1.sock; server unix:$DIR/s3.sock; }
upstream c {
    server unix:$DIR/s2.sock;
    add_upstream two backup;
}
--- answers: 2 2 2



=== TEST 10: a backup is asked when the host's own servers are dead
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 backup;
}
--- answers: 1



=== TEST 11: backup and weight= in this order
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 backup weight=3;
    add_upstream u2 backup;
}
--- answers: 1 1 2 1



=== TEST 12: weight= and backup in this order
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 weight=3 backup;
    add_upstream u2 backup;
}
--- answers: 1 1 2 1



=== TEST 13: the source is as it was after backup and weight=
--- http
upstream two { server unix:$DIR/s1.sock; server unix:$DIR/s2.sock; }
upstream d {
    add_upstream u3;
    add_upstream two weight=7;
    add_upstream two backup;
}
upstream c {
    add_upstream two;
}
--- server
location /t { proxy_pass http://two; }
--- answers: 1 2 1



=== TEST 14: a server that is down in the source is down in the host
--- http
upstream two { server unix:$DIR/s1.sock down; server unix:$DIR/s2.sock; }
upstream c {
    add_upstream two;
}
--- answers: 2 2



=== TEST 15: a source all of whose servers are down is taken
--- http
upstream off { server unix:$DIR/s1.sock down; }
upstream c {
    add_upstream off;
    add_upstream u2;
}
--- answers: 2 2



=== TEST 16: a backup server of the source is one in the host
--- http
upstream two { server unix:$DIR/s1.sock; server unix:$DIR/s2.sock backup; }
upstream c {
    add_upstream two;
}
--- answers: 1 1



=== TEST 17: max_fails and fail_timeout of the source hold in the host
--- http
upstream weak { server 127.0.0.1:1 max_fails=1 fail_timeout=1h weight=9; }
upstream c {
    add_upstream weak;
    add_upstream u1 backup;
}
--- server
location /t { proxy_pass http://c; add_header X-Asked $upstream_status; }
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Asked: 502, 200", "X-Asked: 200"]



=== TEST 18: a combined upstream may be added to another one
--- http
upstream d {
    add_upstream u1;
    add_upstream u2;
}
upstream c {
    add_upstream d;
    add_upstream u3;
}
--- answers: 1 2 3



=== TEST 19: a singlet may be added: its active server, and the others as backups
--- http
upstream two {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    combine_server_singlets _s_;
}
upstream c {
    add_upstream two_s_2;
}
--- answers: 2 2



=== TEST 20: only servers are taken, whatever method, keepalive, and zone the source has
--- http
upstream rich {
    least_conn;
    server unix:$DIR/s1.sock;
    keepalive 3;
    zone z 64k;
}
upstream c {
    add_upstream rich;
}
--- answers: 1



=== TEST 21: works below zone, hash, and keepalive
--- http
upstream c {
    zone z 64k;
    hash $request_uri consistent;
    keepalive 3;
    add_upstream u1;
}
--- answers: 1



=== TEST 22: works above keepalive and zone
--- http
upstream c {
    add_upstream u1;
    keepalive 3;
    zone z 64k;
}
--- answers: 1



=== TEST 23: works above a balancing method
--- http
upstream c {
    add_upstream u1;
    least_conn;
}
--- answers: 1



=== TEST 24: least_conn knows backup servers
--- http
upstream c {
    least_conn;
    add_upstream dead;
    add_upstream u1 backup;
}
--- answers: 1



=== TEST 25: weights under a method without backups
--- http
upstream c {
    ip_hash;
    add_upstream u1 weight=2;
}
--- answers: 1



=== TEST 26: an upstream that a proxy_pass above it names is declared all the same
--- http
server {
    listen unix:$DIR/x.sock;
    location / { proxy_pass http://below; }
}
upstream below { server unix:$DIR/s1.sock; }
upstream c {
    add_upstream below;
}
--- answers: 1



=== TEST 27: words may be quoted
--- http
upstream c {
    add_upstream dead;
    add_upstream "u1" 'backup' "weight=2";
}
--- answers: 1



=== TEST 28: resolve servers of a source work in a host with a zone
--- http
resolver 127.0.0.1:1;
upstream named { zone y 64k; server name.test:9 resolve; }
upstream c {
    zone z 64k;
    add_upstream u1;
    add_upstream named backup;
}
--- answers: 1
--- skip_nginx
3: < 1.27.3: no resolve



=== TEST 29: resolve servers of a source in a host without a zone are refused by nginx
--- http
resolver 127.0.0.1:1;
upstream named { zone y 64k; server name.test:9 resolve; }
upstream c {
    add_upstream named;
}
--- must_die
--- emerg
- resolving names at run time requires upstream "c" in .../http.conf:3 to be in shared memory
--- skip_nginx
2: < 1.27.3: no resolve



=== TEST 30: an upstream in itself is refused
--- http
upstream c {
    server 127.0.0.1:9;
    add_upstream c;
}
--- must_die
--- emerg
http.conf:3: upstream "c" makes recursion



=== TEST 31: an upstream in itself is refused in any case of its letters
--- http
upstream c {
    server 127.0.0.1:9;
    add_upstream C;
}
--- must_die
--- emerg
http.conf:3: upstream "C" makes recursion



=== TEST 32: recursion is told before a wrong parameter
--- http
upstream c {
    server 127.0.0.1:9;
    add_upstream c frob;
}
--- must_die
--- emerg
http.conf:3: upstream "c" makes recursion



=== TEST 33: a wrong parameter is told before an unknown name
--- http
upstream c {
    add_upstream nope frob;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "frob"



=== TEST 34: an unknown name is refused
--- http
upstream c {
    server 127.0.0.1:9;

    add_upstream nope;
}
--- must_die
--- emerg
http.conf:4: upstream "nope" not found



=== TEST 35: an empty name is refused
--- http
upstream c {
    add_upstream "";
}
--- must_die
--- emerg
http.conf:2: upstream "" not found



=== TEST 36: a name declared below is refused
--- http
upstream c {
    add_upstream below;
}
upstream below { server 127.0.0.1:9; }
--- must_die
--- emerg
http.conf:2: upstream "below" not found



=== TEST 37: a name that only a proxy_pass above has is refused
--- http
server {
    listen unix:$DIR/x.sock;
    location / { proxy_pass http://later; }
}
upstream c {
    add_upstream later;
}
upstream later { server 127.0.0.1:9; }
--- must_die
--- emerg
http.conf:6: upstream "later" not found



=== TEST 38: an address that only a proxy_pass above has is refused
--- http
server {
    listen unix:$DIR/x.sock;
    location / { proxy_pass http://127.0.0.1:9; }
}
upstream c {
    add_upstream 127.0.0.1;
}
--- must_die
--- emerg
http.conf:6: upstream "127.0.0.1" not found



=== TEST 39: backup twice is refused
--- http
upstream c {
    add_upstream u1 backup backup;
}
--- must_die
--- emerg
http.conf:2: parameter "backup" has been already declared



=== TEST 40: weight= twice is refused
--- http
upstream c {
    add_upstream u1 weight=2 weight=2;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" has been already declared



=== TEST 41: weight=0 is refused
--- http
upstream c {
    add_upstream u1 weight=0;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" must be a positive integer value in "weight=0"



=== TEST 42: weight=-1 is refused
--- http
upstream c {
    add_upstream u1 weight=-1;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" must be a positive integer value in "weight=-1"



=== TEST 43: weight=+1 is refused
--- http
upstream c {
    add_upstream u1 weight=+1;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" must be a positive integer value in "weight=+1"



=== TEST 44: weight=1.5 is refused
--- http
upstream c {
    add_upstream u1 weight=1.5;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" must be a positive integer value in "weight=1.5"



=== TEST 45: weight=1x is refused
--- http
upstream c {
    add_upstream u1 weight=1x;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" must be a positive integer value in "weight=1x"



=== TEST 46: weight=x is refused
--- http
upstream c {
    add_upstream u1 weight=x;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" must be a positive integer value in "weight=x"



=== TEST 47: weight=9223372036854775808 is refused
--- http
upstream c {
    add_upstream u1 weight=9223372036854775808;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" must be a positive integer value in "weight=9223372036854775808"



=== TEST 48: an empty weight is refused
--- http
upstream c {
    add_upstream u1 weight=;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" must be a positive integer value in "weight="



=== TEST 49: a product of weights beyond the largest number is refused
--- http
upstream heavy { server 127.0.0.1:9 weight=2; }
upstream c {
    add_upstream heavy weight=4611686018427387904;
}
--- must_die
--- emerg
http.conf:3: weight 2 of server "127.0.0.1:9" times "weight=4611686018427387904" is too large



=== TEST 50: the largest product of weights is taken
--- http
upstream heavy { server unix:$DIR/s1.sock weight=7; }
upstream c {
    add_upstream heavy weight=1317624576693539401;
}
--- answers: 1



=== TEST 51: "backupxyz" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 backupxyz;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "backupxyz"



=== TEST 52: "back" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 back;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "back"



=== TEST 53: "BACKUP" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 BACKUP;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "BACKUP"



=== TEST 54: "backup=" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 backup=;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "backup="



=== TEST 55: "weight" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 weight;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "weight"



=== TEST 56: "Weight=2" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 Weight=2;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "Weight=2"



=== TEST 57: "weight:2" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 weight:2;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "weight:2"



=== TEST 58: "down" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 down;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "down"



=== TEST 59: "max_fails=1" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 max_fails=1;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "max_fails=1"



=== TEST 60: "u2" is no parameter
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 u2;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "u2"



=== TEST 61: an empty parameter is refused
--- http
upstream c {
    add_upstream u1 "";
}
--- must_die
--- emerg
http.conf:2: invalid parameter ""



=== TEST 62: a wrong parameter after a right one is refused
--- http
upstream c {
    add_upstream dead;
    add_upstream u1 backup frob;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "frob"



=== TEST 63: backup under ip_hash is refused
--- http
upstream c {
    ip_hash;
    server 127.0.0.1:8;
    add_upstream u1 backup;
}
--- must_die
--- emerg
http.conf:4: balancing method does not support parameter "backup"



=== TEST 64: backup under hash $uri is refused
--- http
upstream c {
    hash $uri;
    server 127.0.0.1:8;
    add_upstream u1 backup;
}
--- must_die
--- emerg
http.conf:4: balancing method does not support parameter "backup"



=== TEST 65: backup under hash $uri consistent is refused
--- http
upstream c {
    hash $uri consistent;
    server 127.0.0.1:8;
    add_upstream u1 backup;
}
--- must_die
--- emerg
http.conf:4: balancing method does not support parameter "backup"



=== TEST 66: backup under random is refused
--- http
upstream c {
    random;
    server 127.0.0.1:8;
    add_upstream u1 backup;
}
--- must_die
--- emerg
http.conf:4: balancing method does not support parameter "backup"



=== TEST 67: backup under random two least_conn is refused
--- http
upstream c {
    random two least_conn;
    server 127.0.0.1:8;
    add_upstream u1 backup;
}
--- must_die
--- emerg
http.conf:4: balancing method does not support parameter "backup"



=== TEST 68: backup servers of a source under a method without backups are warned of
--- http
upstream two { server unix:$DIR/s1.sock; server unix:$DIR/s2.sock backup; }
upstream c {
    hash $uri;
    add_upstream two;
}
--- warning
http.conf:4: backup servers of upstream "two" are not used by the balancing method of upstream "c"
--- answers: 1



=== TEST 69: backup above ip_hash is refused as well
--- http
upstream c {
    server 127.0.0.1:8;
    add_upstream u1 backup;
    ip_hash;
}
--- must_die
--- emerg
http.conf:3: balancing method does not support parameter "backup"



=== TEST 70: backup above random is refused as well
--- http
upstream c {
    server 127.0.0.1:8;
    add_upstream u1 backup;
    random;
}
--- must_die
--- emerg
http.conf:3: balancing method does not support parameter "backup"



=== TEST 71: backup servers of a source above a method without backups are warned of
--- http
upstream two { server unix:$DIR/s1.sock; server unix:$DIR/s2.sock backup; }
upstream c {
    add_upstream two;
    hash $uri;
}
--- warning
http.conf:3: backup servers of upstream "two" are not used by the balancing method of upstream "c"
--- answers: 1



=== TEST 72: a host with nothing but backups is refused by nginx
--- http
upstream c {
    add_upstream u1 backup;
}
--- must_die
--- emerg
http.conf:1: no servers in upstream "c"



=== TEST 73: no argument is refused
--- http
upstream c {
    add_upstream;
}
--- must_die
--- emerg
http.conf:2: invalid number of arguments in "add_upstream" directive



=== TEST 74: four arguments are refused
--- http
upstream c {
    add_upstream u1 backup weight=2 frob;
}
--- must_die
--- emerg
http.conf:2: invalid number of arguments in "add_upstream" directive



=== TEST 75: a block is refused
--- http
upstream c {
    add_upstream u1 { }
}
--- must_die
--- emerg
http.conf:2: directive "add_upstream" is not terminated by ";"



=== TEST 76: outside upstream{} it is refused: in http
--- http
add_upstream u1;
--- must_die
--- emerg
http.conf:1: "add_upstream" directive is not allowed here



=== TEST 77: outside upstream{} it is refused: in a location
--- server
location /t {
    add_upstream u1;
}
--- must_die
--- emerg
server.conf:2: "add_upstream" directive is not allowed here
