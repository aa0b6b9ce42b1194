# combine_server_singlets [SUFFIX [WIDTH | byname]] [nobackup]: names of
# singlets, what they keep, and what is refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

run_tests();

__DATA__

=== TEST 1: without arguments a singlet is called after its host and the server's number
--- http
upstream c {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c$arg_n; }
--- request eval
["GET /t?n=1", "GET /t?n=2", "GET /t?n=2"]
--- response_body eval
["1\n", "2\n", "2\n"]



=== TEST 2: SUFFIX stands between the host's name and the number
--- http
upstream c {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    combine_server_singlets _s_;
}
--- server
location /t { proxy_pass http://c_s_2; }
--- answers: 2 2



=== TEST 3: an empty SUFFIX is none
--- http
upstream c {
    server unix:$DIR/s1.sock;
    combine_server_singlets "" 2;
}
--- server
location /t { proxy_pass http://c01; }
--- answers: 1



=== TEST 4: WIDTH pads the number with zeros, and cuts none that is longer
--- http
upstream c {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock; server unix:$DIR/s2.sock; server unix:$DIR/s2.sock;
    server unix:$DIR/s2.sock; server unix:$DIR/s2.sock; server unix:$DIR/s2.sock;
    server unix:$DIR/s2.sock; server unix:$DIR/s2.sock;
    server unix:$DIR/s3.sock;
    combine_server_singlets _w1_ 1;
    combine_server_singlets _w3_ 3;
}
--- server
location /t { proxy_pass http://c_$arg_n; }
--- request eval
["GET /t?n=w1_10", "GET /t?n=w3_001", "GET /t?n=w3_010"]
--- response_body eval
["3\n", "1\n", "3\n"]



=== TEST 5: WIDTH 0 is none
--- http
upstream c {
    server unix:$DIR/s1.sock;
    combine_server_singlets _s_ 0;
}
--- server
location /t { proxy_pass http://c_s_1; }
--- answers: 1



=== TEST 6: byname takes the server as written, each colon as an underline
--- http
upstream c {
    server 127.0.0.1:1;
    server [::1]:80;
    server 127.0.0.1;
    server unix:$DIR/s1.sock;
    combine_server_singlets _s_ byname;
    combine_server_singlets byname;
}
upstrand a { upstream c_s_127.0.0.1_1; }
upstrand b { upstream c[__1]_80; upstream c_s_[__1]_80; }
upstrand d { upstream c127.0.0.1; }
--- answers: 1



=== TEST 7: byname of a unix socket gives a singlet that an upstrand reaches
--- http
upstream c {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    combine_server_singlets byname;
}
upstrand a { upstream "cunix_$DIR/s2.sock"; }
--- answers: 2 2



=== TEST 8: in a singlet the other servers are backups
--- http
upstream c {
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c1; }
--- answers: 2



=== TEST 9: the active server of a singlet loses its backup
--- http
upstream c {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock backup;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c2; }
--- answers: 2 2



=== TEST 10: with nobackup the other servers are down
--- http
upstream c {
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets nobackup;
}
--- server
location /t { proxy_pass http://c1; }
--- request
GET /t
--- error_code: 502



=== TEST 11: with nobackup the active server stays a backup
--- http
upstream c {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock backup;
    combine_server_singlets nobackup;
}
--- server
location /t { proxy_pass http://c2; }
--- answers: 2 2



=== TEST 12: with nobackup an active server that is down stays down
--- http
upstream c {
    server unix:$DIR/s1.sock down;
    server unix:$DIR/s2.sock;
    combine_server_singlets nobackup;
}
--- server
location /t { proxy_pass http://c1; }
--- request
GET /t
--- error_code: 502



=== TEST 13: SUFFIX and nobackup
--- http
upstream c {
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets _s_ nobackup;
}
--- server
location /t { proxy_pass http://c_s_$arg_n; }
--- request eval
["GET /t?n=1", "GET /t?n=2"]
--- error_code eval
[502, 200]



=== TEST 14: SUFFIX, WIDTH, and nobackup
--- http
upstream c {
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets _s_ 2 nobackup;
}
--- server
location /t { proxy_pass http://c_s_$arg_n; }
--- request eval
["GET /t?n=01", "GET /t?n=02"]
--- error_code eval
[502, 200]



=== TEST 15: SUFFIX, byname, and nobackup
--- http
upstream c {
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets _s_ byname nobackup;
}
--- server
location /t { proxy_pass http://c_s_127.0.0.1_1; }
--- request
GET /t
--- error_code: 502



=== TEST 16: byname and nobackup
--- http
upstream c {
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets byname nobackup;
}
--- server
location /t { proxy_pass http://c127.0.0.1_1; }
--- request
GET /t
--- error_code: 502



=== TEST 17: nobackup twice is a SUFFIX and the word itself
--- http
upstream c {
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets nobackup nobackup;
}
--- server
location /t { proxy_pass http://cnobackup$arg_n; }
--- request eval
["GET /t?n=1", "GET /t?n=2"]
--- error_code eval
[502, 200]



=== TEST 18: servers below the line are in no singlet
--- http
upstream c {
    server 127.0.0.1:1;
    combine_server_singlets;
    server unix:$DIR/s2.sock;
}
--- server
location /t { proxy_pass http://c1; }
--- request
GET /t
--- error_code: 502



=== TEST 19: servers below the line have no singlet
--- http
upstream c {
    server unix:$DIR/s1.sock;
    combine_server_singlets;
    server unix:$DIR/s2.sock;
}
upstrand a { upstream c2; }
--- must_die
--- emerg
http.conf:6: upstream "c2" is not found



=== TEST 20: servers of add_upstream have singlets
--- http
upstream c {
    add_upstream u1;
    server unix:$DIR/s2.sock;
    add_upstream u3 backup;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c$arg_n; }
--- request eval
["GET /t?n=1", "GET /t?n=2", "GET /t?n=3"]
--- response_body eval
["1\n", "2\n", "3\n"]



=== TEST 21: a lone server has a singlet
--- http
upstream c {
    server unix:$DIR/s1.sock;
    combine_server_singlets nobackup;
}
--- server
location /t { proxy_pass http://c1; }
--- answers: 1



=== TEST 22: the line may be repeated with other suffixes
--- http
upstream c {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    combine_server_singlets _a;
    combine_server_singlets _b byname;
    combine_server_singlets _a 2;
}
upstrand a { upstream c_a2; }
upstrand b { upstream ~^c_bunix; }
upstrand d { upstream c_a01; }
--- answers: 2



=== TEST 23: names of any length: a long SUFFIX
--- http eval
my $long = 'x' x 300;
"upstream c {
    server unix:\$DIR/s1.sock;
    server unix:\$DIR/s2.sock;
    combine_server_singlets $long;
}
upstrand a { upstream c${long}2; }
"
--- answers: 2 2



=== TEST 24: names of any length: a WIDTH of 300
--- http eval
my $zeros = '0' x 299;
"upstream c {
    server unix:\$DIR/s1.sock;
    server unix:\$DIR/s2.sock;
    combine_server_singlets _s_ 300;
}
upstrand a { upstream c_s_${zeros}2; }
"
--- answers: 2 2



=== TEST 25: a WIDTH of 4096 is taken
--- http
upstream c {
    server unix:$DIR/s1.sock;
    combine_server_singlets _s_ 4096;
}
--- answers: 1



=== TEST 26: a zone and keepalive of the host, above or below the line, do no harm
--- http
upstream c {
    zone z 64k;
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
    keepalive 3;
    keepalive_timeout 5s;
    keepalive_requests 10;
}
--- server
location /t { proxy_pass http://c2; }
--- answers: 2 2



=== TEST 27: resolve servers of a host with a zone have singlets
--- http
resolver 127.0.0.1:1;
upstream c {
    zone z 64k;
    server name.test:9 resolve;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c2; }
--- answers: 2
--- skip_nginx
3: < 1.27.3: no resolve



=== TEST 28: resolve servers of a host without a zone are refused by nginx
--- http
resolver 127.0.0.1:1;
upstream c {
    server name.test:9 resolve;
    combine_server_singlets;
}
--- must_die
--- emerg
- resolving names at run time requires upstream "c" in .../http.conf:2 to be in shared memory
--- skip_nginx
2: < 1.27.3: no resolve



=== TEST 29: least_conn knows backup servers: no warning
--- http
upstream c {
    least_conn;
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c1; }
--- answers: 2



=== TEST 30: ip_hash has no backups: its singlets use round robin, with a warning
--- http
upstream c {
    ip_hash;
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c1; }
--- warning
http.conf:5: singlets of upstream "c" use round robin instead of its balancing method
--- answers: 2



=== TEST 31: hash $uri has no backups: its singlets use round robin, with a warning
--- http
upstream c {
    hash $uri;
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c1; }
--- warning
http.conf:5: singlets of upstream "c" use round robin instead of its balancing method
--- answers: 2



=== TEST 32: hash $uri consistent has no backups: its singlets use round robin, with a warning
--- http
upstream c {
    hash $uri consistent;
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c1; }
--- warning
http.conf:5: singlets of upstream "c" use round robin instead of its balancing method
--- answers: 2



=== TEST 33: random has no backups: its singlets use round robin, with a warning
--- http
upstream c {
    random;
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c1; }
--- warning
http.conf:5: singlets of upstream "c" use round robin instead of its balancing method
--- answers: 2



=== TEST 34: random two least_conn has no backups: its singlets use round robin, with a warning
--- http
upstream c {
    random two least_conn;
    server 127.0.0.1:1;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
}
--- server
location /t { proxy_pass http://c1; }
--- warning
http.conf:5: singlets of upstream "c" use round robin instead of its balancing method
--- answers: 2



=== TEST 35: a method without backups below the line is warned of as well
--- http
upstream c {
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    combine_server_singlets;
    hash $uri;
    keepalive 3;
}
--- server
location /t { proxy_pass http://c1; }
--- warning
http.conf:4: singlets of upstream "c" use round robin instead of its balancing method
--- answers: 1



=== TEST 36: each line under a method without backups is warned of
--- http
upstream c {
    hash $uri;
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    combine_server_singlets _a;
    combine_server_singlets _b;
}
--- warning
http.conf:5: singlets of upstream "c" use round robin instead of its balancing method
http.conf:6: singlets of upstream "c" use round robin instead of its balancing method



=== TEST 37: with nobackup there is nothing to balance: no warning under hash
--- http
upstream c {
    hash $uri;
    server unix:$DIR/s1.sock;
    server unix:$DIR/s2.sock;
    combine_server_singlets nobackup;
}
--- server
location /t { proxy_pass http://c2; }
--- answers: 2



=== TEST 38: before the first server it is refused
--- http
upstream c {
    combine_server_singlets;
    server 127.0.0.1:9;
}
--- must_die
--- emerg
http.conf:2: no server so far declared to build singlets



=== TEST 39: three arguments are refused if the last one is "x"
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 2 x;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "x"



=== TEST 40: three arguments are refused if the last one is "byname"
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 2 byname;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "byname"



=== TEST 41: three arguments are refused if the last one is "backup"
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 2 backup;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "backup"



=== TEST 42: three arguments are refused if the last one is "NOBACKUP"
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 2 NOBACKUP;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "NOBACKUP"



=== TEST 43: three arguments are refused if the last one is "3"
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 2 3;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "3"



=== TEST 44: a WIDTH of "x" is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ x;
}
--- must_die
--- emerg
http.conf:3: field width "x" must be an integer value



=== TEST 45: a WIDTH of "-1" is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ -1;
}
--- must_die
--- emerg
http.conf:3: field width "-1" must be an integer value



=== TEST 46: a WIDTH of "+1" is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ +1;
}
--- must_die
--- emerg
http.conf:3: field width "+1" must be an integer value



=== TEST 47: a WIDTH of "1.5" is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 1.5;
}
--- must_die
--- emerg
http.conf:3: field width "1.5" must be an integer value



=== TEST 48: a WIDTH of "0x2" is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 0x2;
}
--- must_die
--- emerg
http.conf:3: field width "0x2" must be an integer value



=== TEST 49: a WIDTH of "2x" is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 2x;
}
--- must_die
--- emerg
http.conf:3: field width "2x" must be an integer value



=== TEST 50: a WIDTH of "Byname" is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ Byname;
}
--- must_die
--- emerg
http.conf:3: field width "Byname" must be an integer value



=== TEST 51: a WIDTH of "4097" is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 4097;
}
--- must_die
--- emerg
http.conf:3: field width "4097" must be an integer value



=== TEST 52: a WIDTH of "99999999999999999999" is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 99999999999999999999;
}
--- must_die
--- emerg
http.conf:3: field width "99999999999999999999" must be an integer value



=== TEST 53: an empty WIDTH is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ "";
}
--- must_die
--- emerg
http.conf:3: field width "" must be an integer value



=== TEST 54: nobackup counts only as the last word: before another one it is a SUFFIX
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets nobackup _s_;
}
--- must_die
--- emerg
http.conf:3: field width "_s_" must be an integer value



=== TEST 55: byname with "2" as a width is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets byname 2;
}
--- must_die
--- emerg
http.conf:3: setting field width is not permitted when using "byname" value: "2"



=== TEST 56: byname with "byname" as a width is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets byname byname;
}
--- must_die
--- emerg
http.conf:3: setting field width is not permitted when using "byname" value: "byname"



=== TEST 57: byname with "_s_" as a width is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets byname _s_;
}
--- must_die
--- emerg
http.conf:3: setting field width is not permitted when using "byname" value: "_s_"



=== TEST 58: byname with a width and nobackup is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets byname 2 nobackup;
}
--- must_die
--- emerg
http.conf:3: setting field width is not permitted when using "byname" value: "2"



=== TEST 59: the same line twice makes names twice, which nginx refuses
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets;
    combine_server_singlets;
}
--- must_die
--- emerg
http.conf:4: duplicate upstream "c1"



=== TEST 60: the same server twice under byname is refused
--- http
upstream c {
    server 127.0.0.1:9;
    server 127.0.0.1:9;
    combine_server_singlets byname;
}
--- must_die
--- emerg
http.conf:4: duplicate upstream "c127.0.0.1_9"



=== TEST 61: a singlet with the name of an upstream above is refused
--- http
upstream u {
    server 127.0.0.1:9;
    server 127.0.0.1:8;
    combine_server_singlets;
}
--- must_die
--- emerg
http.conf:4: duplicate upstream "u1"



=== TEST 62: an upstream below with the name of a singlet is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets;
}
upstream C1 { server 127.0.0.1:9; }
--- must_die
--- emerg
http.conf:5: duplicate upstream "C1"



=== TEST 63: a proxy_pass to a singlet with a port is refused by nginx
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets;
}
--- server
location /t {
    proxy_pass http://c1:8080;
}
--- must_die
--- emerg
server.conf:2: upstream "c1" may not have port 8080



=== TEST 64: four arguments are refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 2 nobackup x;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "combine_server_singlets" directive



=== TEST 65: a block is refused
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets { }
}
--- must_die
--- emerg
http.conf:3: directive "combine_server_singlets" is not terminated by ";"



=== TEST 66: outside upstream{} it is refused: in http
--- http
combine_server_singlets;
--- must_die
--- emerg
http.conf:1: "combine_server_singlets" directive is not allowed here



=== TEST 67: outside upstream{} it is refused: in a server
--- server
combine_server_singlets;
--- must_die
--- emerg
server.conf:1: "combine_server_singlets" directive is not allowed here
