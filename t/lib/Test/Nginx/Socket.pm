package Test::Nginx::Socket;

use strict;
use warnings;

use List::Util ();
use Test::More ();
use Time::HiRes ();

use Test::Nginx::Util qw(
    add_block_preprocessor add_cleanup_handler add_response_body_check
    bail_out check_accum_error_log config_preamble env_to_nginx html_dir
    log_level master_off master_on master_process_enabled no_long_string
    no_root_location no_shuffle parse_time repeat_each server_addr server_name
    server_port server_port_for_client server_root sleep_time timeout
    worker_connections workers
);

use Test::Nginx::StandIn::Blocks qw(blocks filters first_block next_block);
use Test::Nginx::StandIn::Check ();
use Test::Nginx::StandIn::Client ();
use Test::Nginx::StandIn::Request ();
use Test::Nginx::StandIn::Server ();
use Test::Nginx::StandIn::TcpServer ();

our $VERSION = '0.30';

# Not more than the original exports: a test file that needs "note" must get
# it from Test::More itself.

my @test_more = qw(
    ok is isnt like unlike is_deeply cmp_ok skip todo_skip pass fail
    eq_array eq_hash eq_set plan can_ok isa_ok diag use_ok
);

my @own = qw(
    add_block_preprocessor add_cleanup_handler add_response_body_check
    bail_out blocks check_accum_error_log config_preamble env_to_nginx filters
    first_block html_dir log_level master_off master_on master_process_enabled
    next_block no_diff no_long_string no_root_location no_shuffle repeat_each
    run_tests server_addr server_name server_port server_port_for_client
    server_root timeout worker_connections workers
);

my @body_checks = qw(response_body response_body_like response_body_unlike);

my @response_checks = (@body_checks, qw(
    error_code error_code_like raw_response_headers_like
    raw_response_headers_unlike response_body_filters response_headers
    response_headers_like
));

my %known = map { $_ => 1 } @response_checks, qw(
    LAST ONLY SKIP abort config error_log grep_error_log grep_error_log_out
    http_config ignore_response init log_level main_config more_headers
    must_die no_check_leak no_error_log pipelined_requests raw_request
    raw_request_middle_delay request skip_eval skip_nginx tcp_listen
    tcp_no_close tcp_query tcp_query_len tcp_reply tcp_reply_delay timeout
    user_files wait
);

# the sections in which $TEST_NGINX_X is expanded
my %expanded = map { $_ => 1 } qw(config http_config main_config user_files);


sub import {
    my ($class, @plan) = @_;

    my $caller = caller;

    @plan = grep { !/^-base$/i } @plan;

    Test::More::plan(@plan) if @plan;

    no strict 'refs';

    for my $name (@test_more) {
        my $code = Test::More->can($name) or next;
        *{"${caller}::$name"} = $code;
    }

    *{"${caller}::TODO"} = \${"${caller}::TODO"};
    *{"${caller}::$_"} = \&$_ for @own;

    strict->import;
    warnings->import;
}


sub no_diff () { }


sub run_tests () {
    my @blocks = blocks();

    if (!$Test::Nginx::Util::NoShuffle) {
        @blocks = List::Util::shuffle(@blocks);
    }

    for my $block (@blocks) {

        for my $code (@Test::Nginx::Util::BlockPreprocessors) {
            $code->($block);
        }

        validate($block);
        run_test($block);
    }

    Test::Nginx::Util::run_cleanup();
}


# Here a slip in a test file ends the run, where the original would only make
# fewer checks than one reads.

sub validate {
    my ($block) = @_;

    my $name = $block->name;
    my $values = $block->{values};
    my %has = map { $_ => defined $block->peek($_) } keys %$values;

    if (my ($type) = $block->unknown_sections(\%known)) {
        bail_out("$name - unknown section: --- $type");
    }

    bail_out("$name - No '--- config' section specified") if !$has{config};

    for my $set ([qw(request raw_request pipelined_requests)],
                 [qw(response_body response_body_like response_body_unlike)],
                 [qw(response_headers response_headers_like)],
                 [qw(error_code error_code_like)])
    {
        my @given = grep { $has{$_} } @$set;

        bail_out("$name - only one of @given is ever looked at")
            if @given > 1;
    }

    if ($has{must_die}) {
        without($block, 'must_die', @response_checks, 'tcp_listen');

    } elsif (!grep { $has{$_} } qw(request raw_request pipelined_requests)) {
        bail_out("$name - request empty");
    }

    without($block, 'ignore_response', @response_checks)
        if $has{ignore_response};

    if ($has{grep_error_log} xor $has{grep_error_log_out}) {
        bail_out("$name - grep_error_log and grep_error_log_out need each"
                 . " other");
    }

    if ($has{response_body_filters} && !grep { $has{$_} } @body_checks) {
        bail_out("$name - response_body_filters, but no check of the body");
    }

    if ($has{tcp_listen} xor $has{tcp_reply}) {
        bail_out("$name - tcp_listen and tcp_reply need each other");
    }

    for my $type (qw(tcp_query tcp_query_len tcp_reply_delay tcp_no_close)) {
        bail_out("$name - $type without tcp_listen")
            if $has{$type} && !$has{tcp_listen};
    }

    if (ref $block->peek('tcp_query') && !$has{tcp_query_len}) {
        bail_out("$name - tcp_query of this type needs tcp_query_len");
    }

    if (ref $block->peek('tcp_reply') eq 'ARRAY' && $has{tcp_reply_delay}) {
        bail_out("$name - tcp_reply_delay needs a tcp_reply of one part");
    }

    if ($has{tcp_listen} && $Test::Nginx::Util::RepeatEach > 1) {
        bail_out("$name - tcp_listen needs repeat_each(1)");
    }

    refuse_unsure_counts($block);
    refuse_empty($block);

    for my $type (grep { !$expanded{$_} } keys %$values) {
        for my $text (flat($block->peek($type))) {
            bail_out("$name - $1 is not expanded in --- $type")
                if $text =~ /(\$TEST_NGINX_\w+)/ && $type !~ /^(init|skip_)/;
        }
    }
}


sub without {
    my ($block, $what, @sections) = @_;

    for my $type (@sections) {
        bail_out($block->name . " - --- $type has no effect with --- $what")
            if defined $block->peek($type);
    }
}


# How many "ok" lines these make differs between versions of the original, so
# no plan in numbers could be right with all of them.

sub refuse_unsure_counts {
    my ($block) = @_;

    return if !Test::More->builder->expected_tests();

    for my $type (qw(must_die tcp_query tcp_query_len)) {
        bail_out($block->name . " - a file with --- $type needs the plan"
                 . " 'no_plan'")
            if defined $block->peek($type);
    }
}


# An empty list of patterns would check nothing, an empty regex matches all.

sub refuse_empty {
    my ($block) = @_;

    my $name = $block->name;

    for my $type (qw(error_log no_error_log grep_error_log response_headers
                     response_headers_like response_body_like
                     response_body_unlike raw_response_headers_like
                     raw_response_headers_unlike error_code_like
                     response_body_filters))
    {
        my $value = $block->peek($type);

        next if !defined $value;

        my @texts = flat($value);

        if (!@texts || grep { !defined $_ || !/\S/ } @texts) {
            bail_out("$name - --- $type has an empty element");
        }
    }

    for my $type (qw(error_log no_error_log grep_error_log)) {
        my $value = $block->peek($type);

        bail_out("$name - --- $type has an element of a wrong type")
            if grep { ref && ref ne 'Regexp' }
               ref $value eq 'ARRAY' && $type ne 'grep_error_log'
               ? @$value : $value;
    }
}


sub flat {
    my ($value) = @_;

    return !defined $value         ? ()
         : ref $value eq 'ARRAY'   ? map { defined $_ ? flat($_) : undef }
                                         @$value
         :                           $value;
}


sub run_test {
    my ($block) = @_;

    my $name = $block->name;

    local $Test::Nginx::StandIn::Check::DryRun;

    if (my ($count, $reason) = skipped($block)) {

        for (1 .. $Test::Nginx::Util::RepeatEach) {
          SKIP: {
                Test::More::skip("$name - $reason", $count);
            }
        }

        return;
    }

    if (defined(my $code = $block->init)) {
        eval "package Test::Nginx::Util; no strict; $code";
        bail_out("$name - init failed: $@") if $@;
    }

    Test::Nginx::StandIn::Server::prepare($block);

    if (defined $block->must_die) {
        run_must_die($block);
        return;
    }

    my $status = Test::Nginx::StandIn::Server::start();

    if (defined $status) {
        $Test::Nginx::StandIn::Check::DryRun = missing_directive()
            or bail_out("$name - Cannot start nginx ("
                        . Test::Nginx::StandIn::Server::describe($status)
                        . "):\n",
                        Test::Nginx::StandIn::Server::stderr_lines());
    }

    for my $repeated (0 .. $Test::Nginx::Util::RepeatEach - 1) {
        Test::Nginx::StandIn::TcpServer::start($block);

        run_requests($block, $repeated);

        Test::Nginx::StandIn::Check::tcp_query($block,
            Test::Nginx::StandIn::TcpServer::stop());
    }

    finish($block);
}


# Returns how many tests to skip and why, or nothing.

sub skipped {
    my ($block) = @_;

    my $name = $block->name;

    if (defined(my $spec = $block->skip_nginx)) {
        my ($count, $op, $v1, $v2, $v3, $reason) = $spec =~ m{
            ^ \s* (\d+) \s* : \s* ([<>]=?) \s* (\d+)\.(\d+)\.(\d+)
            (?: \s* : \s* (.*?) )? \s* $ }x
            or bail_out("$name - Invalid --- skip_nginx spec: $spec");

        my $version = Test::Nginx::StandIn::Server::version();
        my $limit = Test::Nginx::StandIn::Server::canon_version($v1, $v2, $v3);

        my $hit = !defined $version ? $op =~ /^</
                : $op eq '<'        ? $version < $limit
                : $op eq '<='       ? $version <= $limit
                : $op eq '>'        ? $version > $limit
                :                     $version >= $limit;

        if ($hit) {
            $reason = "nginx version $op $v1.$v2.$v3"
                if !defined $reason || $reason eq '';

            return $count, $reason;
        }
    }

    if (defined(my $spec = $block->skip_eval)) {
        my ($count, $code) = $spec =~ /^\s*(\d+)\s*:\s*(.*)/s
            or bail_out("$name - Invalid --- skip_eval spec: $spec");

        my $hit = eval "package Test::Nginx::Util; no strict; $code";

        bail_out("$name - skip_eval - failed to eval \"$code\": $@") if $@;

        return $count, 'skip_eval' if $hit;
    }

    return;
}


sub missing_directive {

    return if !$ENV{TEST_NGINX_IGNORE_MISSING_DIRECTIVES};

    for (Test::Nginx::StandIn::Server::stderr_lines()) {
        return "the lack of directive $1"
            if /\[emerg\].*?unknown directive "([^"]+)"/;
    }

    return;
}


sub run_must_die {
    my ($block) = @_;

    my $name = $block->name;
    my $status = Test::Nginx::StandIn::Server::start('plain');

    if (!defined $status) {
        Test::More::fail("$name - nginx must die, but it runs");
        Test::Nginx::StandIn::Server::stop();

    } elsif ($status & 127) {

        # a crash is no way to refuse a configuration

        Test::More::fail("$name - nginx must die, but not be killed: "
                         . Test::Nginx::StandIn::Server::describe($status));

    } elsif ($block->must_die =~ /\d/) {
        Test::More::is($status >> 8, $block->must_die,
                       "$name - nginx dies with the exit code expected");

    } else {
        Test::More::isnt($status >> 8, 0,
                         "$name - nginx dies with a non-zero exit code");
    }

    Test::Nginx::StandIn::Check::logs($block, 0, 1);

    look_for_failures($block,
                      Test::Nginx::StandIn::Server::error_log_lines(),
                      Test::Nginx::StandIn::Server::stderr_lines());
}


sub run_requests {
    my ($block, $repeated) = @_;

    my $name = $block->name;
    my $dry_run = $Test::Nginx::StandIn::Check::DryRun;
    my $ignore = defined $block->ignore_response;
    my $timeout = parse_time($block->timeout);

    $timeout = timeout() if !defined $timeout;

    my @requests = Test::Nginx::StandIn::Request::from_block($block);

    my $pipelined = $block->pipelined_requests;
    my $n = $pipelined ? @$pipelined : @requests;
    my $i = 0;

    for my $packets (@requests) {

        my $raw = $dry_run ? '' : Test::Nginx::StandIn::Client::send_request(
                                      $block, $packets, $timeout);

        my $is_head = $packets->[0]{value} =~ /^\s*HEAD\s/;

        for (1 .. ($pipelined ? $n : 1)) {

            if (!$ignore) {
                (my $res, $raw, my $error)
                    = Test::Nginx::StandIn::Client::parse_response(
                          $name, $raw, $is_head);

                Test::More::fail("$name - $error") if defined $error;

                Test::Nginx::StandIn::Check::response($block, $res, $i, $n,
                                                      $repeated);
            }

            $i++;
        }

        if (!$ignore && $raw ne '') {
            warn "WARNING: $name - unexpected extra bytes after the response:"
                 . ' "' . Test::Nginx::StandIn::Check::one_line($raw) . "\"\n";
        }
    }

    if (defined(my $wait = parse_time($block->wait))) {
        Time::HiRes::sleep($wait) if !$dry_run;
    }

    Test::Nginx::StandIn::Check::logs($block, $repeated);
}


# Ends nginx and looks at what it leaves.

sub finish {
    my ($block) = @_;

    return if $Test::Nginx::StandIn::Check::DryRun;

    my $name = $block->name;
    my $error = Test::Nginx::StandIn::Server::stop();

    Test::More::fail("$name - $error") if defined $error;

    my @log = Test::Nginx::StandIn::Server::error_log_lines();
    my @stderr = Test::Nginx::StandIn::Server::stderr_lines();

    if (@stderr && $Test::Nginx::Util::UseValgrind) {
        Test::More::diag("$name - valgrind:\n", @stderr);
    }

    look_for_failures($block, @log, @stderr);

    # a log line nobody has asked for does not fail a test, but is shown

    my @asked = defined $block->error_log
                ? Test::Nginx::StandIn::Check::patterns($block->error_log)
                : ();

    for my $level (qw(alert crit emerg)) {
        next if grep { /\b$level\b/ } @asked;

        for my $line (grep { index($_, "[$level]") >= 0 } @log) {
            warn "WARNING: $name - $line";
        }
    }
}


sub look_for_failures {
    my ($block, @lines) = @_;

    my $extra = $ENV{TEST_NGINX_STANDIN_FAIL_ON};
    my @patterns = (qr/exited on signal \d+/, qr/\bAssertion .*? failed\.$/);

    push @patterns, qr/$extra/ if defined $extra && $extra ne '';

    for my $pattern (@patterns) {
        my ($line, @more) = grep { $_ =~ $pattern } @lines or next;

        Test::More::fail($block->name . ' - nginx wrote '
                         . Test::Nginx::StandIn::Check::one_line($line));
        Test::More::diag("and more of this kind:\n", @more) if @more;
    }
}


1;

__END__

=head1 NAME

Test::Nginx::Socket - stand-in for the CPAN module of this name

=head1 SYNOPSIS

    prove -It/lib t/

=head1 DESCRIPTION

Runs test files written for OpenResty's Test::Nginx::Socket where that module
is not installed.  Needs perl with its core modules and an nginx.  It knows a
part of the original, and what it knows it does as the original does: the same
checks, the same number of them, in the same order.

Where the original takes a slip in silence, the stand-in stops the run with
C<Bail out!>: an unknown section, a section given twice, a broken header of a
block or section, two sections of which only one would be looked at, checks
under C<ignore_response> or C<must_die>, an empty list of patterns, an array
with another number of elements than there are requests, a filter C<eval> that
fails or that returns a list or nothing.

=head2 Functions

Of Test::More what Test::Base exports (no C<note>, no C<done_testing>), and:
add_block_preprocessor, add_cleanup_handler, add_response_body_check, bail_out,
blocks, check_accum_error_log, config_preamble, env_to_nginx, filters,
first_block, html_dir, log_level, master_off, master_on,
master_process_enabled, next_block, no_diff, no_long_string, no_root_location,
no_shuffle, repeat_each, run_tests, server_addr, server_name, server_port,
server_port_for_client, server_root, timeout, worker_connections, workers.

=head2 Sections

=over

=item configuration

main_config, http_config, config, log_level, user_files, init.
C<$TEST_NGINX_X> is replaced in main_config, http_config, config, and
user_files only; in other sections use the filter C<eval> and C<%ENV>.

=item requests

request, raw_request (both also as arrays), pipelined_requests, more_headers,
raw_request_middle_delay, timeout, abort, wait.

=item checks

error_code (200 where it is not given), error_code_like,
raw_response_headers_like, raw_response_headers_unlike, response_headers,
response_headers_like, response_body, response_body_like,
response_body_unlike, response_body_filters, ignore_response, grep_error_log
with grep_error_log_out, error_log, no_error_log, must_die.

=item a server for one connection

tcp_listen, tcp_reply, tcp_reply_delay, tcp_query, tcp_query_len,
tcp_no_close.

=item skipping

skip_nginx, skip_eval, SKIP, ONLY, LAST.  no_check_leak is accepted and has no
effect.

=back

=head2 Filters

eval, chomp, chop, unchomp, lines, array, join, split, append, prepend, norm,
trim, base64_decode, base64_encode, and functions of the test file.  As in
Test::Base, C<eval> runs in another package and under strict: a variable of
the file has to be declared with C<our> and called C<$::name>.

=head2 Environment

TEST_NGINX_BINARY, TEST_NGINX_LOAD_MODULES, TEST_NGINX_PORT,
TEST_NGINX_SERVER_PORT, TEST_NGINX_CLIENT_PORT, TEST_NGINX_SERVROOT,
TEST_NGINX_NO_CLEAN (nginx of the last block goes on running),
TEST_NGINX_VERBOSE, TEST_NGINX_SLEEP, TEST_NGINX_TIMEOUT,
TEST_NGINX_LOG_LEVEL, TEST_NGINX_NO_SHUFFLE, TEST_NGINX_RANDOMIZE,
TEST_NGINX_USE_VALGRIND (1, or options of valgrind),
TEST_NGINX_IGNORE_MISSING_DIRECTIVES.

TEST_NGINX_STANDIN_FAIL_ON is our own: a regular expression; a block fails if
a line of its error log or of the standard error of its nginx, up to the end
of that nginx, matches.

=head1 DEVIATIONS

=over

=item *

nginx runs with C<daemon off> as a child and is stopped after every block.  A
block fails, with one more C<not ok> line, if nginx crashes, ends with another
exit code than 0, or logs that a worker "exited on signal" or that an
assertion failed.

=item *

The configuration has other line numbers.  It sets the C<*_temp_path>
directories, and C<user root> if root runs the tests.  nginx 1.19.5 or later
is started with C<-e>, so that with C<must_die> its messages are seen whatever
log it has compiled in.

=item *

Versions of the original differ in how many checks C<must_die>, C<tcp_query>,
and C<tcp_query_len> make: with these a file needs the plan C<no_plan>.

=item *

C<config> may not be left out, tcp_listen needs C<repeat_each(1)>.  The
sections curl, http2, http3, reload, stap, udp_*, access_log,
shutdown_error_log, post_main_config, stream_*, and *_eval are not known.

=back

=cut
