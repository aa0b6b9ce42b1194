# The checks: how many there are, their names, and that they can fail.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Run;
use Test::More;

my $config = <<'EOC';
--- config
location /t {
    add_header X-One 1;
    add_header X-Two a;
    add_header X-Two b;
    return 200 "hello\nworld\n";
}
location /code { return 404 "no\n"; }
location /port { return 200 "$server_port"; }
EOC


# One block with these sections; the names of its tests without "TEST 1: t - "
# and with "not " before those that fail.

sub tests {
    my ($sections, %env) = @_;

    my $res = run_blocks("=== TEST 1: t\n$config$sections", %env);

    return $res->{bail} if defined $res->{bail};

    return join "\n", map { s/^((?:not )?)ok \d+ - TEST 1: t - /$1/; $_ }
                      grep { /^(?:not )?ok / } split /\n/, $res->{out};
}

my $body_ok = 'response_body - response is expected'
              . ' (repeated req 0, req 0)';


is tests("--- request\nGET /t\n"), 'status code ok', 'a status by default';
is tests("--- request\nGET /code\n"), 'not status code ok', '... of 200';
is tests("--- request\nGET /code\n--- error_code: 404\n"), 'status code ok',
   'error_code';
is tests("--- request\nGET /t\n--- error_code: 404\n"), 'not status code ok',
   'error_code fails';
is tests("--- request\nGET /t\n--- error_code_like: ^2\\d+\$\n"),
   'status code ok', 'error_code_like';
is tests("--- request\nGET /code\n--- error_code_like: ^2\\d+\$\n"),
   'not status code ok', 'error_code_like fails';

is tests("--- request\nGET /t\n--- response_body\nhello\nworld\n"),
   "status code ok\n$body_ok", 'response_body';
is tests("--- request\nGET /t\n--- response_body\nhello\nworlds\n"),
   "status code ok\nnot $body_ok", 'response_body fails';
is tests("--- request\nGET /t\n--- response_body chop\nhello\nworld\n"),
   "status code ok\nnot $body_ok", 'the last newline counts';
is tests("--- request\nGET /port\n--- response_body chop\n\$ServerPort\n"),
   "status code ok\n$body_ok", '$ServerPort';
is tests("--- request\nGET /t\n--- response_body eval\nqr/hello.world/s\n"),
   "status code ok\n"
   . 'response_body - like (repeated req 0, req 0)', 'response_body qr//';
is tests("--- request\nGET /t\n--- response_body eval\nqr/goodbye/\n"),
   "status code ok\n"
   . 'not response_body - like (repeated req 0, req 0)', '... fails';

is tests("--- request\nGET /t\n--- response_body_like: ^hello.*world\$\n"),
   "status code ok\n"
   . 'response_body_like - response is expected (hello\nworld)',
   'response_body_like';
is tests("--- request\nGET /t\n--- response_body_like\n^hello\$\n"),
   "status code ok\nnot response_body_like - response is expected"
   . ' (hello\nworld)', 'response_body_like fails';
is tests("--- request\nGET /t\n--- response_body_unlike: goodbye\n"),
   "status code ok\n"
   . 'response_body_unlike - response is expected (hello\nworld)',
   'response_body_unlike';
is tests("--- request\nGET /t\n--- response_body_unlike: wor\n"),
   "status code ok\nnot response_body_unlike - response is expected"
   . ' (hello\nworld)', 'response_body_unlike fails';

is tests("--- request\nGET /t\n--- response_body_filters: uc\n"
         . "--- response_body\nHELLO\nWORLD\n"),
   "status code ok\n$body_ok", 'response_body_filters';
is tests("--- request\nGET /t\n--- response_body_filters eval\n"
         . "[sub { \$_[0] =~ tr/o/0/r }, \\&CORE::length]\n"
         . "--- response_body chop\n12\n"),
   "status code ok\n$body_ok", 'response_body_filters with code';
is tests("--- request\nGET /t\n--- response_body_filters: md5_hex\n"
         . "--- response_body chop\n0f723ae7f9bf07744445e93ac5595156\n"),
   "status code ok\n$body_ok", 'md5_hex';

is tests("--- request\nGET /t\n--- response_headers\nX-One: 1\nX-Two: a, b\n"
         . "! X-Three\n"),
   "status code ok\nheader X-One ok\nheader X-Two ok\n"
   . 'header X-Three not present in the raw headers', 'response_headers';
is tests("--- request\nGET /t\n--- response_headers\nX-One: 2\n! X-Two\n"),
   "status code ok\nnot header X-One ok\n"
   . 'not header X-Two not present in the raw headers', '... fail';
is tests("--- request\nGET /t\n--- response_headers\nX-Three:\n"),
   "status code ok\nheader X-Three ok", 'an absent header is empty';
is tests("--- request\nGET /t\n--- response_headers_like\nX-One: \\d\n"),
   "status code ok\nheader X-One like ok", 'response_headers_like';
is tests("--- request\nGET /t\n--- response_headers_like\nX-Two: a\n"),
   "status code ok\nnot header X-Two like ok",
   'response_headers_like is anchored';
is tests("--- request\nGET /t\n--- raw_response_headers_like: X-Two: a\\r\\n\n"
         . "--- raw_response_headers_unlike: X-Three\n"),
   "status code ok\nraw resp headers like\nraw resp headers unlike",
   'raw_response_headers_like, _unlike';
is tests("--- request\nGET /t\n--- raw_response_headers_like: X-Three\n"
         . "--- raw_response_headers_unlike: X-Two\n"),
   "status code ok\nnot raw resp headers like\nnot raw resp headers unlike",
   '... fail';

is tests("--- request\nGET /t\n--- no_error_log\n[error]\n"
         . "--- response_body_like: .\n--- error_code: 200\n"
         . "--- response_headers\nX-One: 1\n--- error_log\nGET /t HTTP/1.1\n"
         . "--- raw_response_headers_like: .\n"),
   "status code ok\nraw resp headers like\nheader X-One ok\n"
   . "response_body_like - response is expected (hello\\nworld)\n"
   . "pattern \"GET /t HTTP/1.1\" matches a line in error.log (req 0)\n"
   . 'pattern "[error]" does not match a line in error.log (req 0)',
   'the order of checks';

is tests("--- request\nGET /t\n--- ignore_response\n"), '',
   'ignore_response: nothing is checked';

is tests("--- request\nGET /t\n", code => 'repeat_each(3);'),
   join("\n", ('status code ok') x 3), 'repeat_each';

is tests("--- request eval\n['GET /t', 'GET /code']\n"
         . "--- error_code eval\n[200, 404]\n"
         . "--- response_body eval\n[qr/hello/, \"no\\n\"]\n"),
   "status code ok\nresponse_body - like (repeated req 0, req 0)\n"
   . "status code ok\nresponse_body - response is expected"
   . ' (repeated req 0, req 1)', 'several requests';

is tests("--- request eval\n['GET /t']\n--- response_body_like: hello\n"),
   "status code ok\nresponse_body_like - response is expected"
   . ' (hello\nworld)', 'an array of one request needs no arrays';

is tests("--- pipelined_requests eval\n['GET /t', 'GET /code']\n"
         . "--- error_code eval\n[200, 200]\n"
         . "--- response_headers eval\n[\"X-One: 1\\nConnection: keep-alive\","
         . " 'Connection: close']\n"),
   "status code ok\nheader X-One ok\nheader Connection ok\n"
   . "not status code ok\nheader Connection ok", 'pipelined requests';

is tests("--- request\nGET /t\n",
         code => 'add_response_body_check(sub { is $_[1], "x", "mine" });'),
   "status code ok\nnot ok 2 - mine", 'add_response_body_check';

is tests("--- where: code\n",
         code => 'add_block_preprocessor(sub { my $block = shift;'
                 . ' $block->set_value(request => "GET /" . $block->where)'
                 . ' if !defined $block->request });'),
   'not status code ok', 'a preprocessor with a section of its own';


# Plans.

my $block = "=== TEST 1: t\n$config--- request\nGET /t\n"
            . "--- response_body_like: hello\n--- no_error_log\n[error]\n";
(my $second = $block) =~ s/1/2/;

my $res = run("use Test::Nginx::Socket;\nrepeat_each(2);\n"
              . "plan tests => repeat_each() * (blocks() * 3);\n"
              . "run_tests();\n__DATA__\n$block\n$second");

is $res->{exit}, 0, 'plan tests => ...';
is @{ $res->{ok} }, 12, 'repeat_each * blocks * 3';

$res = run("use Test::Nginx::Socket tests => 3;\nrun_tests();\n"
           . "__DATA__\n$block");

is $res->{exit}, 0, 'use ... tests => 3';

$res = run("use Test::Nginx::Socket tests => 4;\nrun_tests();\n"
           . "__DATA__\n$block");

isnt $res->{exit}, 0, 'a plan of one too many fails';

$res = run("use Test::Nginx::Socket skip_all => 'no reason';\nrun_tests();\n"
           . "__DATA__\n$block");

is $res->{plan}, '0 # SKIP no reason', 'skip_all';

$res = run("use Test::Nginx::Socket 'no_plan';\nnote('x');\n");

like $res->{out}, qr/Undefined subroutine &main::note/,
     'no more is exported than by the original';

$res = run("use Test::Nginx::Socket;\n\$x = 1;\n");

like $res->{out}, qr/Global symbol "\$x"/, 'test files are under strict';

for my $section ('must_die', "tcp_listen: 1\n--- tcp_reply: x\n"
                             . '--- tcp_query: x')
{
    $res = run("use Test::Nginx::Socket tests => 1;\nrun_tests();\n"
               . "__DATA__\n=== TEST 1: t\n--- config\n--- request\nGET /\n"
               . "--- $section\n");

    like $res->{bail}, qr/needs the plan 'no_plan'/,
         "a number of checks that is not sure needs no_plan";
}


# Skipping.

is tests("--- request\nGET /t\n--- skip_nginx: 3: > 0.1.0\n",
         code => 'repeat_each(2);'),
   join("\n", map { "ok $_ # skip TEST 1: t - nginx version > 0.1.0" } 1 .. 6),
   'skip_nginx, for every repetition';
is tests("--- request\nGET /t\n--- skip_nginx: 3: < 0.1.0\n"),
   'status code ok', 'skip_nginx does not apply';
is tests("--- request\nGET /t\n--- skip_nginx: 1: >= 0.1.0: too new\n"),
   'ok 1 # skip TEST 1: t - too new', 'skip_nginx with a reason';
is tests("--- request\nGET /t\n--- skip_nginx: < 0.1.0\n"),
   'TEST 1: t - Invalid --- skip_nginx spec: < 0.1.0', 'a bad skip_nginx';
is tests("--- request\nGET /t\n--- skip_eval: 2: 1 + 1 == 2\n"),
   join("\n", map { "ok $_ # skip TEST 1: t - skip_eval" } 1 .. 2),
   'skip_eval';
is tests("--- request\nGET /t\n--- skip_eval: 2: 0\n"), 'status code ok',
   'skip_eval does not apply';

done_testing();
