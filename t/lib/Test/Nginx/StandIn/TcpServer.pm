package Test::Nginx::StandIn::TcpServer;

# "--- tcp_listen": a server for one connection, in a process of its own.

use strict;
use warnings;

use File::Temp ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use POSIX ();
use Socket 'SOCK_STREAM';
use Test::More ();
use Time::HiRes ();
use Test::Nginx::Util qw(bail_out parse_time sleep_time verbose);

my ($pid, $query_file);


sub start {
    my ($block) = @_;

    my $name = $block->name;
    my $target = $block->tcp_listen;

    return if !defined $target;

    my $reply = $block->tcp_reply;
    my $query_len = $block->tcp_query_len;

    if (!defined $query_len && defined $block->tcp_query) {
        $query_len = length $block->tcp_query;
    }

    my $delay = parse_time($block->tcp_reply_delay);
    my $no_close = defined $block->tcp_no_close;
    my $listener = listener($name, $target);

    $query_file = File::Temp->new();

    $pid = fork();

    bail_out("$name - fork() failed: $!") if !defined $pid;

    if ($pid == 0) {
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);

        # never through the END blocks of the test

        eval {
            serve($listener, $query_len, $reply, $delay, $no_close);
            1;
        } or warn "$name - TCP server: $@";

        POSIX::_exit(0);
    }

    # only the child listens, so a second connection is refused

    close $listener;
}


sub listener {
    my ($name, $target) = @_;

    my $sock;

    if ($target =~ /^\d+$/) {
        $sock = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
                                      LocalPort => $target, Listen => 5,
                                      ReuseAddr => 1);

    } elsif ($target =~ m{^/\S+\.sock$}) {
        unlink $target;
        $sock = IO::Socket::UNIX->new(Local => $target, Listen => 5,
                                      Type => SOCK_STREAM);

    } else {
        bail_out("$name - bad tcp_listen target: $target");
    }

    bail_out("$name - cannot listen on $target: $!") if !$sock;

    return $sock;
}


sub serve {
    my ($listener, $query_len, $reply, $delay, $no_close) = @_;

    my $client = $listener->accept() or die "accept() failed: $!\n";

    close $listener;

    my $query = '';

    while (1) {
        my $bytes = sysread $client, $query, 65536, length $query;

        die "read failed: $!\n" if !defined $bytes;

        syswrite $query_file, $query, $bytes, length($query) - $bytes
            if $bytes;

        last if !$bytes || !$query_len || length $query >= $query_len;
    }

    verbose("TCP server has read: $query");

    Time::HiRes::sleep($delay) if $delay;

    $reply = $reply->($query) if ref $reply eq 'CODE';

    local $SIG{PIPE} = 'IGNORE';

    for my $part (ref $reply ? @$reply : $reply) {
        my $rest = $part;

        while (length $rest) {
            my $bytes = syswrite $client, $rest;

            die "write failed: $!\n" if !defined $bytes;

            substr($rest, 0, $bytes) = '';
        }
    }

    sleep 1 while $no_close;

    close $client;
}


# Ends the server and returns what it has read.

sub stop {
    return undef if !$pid;

    my $deadline = Time::HiRes::time() + sleep_time();
    my $killed;

    while (waitpid($pid, POSIX::WNOHANG()) == 0) {

        if (!$killed && Time::HiRes::time() > $deadline) {
            kill 'KILL', $pid;
            $killed = 1;
        }

        Time::HiRes::sleep(0.001);
    }

    undef $pid;

    seek $query_file, 0, 0;

    my $query = do { local $/; <$query_file> };

    return defined $query ? $query : '';
}


my $owner = $$;

END {
    if ($owner == $$) {
        local ($?, $!);
        stop();
    }
}


1;
