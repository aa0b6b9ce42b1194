# tcp_listen: a server for one connection.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Run;
use Test::More;

my $port = free_port();

my $block = <<"EOC";
=== TEST 1: t
--- config
location /t {
    proxy_pass http://127.0.0.1:$port;
    proxy_http_version 1.0;
    proxy_set_header Host \$proxy_host;
    proxy_set_header Connection close;
    proxy_read_timeout 1s;
}
--- tcp_listen: $port
--- request
GET /t
EOC


sub tests {
    my ($sections, %env) = @_;

    my $res = run_blocks("$block$sections", %env);

    return $res->{bail} if defined $res->{bail};

    return join "\n", map { s/^((?:not )?)ok \d+ - TEST 1: t - /$1/; $_ }
                      grep { /^(?:not )?ok / } split /\n/, $res->{out};
}

my $reply = '--- tcp_reply eval' . "\n"
            . '"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"' . "\n";
my $body = "--- response_body chop\nhi\n";
my $body_ok = 'status code ok' . "\n" . 'response_body - response is expected'
              . ' (repeated req 0, req 0)';

my $query = "GET /t HTTP/1.0\\r\\nHost: 127.0.0.1:$port\\r\\n"
            . "Connection: close\\r\\n\\r\\n";
my $length = length eval "\"$query\"";

is tests("$reply$body"), $body_ok, 'tcp_reply';

is tests("--- tcp_reply eval\n"
         . '["HTTP/1.0 200 OK\r\n", "Content-Length: 2\r\n", "\r\nhi"]'
         . "\n$body"), $body_ok, 'tcp_reply of parts';

is tests("--- tcp_reply eval\n"
         . 'sub { "HTTP/1.0 200 OK\r\n\r\n" . ($_[0] =~ /GET (..)/)[0] }'
         . "\n--- response_body chop\n/t\n"), $body_ok, 'tcp_reply of code';

is tests("$reply$body--- tcp_query eval\n\"$query\"\n"),
   "$body_ok\ntcp_query ok", 'tcp_query';

is tests("$reply$body--- tcp_query eval\n\"X$query\"\n"
         . "--- tcp_query_len: $length\n"),
   "$body_ok\nnot tcp_query ok\nTCP query length ok", 'tcp_query fails';

is tests("$reply$body--- tcp_query eval\nqr/^Connection: close/m\n"
         . "--- tcp_query_len: $length\n"),
   "$body_ok\ntcp_query ok\nTCP query length ok", 'tcp_query qr//';

is tests("$reply$body--- tcp_no_close\n"), $body_ok, 'tcp_no_close';

is tests("$reply--- tcp_reply_delay: 1.3s\n--- error_code: 504\n"),
   'status code ok', 'tcp_reply_delay';

# the second connection is refused

is tests("$reply--- request eval\n['GET /t', 'GET /t']\n"
         . "--- error_code eval\n[200, 502]\n"),
   "TEST 1: t - section --- request is given twice", 'a section twice';

(my $twice = $block) =~ s/--- request\nGET .*\n//;

my $res = run_blocks("$twice$reply--- request eval\n['GET /t', 'GET /t']\n"
                     . "--- error_code eval\n[200, 502]\n");

is $res->{exit}, 0, 'one connection only' or diag $res->{out};

is tests("$reply", code => 'repeat_each(2);'),
   'TEST 1: t - tcp_listen needs repeat_each(1)', 'repeat_each';

my $root = server_root();

(my $unix = $block) =~ s/127.0.0.1:$port/unix:$root\/html\/a.sock:/;
$unix =~ s/tcp_listen: $port/tcp_listen eval: ::html_dir() . "\/a.sock"/;

$res = run_blocks("$unix$reply$body");

is $res->{exit}, 0, 'a unix socket' or diag $res->{out};

done_testing();
