#!/usr/bin/perl
# A DNS server for trying the example: on 127.0.0.1, every name stands for the addresses in FILE, one
# a line, which is read for each question.
#
#   dns.pl PORT FILE
use strict;
use warnings;
use IO::Socket::INET;

my ($port, $file) = @ARGV;
die "usage: dns.pl PORT FILE\n" unless defined $file;
my $socket = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1', LocalPort => $port)
    or die "dns.pl: port $port: $!\n";

while (defined $socket->recv(my $query, 1024)) {
    # One question: the labels of the name, its type and class.
    my ($id, $question, $type) = $query =~ /^(..).{10}((?:[^\0].*?)?\0(..)..)/s or next;
    my @addresses;
    if ($type eq "\0\1" && open my $in, '<', $file) {
        @addresses = map { /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/ ? pack('C4', $1, $2, $3, $4) : () } <$in>;
    }
    # Each answer: the name of the question, type A, class IN, a second to live, four bytes.
    $socket->send(join '', $id, pack('n5', 0x8180, 1, scalar @addresses, 0, 0), $question,
        map { pack("nnnNn", 0xc00c, 1, 1, 1, 4) . $_ } @addresses);
}
