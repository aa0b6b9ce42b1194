package Test::Nginx::StandIn::Client;

# Sends a request, reads until the server closes the connection or is silent
# for the time given, and takes responses apart.

use strict;
use warnings;

use Errno qw(EAGAIN EINTR EWOULDBLOCK);
use IO::Socket::INET ();
use Test::More ();
use Time::HiRes ();
use Test::Nginx::Util qw(bail_out parse_time verbose);


sub send_request {
    my ($block, $packets, $timeout) = @_;

    my $name = $block->name;
    my $abort = defined $block->abort;
    my $middle_delay = parse_time($block->raw_request_middle_delay);

    my $sock = IO::Socket::INET->new(
        PeerAddr => $Test::Nginx::Util::ServerAddr,
        PeerPort => $Test::Nginx::Util::ServerPortForClient,
        Proto    => 'tcp',
        Timeout  => $timeout,
    );

    if (!$sock) {
        Test::More::diag("$name - cannot connect to $Test::Nginx::Util::"
                         . "ServerAddr:$Test::Nginx::Util::"
                         . "ServerPortForClient: $!");
        return '';
    }

    $sock->blocking(0);
    binmode $sock;

    local $SIG{PIPE} = 'IGNORE';

    my @packets = @$packets;
    my $out = shift(@packets)->{value};
    my $response = '';
    my $writing = 1;

    verbose("request: $out");

    while (1) {

        if ($writing && $out eq '') {

            if (!@packets) {
                $writing = 0;

            } else {
                my $packet = shift @packets;
                my $delay = $packet->{delay_before} || $middle_delay;

                Time::HiRes::sleep($delay) if $delay;

                $out = $packet->{value};
                verbose("request: $out");
                next;
            }
        }

        my $in_bits = '';
        vec($in_bits, fileno $sock, 1) = 1;
        my $out_bits = $writing ? $in_bits : undef;

        my $n = select($in_bits, $out_bits, undef, $timeout);

        next if $n < 0 && $! == EINTR;

        if ($n <= 0) {
            warn "ERROR: client socket timed out - $name\n" if !$abort;
            last;
        }

        if (vec $in_bits, fileno $sock, 1) {
            my $bytes = sysread $sock, my $buf, 65536;

            if (defined $bytes) {
                last if $bytes == 0;
                $response .= $buf;

            } elsif ($! != EAGAIN && $! != EWOULDBLOCK && $! != EINTR) {
                warn "$name - read failed: $!\n";
                last;
            }
        }

        if ($writing && vec $out_bits, fileno $sock, 1) {
            my $bytes = syswrite $sock, $out;

            if (defined $bytes) {
                substr($out, 0, $bytes) = '';

            } elsif ($! != EAGAIN && $! != EWOULDBLOCK && $! != EINTR) {

                # the response may be there already

                warn "$name - write failed: $!\n";
                $writing = 0;
            }
        }
    }

    close $sock;

    verbose("response: $response");

    return $response;
}


# Returns a hash (code, header, content, raw_headers), what is left after this
# response, and what is wrong with it.  No response at all has the code ''.

sub parse_response {
    my ($name, $raw, $head_request) = @_;

    my %res = (code => '', header => {}, content => '', raw_headers => '');

    if ($raw !~ m{\A(HTTP/\d\.\d (\d{3})\b.*?\r\n)\r\n}s) {
        $res{content} = $raw;
        return \%res, '';
    }

    @res{qw(raw_headers code content)} = ($1, $2, substr $raw, $+[0]);

    my (undef, @lines) = split /\r\n/, $res{raw_headers};

    for my $line (@lines) {
        my ($key, $value) = $line =~ /^([^\s:]+)\s*:\s*(.*?)\s*$/ or next;

        push @{ $res{header}{lc $key} }, $value;
    }

    my $left = '';

    if ($head_request || $res{code} =~ /^(?:1..|204|304)$/) {
        ($left, $res{content}) = ($res{content}, '');

        return \%res, $left;
    }

    my ($encoding) = @{ $res{header}{'transfer-encoding'} || [] };
    my ($length) = @{ $res{header}{'content-length'} || [] };

    if (defined $encoding && lc $encoding eq 'chunked') {
        ($res{content}, $left, my $error) = dechunk($res{content});

        if (defined $error) {
            return undef, '', "invalid chunked data received ($error)";
        }

    } elsif (defined $length && $length =~ /^\d+$/) {
        my $got = length $res{content};

        if ($got < $length) {
            warn "WARNING: $name - response body truncated: $length expected,"
                 . " but got $got\n";

        } else {
            $left = substr $res{content}, $length, $got - $length, '';
        }
    }

    return \%res, $left;
}


sub dechunk {
    my ($raw) = @_;

    my $content = '';
    pos($raw) = 0;

    while (1) {
        $raw =~ /\G *([0-9A-Fa-f]+) *(?:;[^\r\n]*)?\r\n/gc
            or return $content, '',
                      pos($raw) == length $raw ? 'no last chunk'
                                               : 'expected chunk size';

        my $size = hex $1;

        if ($size == 0) {
            $raw =~ /\G(?:[^\r\n]+\r\n)*\r\n/gc
                or return $content, '', 'no end of the last chunk';

            return $content, substr $raw, pos $raw;
        }

        my $pos = pos $raw;

        if (length($raw) < $pos + $size + 2) {
            return $content . substr($raw, $pos, $size), '',
                   'not enough octets for the data section';
        }

        $content .= substr $raw, $pos, $size;

        pos($raw) = $pos + $size;

        $raw =~ /\G\r\n/gc or return $content, '', 'expected CRLF';
    }
}


# Several headers of one name are joined, as HTTP::Headers does it.

sub header {
    my ($res, $key) = @_;

    my $values = $res->{header}{lc $key};

    return $values ? join ', ', @$values : undef;
}


1;
