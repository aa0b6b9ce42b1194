package Test::Nginx::StandIn::Request;

# Requests of a block.  A request is a list of packets, each of them a hash:
# "value", and "delay_before" where the test file asks for it.

use strict;
use warnings;

use Test::Nginx::Util 'bail_out';


sub from_block {
    my ($block) = @_;

    my $name = $block->name;
    my $raw = $block->raw_request;

    if (defined $raw) {
        bail_out("$name - raw_request is empty")
            if $raw eq '' || ref $raw && !@$raw;

        return [map { { value => $_ } } ref $raw ? @$raw : $raw];
    }

    my $headers = $block->more_headers;

    if (defined(my $requests = $block->pipelined_requests)) {
        return [pipelined($name, $requests, $headers)];
    }

    my $request = $block->request;

    if (!ref $request) {
        return build($name, indexed($name, $headers, 0, 1), 'close',
                     $request);
    }

    if (ref $request ne 'ARRAY' || !@$request) {
        bail_out("$name - request must be a string or a non-empty array");
    }

    my $n = @$request;
    my @list;

    for my $i (0 .. $#$request) {
        my $one = $request->[$i];

        push @list, build($name, indexed($name, $headers, $i, $n), 'close',
                          ref $one eq 'ARRAY' ? @$one : $one);
    }

    return @list;
}


sub pipelined {
    my ($name, $requests, $headers) = @_;

    if (ref $requests ne 'ARRAY' || !@$requests) {
        bail_out("$name - invalid entries in --- pipelined_requests");
    }

    my $n = @$requests;
    my $text = '';

    for my $i (0 .. $#$requests) {
        my $packets = build($name, indexed($name, $headers, $i, $n),
                            $i == $#$requests ? 'close' : 'keep-alive',
                            $requests->[$i]);

        $text .= $packets->[0]{value};
    }

    return { value => $text };
}


# more_headers is one for all requests, or an array

sub indexed {
    my ($name, $headers, $i, $n) = @_;

    return defined $headers ? $headers : '' if !ref $headers;

    if (ref $headers ne 'ARRAY' || @$headers != $n) {
        bail_out("$name - more_headers must have $n elements, as requests");
    }

    return $headers->[$i];
}


sub build {
    my ($name, $headers, $connection, @packets) = @_;

    @packets = map {
        my $packet = ref $_ ? $_ : { value => $_ };

        if (ref $packet ne 'HASH' || !defined $packet->{value}
            || grep { !/^(value|delay_before)$/ } keys %$packet)
        {
            bail_out("$name - Invalid syntax. A packet should be a string or"
                     . " { value => ..., delay_before => ... }");
        }

        $packet;
    } @packets;

    my $text = join '', map { $_->{value} } @packets;

    if ($text !~ /\A(\s*)(\S+)(?: +(\S+))?(?: +(\S+))?[ \t]*(?:\r?\n|\z)/) {
        bail_out("$name - Request line is not valid. Should be"
                 . " 'meth [url [version]]' but got \"$text\".");
    }

    my ($method, $url, $version) = ($2, $3, $4);
    my $skipped = length $1;                    # before the method
    my $line_end = $+[0];                       # the body starts here
    my $kept_end = defined $url ? $+[3] : $+[2];

    $url = '/' if !defined $url;
    $version = 'HTTP/1.1' if !defined $version;

    my $body = substr $text, $line_end;
    my ($more, %has) = more_headers($name, $headers);

    if ($body ne '' && !$has{chunked} && !$has{'content-length'}) {
        $line_end += length $1 if $body =~ s/\A(\s+)//;
        $body =~ s/\s+\z//;
        $more .= 'Content-Length: ' . length($body) . "\r\n";
    }

    my $head = "$method $url $version\r\n";

    $head .= "Host: $Test::Nginx::Util::ServerName\r\n" if !$has{host};
    $head .= "Connection: $connection\r\n"              if !$has{connection};
    $head .= "$more\r\n";

    # packets end where they did: in the request line or in the body, the
    # header goes out with what is left of the request line

    my ($result, $from, $to) = ("$head$body", 0, 0);
    my @list;

    for my $i (0 .. $#packets) {
        $to += length $packets[$i]{value};

        my $end = $i == $#packets    ? length $result
                : $to <= $skipped    ? 0
                : $to <= $kept_end   ? $to - $skipped
                : $to <= $line_end   ? length $head
                : length($head) + $to - $line_end;

        $end = length $result if $end > length $result;

        push @list, { %{ $packets[$i] },
                      value => substr $result, $from, $end - $from };
        $from = $end;
    }

    return \@list;
}


sub more_headers {
    my ($name, $headers) = @_;

    my $text = '';
    my %has;

    for my $line (split /\n+/, $headers) {
        next if $line =~ /^\s*\#/;

        my ($key, $value) = split /:\s*/, $line, 2;

        if (!defined $value) {
            bail_out("$name - more_headers: no colon in \"$line\"");
        }

        $has{lc $key} = 1;
        $has{chunked} = 1
            if lc $key eq 'transfer-encoding' && $value =~ /^chunked\b/i;

        $text .= "$key: $value\r\n";
    }

    return $text, %has;
}


1;
