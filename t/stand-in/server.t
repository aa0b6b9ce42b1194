# Start and end of nginx: what it does, what is left, what fails a block.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use File::Temp;
use IO::Socket::INET;
use Run;
use Test::More;
use Time::HiRes qw(sleep time);

my $block = <<'EOC';
=== TEST 1: t
--- config
location /t { return 200 "hello\n"; }
--- request
GET /t
EOC

my $root = server_root();

sub file {
    my ($name) = @_;

    open my $in, '<', "$root/$name" or return '';

    return do { local $/; <$in> };
}

sub nginx_runs {
    for my $file (glob '/proc/[0-9]*/cmdline') {
        open my $in, '<', $file or next;

        my $command = <$in>;

        return 1 if defined $command
                    && $command =~ m{\Q$root\E/conf/nginx.conf};
    }

    # a worker has no path in its title, but holds the port

    return !IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1',
                                  LocalPort => Run::port(), ReuseAddr => 1);
}


# A configuration that must be refused.

sub must_die {
    my ($sections, %env) = @_;

    my $res = run_blocks("=== TEST 1: t\n$sections", %env);

    return $res->{bail} if defined $res->{bail};

    return join "\n", map { s/^((?:not )?)ok \d+ - TEST 1: t - /$1/; $_ }
                      grep { /^(?:not )?ok / } split /\n/, $res->{out};
}

is must_die("--- config\nno_such;\n--- must_die\n--- error_log\n"
            . "unknown directive \"no_such\"\n--- no_error_log\n[alert]\n"),
   "nginx dies with a non-zero exit code\n"
   . "pattern \"unknown directive \"no_such\"\" matches a line in error.log"
   . " (req 0)\n"
   . 'pattern "[alert]" does not match a line in error.log (req 0)',
   'must_die';

is must_die("--- config\nno_such;\n--- must_die: 1\n"),
   'nginx dies with the exit code expected', 'must_die with a code';

is must_die("--- config\nno_such;\n--- must_die: 2\n"),
   'not nginx dies with the exit code expected', '... of another value';

is must_die("--- config\n--- must_die\n--- no_error_log\n[emerg]\n"),
   "not nginx must die, but it runs\n"
   . 'pattern "[emerg]" does not match a line in error.log (req 0)',
   'must_die of a good configuration fails';

ok !nginx_runs(), '... and nothing is left';

is must_die("--- config\nno_such;\n--- must_die\n--- request\nGET /\n"
            . "--- error_log\nnot there\n"),
   "nginx dies with a non-zero exit code\n"
   . 'not pattern "not there" should match a line in error.log (req 0)',
   'the log is checked as well';


# Before 1.19.5 there is no -e, and the messages are on the standard error.

my $nginx = $ENV{TEST_NGINX_BINARY} || 'nginx';
my $old = File::Temp->new();

print $old qq{#!/bin/sh\n[ "\$1" = -V ] && echo nginx version: nginx/1.18.0}
           . qq{ && exit\nexec $nginx "\$@"\n};
close $old;
chmod 0755, "$old";

is must_die("--- config\nno_such;\n--- must_die\n--- error_log\n"
            . "unknown directive \"no_such\"\n--- no_error_log\n[alert]\n",
            TEST_NGINX_BINARY => "$old"),
   "nginx dies with a non-zero exit code\n"
   . "pattern \"unknown directive \"no_such\"\" matches a line in error.log"
   . " (req 0)\n"
   . 'pattern "[alert]" does not match a line in error.log (req 0)',
   'must_die of an old nginx';


# A configuration that is broken by mistake.

my $broken = "=== TEST 1: t\n--- config\nno_such;\n--- request\nGET /t\n"
             . "--- response_body: x\n--- error_log\na\nb\n";

my $res = run_blocks("$broken\n$block");

like $res->{bail}, qr/^TEST 1: t - Cannot start nginx \(exit code 1\)/,
     'nginx that does not start';
like $res->{out}, qr/unknown directive "no_such"/, 'and why';

$res = run_blocks($broken, TEST_NGINX_IGNORE_MISSING_DIRECTIVES => 1);

is $res->{exit}, 0, 'TEST_NGINX_IGNORE_MISSING_DIRECTIVES';
is grep({ /# skip.*due to the lack of directive no_such$/ } @{ $res->{ok} }),
   4, 'every check is skipped';

$res = run_blocks($block, TEST_NGINX_BINARY => '/no/such/nginx');

like $res->{bail}, qr{cannot run /no/such/nginx}, 'no nginx';


# What is in the configuration.

$res = run_blocks("$block--- main_config\n# in main\n--- http_config\n"
                  . "# in http \$TEST_NGINX_SERVROOT\n",
                  TEST_NGINX_LOAD_MODULES => '',
                  code => 'master_on(); workers(2); worker_connections(99);'
                          . ' no_root_location(); env_to_nginx("A=1");'
                          . ' log_level("info"); server_name("a.com");'
                          . ' config_preamble("# preamble");');

is $res->{exit}, 0, 'with settings' or diag $res->{out};

my $conf = file('conf/nginx.conf');

like $conf, qr/^worker_processes  2;/, 'workers';
like $conf, qr/^master_process on;/m, 'master_on';
like $conf, qr/worker_connections  99;/, 'worker_connections';
like $conf, qr/^env A=1;/m, 'env_to_nginx';
like $conf, qr/error.log info;/, 'log_level';
like $conf, qr/server_name +'a.com';/, 'server_name';
unlike $conf, qr/location \/ \{/, 'no_root_location';
like $conf, qr/# in main\s+http \{.*# in http \Q$root\E\s+server \{.*
               \#\ preamble.*location\ \/t/sx, 'the order of sections';
ok !nginx_runs(), 'nginx has ended';

run_blocks($block, TEST_NGINX_LOAD_MODULES => '/no/a.so /no/b.so');

like file('conf/nginx.conf'),
     qr{\Aload_module /no/a.so;\nload_module /no/b.so;\n},
     'TEST_NGINX_LOAD_MODULES';

$res = run_blocks($block . "--- response_body\nhello\n",
                  TEST_NGINX_RANDOMIZE => 1);

is $res->{exit}, 0, 'TEST_NGINX_RANDOMIZE';
is_deeply [glob "${root}_*"], [], '... leaves nothing';

is run("use Test::Nginx::Socket;\nprint join ' ', server_root(), html_dir(),"
       . "server_port(), repeat_each(), timeout(), server_name(),"
       . "\$Test::Nginx::Util::ServerPort;\n", TEST_NGINX_PORT => 7)->{out},
   "$root $root/html 7 1 3 localhost 7", 'settings can be asked';


# An end that nobody has asked for.

my $kill = 'add_response_body_check(sub { open my $f, "<",'
           . ' "$ENV{TEST_NGINX_SERVROOT}/logs/nginx.pid"; my $pid = <$f>;'
           . ' %s kill "%s", $pid; select undef, undef, undef, 0.2 });';

$res = run_blocks($block, code => sprintf $kill, '', 'SEGV');

like $res->{not_ok}[0], qr/^TEST 1: t - nginx died early: exited on signal 11/,
     'a crash fails the block' or diag $res->{out};

$res = run_blocks($block,
                  code => sprintf 'master_on();' . $kill,
                                  'my $master = $pid + 0;'
                                  . ' for (glob "/proc/[0-9]*/stat") {'
                                  . ' open $f, "<", $_ or next;'
                                  . ' $pid = $1 if <$f> =~ /^(\d+) .*\) \S'
                                  . ' $master /; }', 'SEGV');

like $res->{not_ok}[0], qr/^TEST 1: t - nginx wrote .*exited on signal 11/,
     'a crash of a worker fails the block' or diag $res->{out};

$res = run_blocks($block, code => sprintf 'master_on();' . $kill, '', 'SEGV');

like $res->{not_ok}[0], qr/^TEST 1: t - nginx died early: exited on signal 11/,
     'a crash of the master' or diag $res->{out};
ok !nginx_runs(), '... leaves no worker';

$res = run_blocks($block, TEST_NGINX_STANDIN_FAIL_ON => 'GET /[t] HTTP');

like $res->{not_ok}[0], qr/^TEST 1: t - nginx wrote .*GET \/t HTTP/,
     'TEST_NGINX_STANDIN_FAIL_ON';

is run_blocks($block, TEST_NGINX_STANDIN_FAIL_ON => 'GET /nothing')->{exit}, 0,
   '... and no line that matches';


# Whatever happens to a test, its nginx is gone.

run_blocks($block, code => 'add_response_body_check(sub { die "oops" });');

ok !nginx_runs(), 'a test that dies leaves no nginx';

run_blocks($block, code => 'add_response_body_check(sub { kill TERM => $$;'
                           . ' sleep 5 });');

ok !nginx_runs(), 'a test ended by SIGTERM leaves no nginx';

$res = run_blocks($block, code => 'add_response_body_check(sub {'
                                  . ' kill KILL => $$; sleep 5 });');

ok nginx_runs(), 'SIGKILL leaves nginx';

$res = run_blocks($block);

is $res->{exit}, 0, '... and the next run ends it' or diag $res->{out};
ok !nginx_runs(), '... and its own';

$res = run_blocks($block, TEST_NGINX_SERVROOT => $FindBin::Bin);

like $res->{bail}, qr/is no server root/, 'a wrong server root stays as it is';
ok -e $0, '... indeed';

my $slow = free_port();

$res = run_blocks("=== TEST 1: t\n--- config\nlocation /t {"
                  . " proxy_pass http://127.0.0.1:$slow; }\n"
                  . "--- tcp_listen: $slow\n--- tcp_reply: x\n"
                  . "--- tcp_reply_delay: 30s\n--- request\nGET /t\n"
                  . "--- timeout: 0.2\n--- abort\n--- ignore_response\n"
                  . "--- no_error_log\n[error]\n");

is $res->{exit}, 0, 'a request is pending' or diag $res->{out};
ok !nginx_runs(), '... and does not keep nginx';


# Time.

my $start = time;

$res = run_blocks("$block--- no_error_log\n[error]\n" x 20);

my $ms = (time() - $start) * 1000 / 20;

is $res->{exit}, 0, '20 blocks';
cmp_ok $ms, '<', 500, sprintf 'a block takes %d ms', $ms;

done_testing();
