package Test::Nginx::Util;

# Settings of a test file, paths, and what every part of the stand-in shares.
# The package variables carry the names that test files know.

use strict;
use warnings;

use Cwd ();
use Exporter 'import';
use IO::Socket::INET ();
use Test::More ();

our @EXPORT_OK = qw(
    add_block_preprocessor add_cleanup_handler add_response_body_check
    bail_out check_accum_error_log config_preamble env_to_nginx expand_env
    free_port html_dir log_level master_off master_on
    master_process_enabled no_long_string no_root_location no_shuffle
    parse_time repeat_each server_addr server_name server_port
    server_port_for_client server_root sleep_time timeout verbose
    worker_connections workers
);

our $NginxBinary = $ENV{TEST_NGINX_BINARY} || 'nginx';
our $LoadModules = $ENV{TEST_NGINX_LOAD_MODULES};
our $LogLevel    = $ENV{TEST_NGINX_LOG_LEVEL} || 'debug';
our $NoClean     = $ENV{TEST_NGINX_NO_CLEAN} || 0;
our $NoShuffle   = $ENV{TEST_NGINX_NO_SHUFFLE} || 0;
our $Randomize   = $ENV{TEST_NGINX_RANDOMIZE} || 0;
our $UseValgrind = $ENV{TEST_NGINX_USE_VALGRIND};
our $Verbose     = $ENV{TEST_NGINX_VERBOSE} || 0;

# Writes a log line that nginx owes us after the response has ended.
our $TestNginxSleep = $ENV{TEST_NGINX_SLEEP}
                      || ($UseValgrind ? 0.3 : 0.015);

our $Timeout = $ENV{TEST_NGINX_TIMEOUT} || 3;

our $ServerAddr = '127.0.0.1';
our $ServerName = 'localhost';
our ($ServerPort, $ServerPortForClient);

our ($ServRoot, $LogDir, $ErrLogFile, $AccLogFile, $HtmlDir, $ConfDir,
     $ConfFile, $PidFile, $StderrFile);

our $RepeatEach           = 1;
our $Workers              = 1;
our $WorkerConnections    = 64;
our $MasterProcessEnabled = 'off';
our $NoLongString         = 0;
our $NoRootLocation       = 0;
our $CheckAccumErrorLog   = 0;
our $ConfigPreamble       = '';

our @EnvToNginx;
our @BlockPreprocessors;
our @ResponseBodyChecks;
our @CleanupHandlers;

my %RandPorts;
my $PortsTried = 0;

setup_ports_and_paths();


sub setup_ports_and_paths {

    if ($Randomize) {
        $ServerPort = free_port();
        $ServerPortForClient = $ServerPort;

    } else {
        $ServerPort = $ENV{TEST_NGINX_SERVER_PORT}
                      || $ENV{TEST_NGINX_PORT} || 1984;
        $ServerPortForClient = $ENV{TEST_NGINX_CLIENT_PORT}
                               || $ENV{TEST_NGINX_PORT} || $ServerPort;
    }

    my $root = $ENV{TEST_NGINX_SERVROOT};

    if (!defined $root || $root eq '') {
        $root = 't/servroot';
    }

    # files of tests may run side by side then

    $root .= "_$ServerPort" if $Randomize;

    # nginx resolves "-p" against its own directory, which is ours
    $ServRoot = $root =~ m{^/} ? $root : Cwd::getcwd() . "/$root";

    $LogDir     = "$ServRoot/logs";
    $ErrLogFile = "$LogDir/error.log";
    $AccLogFile = "$LogDir/access.log";
    $StderrFile = "$LogDir/stderr.log";
    $PidFile    = "$LogDir/nginx.pid";
    $HtmlDir    = "$ServRoot/html";
    $ConfDir    = "$ServRoot/conf";
    $ConfFile   = "$ConfDir/nginx.conf";

    $ENV{TEST_NGINX_SERVROOT}    = $ServRoot;
    $ENV{TEST_NGINX_HTML_DIR}    = $HtmlDir;
    $ENV{TEST_NGINX_SERVER_PORT} = $ServerPort;
}


# A port that nobody has: none of those that the kernel gives to sockets, and another one than files
# of tests find that run at the same time.

sub free_port {
    for (1 .. 100) {
        my $port = 11_000 + ($$ * 7919 + $PortsTried++) % 20_000;
        my $sock = IO::Socket::INET->new(Listen    => 1,
                                         LocalAddr => '127.0.0.1',
                                         LocalPort => $port);

        return $port if $sock;
    }

    bail_out("no free port: $!");
}


# Text that goes into a file: $TEST_NGINX_X of the environment, no braces.
# $TEST_NGINX_RAND_PORT_N is a free port, the same one during the whole file.

sub expand_env {
    my ($text) = @_;

    return $text if !defined $text;

    $text =~ s/\$(TEST_NGINX_[_A-Z0-9]+)/env_value($1)/eg;

    return $text;
}


sub env_value {
    my ($name) = @_;

    if ($name =~ /^TEST_NGINX_RAND_PORT_\d+$/) {
        my %taken = map { $_ => 1 } $ServerPort, values %RandPorts;

        while (!$RandPorts{$name}) {
            my $port = free_port();
            $RandPorts{$name} = $port if !$taken{$port};
        }

        return $RandPorts{$name};
    }

    bail_out("No environment $name defined.") if !defined $ENV{$name};

    return $ENV{$name};
}


sub parse_time {
    my ($time) = @_;

    return undef if !defined $time;

    return $1 / 1000 if $time =~ /^\s*(\d+(?:\.\d+)?)\s*ms\s*$/;
    return $1        if $time =~ /^\s*(\d*\.?\d+)\s*s?\s*$/;

    bail_out("bad time value: $time");
}


sub bail_out {
    run_cleanup();
    Test::More::BAIL_OUT(join '', @_);
}


sub run_cleanup {
    while (my $handler = shift @CleanupHandlers) {
        $handler->();
    }
}


sub verbose {
    my ($text) = @_;

    return if !$Verbose;

    $text =~ s/^/# /mg;
    print STDERR "$text\n";
}


# What a test file sets or asks.

sub repeat_each (@) {
    return $RepeatEach if !@_;
    $RepeatEach = shift;
}

sub timeout (@) {
    return $Timeout if !@_;
    $Timeout = shift;
}

sub server_addr (@) {
    return $ServerAddr if !@_;
    $ServerAddr = shift;
}

sub server_name (@) {
    return $ServerName if !@_;
    $ServerName = shift;
}

sub server_port (@) {
    return $ServerPort if !@_;
    $ServerPort = shift;
    $ENV{TEST_NGINX_SERVER_PORT} = $ServerPort;
}

sub server_port_for_client (@) {
    return $ServerPortForClient if !@_;
    $ServerPortForClient = shift;
}

sub log_level (@) {
    return $LogLevel if !@_;
    $LogLevel = shift;
}

sub workers (@) {
    return $Workers if !@_;
    $Workers = shift;
}

sub worker_connections (@) {
    return $WorkerConnections if !@_;
    $WorkerConnections = shift;
}

sub config_preamble ($) {
    $ConfigPreamble = shift;
}

sub master_process_enabled (@) {
    return $MasterProcessEnabled eq 'on' if !@_;
    $MasterProcessEnabled = shift() ? 'on' : 'off';
}

sub master_on ()             { $MasterProcessEnabled = 'on' }
sub master_off ()            { $MasterProcessEnabled = 'off' }
sub no_long_string ()        { $NoLongString = 1 }
sub no_root_location ()      { $NoRootLocation = 1 }
sub no_shuffle ()            { $NoShuffle = 1 }
sub check_accum_error_log () { $CheckAccumErrorLog = 1 }
sub server_root ()           { $ServRoot }
sub html_dir ()              { $HtmlDir }
sub sleep_time ()            { $TestNginxSleep }

sub env_to_nginx (@)            { push @EnvToNginx, @_ }
sub add_block_preprocessor (&)  { unshift @BlockPreprocessors, shift }
sub add_response_body_check (&) { push @ResponseBodyChecks, shift }
sub add_cleanup_handler ($)     { push @CleanupHandlers, shift }


1;
