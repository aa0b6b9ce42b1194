# How a test file is read: headers, filters, and what is refused.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use Run;
use Test::More;


# Where the real Test::Base is at hand, it has to agree.

my $have_base = eval { require Test::Base::Filter; 1 };


# Prints the sections of all blocks instead of running them.

sub sections {
    my ($data, $code, $module) = @_;

    $module ||= 'Test::Nginx::Socket';

    my $res = run("use $module;\n" . ($code || '') . <<'EOC' . $data);
for my $block (blocks()) {
    print $block->name, ' (', $block->description, ')';
    for my $section (qw(a b c d)) {
        my $value = $block->$section;
        next if !defined $value;
        $value = 'ARRAY(' . join('|', @$value) . ')' if ref $value eq 'ARRAY';
        $value =~ s/\n/\\n/g;
        print " $section=[$value]";
    }
    print "\n";
}
__DATA__
EOC

    return $res->{bail} if defined $res->{bail};

    return join '', grep { /^\S+ \(/ || /^TEST / } $res->{out} =~ /^.*\n/mg;
}


sub reads {
    my ($data, $expected, $name, $code) = @_;

    is sections($data, $code), $expected, $name;

  SKIP: {
        skip 'no Test::Base', 1 if !$have_base;

        is sections($data, $code, 'Test::Base'), $expected,
           "$name, by Test::Base";
    }
}


sub refuses {
    my ($data, $expected, $name) = @_;

    like sections($data), $expected, $name;
}


reads "=== TEST 1: one\n--- a\nx\ny\n\n--- b: z\n=== two\ntext\n--- a\n",
      "TEST 1: one (TEST 1: one) a=[x\\ny\\n] b=[z]\ntwo (text) a=[]\n",
      'blocks, sections, a description';

reads "=== t\n--- a\n\n\n  x\n \n\n--- b:\n--- c: a: b\n",
      "t (t) a=[  x\\n] b=[] c=[a: b]\n", 'norm and trim';

reads "=== t\n--- a -trim\n\nx\n\n--- b chomp\ny\n--- c chop\nzz\n\n",
      "t (t) a=[\\nx\\n\\n] b=[y] c=[zz]\n", 'chomp, chop, -trim';

reads "=== t\n--- (a)\nx\n--- b eval: 1 + 1\n--- c unchomp: x\n",
      "t (t) a=[x\\n] b=[2] c=[x\\n]\n", 'parentheses, eval and unchomp';

reads "=== t\n--- a eval\n[1, 2]\n--- b lines array\nx\ny\n"
      . "--- c lines join=+\np\nq\n--- d split array: u v\n",
      "t (t) a=[ARRAY(1|2)] b=[ARRAY(x\\n|y\\n)] c=[p\\n+q\\n]"
      . " d=[ARRAY(u|v)]\n", 'arrays';

reads "=== t\n--- a base64_decode: aGFsbG8=\n--- b append=\\n: x\n",
      "t (t) a=[hallo] b=[x\\n]\n", 'base64_decode, an argument';

reads "=== t\n--- a eval\n__PACKAGE__ . \$::X\n",
      "t (t) a=[Test::Base::Filter!]\n",
      'eval runs where Test::Base runs it', 'our $X = "!";';

reads "=== t\n--- a twice\nx\n--- b swap\nx\n",
      "t (t) a=[x\\nx\\n] b=[y\\n]\n", 'filters of the file',
      'sub twice { "$_[0]$_[0]" } sub swap { s/x/y/ }';

reads "=== t\n--- a\nx\n--- b\ny\n",
      "t (t) a=[x] b=[y\\n]\n", 'filters() for a section',
      'filters { a => "chomp" };';

reads "=== one\n--- a: 1\n=== two\n--- ONLY\n--- a: 2\n=== three\n--- a: 3\n",
      "two (two) a=[2]\n", 'ONLY';

reads "=== one\n--- SKIP\n--- a: 1\n=== two\n--- a: 2\n--- LAST\n=== three\n",
      "two (two) a=[2]\n", 'SKIP and LAST';

reads "=== one\n--- a\n-----BEGIN KEY-----\nx\n",
      "one (one) a=[-----BEGIN KEY-----\\nx\\n]\n", 'a key is no header';

is run("use Test::Nginx::Socket;\nprint 'n=', blocks() * 2 + 1, \"\\n\";\n"
       . "__DATA__\n=== a\n=== b\n--- SKIP\n=== c\n--- a eval\ndie\n")->{out},
   "n=5\n", 'blocks() counts, without filters';

refuses "=== t\n--- a\n--- b\n--- a\n", qr/--- a is given twice/,
        'a section twice';

refuses "=== t\n--- a: x\ny\n", qr/Extra lines not allowed in 'a' section/,
        'lines under a one-line section';

refuses "=== t\n--- a\nx\n---b\ny\n", qr/broken header: "---b"/, '---b';
refuses "=== t\n--- a\nx\n --- b\ny\n", qr/broken header/, ' --- b';
refuses "=== t\n--- a\nx\n---\ny\n", qr/broken header/, '---';
refuses "=== t\n--- a\nx\n== TEST 2: b\ny\n", qr/broken header/, '== TEST';
refuses "=== t\n--- a\nx\n--- b", qr/broken header/, 'no newline at the end';
refuses "=== t\n--- a nofilter\nx\n", qr/'nofilter' filter of --- a/,
        'an unknown filter';
refuses "=== t\n--- a eval\ndie 'no'\n", qr/eval of --- a fails: no/,
        'eval that dies';
refuses "=== t\n--- a eval\n\$undeclared\n", qr/eval of --- a fails/,
        'eval under strict';
refuses "=== t\n--- a eval\n(1, 2)\n", qr/give 2 values/, 'a list';
refuses "=== t\n--- a eval\n()\n", qr/give 0 values/, 'nothing';
refuses "=== t\n--- a eval\nundef\n", qr/give undef/, 'undef';
refuses "=== t\n--- name: x\n", qr/reserved name/, 'a reserved name';


# Blocks that cannot be meant as they are.

my $base = "=== TEST 1: t\n--- config\nlocation /t { return 200 x; }\n";

for (
    ["--- reqest\nGET /t\n--- request\nGET /t\n",
     qr/unknown section: --- reqest/, 'an unknown section'],
    ['', qr/request empty/, 'no request'],
    ["--- request\nGET /t\n--- raw_request\nx\n",
     qr/only one of request raw_request/, 'two requests'],
    ["--- request\nGET /t\n--- response_body: x\n--- response_body_like: x\n",
     qr/only one of response_body response_body_like/, 'two checks of a body'],
    ["--- request\nGET /t\n--- error_code: 200\n--- error_code_like: 2\n",
     qr/only one of error_code error_code_like/, 'two checks of a code'],
    ["--- request\nGET /t\n--- ignore_response\n--- error_code: 200\n",
     qr/error_code has no effect with --- ignore_response/, 'ignore_response'],
    ["--- must_die\n--- response_body: x\n",
     qr/response_body has no effect with --- must_die/, 'must_die'],
    ["--- request\nGET /t\n--- error_log\n",
     qr/error_log has an empty element/, 'an empty error_log'],
    ["--- request\nGET /t\n--- no_error_log eval\n[]\n",
     qr/no_error_log has an empty element/, 'an empty array'],
    ["--- request\nGET /t\n--- response_body_like:\n",
     qr/response_body_like has an empty element/, 'an empty regex'],
    ["--- request\nGET /t\n--- grep_error_log: x\n",
     qr/need each other/, 'grep_error_log alone'],
    ["--- request\nGET /t\n--- response_body_filters: uc\n",
     qr/no check of the body/, 'filters without a check'],
    ["--- request\nGET /t\n--- tcp_listen: 1\n",
     qr/need each other/, 'tcp_listen alone'],
    ["--- request\nGET /t\n--- tcp_query: 1\n",
     qr/tcp_query without tcp_listen/, 'tcp_query alone'],
    ["--- request\nGET /\$TEST_NGINX_X\n",
     qr/\$TEST_NGINX_X is not expanded in --- request/,
     'a variable where it stays as it is'],
    ["--- request eval\n['GET /t', 'GET /t']\n--- response_body: x\n",
     qr/expected results should be arrays/, 'one body for two requests'],
    ["--- request eval\n['GET /t', 'GET /t']\n--- response_body eval: ['x']\n",
     qr/response_body must have 2 elements/, 'too few bodies'],
    ["--- request\nGET /t\n--- response_headers\nX-A\n",
     qr/response_headers: bad line "X-A"/, 'a header without a colon'],
    ["--- request\nGET /t\n--- response_headers\nX-A: 1\nx-a: 2\n",
     qr/or twice: "x-a"/, 'a header twice'],
    ["--- request\nGET /t\n--- more_headers\nX-A\n",
     qr/no colon in "X-A"/, 'more_headers without a colon'],
    ["--- request\nGET /t\n--- timeout: soon\n",
     qr/bad time value: soon/, 'a bad time'],
) {
    my ($sections, $expected, $name) = @$_;

    my $res = run_blocks("$base$sections");

    like $res->{bail} || $res->{out}, $expected, "refused: $name";
}

like run_blocks("=== TEST 1: t\n--- request\nGET /t\n")->{bail},
     qr/No '--- config' section/, 'refused: no config';

done_testing();
