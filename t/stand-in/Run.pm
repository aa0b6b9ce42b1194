package Run;

# Runs small test files under the stand-in and takes their output apart.

use strict;
use warnings;

use Exporter 'import';
use File::Basename ();
use File::Temp ();
use IO::Socket::INET ();
use Cwd ();

our @EXPORT = qw(run run_blocks server_root free_port);

my $lib = Cwd::abs_path(File::Basename::dirname(__FILE__) . '/../lib');
my $dir = File::Temp->newdir();
my $port = free_port();


sub free_port {
    return IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
           ->sockport();
}


sub port {
    return $port;
}


sub server_root {
    return "$dir/servroot";
}


# Returns a hash: ok and not_ok (names of tests), plan, bail, exit, out (all of
# the output).

sub run {
    my ($source, %env) = @_;

    my $file = "$dir/input.t";

    open my $out, '>', $file or die "cannot write $file: $!";
    print $out $source;
    close $out;

    local %ENV = %ENV;

    delete @ENV{grep { /^TEST_NGINX_/ && $_ ne 'TEST_NGINX_BINARY' }
                     keys %ENV};
    delete $ENV{HARNESS_ACTIVE};

    $ENV{TEST_NGINX_PORT} = $port;
    $ENV{TEST_NGINX_SERVROOT} = server_root();
    $ENV{$_} = $env{$_} for keys %env;

    my $text = `$^X -I$lib $file 2>&1`;

    my %res = (exit => $?, out => $text, ok => [], not_ok => []);

    for (split /\n/, $text) {
        push @{ $res{ok} }, $2     if /^ok (\d+)(?: - )?(.*)/;
        push @{ $res{not_ok} }, $2 if /^not ok (\d+)(?: - )?(.*)/;
        $res{plan} = $1            if /^1\.\.(.*)/;
        $res{bail} = $1            if /^Bail out!\s*(.*)/;
    }

    return \%res;
}


# The same for blocks alone, under no_plan.

sub run_blocks {
    my ($blocks, %env) = @_;

    return run("use Test::Nginx::Socket 'no_plan';\n"
               . "no_shuffle();\n"
               . (delete $env{code} || '')
               . "run_tests();\n__DATA__\n$blocks", %env);
}


1;
