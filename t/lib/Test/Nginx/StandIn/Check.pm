package Test::Nginx::StandIn::Check;

# The checks of a block, in the order and with the number of "ok" lines of the
# original: plans of test files are computed from that number.

use strict;
use warnings;

use Digest::MD5 ();
use Digest::SHA ();
use Test::More ();
use Test::Nginx::StandIn::Client ();
use Test::Nginx::StandIn::Server ();
use Test::Nginx::Util 'bail_out';

# why the checks of this block are skipped, if they are
our $DryRun;

my %body_filters = (
    md5_hex    => \&Digest::MD5::md5_hex,
    sha1_hex   => \&Digest::SHA::sha1_hex,
    sha256_hex => \&Digest::SHA::sha256_hex,
    uc         => sub { uc $_[0] },
    lc         => sub { lc $_[0] },
    ucfirst    => sub { ucfirst $_[0] },
    lcfirst    => sub { lcfirst $_[0] },
    length     => sub { length $_[0] },
);


# One "ok" line: a comparison, or one skipped test.

sub check {
    my ($name, $what, $compare, @args) = @_;

  SKIP: {
        Test::More::skip("$name - $what - tests skipped due to $DryRun", 1)
            if $DryRun;

        $compare->(@args);
    }
}


# An expectation for request $i of $n.

sub indexed {
    my ($block, $section, $i, $n) = @_;

    my $value = $block->$section;

    return $value if ref $value ne 'ARRAY' && $n == 1;

    my $name = $block->name;

    if (ref $value ne 'ARRAY') {
        bail_out("$name - You asked for many requests, the expected results"
                 . " should be arrays as well (--- $section)");
    }

    if (@$value != $n) {
        bail_out("$name - --- $section must have $n elements, as requests");
    }

    return $value->[$i];
}


sub response {
    my ($block, $res, $i, $n, $repeated) = @_;

    error_code($block, $res, $i, $n);
    raw_headers($block, $res, $i, $n);
    headers($block, $res, $i, $n);
    body($block, $res, $i, $n, $repeated);
}


sub error_code {
    my ($block, $res, $i, $n) = @_;

    my $name = $block->name;
    my $code = $res ? $res->{code} : '';
    my $what = "$name - status code ok";

    if (defined $block->error_code_like) {
        my $expected = indexed($block, 'error_code_like', $i, $n);

        check($name, 'error_code_like', \&Test::More::like, $code,
              qr/$expected/sm, $what);
        return;
    }

    my $expected = defined $block->error_code
                   ? indexed($block, 'error_code', $i, $n) : 200;

    check($name, 'error_code', \&Test::More::is, $code, $expected, $what);
}


sub raw_headers {
    my ($block, $res, $i, $n) = @_;

    my $name = $block->name;
    my $raw = $res ? $res->{raw_headers} : '';

    for my $type ('like', 'unlike') {
        my $section = "raw_response_headers_$type";

        next if !defined $block->$section;

        my $expected = indexed($block, $section, $i, $n);

        check($name, $section, Test::More->can($type), $raw, qr/$expected/s,
              "$name - raw resp headers $type");
    }
}


sub headers {
    my ($block, $res, $i, $n) = @_;

    my $name = $block->name;

    for my $section ('response_headers', 'response_headers_like') {
        next if !defined $block->$section;

        for (expected_headers($block, $section, $i, $n)) {
            my ($key, $expected) = @$_;

            if (!defined $expected) {
                check($name, $section, \&Test::More::unlike,
                      $res ? $res->{raw_headers} : '', qr/^\s*\Q$key\E\s*:/ms,
                      "$name - header $key not present in the raw headers");
                next;
            }

            my $value = $res
                        ? Test::Nginx::StandIn::Client::header($res, $key)
                        : undef;

            $value = '' if !defined $value;

            if ($section eq 'response_headers') {
                check($name, $section, \&Test::More::is, $value,
                      ports($expected), "$name - header $key ok");

            } else {
                check($name, $section, \&Test::More::like, $value,
                      qr/^$expected$/, "$name - header $key like ok");
            }
        }
    }
}


# "Name: value" lines, or "! Name" where the header must be absent.  The
# original keeps them in a hash, so one name cannot be checked twice.

sub expected_headers {
    my ($block, $section, $i, $n) = @_;

    my $name = $block->name;
    my (@list, %seen);

    my $text = indexed($block, $section, $i, $n);

    for my $line (split /\n/, defined $text ? $text : '') {
        $line =~ s/^\s+|\s+$//g;

        my ($key, $value);

        if ($line =~ s/^!\s+// && $section eq 'response_headers') {
            $key = $line;

        } else {
            ($key, $value) = split /\s*:\s*/, $line, 2;
            bail_out("$name - $section: bad line \"$line\"")
                if !defined $value;
        }

        if ($key eq '' || $key =~ /[\s:]/ || $seen{lc $key}++) {
            bail_out("$name - $section: bad header name, or twice: \"$key\"");
        }

        push @list, [$key, $value];
    }

    return @list;
}


sub body {
    my ($block, $res, $i, $n, $repeated) = @_;

    my $name = $block->name;
    my $content = $res ? $res->{content} : undef;

    if (defined $content && defined $block->response_body_filters
        && !$DryRun)
    {
        $content = filter_body($block, $content);
    }

    if (defined $block->response_body) {
        my $expected = indexed($block, 'response_body', $i, $n);

        if (ref $expected) {
            check($name, 'response_body', \&Test::More::like, $content,
                  $expected, "$name - response_body - like"
                  . " (repeated req $repeated, req $i)");

        } else {
            check($name, 'response_body', \&same_text, $content,
                  ports($expected), "$name - response_body - response is"
                  . " expected (repeated req $repeated, req $i)");
        }
    }

    for my $type ('like', 'unlike') {
        my $section = "response_body_$type";

        next if !defined $block->$section;

        my $pattern = indexed($block, $section, $i, $n);

        $pattern = ports($pattern) if !ref $pattern;

        my $summary = defined $content ? $content : '';

        $summary =~ s/^\s+|\s+$//g;
        $summary = one_line($summary);

        check($name, $section, Test::More->can($type), $content,
              qr/$pattern/s,
              "$name - $section - response is expected ($summary)");
    }

    for my $check (@Test::Nginx::Util::ResponseBodyChecks) {
        $check->($block, $content, $i, $repeated, $DryRun);
    }
}


sub filter_body {
    my ($block, $content) = @_;

    my $filters = $block->response_body_filters;

    my @filters = ref $filters eq 'ARRAY' ? @$filters
                : ref $filters            ? $filters
                :                           split ' ', $filters;

    for my $filter (@filters) {
        my $code = ref $filter eq 'CODE' ? $filter : $body_filters{$filter};

        if (!$code) {
            bail_out($block->name . " - unknown response body filter $filter");
        }

        $content = $code->($content);
    }

    return $content;
}


sub ports {
    my ($text) = @_;

    return $text if !defined $text;

    my %ports = (
        ServerPort          => $Test::Nginx::Util::ServerPort,
        ServerPortForClient => $Test::Nginx::Util::ServerPortForClient,
    );

    $text =~ s/\$(ServerPort(?:ForClient)?)\b/$ports{$1}/g;

    return $text;
}


# Of long texts show where they part.

sub same_text {
    my ($got, $expected, $name) = @_;

    if ($Test::Nginx::Util::NoLongString || !defined $got
        || !defined $expected || length "$got$expected" < 200)
    {
        Test::More::is($got, $expected, $name);
        return;
    }

    return if Test::More::ok($got eq $expected, $name);

    my $same = 0;
    my $from = "$got" ^ "$expected";

    $same = length $1 if $from =~ /\A(\0+)/;

    my $start = $same > 20 ? $same - 20 : 0;

    Test::More::diag(
        sprintf "lengths %d and %d, the texts differ at offset %d:\n"
                . "         got: ...%s\n    expected: ...%s",
                length $got, length $expected, $same,
                one_line(substr $got, $start, 80),
                one_line(substr $expected, $start, 80));
}


sub one_line {
    my ($text) = @_;

    $text =~ s/\n/\\n/g;
    $text =~ s/([^\x20-\x7e])/sprintf '\x{%02x}', ord $1/eg;

    return $text;
}


# Patterns of error_log and no_error_log: a line each, or qr//, or an array.

sub patterns {
    my ($value) = @_;

    return @$value if ref $value eq 'ARRAY';
    return $value  if ref $value;

    return grep { $_ ne '' } split /\n+/, $value;
}


sub matches {
    my ($line, $pattern) = @_;

    return ref $pattern ? $line =~ $pattern : index($line, $pattern) >= 0;
}


sub logs {
    my ($block, $repeated, $must_die) = @_;

    return if !grep { defined $block->$_ }
                    qw(error_log no_error_log grep_error_log);

    my @lines = $DryRun ? ()
                : Test::Nginx::StandIn::Server::error_log_data($must_die);

    grep_log($block, $repeated, @lines);

    my $name = $block->name;

    for my $pattern (defined $block->error_log
                     ? patterns($block->error_log) : ())
    {
        my $found = grep { matches($_, $pattern) } @lines;
        my $shown = one_line($pattern);

        check($name, 'error_log', \&Test::More::ok, $found,
              "$name - pattern \"$shown\" "
              . ($found ? 'matches' : 'should match')
              . " a line in error.log (req $repeated)");
    }

    for my $pattern (defined $block->no_error_log
                     ? patterns($block->no_error_log) : ())
    {
        my ($line) = grep { matches($_, $pattern) } @lines;
        my $shown = one_line($pattern);

        check($name, 'no_error_log', \&Test::More::ok, !defined $line,
              "$name - pattern \"$shown\" "
              . (defined $line
                 ? 'should not match any line in error.log but matches line'
                   . ' "' . one_line($line) . '"'
                 : 'does not match a line in error.log')
              . " (req $repeated)");
    }
}


# What a pattern matches in the log, one match a line, is compared as a whole.

sub grep_log {
    my ($block, $repeated, @lines) = @_;

    my $pattern = $block->grep_error_log;

    return if !defined $pattern;

    my $name = $block->name;
    my $expected = $block->grep_error_log_out;

    if (ref $expected eq 'ARRAY') {

        if (@$expected != $Test::Nginx::Util::RepeatEach) {
            bail_out("$name - --- grep_error_log_out must have an element for"
                     . " every repeated request");
        }

        $expected = $expected->[$repeated];
    }

    my $regex = ref $pattern ? $pattern : qr/\Q$pattern\E/;
    my $got = '';

    for my $line (@lines) {
        $line =~ /$regex/ or next;

        my ($from, $to) = ($-[0], $+[0]);
        my $match = substr $line, $from, $to - $from;

        # the original takes the first match of a line: do not rely on it

        if (substr($line, $to) =~ /$regex/) {
            bail_out("$name - grep_error_log matches twice in one line: "
                     . one_line($line));
        }

        $match .= "\n" if $match !~ /\n/;
        $got .= $match;
    }

    check($name, 'grep_error_log_out',
          ref $expected ? \&Test::More::like : \&same_text, $got, $expected,
          "$name - grep_error_log_out (req $repeated)");
}


sub tcp_query {
    my ($block, $query) = @_;

    my $name = $block->name;
    my $expected = $block->tcp_query;

    if (defined $expected) {
        check($name, 'tcp_query',
              ref $expected ? \&Test::More::like : \&same_text, $query,
              $expected, "$name - tcp_query ok");
    }

    my $len = $block->tcp_query_len;

    if (defined $len) {
        check($name, 'tcp_query_len', \&Test::More::is,
              length(defined $query ? $query : ''), $len,
              "$name - TCP query length ok");
    }
}


1;
