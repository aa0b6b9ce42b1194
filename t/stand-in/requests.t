# What goes to nginx and how responses are taken apart.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";
use lib $FindBin::Bin;
use Run;
use Test::More;
use Test::Nginx::StandIn::Client;
use Test::Nginx::StandIn::Request;


sub packets {
    my ($headers, @packets) = @_;

    my $list = Test::Nginx::StandIn::Request::build('t', $headers, 'close',
                                                    @packets);

    return join '|', map { $_->{value} =~ s/\r/\\r/gr } @$list;
}


my $common = "Host: localhost\\r\nConnection: close\\r\n";

is packets('', "GET /t\n"), "GET /t HTTP/1.1\\r\n$common\\r\n", 'a request';
is packets('', "GET\n"), "GET / HTTP/1.1\\r\n$common\\r\n", 'without a URL';
is packets('', 'GET  /t  HTTP/1.0'), "GET /t HTTP/1.0\\r\n$common\\r\n",
   'HTTP/1.0';
is packets('', "POST /t\n a\nb \n\n"),
   "POST /t HTTP/1.1\\r\n${common}Content-Length: 3\\r\n\\r\na\nb",
   'a body, trimmed';
is packets("Content-Length: 2\n", "POST /t\na\n"),
   "POST /t HTTP/1.1\\r\n${common}Content-Length: 2\\r\n\\r\na\n",
   'a body of a length given';
is packets("Transfer-Encoding: chunked\n", "POST /t\n0\r\n\r\n"),
   "POST /t HTTP/1.1\\r\n${common}Transfer-Encoding: chunked\\r\n\\r\n"
   . "0\\r\n\\r\n", 'a chunked body';
is packets("X-A:  1\n# no\nX-B:\n", 'GET /t'),
   "GET /t HTTP/1.1\\r\n${common}X-A: 1\\r\nX-B: \\r\n\\r\n", 'more_headers';
is packets("host: a.com\nConnection: keep-alive\n", 'GET /t'),
   "GET /t HTTP/1.1\\r\nhost: a.com\\r\nConnection: keep-alive\\r\n\\r\n",
   'Host and Connection are replaced';
is packets('', "POST /t\nab", 'cd', { value => 'ef', delay_before => 1 }),
   "POST /t HTTP/1.1\\r\n${common}Content-Length: 6\\r\n\\r\nab|cd|ef",
   'packets of a body';
is packets('', "POST /t\n", 'ab'),
   "POST /t HTTP/1.1\\r\n${common}Content-Length: 2\\r\n\\r\n|ab",
   'packets: header and body';
is packets('', 'GE', 'T /', "t\n"), "GE|T /|t HTTP/1.1\\r\n$common\\r\n",
   'packets of a request line';


sub parsed {
    my ($raw, $head) = @_;

    my ($res, $left, $error)
        = Test::Nginx::StandIn::Client::parse_response('t', $raw, $head);

    return $error if !$res;

    return "$res->{code}|$res->{content}|$left";
}


is parsed("HTTP/1.1 200 OK\r\nA: 1\r\n\r\nabc"), '200|abc|', 'up to the end';
is parsed("HTTP/1.1 404\r\n\r\n"), '404||', 'no reason, no header, no body';
is parsed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc"), '200|ab|c',
   'Content-Length';
is parsed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHTTP", 1),
   '200||HTTP', 'HEAD';
is parsed("HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n"), '304||',
   'status 304';
is parsed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          . "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nrest"),
   '200|abc0123456789|rest', 'chunks';
is parsed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab"),
   'invalid chunked data received (not enough octets for the data section)',
   'a broken chunk';
is parsed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
   'invalid chunked data received (no last chunk)', 'no last chunk';
is parsed(''), '||', 'nothing';
is parsed("HTTP/1.1 200 OK\r\nContent-Le"), "|HTTP/1.1 200 OK\r\nContent-Le|",
   'half of a header';


# Over the wire.

my $config = <<'EOC';
=== TEST 1: t
--- config
location /t {
    return 200 "$request_method $request_uri $http_host $http_x_a $host\n";
}
location /keep { return 200 "kept\n"; }
location /close { return 444; }
EOC

for (
    ["--- raw_request eval\n\"GET /t HTTP/1.0\\r\\nX-A: 1\\r\\n\\r\\n\"\n"
     . "--- response_body\nGET /t  1 localhost\n", 'raw_request'],
    ["--- raw_request eval\n[\"GET /t HT\", \"TP/1.0\\r\\nX-A: 1\\r\\n\\r\\n\"]"
     . "\n--- raw_request_middle_delay: 10ms\n"
     . "--- response_body\nGET /t  1 localhost\n", 'raw_request in packets'],
    ["--- raw_request eval\n\"GET /t\\r\\n\\r\\n\"\n--- ignore_response\n"
     . "--- error_log\nhttp request line: \"GET /t\"\n",
     'HTTP/0.9'],
    ["--- request\nHEAD /t\n--- response_body:\n"
     . "--- response_headers_like\nContent-Length: \\d+\n", 'HEAD'],
    ["--- request\nGET /t\n--- more_headers\nHost: a.com\nX-A: b\n"
     . "--- response_body\nGET /t a.com b a.com\n", 'more_headers'],
    ["--- request eval\n[['GET /', {value => \"t\\n\", delay_before => 0.01}],"
     . " 'HEAD /t']\n--- more_headers eval\n['X-A: 1', 'X-A: 2']\n"
     . "--- response_body eval\n[\"GET /t localhost 1 localhost\\n\", '']\n",
     'packets and more_headers of each request'],
    ["--- pipelined_requests eval\n['GET /t', 'GET /t?a']\n"
     . "--- more_headers eval\n['X-A: 1', 'X-A: 2']\n"
     . "--- response_body eval\n[\"GET /t localhost 1 localhost\\n\","
     . " \"GET /t?a localhost 2 localhost\\n\"]\n", 'pipelined requests'],
    ["--- request\nGET /close\n--- error_code:\n", 'no response'],
    ["--- request\nGET /t\n--- http_config\n"
     . "server { listen 127.0.0.1:\$TEST_NGINX_RAND_PORT_2; }\n"
     . "server { listen 127.0.0.1:\$TEST_NGINX_RAND_PORT_3; }\n",
     'random ports differ'],
    ["--- request\nGET /f.txt\n--- user_files\n>>> f.txt 201001010000.00\n"
     . "\$TEST_NGINX_Y\n>>> d/g.txt\n--- response_body\nwhy\n"
     . "--- response_headers\n"
     . "Last-Modified: Fri, 01 Jan 2010 00:00:00 GMT\n", 'user_files'],
    ["--- request\nGET /f.txt\n--- user_files eval\n[['f.txt', 'x']]\n"
     . "--- response_body chop\nxx\n--- response_body_filters eval\n"
     . "sub { \$_[0] x 2 }\n", 'user_files as an array'],
    ["--- request\nGET /v\n--- config\nlocation /v { return 200 "
     . "\$TEST_NGINX_SERVER_PORT:\$TEST_NGINX_Y; }\n"
     . "--- response_body_like: ^\\d+:why\$\n", 'the environment'],
) {
    my ($sections, $name) = @$_;

    my $head = $sections =~ /^--- config/m ? "=== TEST 1: t\n" : $config;
    my $res = run_blocks("$head$sections", TEST_NGINX_Y => 'why');

    ok $res->{exit} == 0 && $res->{out} !~ /WARNING|Bail|not ok/, $name
        or diag $res->{out};
}


# A response that does not end: what has come so far is what is checked.

my $res = run_blocks("$config--- request\nGET /keep\n--- more_headers\n"
                     . "Connection: keep-alive\n--- timeout: 200ms\n"
                     . "--- response_body\nkept\n");

is $res->{exit}, 0, 'a connection kept open';
like $res->{out}, qr/ERROR: client socket timed out - TEST 1: t/,
     'a timeout is told';

$res = run_blocks("$config--- request\nGET /keep\n--- more_headers\n"
                  . "Connection: keep-alive\n--- timeout: 0.2\n--- abort\n"
                  . "--- ignore_response\n--- no_error_log\n[error]\n"
                  . "--- wait: 0.01\n");

is $res->{exit}, 0, 'abort' or diag $res->{out};
unlike $res->{out}, qr/timed out/, '... is no error';

$res = run_blocks("=== TEST 1: t\n--- config\nlocation \$TEST_NGINX_NO { }\n"
                  . "--- request\nGET /t\n");

is $res->{bail}, 'No environment TEST_NGINX_NO defined.',
   'an unknown variable of the environment';

done_testing();
