# dynamic_upstrand $VAR SOURCE...: where it may stand, what is taken, and what is
# refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

run_tests();

__DATA__

=== TEST 1: a literal name
--- http
upstrand one { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d one;
    proxy_pass http://$d;
}
--- answers: 1



=== TEST 2: a literal name is the same in upper and lower case
--- http
upstrand one { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d ONE;
    proxy_pass http://$d;
}
--- answers: 1



=== TEST 3: the first source with a value decides, and the literal if there is none
--- http
upstrand one { upstream u1; }
upstrand two { upstream u2; }
upstrand three { upstream u3; }
--- server
location /t {
    dynamic_upstrand $d $arg_x $arg_y $arg_z three;
    proxy_pass http://$d;
}
--- request eval
["GET /t?x=one&y=two", "GET /t?y=TWO&z=one", "GET /t", "GET /t?x=&y=&z=two"]
--- response_body eval
["1\n", "2\n", "3\n", "2\n"]



=== TEST 4: variables alone: without a value the pass fails
--- http
upstrand one { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d $arg_x;
    proxy_pass http://$d;
}
--- request eval
["GET /t?x=one", "GET /t", "GET /t?x=nope", "GET /t?x=path"]
--- error_code eval
[200, 500, 500, 500]



=== TEST 5: a source may be a variable of map or set
--- http
map $arg_n $named { 1 one; default ""; }
upstrand one { upstream u1; }
upstrand two { upstream u2; }
--- server
set $fixed two;
location /t {
    dynamic_upstrand $d $named $fixed;
    proxy_pass http://$d;
}
--- request eval
["GET /t?n=1", "GET /t?n=2"]
--- response_body eval
["1\n", "2\n"]



=== TEST 6: the upstrand may be declared below
--- http
server {
    listen unix:$DIR/x.sock;
    dynamic_upstrand $d below;
    location / { proxy_pass http://$d; }
}
upstrand below { upstream u3; }
--- server
location /t { proxy_pass http://unix:$DIR/x.sock; }
--- answers: 3



=== TEST 7: a line of the server holds in its locations
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d one;
location /t {
    location /t { proxy_pass http://$d; }
}
--- answers: 1



=== TEST 8: a line of the location wins over the server's for the same variable
--- http
upstrand one { upstream u1; }
upstrand two { upstream u2; }
--- server
dynamic_upstrand $d one;
location /t {
    dynamic_upstrand $D two;
    proxy_pass http://$d;
}
location /u { proxy_pass http://$d; }
--- request eval
["GET /t", "GET /u"]
--- response_body eval
["2\n", "1\n"]



=== TEST 9: lines for several variables at one level and above add up
--- http
upstrand one { upstream u1; }
upstrand two { upstream u2; }
upstrand three { upstream u3; }
--- server
dynamic_upstrand $d one;
location /t {
    dynamic_upstrand $e two;
    dynamic_upstrand $f three;
    proxy_pass http://$d;
    location /t/e { proxy_pass http://$e; }
    location /t/f { proxy_pass http://$f; }
}
--- request eval
["GET /t", "GET /t/e", "GET /t/f"]
--- response_body eval
["1\n", "2\n", "3\n"]



=== TEST 10: in an if of a location
--- http
upstrand one { upstream u1; }
upstrand two { upstream u2; }
--- server
location /t {
    dynamic_upstrand $d one;
    if ($arg_x) {
        dynamic_upstrand $d two;
        proxy_pass http://$d;
    }
    proxy_pass http://$d;
}
--- request eval
["GET /t", "GET /t?x=1"]
--- response_body eval
["1\n", "2\n"]



=== TEST 11: read where no line is in force the variable is empty
--- http
upstrand one { upstream u1; }
--- server
location /u {
    dynamic_upstrand $d one;
}
location /t { proxy_pass http://$d; }
--- request
GET /t
--- error_code: 500



=== TEST 12: variables that are each other's source are empty
--- http
upstrand one { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d $e;
    dynamic_upstrand $e $f;
    dynamic_upstrand $f $e;
    proxy_pass http://$d;
}
location /u {
    dynamic_upstrand $e $f;
    dynamic_upstrand $f $e;
    proxy_pass http://$e;
}
--- request eval
["GET /t", "GET /u"]
--- error_code eval
[500, 500]



=== TEST 13: the variable of an upstrand's name that only a number has
--- http
upstrand 1 { upstream u1; }
upstrand "a b-c" { upstream u2; }
--- server
location /t {
    dynamic_upstrand $d 1;
    dynamic_upstrand $e "a b-c";
    proxy_pass http://$d;
    location /t/e { proxy_pass http://$e; }
}
--- request eval
["GET /t", "GET /t/e"]
--- response_body eval
["1\n", "2\n"]



=== TEST 14: an unknown literal is refused
--- http
upstrand one { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d $arg_x
                     nope;
}
--- must_die
--- emerg
server.conf:3: upstrand "nope" is not found



=== TEST 15: an unknown literal is refused where there is no upstrand at all
--- server
dynamic_upstrand $d nope;
--- must_die
--- emerg
server.conf:1: upstrand "nope" is not found



=== TEST 16: an empty literal is refused
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d "";
--- must_die
--- emerg
server.conf:1: upstrand "" is not found



=== TEST 17: "path" is no upstrand
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d path;
--- must_die
--- emerg
server.conf:1: upstrand "path" is not found



=== TEST 18: "addr" is no upstrand
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d addr;
--- must_die
--- emerg
server.conf:1: upstrand "addr" is not found



=== TEST 19: "status" is no upstrand
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d status;
--- must_die
--- emerg
server.conf:1: upstrand "status" is not found



=== TEST 20: "upstrand_one" is no upstrand
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d upstrand_one;
--- must_die
--- emerg
server.conf:1: upstrand "upstrand_one" is not found



=== TEST 21: "u1" is no upstrand
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d u1;
--- must_die
--- emerg
server.conf:1: upstrand "u1" is not found



=== TEST 22: a literal after the literal is refused
--- http
upstrand one { upstream u1; }
upstrand two { upstream u2; }
--- server
location /t {
    dynamic_upstrand $d one two;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "two" after upstrand "one"



=== TEST 23: a variable after the literal is refused
--- http
upstrand one { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d $arg_x one $arg_y;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "$arg_y" after upstrand "one"



=== TEST 24: two lines for one variable in a location are refused
--- http
upstrand one { upstream u1; }
upstrand two { upstream u2; }
--- server
location /t {
    dynamic_upstrand $d one;
    dynamic_upstrand $d two;
}
--- must_die
--- emerg
server.conf:3: duplicate "dynamic_upstrand" for variable "$d"



=== TEST 25: two lines for one variable in a server are refused, in any case of its letters
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d one;
dynamic_upstrand $e one;
dynamic_upstrand $D $arg_x one;
--- must_die
--- emerg
server.conf:3: duplicate "dynamic_upstrand" for variable "$D"



=== TEST 26: two lines for one variable in an if are refused
--- http
upstrand one { upstream u1; }
--- server
location /t {
    if ($arg_x) {
        dynamic_upstrand $d one;
        dynamic_upstrand $d $arg_x;
    }
}
--- must_die
--- emerg
server.conf:4: duplicate "dynamic_upstrand" for variable "$d"



=== TEST 27: "d" is no variable's name
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand d one;
--- must_die
--- emerg
server.conf:1: invalid variable name "d"



=== TEST 28: "one" is no variable's name
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand one one;
--- must_die
--- emerg
server.conf:1: invalid variable name "one"



=== TEST 29: "$" is no variable's name
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $ one;
--- must_die
--- emerg
server.conf:1: invalid variable name "$"



=== TEST 30: an empty word is no variable's name
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand "" one;
--- must_die
--- emerg
server.conf:1: invalid variable name ""



=== TEST 31: a lone dollar sign is no source
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d $ one;
--- must_die
--- emerg
server.conf:1: invalid variable name "$"



=== TEST 32: $host has a value of its own
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $host one;
--- must_die
--- emerg
server.conf:1: the duplicate "host" variable



=== TEST 33: $uri has a value of its own
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $uri one;
--- must_die
--- emerg
server.conf:1: the duplicate "uri" variable



=== TEST 34: $request_uri has a value of its own
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $request_uri one;
--- must_die
--- emerg
server.conf:1: the duplicate "request_uri" variable



=== TEST 35: $upstream_addr has a value of its own
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $upstream_addr one;
--- must_die
--- emerg
server.conf:1: the duplicate "upstream_addr" variable



=== TEST 36: $upstrand_path has a value of its own
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $upstrand_path one;
--- must_die
--- emerg
server.conf:1: the duplicate "upstrand_path" variable



=== TEST 37: $upstrand_reason has a value of its own
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $upstrand_reason one;
--- must_die
--- emerg
server.conf:1: the duplicate "upstrand_reason" variable



=== TEST 38: $upstrand_one has a value of its own
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $upstrand_one one;
--- must_die
--- emerg
server.conf:1: the duplicate "upstrand_one" variable



=== TEST 39: a variable of map is taken
--- http
upstrand one { upstream u1; }
map $uri $d { default one; }
--- server
dynamic_upstrand $d one;
--- must_die
--- emerg
server.conf:1: the duplicate "d" variable



=== TEST 40: set of the variable is refused by nginx
--- http
upstrand one { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d one;
    set $d x;
}
--- must_die
--- emerg
server.conf:3: the duplicate "d" variable



=== TEST 41: an unknown variable as a source is refused by nginx
--- http
upstrand one { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d $nope one;
    proxy_pass http://$d;
}
--- must_die
--- emerg
- unknown "nope" variable



=== TEST 42: the variable where no line declares it is refused by nginx
--- http
upstrand one { upstream u1; }
--- server
location /t { proxy_pass http://$d; }
--- must_die
--- emerg
- unknown "d" variable



=== TEST 43: no argument is refused
--- server
dynamic_upstrand;
--- must_die
--- emerg
server.conf:1: invalid number of arguments in "dynamic_upstrand" directive



=== TEST 44: a variable alone is refused
--- server
dynamic_upstrand $d;
--- must_die
--- emerg
server.conf:1: invalid number of arguments in "dynamic_upstrand" directive



=== TEST 45: a block is refused
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d one { }
--- must_die
--- emerg
server.conf:1: directive "dynamic_upstrand" is not terminated by ";"



=== TEST 46: in http it is refused
--- http
upstrand one { upstream u1; }
dynamic_upstrand $d one;
--- must_die
--- emerg
http.conf:2: "dynamic_upstrand" directive is not allowed here



=== TEST 47: in an upstream it is refused
--- http
upstrand one { upstream u1; }
upstream c {
    server 127.0.0.1:9;
    dynamic_upstrand $d one;
}
--- must_die
--- emerg
http.conf:4: "dynamic_upstrand" directive is not allowed here



=== TEST 48: in an upstrand it is refused
--- http
upstrand one {
    upstream u1;
    dynamic_upstrand $d one;
}
--- must_die
--- emerg
http.conf:3: "dynamic_upstrand" directive is not allowed here



=== TEST 49: in an if of a server it is refused
--- http
upstrand one { upstream u1; }
--- server
if ($arg_x) {
    dynamic_upstrand $d one;
}
--- must_die
--- emerg
server.conf:2: "dynamic_upstrand" directive is not allowed here



=== TEST 50: in limit_except it is refused
--- http
upstrand one { upstream u1; }
--- server
location /t {
    limit_except GET {
        dynamic_upstrand $d one;
    }
}
--- must_die
--- emerg
server.conf:3: "dynamic_upstrand" directive is not allowed here



=== TEST 51: a source that is named twice is refused
--- http
upstrand one { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d $arg_x $ARG_x one;
}
--- must_die
--- emerg
server.conf:2: duplicate parameter "$ARG_x"



=== TEST 52: a variable as its own source is refused
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d $d one;
--- must_die
--- emerg
server.conf:1: duplicate parameter "$d"
