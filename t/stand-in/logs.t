# error_log, no_error_log, grep_error_log.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Run;
use Test::More;

# of a missing file the root location logs an error with its name

my $config = <<'EOC';
--- config
location /t { return 200 x; }
EOC


sub tests {
    my ($sections, %env) = @_;

    my $res = run_blocks("=== TEST 1: t\n$config--- ignore_response\n"
                         . $sections, %env);

    return $res->{bail} if defined $res->{bail};

    return join "\n", map { s/^((?:not )?)ok \d+ - TEST 1: t - /$1/; $_ }
                      grep { /^(?:not )?ok / } split /\n/, $res->{out};
}


is tests("--- request\nGET /missing\n--- error_log\nmissing\" failed\n[error]\n"
         . "\nnot there\n"),
   "pattern \"missing\" failed\" matches a line in error.log (req 0)\n"
   . "pattern \"[error]\" matches a line in error.log (req 0)\n"
   . 'not pattern "not there" should match a line in error.log (req 0)',
   'a check for every line of error_log';

is tests("--- request\nGET /missing\n--- error_log eval\n"
         . "[qr/open\\(\\).*missing/, 'miss.ng']\n"),
   "pattern \"(?^:open\\(\\).*missing)\" matches a line in error.log (req 0)\n"
   . 'not pattern "miss.ng" should match a line in error.log (req 0)',
   'qr// and text';

is tests("--- request\nGET /missing\n--- error_log eval\nqr/missing/\n"),
   'pattern "(?^:missing)" matches a line in error.log (req 0)', 'one qr//';

like tests("--- request\nGET /missing\n--- no_error_log\n[error]\n[alert]\n"),
     qr/\Anot\ pattern\ "\[error\]"\ should\ not\ match\ any\ line\ in
        \ error.log\ but\ matches\ line\ "\d.*missing.*\\n"\ \(req\ 0\)\n
        pattern\ "\[alert\]"\ does\ not\ match\ a\ line\ in\ error.log
        \ \(req\ 0\)\z/x,
     'a check for every line of no_error_log';

like tests("--- request\nGET /missing\n--- no_error_log eval\n"
           . "[qr/m[i]ssing/]\n"),
     qr/\Anot pattern/, 'no_error_log qr//';

is tests("--- request\nGET /missing\n--- grep_error_log eval\nqr/open\\(\\)/\n"
         . "--- grep_error_log_out\nopen()\n"),
   'grep_error_log_out (req 0)', 'grep_error_log';

is tests("--- request\nGET /missing\n--- grep_error_log chop\nfailed (2\n"
         . "--- grep_error_log_out\nfailed (2\nfailed (2\n"),
   'not grep_error_log_out (req 0)', 'grep_error_log fails';

is tests("--- request\nGET /t\n--- grep_error_log: [error]\n"
         . "--- grep_error_log_out\n"),
   'grep_error_log_out (req 0)', 'nothing is in the log';

is tests("--- request\nGET /missing\n--- grep_error_log: [error]\n"
         . "--- grep_error_log_out eval\n[\"[error]\\n\", '']\n",
         code => 'repeat_each(2);'),
   "grep_error_log_out (req 0)\nnot grep_error_log_out (req 1)",
   'outputs of repeated requests';

like tests("--- request\nGET /missing\n--- grep_error_log: i\n"
           . "--- grep_error_log_out: x\n"),
     qr/grep_error_log matches twice in one line/, 'an ambiguous grep';


# A block sees what was logged since it started, a repetition what was logged
# since the one before.

my $res = run_blocks(<<"EOC");
=== TEST 1: first
$config--- request
GET /missing
--- error_code: 404
--- error_log
missing

=== TEST 2: second
$config--- request
GET /t
--- no_error_log
missing
EOC

is $res->{exit}, 0, 'the log of another block' or diag $res->{out};

my $start = 'using the "epoll" event method';

is tests("--- request\nGET /t\n--- error_log\n$start\n",
         code => 'repeat_each(2);'),
   "pattern \"$start\" matches a line in error.log (req 0)\n"
   . "not pattern \"$start\" should match a line in error.log (req 1)",
   'the start belongs to the first repetition';

is tests("--- request\nGET /t\n--- error_log\n$start\n",
         code => 'repeat_each(2); check_accum_error_log();'),
   "pattern \"$start\" matches a line in error.log (req 0)\n"
   . "pattern \"$start\" matches a line in error.log (req 1)",
   'check_accum_error_log';

is tests("--- request\nGET /t\n--- error_log\n$start\n--- log_level: warn\n"),
   "not pattern \"$start\" should match a line in error.log (req 0)",
   'log_level of a block';

like run_blocks("=== TEST 1: t\n$config--- request\nGET /t\n--- init\n"
                . "open my \$f, '>', \"$FindBin::Bin/none/x\" or die 'boo'\n")
     ->{bail}, qr/init failed: boo/, 'init';

done_testing();
