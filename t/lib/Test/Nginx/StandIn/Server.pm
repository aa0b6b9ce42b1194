package Test::Nginx::StandIn::Server;

# The nginx of a block: its directory, its configuration, its start and end.
#
# nginx runs as a child in the foreground ("daemon off"): so its exit status
# can be seen, and a crash cannot be taken for a lost connection.

use strict;
use warnings;

use File::Basename ();
use File::Path ();
use POSIX ();
use Test::More ();
use Time::HiRes ();
use Test::Nginx::Util qw(bail_out expand_env verbose);

our $Pid;

my $owner = $$;
my $error_log_pos = 0;
my ($version, $build_options);
my $checked_root;

# a file that tells a directory of ours, whatever happens to the rest of it
my $mark = '.test-nginx';

# a process that stays behind would hold the port of the next test

for my $signal (qw(INT TERM HUP)) {
    $SIG{$signal} = sub {
        stop();
        $SIG{$signal} = 'DEFAULT';
        kill $signal, $$;
    };
}

END {
    if ($owner == $$ && !$Test::Nginx::Util::NoClean) {
        local ($?, $!);
        stop();

        # of a name that no other run will use

        if ($Test::Nginx::Util::Randomize && $checked_root) {
            File::Path::remove_tree($Test::Nginx::Util::ServRoot);
        }
    }
}


# The version as a number, 1.22.1 is 1022001; undef if nginx does not tell it.

sub version {
    if (!defined $build_options) {
        $build_options = '';

        my $pid = open my $in, '-|';

        bail_out("fork() failed: $!") if !defined $pid;

        if ($pid == 0) {
            open STDERR, '>&', \*STDOUT;
            { no warnings 'exec'; exec $Test::Nginx::Util::NginxBinary, '-V' }
            POSIX::_exit(127);
        }

        $build_options = do { local $/; <$in> };
        close $in;

        if (!defined $build_options || $? != 0) {
            bail_out("cannot run $Test::Nginx::Util::NginxBinary -V");
        }

        if ($build_options =~ m{version: [^/\n]+/(\d+)\.(\d+)\.(\d+)}) {
            $version = canon_version($1, $2, $3);
        }
    }

    return $version;
}


sub canon_version {
    my ($major, $minor, $patch) = @_;

    return ($major * 1000 + $minor) * 1000 + $patch;
}


# Writes everything anew, so that a block sees nothing of the one before it.

sub prepare {
    my ($block) = @_;

    my $root = $Test::Nginx::Util::ServRoot;

    check_root($root) if !$checked_root;

    # may fail, so before anything is written
    version();

    File::Path::remove_tree($root, { keep_root => 1 });

    File::Path::make_path($Test::Nginx::Util::LogDir,
                          $Test::Nginx::Util::HtmlDir,
                          $Test::Nginx::Util::ConfDir);

    write_file("$root/$mark", '');

    write_file("$Test::Nginx::Util::HtmlDir/index.html",
               '<html><head><title>It works!</title></head>'
               . "<body>It works!</body></html>\n");

    write_user_files($block);
    write_file($Test::Nginx::Util::ConfFile, configuration($block));

    $error_log_pos = 0;
}


# The directory is going to be emptied: it must be a server root or nothing.

sub check_root {
    my ($root) = @_;

    if (-e $root && !-e "$root/$mark"
        && !grep { /# Begin test case config/ }
                 lines($Test::Nginx::Util::ConfFile))
    {
        opendir my $dir, $root or bail_out("cannot read $root: $!");

        if (grep { !/^\.\.?$/ } readdir $dir) {
            bail_out("$root is there and is no server root of a test");
        }
    }

    if (open my $in, '<', $Test::Nginx::Util::PidFile) {
        my $pid = <$in>;

        if (defined $pid && $pid =~ /^(\d+)$/) {
            end_leftover($1);
        }
    }

    $checked_root = 1;
}


# A test that was killed could not stop its nginx.  The number may belong to
# somebody else by now, hence the look at the command line.

sub end_leftover {
    my ($pid) = @_;

    for my $signal ((('TERM') x 200), (('KILL') x 200)) {
        open my $in, '<', "/proc/$pid/cmdline" or return;

        my $command = <$in>;

        return if !defined $command
                  || index($command, $Test::Nginx::Util::ConfFile) < 0;

        kill $signal, $pid;
        Time::HiRes::sleep(0.01);
    }
}


sub write_file {
    my ($path, $content) = @_;

    open my $out, '>', $path or bail_out("cannot write $path: $!");
    binmode $out;
    print $out $content;
    close $out or bail_out("cannot write $path: $!");
}


# ">>> name [date]" lines, or an array of [name, content, date]

sub write_user_files {
    my ($block) = @_;

    my $files = $block->user_files;

    return if !defined $files;

    my $name = $block->name;

    if (!ref $files) {
        my @list;

        for my $line (split /^/, $files) {

            if ($line =~ /^>>> (\S+)(?:\s+(.+))?/) {
                push @list, [$1, '', $2];

            } elsif (@list) {
                $list[-1][1] .= $line;

            } elsif ($line =~ /\S/) {
                bail_out("$name - user_files: text before the first >>>");
            }
        }

        $files = \@list;
    }

    if (ref $files ne 'ARRAY') {
        bail_out("$name - user_files: only scalar or ARRAY are accepted");
    }

    for my $file (@$files) {
        my ($path, $content, $date) = @$file;

        $path = "$Test::Nginx::Util::HtmlDir/$path" if $path !~ m{^/};

        File::Path::make_path(File::Basename::dirname($path));
        write_file($path, expand_env(defined $content ? $content : ''));

        if (defined $date) {
            local $ENV{TZ} = 'GMT';
            system('touch', '-t', $date, $path) == 0
                or bail_out("$name - user_files: bad date $date");
        }
    }
}


sub configuration {
    my ($block) = @_;

    my ($main, $http, $server) = map {
        my $text = expand_env($block->peek($_));
        defined $text ? $text : '';
    } qw(main_config http_config config);

    my $log_level = $block->log_level;

    $log_level = $Test::Nginx::Util::LogLevel if !defined $log_level;

    my $modules = $Test::Nginx::Util::LoadModules;

    $modules = join '', map { "load_module $_;\n" }
                        split ' ', defined $modules ? $modules : '';

    # the workers of a root's nginx must read what we write

    my $user = $> == 0 && $main !~ /^\s*user\s/m ? 'user root;' : '';

    my $env = join '', map { "env $_;\n" } @Test::Nginx::Util::EnvToNginx;

    my $temp_paths = temp_paths("$http$server");

    my $location = $Test::Nginx::Util::NoRootLocation ? '' : <<"_EOC_";
        location / {
            root $Test::Nginx::Util::HtmlDir;
            index index.html index.htm;
        }
_EOC_

    return <<"_EOC_";
${modules}worker_processes  $Test::Nginx::Util::Workers;
daemon off;
master_process $Test::Nginx::Util::MasterProcessEnabled;
error_log $Test::Nginx::Util::ErrLogFile $log_level;
pid       $Test::Nginx::Util::PidFile;
$user
env LD_PRELOAD;
env LD_LIBRARY_PATH;
env ASAN_OPTIONS;
env RUST_BACKTRACE;
$env
$main

http {
    access_log $Test::Nginx::Util::AccLogFile;

    default_type text/plain;
    keepalive_timeout  68;
$temp_paths
$http

    server {
        listen          $Test::Nginx::Util::ServerPort;
        server_name     '$Test::Nginx::Util::ServerName';

        client_max_body_size 30M;

        # Begin preamble config...
$Test::Nginx::Util::ConfigPreamble
        # End preamble config...

        # Begin test case config...
$server
        # End test case config.

$location
    }
}

events {
    accept_mutex off;

    worker_connections  $Test::Nginx::Util::WorkerConnections;
}

_EOC_
}


# A packaged nginx has these compiled in as directories of root.

sub temp_paths {
    my ($config) = @_;

    version();

    my $lines = '';

    for my $type (qw(client_body proxy fastcgi uwsgi scgi)) {
        next if $build_options =~ /--without-http_${type}_module/
                || $config =~ /\b${type}_temp_path\b/;

        $lines .= "    ${type}_temp_path"
                  . " $Test::Nginx::Util::ServRoot/${type}_temp;\n";
    }

    return $lines;
}


sub command {
    my ($plain) = @_;

    my @command = ($Test::Nginx::Util::NginxBinary,
                   '-p', "$Test::Nginx::Util::ServRoot/",
                   '-c', $Test::Nginx::Util::ConfFile);

    # messages of a broken configuration belong into our log, too

    push @command, '-e', $Test::Nginx::Util::ErrLogFile if has_log_option();

    my $options = $Test::Nginx::Util::UseValgrind;

    if ($options && !$plain) {
        my @options = $options eq '1' ? () : split ' ', $options;

        unshift @options, '--suppressions=valgrind.suppress'
            if -f 'valgrind.suppress';

        unshift @command, 'valgrind', '-q', '--num-callers=100', @options;
    }

    return @command;
}


sub has_log_option {
    my $ver = version();

    return defined $ver && $ver >= canon_version(1, 19, 5);
}


# Returns the exit status if nginx ended instead of starting, else undef.  The
# pid file appears after the sockets listen; to try the port instead would
# leave a connection in the log.

sub start {
    my ($plain) = @_;

    my @command = command($plain);

    verbose(join ' ', 'starting', @command);

    $Pid = fork();

    bail_out("fork() failed: $!") if !defined $Pid;

    if ($Pid == 0) {
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP CHLD PIPE);

        # a group of its own, to be able to end the workers with it
        POSIX::setpgid(0, 0);

        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', $Test::Nginx::Util::StderrFile;
        open STDERR, '>&', \*STDOUT;

        { no warnings 'exec'; exec { $command[0] } @command }
        print STDERR "cannot run $command[0]: $!\n";
        POSIX::_exit(127);
    }

    my $deadline = Time::HiRes::time()
                   + ($Test::Nginx::Util::UseValgrind ? 120 : 30);

    while (1) {

        if (defined(my $status = reap())) {
            return $status;
        }

        return undef if -s $Test::Nginx::Util::PidFile;

        if (Time::HiRes::time() > $deadline) {
            stop();
            bail_out('nginx neither starts nor ends');
        }

        Time::HiRes::sleep(0.001);
    }
}


sub reap {
    return undef if waitpid($Pid, POSIX::WNOHANG()) == 0;

    my $status = $?;

    # workers whose master has crashed

    kill 'KILL', -$Pid if $status != 0;

    undef $Pid;

    return $status;
}


# Returns what was wrong with the end of nginx, or undef.

sub stop {
    return undef if !$Pid;

    my $pid = $Pid;
    my $status = reap();

    if (defined $status) {
        return "nginx died early: " . describe($status);
    }

    # requests may be pending on purpose, so nginx is not given much time

    my $factor = $Test::Nginx::Util::UseValgrind ? 20 : 1;

    for my $step (['QUIT', 0.5], ['TERM', 2], ['KILL', 10]) {
        my ($signal, $seconds) = @$step;

        verbose("sending $signal to nginx");

        kill $signal, $signal eq 'KILL' ? -$pid : $pid;

        my $deadline = Time::HiRes::time() + $seconds * $factor;

        while (Time::HiRes::time() < $deadline) {

            if (defined($status = reap())) {
                return undef if $status == 0;
                return 'nginx had to be killed' if $signal eq 'KILL';
                return 'nginx ended badly: ' . describe($status);
            }

            Time::HiRes::sleep(0.001);
        }
    }

    return 'nginx cannot be killed';
}


sub describe {
    my ($status) = @_;

    return $status & 127 ? 'exited on signal ' . ($status & 127)
                         : 'exit code ' . ($status >> 8);
}


# Lines of the error log since the last call.

sub error_log_data {
    my ($must_die) = @_;

    # the request is logged after its response has gone out

    Time::HiRes::sleep($Test::Nginx::Util::TestNginxSleep) if !$must_die;

    if ($must_die && !has_log_option()) {
        return lines($Test::Nginx::Util::StderrFile);
    }

    open my $in, '<', $Test::Nginx::Util::ErrLogFile or return ();

    seek $in, $error_log_pos, 0;

    my @lines = <$in>;

    if (!$Test::Nginx::Util::CheckAccumErrorLog) {
        $error_log_pos = tell $in;
    }

    return @lines;
}


# All that the nginx of this block has written.

sub error_log_lines {
    return lines($Test::Nginx::Util::ErrLogFile);
}

sub stderr_lines {
    return lines($Test::Nginx::Util::StderrFile);
}


sub lines {
    my ($file) = @_;

    open my $in, '<', $file or return ();

    return <$in>;
}


1;
