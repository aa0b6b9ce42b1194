# next_upstream_statuses and intercept_statuses inside upstrand{}: which words
# they take, what each means, and what is refused or warned of.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

run_tests();

__DATA__

=== TEST 1: without next_upstream_statuses a walk goes on after error, and not after a 503
--- http
upstrand a {
    upstream dead;
    upstream bad;
    upstream u1;
    order per_request;
}
--- paths
503 dead -> bad



=== TEST 2: next_upstream_statuses 5xx takes a 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 5xx;
}
--- paths
200 bad -> u1



=== TEST 3: next_upstream_statuses 503 takes a 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 503;
}
--- paths
200 bad -> u1



=== TEST 4: next_upstream_statuses 500-599 takes a 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 500-599;
}
--- paths
200 bad -> u1



=== TEST 5: next_upstream_statuses 503-503 takes a 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 503-503;
}
--- paths
200 bad -> u1



=== TEST 6: next_upstream_statuses 502-504 takes a 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 502-504;
}
--- paths
200 bad -> u1



=== TEST 7: next_upstream_statuses 500-503 takes a 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 500-503;
}
--- paths
200 bad -> u1



=== TEST 8: next_upstream_statuses 4xx takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 4xx;
}
--- paths
503 bad



=== TEST 9: next_upstream_statuses 502 takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 502;
}
--- paths
503 bad



=== TEST 10: next_upstream_statuses 504 takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 504;
}
--- paths
503 bad



=== TEST 11: next_upstream_statuses 504-599 takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 504-599;
}
--- paths
503 bad



=== TEST 12: next_upstream_statuses 500-502 takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 500-502;
}
--- paths
503 bad



=== TEST 13: next_upstream_statuses 2xx takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 2xx;
}
--- paths
503 bad



=== TEST 14: next_upstream_statuses error takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses error;
}
--- paths
503 bad



=== TEST 15: next_upstream_statuses timeout takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses timeout;
}
--- paths
503 bad



=== TEST 16: next_upstream_statuses invalid_header takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses invalid_header;
}
--- paths
503 bad



=== TEST 17: next_upstream_statuses non_idempotent takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses non_idempotent;
}
--- paths
503 bad



=== TEST 18: next_upstream_statuses 101 takes no 503
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 101;
}
--- paths
503 bad



=== TEST 19: next_upstream_statuses error takes a refused connection
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_statuses error;
}
--- paths
200 dead -> u1



=== TEST 20: next_upstream_statuses 502 takes a refused connection
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_statuses 502;
}
--- paths
200 dead -> u1



=== TEST 21: next_upstream_statuses 5xx takes a refused connection
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_statuses 5xx;
}
--- paths
200 dead -> u1



=== TEST 22: next_upstream_statuses timeout takes no refused connection
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_statuses timeout;
}
--- paths
502 dead



=== TEST 23: next_upstream_statuses invalid_header takes no refused connection
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_statuses invalid_header;
}
--- paths
502 dead



=== TEST 24: next_upstream_statuses 503 takes no refused connection
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_statuses 503;
}
--- paths
502 dead



=== TEST 25: next_upstream_statuses 2xx takes no refused connection
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_statuses 2xx;
}
--- paths
502 dead



=== TEST 26: next_upstream_statuses 2xx takes a 200
--- http
upstrand a {
    upstream u1;
    upstream dead;
    next_upstream_statuses 2xx;
}
--- paths
502 u1 -> dead



=== TEST 27: next_upstream_statuses 200 takes a 200
--- http
upstrand a {
    upstream u1;
    upstream dead;
    next_upstream_statuses 200;
}
--- paths
502 u1 -> dead



=== TEST 28: next_upstream_statuses 200-299 takes a 200
--- http
upstrand a {
    upstream u1;
    upstream dead;
    next_upstream_statuses 200-299;
}
--- paths
502 u1 -> dead



=== TEST 29: next_upstream_statuses 3xx is taken
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 503 3xx;
}
--- request
GET /t



=== TEST 30: next_upstream_statuses 301 is taken
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 503 301;
}
--- request
GET /t



=== TEST 31: next_upstream_statuses 404 is taken
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 503 404;
}
--- request
GET /t



=== TEST 32: next_upstream_statuses 4xx is taken
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 503 4xx;
}
--- request
GET /t



=== TEST 33: next_upstream_statuses 599 is taken
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 503 599;
}
--- request
GET /t



=== TEST 34: next_upstream_statuses 200-599 is taken
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 503 200-599;
}
--- request
GET /t



=== TEST 35: next_upstream_statuses 101-101 is taken
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 503 101-101;
}
--- request
GET /t



=== TEST 36: invalid_header takes an answer that can't be parsed
--- http
server { listen unix:$DIR/g.sock; add_header X "a\n: b"; return 200; }
upstream garbled { server unix:$DIR/g.sock; }
upstrand a {
    upstream garbled;
    upstream u1;
    next_upstream_statuses invalid_header;
}
--- paths
200 garbled -> u1



=== TEST 37: error takes an answer that can't be parsed as well
--- http
server { listen unix:$DIR/g.sock; add_header X "a\n: b"; return 200; }
upstream garbled { server unix:$DIR/g.sock; }
upstrand a {
    upstream garbled;
    upstream u1;
    next_upstream_statuses error;
}
--- paths
200 garbled -> u1



=== TEST 38: timeout takes an upstream that does not answer in time
--- http
limit_req_zone $request_method zone=slow:64k rate=1r/m;
server { listen unix:$DIR/l.sock; limit_req zone=slow burst=9; location / { empty_gif; } }
upstream slow { server unix:$DIR/l.sock; }
upstrand a {
    upstream slow;
    upstream u1;
    next_upstream_statuses timeout;
    order per_request;
}
--- server
location /t {
    proxy_pass http://$upstrand_a;
    proxy_read_timeout 100ms;
    add_header X-Path $upstrand_path always;
}
--- paths
200 slow
200 slow -> u1



=== TEST 39: all kinds of words in one line
--- http
upstrand a {
    upstream dead;
    upstream bad;
    upstream u1;
    next_upstream_statuses error timeout invalid_header non_idempotent 101 2xx 3xx 404 500-504;
    order per_request;
}
--- paths
200 dead -> bad -> u1



=== TEST 40: lines of next_upstream_statuses add up
--- http
upstrand a {
    next_upstream_statuses error;
    upstream dead;
    upstream bad;
    next_upstream_statuses 503;
    upstream u1;
    order per_request;
}
--- paths
200 dead -> bad -> u1



=== TEST 41: non_idempotent alone leaves nothing to go on after
--- http
upstrand a {
    upstream dead;
    upstream u1;
    next_upstream_statuses non_idempotent;
}
--- paths
502 dead



=== TEST 42: a word twice in a line is a warning, and holds
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 503 503;
}
--- warning
http.conf:4: duplicate value "503"
--- paths
200 bad -> u1



=== TEST 43: a word twice in two lines is a warning
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses error 5xx;
    next_upstream_statuses timeout error;
}
--- warning
http.conf:5: duplicate value "error"
--- paths
200 bad -> u1



=== TEST 44: error twice is a warning
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses error 503 error;
}
--- warning
http.conf:3: duplicate value "error"



=== TEST 45: timeout twice is a warning
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses timeout 503 timeout;
}
--- warning
http.conf:3: duplicate value "timeout"



=== TEST 46: invalid_header twice is a warning
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses invalid_header 503 invalid_header;
}
--- warning
http.conf:3: duplicate value "invalid_header"



=== TEST 47: non_idempotent twice is a warning
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses non_idempotent 503 non_idempotent;
}
--- warning
http.conf:3: duplicate value "non_idempotent"



=== TEST 48: 4xx twice is a warning
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 4xx 503 4xx;
}
--- warning
http.conf:3: duplicate value "4xx"



=== TEST 49: 200-204 twice is a warning
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 200-204 503 200-204;
}
--- warning
http.conf:3: duplicate value "200-204"



=== TEST 50: a class as such and as a range are one word
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 5xx 500-599;
}
--- warning
http.conf:3: duplicate value "500-599"



=== TEST 51: a status that a class covers is no repetition
--- http
upstrand a {
    upstream bad;
    upstream u1;
    next_upstream_statuses 5xx 503 502-504;
    next_upstream_statuses error invalid_header;
}
--- paths
200 bad -> u1



=== TEST 52: next_upstream_statuses "0" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 0;
}
--- must_die
--- emerg
http.conf:3: invalid value "0"



=== TEST 53: next_upstream_statuses "1" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 1;
}
--- must_die
--- emerg
http.conf:3: invalid value "1"



=== TEST 54: next_upstream_statuses "50" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 50;
}
--- must_die
--- emerg
http.conf:3: invalid value "50"



=== TEST 55: next_upstream_statuses "99" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 99;
}
--- must_die
--- emerg
http.conf:3: invalid value "99"



=== TEST 56: next_upstream_statuses "100" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 100;
}
--- must_die
--- emerg
http.conf:3: invalid value "100"



=== TEST 57: next_upstream_statuses "102" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 102;
}
--- must_die
--- emerg
http.conf:3: invalid value "102"



=== TEST 58: next_upstream_statuses "199" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 199;
}
--- must_die
--- emerg
http.conf:3: invalid value "199"



=== TEST 59: next_upstream_statuses "600" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 600;
}
--- must_die
--- emerg
http.conf:3: invalid value "600"



=== TEST 60: next_upstream_statuses "999" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 999;
}
--- must_die
--- emerg
http.conf:3: invalid value "999"



=== TEST 61: next_upstream_statuses "1000" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 1000;
}
--- must_die
--- emerg
http.conf:3: invalid value "1000"



=== TEST 62: next_upstream_statuses "5000" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 5000;
}
--- must_die
--- emerg
http.conf:3: invalid value "5000"



=== TEST 63: next_upstream_statuses "99999" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 99999;
}
--- must_die
--- emerg
http.conf:3: invalid value "99999"



=== TEST 64: next_upstream_statuses "050" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 050;
}
--- must_die
--- emerg
http.conf:3: invalid value "050"



=== TEST 65: next_upstream_statuses "-1" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses -1;
}
--- must_die
--- emerg
http.conf:3: invalid value "-1"



=== TEST 66: next_upstream_statuses "+503" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses +503;
}
--- must_die
--- emerg
http.conf:3: invalid value "+503"



=== TEST 67: next_upstream_statuses "503." is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 503.;
}
--- must_die
--- emerg
http.conf:3: invalid value "503."



=== TEST 68: next_upstream_statuses "5x" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 5x;
}
--- must_die
--- emerg
http.conf:3: invalid value "5x"



=== TEST 69: next_upstream_statuses "50x" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 50x;
}
--- must_die
--- emerg
http.conf:3: invalid value "50x"



=== TEST 70: next_upstream_statuses "5XX" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 5XX;
}
--- must_die
--- emerg
http.conf:3: invalid value "5XX"



=== TEST 71: next_upstream_statuses "5xxx" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 5xxx;
}
--- must_die
--- emerg
http.conf:3: invalid value "5xxx"



=== TEST 72: next_upstream_statuses "0xx" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 0xx;
}
--- must_die
--- emerg
http.conf:3: invalid value "0xx"



=== TEST 73: next_upstream_statuses "1xx" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 1xx;
}
--- must_die
--- emerg
http.conf:3: invalid value "1xx"



=== TEST 74: next_upstream_statuses "6xx" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 6xx;
}
--- must_die
--- emerg
http.conf:3: invalid value "6xx"



=== TEST 75: next_upstream_statuses "xxx" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses xxx;
}
--- must_die
--- emerg
http.conf:3: invalid value "xxx"



=== TEST 76: next_upstream_statuses "x" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses x;
}
--- must_die
--- emerg
http.conf:3: invalid value "x"



=== TEST 77: next_upstream_statuses "http_503" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses http_503;
}
--- must_die
--- emerg
http.conf:3: invalid value "http_503"



=== TEST 78: next_upstream_statuses "errors" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses errors;
}
--- must_die
--- emerg
http.conf:3: invalid value "errors"



=== TEST 79: next_upstream_statuses "Error" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses Error;
}
--- must_die
--- emerg
http.conf:3: invalid value "Error"



=== TEST 80: next_upstream_statuses "TIMEOUT" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses TIMEOUT;
}
--- must_die
--- emerg
http.conf:3: invalid value "TIMEOUT"



=== TEST 81: next_upstream_statuses "non-idempotent" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses non-idempotent;
}
--- must_die
--- emerg
http.conf:3: invalid value "non-idempotent"



=== TEST 82: next_upstream_statuses "invalid_heade" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses invalid_heade;
}
--- must_die
--- emerg
http.conf:3: invalid value "invalid_heade"



=== TEST 83: next_upstream_statuses "off" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses off;
}
--- must_die
--- emerg
http.conf:3: invalid value "off"



=== TEST 84: next_upstream_statuses "504-500" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 504-500;
}
--- must_die
--- emerg
http.conf:3: invalid value "504-500"



=== TEST 85: next_upstream_statuses "500-600" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 500-600;
}
--- must_die
--- emerg
http.conf:3: invalid value "500-600"



=== TEST 86: next_upstream_statuses "99-503" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 99-503;
}
--- must_die
--- emerg
http.conf:3: invalid value "99-503"



=== TEST 87: next_upstream_statuses "101-200" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 101-200;
}
--- must_die
--- emerg
http.conf:3: invalid value "101-200"



=== TEST 88: next_upstream_statuses "101-503" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 101-503;
}
--- must_die
--- emerg
http.conf:3: invalid value "101-503"



=== TEST 89: next_upstream_statuses "150-200" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 150-200;
}
--- must_die
--- emerg
http.conf:3: invalid value "150-200"



=== TEST 90: next_upstream_statuses "-504" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses -504;
}
--- must_die
--- emerg
http.conf:3: invalid value "-504"



=== TEST 91: next_upstream_statuses "500-" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 500-;
}
--- must_die
--- emerg
http.conf:3: invalid value "500-"



=== TEST 92: next_upstream_statuses "500--" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 500--;
}
--- must_die
--- emerg
http.conf:3: invalid value "500--"



=== TEST 93: next_upstream_statuses "5xx-599" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 5xx-599;
}
--- must_die
--- emerg
http.conf:3: invalid value "5xx-599"



=== TEST 94: next_upstream_statuses "500-5xx" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 500-5xx;
}
--- must_die
--- emerg
http.conf:3: invalid value "500-5xx"



=== TEST 95: next_upstream_statuses "500-504-505" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 500-504-505;
}
--- must_die
--- emerg
http.conf:3: invalid value "500-504-505"



=== TEST 96: next_upstream_statuses "500..504" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 500..504;
}
--- must_die
--- emerg
http.conf:3: invalid value "500..504"



=== TEST 97: next_upstream_statuses "500,504" is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 500,504;
}
--- must_die
--- emerg
http.conf:3: invalid value "500,504"



=== TEST 98: an empty word of next_upstream_statuses is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses "";
}
--- must_die
--- emerg
http.conf:3: invalid value ""



=== TEST 99: a wrong word after right ones is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses error 5xx frob;
}
--- must_die
--- emerg
http.conf:3: invalid value "frob"



=== TEST 100: next_upstream_statuses without an argument is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "next_upstream_statuses" directive



=== TEST 101: next_upstream_statuses with a block is refused
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 5xx { }
}
--- must_die
--- emerg
http.conf:3: directive "next_upstream_statuses" is not terminated by ";"



=== TEST 102: intercept_statuses 503 takes a 503
--- http
upstrand a {
    upstream bad;
    intercept_statuses 503 /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- answers: caught



=== TEST 103: intercept_statuses 5xx takes a 503
--- http
upstrand a {
    upstream bad;
    intercept_statuses 5xx /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- answers: caught



=== TEST 104: intercept_statuses 500-504 takes a 503
--- http
upstrand a {
    upstream bad;
    intercept_statuses 500-504 /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- answers: caught



=== TEST 105: intercept_statuses error takes no 503
--- http
upstrand a {
    upstream bad;
    intercept_statuses error /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- request
GET /t
--- error_code: 503
--- response_body
bad



=== TEST 106: intercept_statuses timeout takes no 503
--- http
upstrand a {
    upstream bad;
    intercept_statuses timeout /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- request
GET /t
--- error_code: 503
--- response_body
bad



=== TEST 107: intercept_statuses invalid_header takes no 503
--- http
upstrand a {
    upstream bad;
    intercept_statuses invalid_header /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- request
GET /t
--- error_code: 503
--- response_body
bad



=== TEST 108: intercept_statuses 4xx takes no 503
--- http
upstrand a {
    upstream bad;
    intercept_statuses 4xx /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- request
GET /t
--- error_code: 503
--- response_body
bad



=== TEST 109: intercept_statuses 502 takes no 503
--- http
upstrand a {
    upstream bad;
    intercept_statuses 502 /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- request
GET /t
--- error_code: 503
--- response_body
bad



=== TEST 110: intercept_statuses 504 takes no 503
--- http
upstrand a {
    upstream bad;
    intercept_statuses 504 /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- request
GET /t
--- error_code: 503
--- response_body
bad



=== TEST 111: intercept_statuses error takes a refused connection
--- http
upstrand a {
    upstream dead;
    intercept_statuses error /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- answers: caught



=== TEST 112: intercept_statuses 502 takes a refused connection
--- http
upstrand a {
    upstream dead;
    intercept_statuses 502 /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- answers: caught



=== TEST 113: intercept_statuses 5xx takes a refused connection
--- http
upstrand a {
    upstream dead;
    intercept_statuses 5xx /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- answers: caught



=== TEST 114: intercept_statuses takes several words in a line, a 200 among them
--- http
upstrand a {
    upstream u1;
    intercept_statuses 4xx 500-504 101 2xx timeout error invalid_header /f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- answers: caught



=== TEST 115: intercept_statuses ends with a named location
--- http
upstrand a {
    upstream bad;
    intercept_statuses 5xx @f;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location @f { return 200 "caught\n"; }
--- answers: caught



=== TEST 116: intercept_statuses ends with a URI with arguments
--- http
upstrand a {
    upstream bad;
    intercept_statuses 5xx /f?a=1&b=2;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "$uri:$arg_b\n"; }
--- answers: /f:2



=== TEST 117: variables in the URI are evaluated
--- http
upstrand a {
    upstream bad;
    intercept_statuses 5xx /f$uri?s=$request_method;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location /f { return 200 "$uri:$arg_s\n"; }
--- answers: /f/t:GET



=== TEST 118: the URI may be a variable
--- http
map $request_method $to { default /f; }
upstrand a {
    upstream bad;
    intercept_statuses 5xx $to;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "caught\n"; }
--- answers: caught



=== TEST 119: the first line that takes a status acts
--- http
upstrand a {
    upstream bad;
    intercept_statuses 502 504 /g;
    intercept_statuses 503 /f;
    intercept_statuses 5xx /g;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "first\n"; }
location = /g { return 200 "other\n"; }
--- answers: first



=== TEST 120: a word twice in a line of intercept_statuses is a warning
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx 404 5xx /f;
}
--- warning
http.conf:3: duplicate value "5xx"



=== TEST 121: a status that an earlier line covers by its class is a warning
--- http
upstrand a {
    upstream bad;
    intercept_statuses 5xx /f;
    intercept_statuses 404 503 /g;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "first\n"; }
location = /g { return 200 "other\n"; }
--- warning
http.conf:4: "503" is intercepted by an earlier "intercept_statuses"
--- answers: first



=== TEST 122: a word of an earlier line is a warning
--- http
upstrand a {
    upstream u1;
    intercept_statuses 404 500 /f;
    intercept_statuses 500 /g;
}
--- warning
http.conf:4: "500" is intercepted by an earlier "intercept_statuses"



=== TEST 123: a range that several earlier lines cover is a warning
--- http
upstrand a {
    upstream u1;
    intercept_statuses 500-502 /f;
    intercept_statuses 503 504 /g;
    intercept_statuses 501-504 /h;
}
--- warning
http.conf:5: "501-504" is intercepted by an earlier "intercept_statuses"



=== TEST 124: error, timeout, and invalid_header are covered by their statuses
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx /f;
    intercept_statuses error timeout invalid_header /g;
}
--- warning
http.conf:4: "error" is intercepted by an earlier "intercept_statuses"
http.conf:4: "timeout" is intercepted by an earlier "intercept_statuses"
http.conf:4: "invalid_header" is intercepted by an earlier "intercept_statuses"



=== TEST 125: invalid_header is covered by error
--- http
upstrand a {
    upstream u1;
    intercept_statuses error /f;
    intercept_statuses invalid_header /g;
}
--- warning
http.conf:4: "invalid_header" is intercepted by an earlier "intercept_statuses"



=== TEST 126: what an earlier line covers in part is no repetition
--- http
upstrand a {
    upstream bad;
    intercept_statuses 503 404 /f;
    intercept_statuses 4xx 5xx /g;
}
--- server
location /t { proxy_pass http://$upstrand_a; }
location = /f { return 200 "first\n"; }
--- answers: first



=== TEST 127: a 502 is not covered by error, nor a 504 by timeout
--- http
upstrand a {
    upstream u1;
    intercept_statuses error timeout /f;
    intercept_statuses 502 504 /g;
}
--- request
GET /t



=== TEST 128: a status that a class covers in the same line is no repetition
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx 503 /f;
}
--- request
GET /t



=== TEST 129: intercept_statuses "0" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 0 /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "0"



=== TEST 130: intercept_statuses "99" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 99 /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "99"



=== TEST 131: intercept_statuses "100" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 100 /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "100"



=== TEST 132: intercept_statuses "600" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 600 /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "600"



=== TEST 133: intercept_statuses "99999" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 99999 /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "99999"



=== TEST 134: intercept_statuses "50x" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 50x /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "50x"



=== TEST 135: intercept_statuses "20x" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 20x /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "20x"



=== TEST 136: intercept_statuses "5XX" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5XX /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "5XX"



=== TEST 137: intercept_statuses "1xx" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 1xx /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "1xx"



=== TEST 138: intercept_statuses "504-500" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 504-500 /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "504-500"



=== TEST 139: intercept_statuses "500-600" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 500-600 /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "500-600"



=== TEST 140: intercept_statuses "-504" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses -504 /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "-504"



=== TEST 141: intercept_statuses "frob" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses frob /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "frob"



=== TEST 142: intercept_statuses "http_502" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses http_502 /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "http_502"



=== TEST 143: intercept_statuses "non_idempotent" is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses non_idempotent /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "non_idempotent"



=== TEST 144: a wrong word after right ones is refused by intercept_statuses
--- http
upstrand a {
    upstream u1;
    intercept_statuses 404 5xx non_idempotent /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "non_idempotent"



=== TEST 145: two URIs are refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx /f /g;
}
--- must_die
--- emerg
http.conf:3: invalid value "/f"



=== TEST 146: "503" is no URI
--- http
upstrand a {
    upstream u1;
    intercept_statuses 502 503;
}
--- must_die
--- emerg
http.conf:3: invalid URI "503"



=== TEST 147: "5xx" is no URI
--- http
upstrand a {
    upstream u1;
    intercept_statuses 502 5xx;
}
--- must_die
--- emerg
http.conf:3: invalid URI "5xx"



=== TEST 148: "f" is no URI
--- http
upstrand a {
    upstream u1;
    intercept_statuses 502 f;
}
--- must_die
--- emerg
http.conf:3: invalid URI "f"



=== TEST 149: "f/g" is no URI
--- http
upstrand a {
    upstream u1;
    intercept_statuses 502 f/g;
}
--- must_die
--- emerg
http.conf:3: invalid URI "f/g"



=== TEST 150: "http://x/" is no URI
--- http
upstrand a {
    upstream u1;
    intercept_statuses 502 http://x/;
}
--- must_die
--- emerg
http.conf:3: invalid URI "http://x/"



=== TEST 151: "?x=1" is no URI
--- http
upstrand a {
    upstream u1;
    intercept_statuses 502 ?x=1;
}
--- must_die
--- emerg
http.conf:3: invalid URI "?x=1"



=== TEST 152: "error" is no URI
--- http
upstrand a {
    upstream u1;
    intercept_statuses 502 error;
}
--- must_die
--- emerg
http.conf:3: invalid URI "error"



=== TEST 153: a lone at sign is no URI
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx @;
}
--- must_die
--- emerg
http.conf:3: invalid URI "@"



=== TEST 154: an empty URI is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx "";
}
--- must_die
--- emerg
http.conf:3: invalid URI ""



=== TEST 155: an unknown variable in the URI is refused by nginx
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx /f/$nope;
}
--- must_die
--- emerg
- unknown "nope" variable



=== TEST 156: a lone dollar sign in the URI is refused by nginx
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx /f/$;
}
--- must_die
--- emerg
http.conf:3: invalid variable name



=== TEST 157: intercept_statuses with "5xx" alone is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "intercept_statuses" directive



=== TEST 158: intercept_statuses with "/f" alone is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses /f;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "intercept_statuses" directive



=== TEST 159: intercept_statuses with "@f" alone is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses @f;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "intercept_statuses" directive



=== TEST 160: intercept_statuses without an argument is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "intercept_statuses" directive



=== TEST 161: intercept_statuses with a block is refused
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx { }
}
--- must_die
--- emerg
http.conf:3: directive "intercept_statuses" is not terminated by ";"
