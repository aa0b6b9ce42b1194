# upstrand_status and upstrand_api: what is taken and what is refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

run_tests();

__DATA__

=== TEST 1: upstrand_status without a parameter
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status;
}
--- request
GET /t
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 2: upstrand_status json
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status json;
}
--- request
GET /t
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 3: upstrand_status prometheus
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status prometheus;
}
--- request
GET /t
--- error_code: 200
--- response_headers
Content-Type: text/plain; version=0.0.4; charset=utf-8



=== TEST 4: upstrand_status html
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status html;
}
--- request
GET /t
--- error_code: 200
--- response_headers
Content-Type: text/html; charset=utf-8



=== TEST 5: upstrand_api
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_api;
}
--- request
GET /t/upstrands
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 6: upstrand_status without any upstrand
--- http

--- server
location /t {
    upstrand_status;
}
--- request
GET /t
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 7: upstrand_api without any upstrand
--- http

--- server
location /t {
    upstrand_api;
}
--- request
GET /t/upstrands
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 8: both, in a location and in one within it
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_api;
    location = /t/status { upstrand_status json; }
}
--- request
GET /t/status
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 9: a location within one has a handler of its own
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status;
    location /t/x { return 204; }
}
--- request
GET /t/x
--- error_code: 204



=== TEST 10: two locations
--- http
upstrand a { upstream u1; }
--- server
location /t { upstrand_status html; }
location /s { upstrand_status prometheus; }
--- request
GET /s
--- error_code: 200
--- response_headers
Content-Type: text/plain; version=0.0.4; charset=utf-8



=== TEST 11: a regex location, with upper case
--- http
upstrand a { upstream u1; }
--- server
location ~ ^/T { upstrand_status json; }
--- request
GET /T
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 12: an exact location
--- http
upstrand a { upstream u1; }
--- server
location = /t { upstrand_status; }
--- request
GET /t
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 13: a named location
--- http
upstrand a { upstream u1; }
--- server
location /t { error_page 404 = @s; return 404; }
location @s { upstrand_status; }
--- request
GET /t
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 14: a parameter in quotes
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status "json";
}
--- request
GET /t
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 15: limit_except keeps upstrand_api
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_api;
    limit_except HEAD { allow all; }
}
--- request
GET /t/upstrands
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 16: limit_except keeps upstrand_status and its format
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status prometheus;
    limit_except HEAD { allow all; }
}
--- request
GET /t
--- error_code: 200
--- response_headers
Content-Type: text/plain; version=0.0.4; charset=utf-8



=== TEST 17: limit_except refuses
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_api;
    limit_except GET { deny all; }
}
--- request
PATCH /t/upstrands
--- error_code: 403



=== TEST 18: if keeps upstrand_status and its format
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status html;
    if ($arg_x) { add_header X-If yes; }
}
--- request
GET /t?x=1
--- error_code: 200
--- response_headers
Content-Type: text/html; charset=utf-8
X-If: yes



=== TEST 19: limit_except that stands before it
--- http
upstrand a { upstream u1; }
--- server
location /t {
    limit_except HEAD { allow all; }
    upstrand_api;
}
--- request
GET /t/upstrands
--- error_code: 200
--- response_headers
Content-Type: application/json



=== TEST 20: if with an answer of its own
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status html;
    if ($arg_x) { return 204; }
}
--- request
GET /t?x=1
--- error_code: 204



=== TEST 21: if without upstrand_status above
--- http
upstrand a { upstream u1; }
--- server
location /t {
    upstrand_status;
}
location /s { if ($arg_x) { add_header X-If yes; } }
--- request
GET /s?x=1
--- error_code: 404



=== TEST 22: the same words in another server
--- http
upstrand a { upstream u1; }
server {
    listen unix:$DIR/other.sock;
    location /t { upstrand_status; }
}
--- server
location /t {
    upstrand_status;
}
--- request
GET /t
--- response_headers
Content-Type: application/json



=== TEST 23: upstrand_status twice
--- server
location /t {
    upstrand_status;
    upstrand_status;
}
--- must_die
--- emerg
server.conf:3: "upstrand_status" directive is duplicate



=== TEST 24: upstrand_status beside upstrand_api
--- server
location /t {
    upstrand_api;
    upstrand_status;
}
--- must_die
--- emerg
server.conf:3: "upstrand_status" directive can't stand beside the other one of "upstrand_status" and "upstrand_api"



=== TEST 25: upstrand_status in server
--- server
upstrand_status;
--- must_die
--- emerg
server.conf:1: "upstrand_status" directive is not allowed here



=== TEST 26: upstrand_status in http
--- http
upstrand_status;
--- server

--- must_die
--- emerg
http.conf:1: "upstrand_status" directive is not allowed here



=== TEST 27: upstrand_status in if of a location
--- server
location /t {
    if ($arg_x) {
        upstrand_status;
    }
}
--- must_die
--- emerg
server.conf:3: "upstrand_status" directive is not allowed here



=== TEST 28: upstrand_status in if of a server
--- server
if ($arg_x) {
    upstrand_status;
}
--- must_die
--- emerg
server.conf:2: "upstrand_status" directive is not allowed here



=== TEST 29: upstrand_status in limit_except
--- server
location /t {
    limit_except GET {
        upstrand_status;
    }
}
--- must_die
--- emerg
server.conf:3: "upstrand_status" directive is not allowed here



=== TEST 30: upstrand_status in upstream
--- http
upstream x {
    server 127.0.0.1:9;
    upstrand_status;
}
--- server
location /t {
    return 200;
}
--- must_die
--- emerg
http.conf:3: "upstrand_status" directive is not allowed here



=== TEST 31: upstrand_status in upstrand
--- http
upstrand a {
    upstream u1;
    upstrand_status;
}
--- server
location /t {
    return 200;
}
--- must_die
--- emerg
http.conf:3: "upstrand_status" directive is not allowed here



=== TEST 32: upstrand_api twice
--- server
location /t {
    upstrand_api;
    upstrand_api;
}
--- must_die
--- emerg
server.conf:3: "upstrand_api" directive is duplicate



=== TEST 33: upstrand_api beside upstrand_status
--- server
location /t {
    upstrand_status;
    upstrand_api;
}
--- must_die
--- emerg
server.conf:3: "upstrand_api" directive can't stand beside the other one of "upstrand_status" and "upstrand_api"



=== TEST 34: upstrand_api in server
--- server
upstrand_api;
--- must_die
--- emerg
server.conf:1: "upstrand_api" directive is not allowed here



=== TEST 35: upstrand_api in http
--- http
upstrand_api;
--- server

--- must_die
--- emerg
http.conf:1: "upstrand_api" directive is not allowed here



=== TEST 36: upstrand_api in if of a location
--- server
location /t {
    if ($arg_x) {
        upstrand_api;
    }
}
--- must_die
--- emerg
server.conf:3: "upstrand_api" directive is not allowed here



=== TEST 37: upstrand_api in if of a server
--- server
if ($arg_x) {
    upstrand_api;
}
--- must_die
--- emerg
server.conf:2: "upstrand_api" directive is not allowed here



=== TEST 38: upstrand_api in limit_except
--- server
location /t {
    limit_except GET {
        upstrand_api;
    }
}
--- must_die
--- emerg
server.conf:3: "upstrand_api" directive is not allowed here



=== TEST 39: upstrand_api in upstream
--- http
upstream x {
    server 127.0.0.1:9;
    upstrand_api;
}
--- server
location /t {
    return 200;
}
--- must_die
--- emerg
http.conf:3: "upstrand_api" directive is not allowed here



=== TEST 40: upstrand_api in upstrand
--- http
upstrand a {
    upstream u1;
    upstrand_api;
}
--- server
location /t {
    return 200;
}
--- must_die
--- emerg
http.conf:3: "upstrand_api" directive is not allowed here



=== TEST 41: upstrand_status twice, with other formats
--- server
location /t {
    upstrand_status json;
    upstrand_status html;
}
--- must_die
--- emerg
server.conf:3: "upstrand_status" directive is duplicate



=== TEST 42: upstrand_status xml
--- server
location /t {
    upstrand_status xml;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "xml"



=== TEST 43: upstrand_status JSON
--- server
location /t {
    upstrand_status JSON;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "JSON"



=== TEST 44: upstrand_status Html
--- server
location /t {
    upstrand_status Html;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "Html"



=== TEST 45: upstrand_status "json "
--- server
location /t {
    upstrand_status "json ";
}
--- must_die
--- emerg
server.conf:2: invalid parameter "json "



=== TEST 46: upstrand_status ""
--- server
location /t {
    upstrand_status "";
}
--- must_die
--- emerg
server.conf:2: invalid parameter ""



=== TEST 47: upstrand_status on
--- server
location /t {
    upstrand_status on;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "on"



=== TEST 48: upstrand_status off
--- server
location /t {
    upstrand_status off;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "off"



=== TEST 49: upstrand_status format=json
--- server
location /t {
    upstrand_status format=json;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "format=json"



=== TEST 50: upstrand_status text
--- server
location /t {
    upstrand_status text;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "text"



=== TEST 51: upstrand_status $arg_f
--- server
location /t {
    upstrand_status $arg_f;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "$arg_f"



=== TEST 52: upstrand_status openmetrics
--- server
location /t {
    upstrand_status openmetrics;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "openmetrics"



=== TEST 53: upstrand_status with two parameters
--- server
location /t {
    upstrand_status json html;
}
--- must_die
--- emerg
server.conf:2: invalid number of arguments in "upstrand_status" directive



=== TEST 54: upstrand_api on
--- server
location /t {
    upstrand_api on;
}
--- must_die
--- emerg
server.conf:2: invalid number of arguments in "upstrand_api" directive



=== TEST 55: upstrand_api off
--- server
location /t {
    upstrand_api off;
}
--- must_die
--- emerg
server.conf:2: invalid number of arguments in "upstrand_api" directive



=== TEST 56: upstrand_api write=on
--- server
location /t {
    upstrand_api write=on;
}
--- must_die
--- emerg
server.conf:2: invalid number of arguments in "upstrand_api" directive
