# Every message that the module has for a configuration, with one that brings it
# about, its whole text, and its line.  A message of the sources that has no
# block here fails the file: as many blocks as places that print it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/support";

use Test::Nginx::Socket 'no_plan';
use ConfBlocks;

check_sources();
run_tests();

# Messages that no configuration can bring about.

sub unreachable {
    return (
        # an nginx of other structures than those of the build
        'emerg ngx_http_combined_upstreams_module was built with bindings that'
        . ' do not fit nginx\'s structures' => 1,

        # an nginx without PCRE2
        'emerg using regex "~{}" requires PCRE2 library' => 1,

        # a directive of nginx's that a singlet takes over from its host, where
        # nginx has accepted it
        'emerg "{}" directive {} in singlet "{}"' => 1,

        # no memory: tests/faults.rs
        'emerg malloc() failed' => 1,

        # a zone that nginx's slab allocator can't take, though it was found
        # large enough
        'emerg zone "{}" is too small: its upstrands need {}k' => 1,
    );
}

# The sources' messages as "LEVEL FORMAT", each with the number of places that
# print it.

sub source_messages {
    my %count;

    for my $file (source_files("$FindBin::Bin/../src")) {
        my $text = do { local (@ARGV, $/) = $file; <> };

        # what prints for all of them
        next if $text =~ /\bpub fn refuse_at\b/;

        $text =~ s{^\s*//.*$}{}mg;
        $text =~ s/^#\[cfg\(test\)\].*//ms;

        my $string = qr/"((?:[^"\\]|\\.)*)"/s;

        while ($text =~ /\.(refuse|warn)(?:_at)?(?:::<[^()]*>)?\(/g) {
            my $level = $1 eq 'refuse' ? 'emerg' : 'warn';

            if ($text =~ /\G\s*(?:[\w.]+(?:\(\))?,\s*)?format_args!\(\s*$string/gc) {
                $count{"$level " . unescape($1)}++;

            } else {
                fail("$file: a message that this test can't read: "
                     . substr $text, pos $text, 80);
            }
        }

        while ($text =~ /\bngx(?:_conf)?_log_error!\(\s*(?:\w+::)*(\w+)/g) {
            my $name = $1;

            # others are of the run time
            next if $name =~ /^NGX_LOG_(?!EMERG|WARN)/;

            my $level = $name eq 'NGX_LOG_EMERG' ? 'emerg' : 'warn';

            if ($name =~ /^NGX_LOG_/ && $text =~ /\G[^";]*?$string/gc) {
                $count{"$level " . unescape($1)}++;

            } else {
                fail("$file: a message that this test can't read: "
                     . substr $text, pos $text, 80);
            }
        }

        while ($text =~ /\bDirective\(\s*c$string,?\s*\)/g) {
            $count{'emerg "{}" directive ' . unescape($1)}++;
        }
    }

    return \%count;
}

sub source_files {
    my ($dir) = @_;

    opendir my $in, $dir or die "cannot read $dir: $!";

    my @names = map { "$dir/$_" } grep { !/^\./ } sort readdir $in;

    return map { -d $_ ? source_files($_) : /\.rs$/ ? $_ : () } @names;
}

sub unescape {
    my ($text) = @_;

    $text =~ s/\\\n\s*//g;
    $text =~ s/\\(.)/$1/g;
    $text =~ s/\{[^{}]*\}/{}/g;

    return $text;
}

# A block's message belongs to the format that leaves the least to be filled in.

sub check_sources {
    my $count = source_messages();
    my %unreachable = unreachable();
    my %tests;

    cmp_ok(scalar keys %$count, '>', 30, 'the sources have messages');

    # PCRE's own text is all of it
    my %regex = ('emerg {}' => qr/^emerg pcre2_compile\(\) failed: /);

    my @formats = sort { literal($b) <=> literal($a) } keys %$count;

    for my $format (@formats) {
        my $text = join '.+', map { quotemeta } split /\{\}/, $format, -1;
        $regex{$format} ||= qr/^$text$/;
    }

    for my $block (blocks()) {
        for my $level (qw(emerg warning)) {
            my $text = $level eq 'emerg' ? $block->emerg : $block->warning;

            for my $line (split /\n/, defined $text ? $text : '') {
                (my $said = $line) =~ s/^\S+ //;
                $said = ($level eq 'emerg' ? 'emerg' : 'warn') . " $said";

                my ($format) = grep { $said =~ $regex{$_} } @formats;
                $tests{$format}++ if defined $format;
            }
        }
    }

    for my $format (sort keys %$count) {
        my $wanted = $count->{$format} - ($unreachable{$format} || 0);
        my $have = $tests{$format} || 0;

        next if $wanted == 0;

        cmp_ok($have, '>=', $wanted,
               "places that print \"$format\": $wanted, each with a test");
    }

    for my $format (sort keys %unreachable) {
        ok($count->{$format}, "the sources have \"$format\"");
    }

    # as many directives as the table of lib.rs has

    my $table = do { local (@ARGV, $/) = "$FindBin::Bin/../src/lib.rs"; <> };
    my @names = $table =~ /\bdirective\(\s*b"(\w+)\\0"/g;
    my $all = join "\n", map { $_->emerg } grep { defined $_->emerg } blocks();

    cmp_ok(scalar @names, '>', 10, 'the module has directives');

    for my $name (@names) {
        like($all, qr/ "\Q$name\E" directive is not allowed here$/m,
             "$name in a wrong place has a test");
        like($all, qr/ invalid number of arguments in "\Q$name\E" directive$/m,
             "$name with a wrong number of arguments has a test");
    }
}

sub literal {
    my ($format) = @_;

    $format =~ s/\{\}//g;

    return length $format;
}

__DATA__

=== TEST 1: add_upstream: the upstream itself
--- http
upstream c {
    server 127.0.0.1:9;
    add_upstream c;
}
--- must_die
--- emerg
http.conf:3: upstream "c" makes recursion



=== TEST 2: add_upstream: backup twice
--- http
upstream c {
    add_upstream u1 backup backup;
}
--- must_die
--- emerg
http.conf:2: parameter "backup" has been already declared



=== TEST 3: add_upstream: weight= twice
--- http
upstream c {
    add_upstream u1 weight=1 weight=2;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" has been already declared



=== TEST 4: add_upstream: a weight that is none
--- http
upstream c {
    add_upstream u1 weight=0;
}
--- must_die
--- emerg
http.conf:2: parameter "weight" must be a positive integer value in "weight=0"



=== TEST 5: add_upstream: a word that is none
--- http
upstream c {
    add_upstream u1 frob;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "frob"



=== TEST 6: add_upstream: an unknown name
--- http
upstream c {
    add_upstream nope;
}
--- must_die
--- emerg
http.conf:2: upstream "nope" not found



=== TEST 7: add_upstream: backup under a method without backups
--- http
upstream c {
    ip_hash;
    add_upstream u1 backup;
}
--- must_die
--- emerg
http.conf:3: balancing method does not support parameter "backup"



=== TEST 8: add_upstream: backup above a method without backups
--- http
upstream c {
    server 127.0.0.1:1;
    add_upstream u1 backup;
    ip_hash;
}
--- must_die
--- emerg
http.conf:3: balancing method does not support parameter "backup"



=== TEST 9: add_upstream: a product of weights that is too large
--- http
upstream d { server 127.0.0.1:9 weight=3; }
upstream c {
    add_upstream d weight=9223372036854775807;
}
--- must_die
--- emerg
http.conf:3: weight 3 of server "127.0.0.1:9" times "weight=9223372036854775807" is too large



=== TEST 10: add_upstream: backup servers under a method without backups
--- http
upstream d { server unix:$DIR/s1.sock; server 127.0.0.1:8 backup; }
upstream c {
    hash $uri;
    add_upstream d;
}
--- warning
http.conf:4: backup servers of upstream "d" are not used by the balancing method of upstream "c"



=== TEST 11: combine_server_singlets: byname with a width
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets byname 2;
}
--- must_die
--- emerg
http.conf:3: setting field width is not permitted when using "byname" value: "2"



=== TEST 12: combine_server_singlets: a width that is none
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ x;
}
--- must_die
--- emerg
http.conf:3: field width "x" must be an integer value



=== TEST 13: combine_server_singlets: a third word that is none
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _s_ 2 x;
}
--- must_die
--- emerg
http.conf:3: invalid parameter "x"



=== TEST 14: combine_server_singlets: no server yet
--- http
upstream c {
    combine_server_singlets;
    server 127.0.0.1:9;
}
--- must_die
--- emerg
http.conf:2: no server so far declared to build singlets



=== TEST 15: combine_server_singlets: a name that is taken
--- http
upstream c1 { server 127.0.0.1:9; }
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets;
}
--- must_die
--- emerg
http.conf:4: duplicate upstream "c1"



=== TEST 16: combine_server_singlets: a method without backups
--- http
upstream c {
    ip_hash;
    server unix:$DIR/s1.sock;
    combine_server_singlets;
}
--- warning
http.conf:4: singlets of upstream "c" use round robin instead of its balancing method



=== TEST 17: extend_single_peers twice
--- http
upstream c {
    server 127.0.0.1:9;
    extend_single_peers;
    extend_single_peers;
}
--- must_die
--- emerg
http.conf:4: "extend_single_peers" directive is duplicate



=== TEST 18: upstrand: an empty name
--- http
upstrand "" {
    upstream u1;
}
--- must_die
--- emerg
http.conf:1: invalid upstrand name ""



=== TEST 19: upstrand: a name twice
--- http
upstrand a { upstream u1; }
upstrand A { upstream u1; }
--- must_die
--- emerg
http.conf:2: duplicate upstrand "A"



=== TEST 20: upstrand: a name whose variable there is
--- http
upstrand addr { upstream u1; }
--- must_die
--- emerg
http.conf:1: the duplicate "upstrand_addr" variable



=== TEST 21: upstrand: no members
--- http
upstrand a {
    order per_request;
}
--- must_die
--- emerg
http.conf:3: no upstream registered in upstrand "a"



=== TEST 22: upstrand: no members, as a regex matches nothing
--- http
upstrand a {
    upstream ~^zz;
}
--- must_die
--- emerg
http.conf:2: no upstream matches "~^zz", and none else is registered in upstrand "a"



=== TEST 23: upstream: a regex that matches nothing beside a member
--- http
upstrand a {
    upstream u1;
    upstream ~^zz;
}
--- warning
http.conf:3: no upstream matches "~^zz" in upstrand "a"



=== TEST 24: upstream: a regex that matches what stands below, beside a member
--- http
upstrand a {
    upstream u1;
    upstream ~^below;
}
upstream below { server 127.0.0.1:9; }
--- must_die
--- emerg
http.conf:3: upstream "below" matches "~^below" in upstrand "a", but is declared below it



=== TEST 25: upstream: a regex that does not compile
--- http
upstrand a {
    upstream ~(u;
}
--- must_die
--- emerg
http.conf:2: pcre2_compile() failed: ... in "(u"



=== TEST 26: upstream: a tier that is none
--- http
upstrand a {
    upstream u1 tier=x;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "tier=x"



=== TEST 27: upstream: an interval that is none
--- http
upstrand a {
    upstream u1 blacklist_interval=x;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "blacklist_interval=x"



=== TEST 28: upstream: a word that is none
--- http
upstrand a {
    upstream u1 frob;
}
--- must_die
--- emerg
http.conf:2: invalid parameter "frob"



=== TEST 29: upstream: an unknown name
--- http
upstrand a {
    upstream nope;
}
--- must_die
--- emerg
http.conf:2: upstream "nope" is not found



=== TEST 30: order: a word that is none
--- http
upstrand a {
    upstream u1;
    order frob;
}
--- must_die
--- emerg
http.conf:3: invalid value "frob"



=== TEST 31: order: a word twice
--- http
upstrand a {
    upstream u1;
    order per_request per_request;
}
--- must_die
--- emerg
http.conf:3: duplicate value "per_request"



=== TEST 32: order twice
--- http
upstrand a {
    upstream u1;
    order per_request;
    order start_random;
}
--- must_die
--- emerg
http.conf:4: "order" directive is duplicate



=== TEST 33: next_upstream_statuses: a word that is none
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 600;
}
--- must_die
--- emerg
http.conf:3: invalid value "600"



=== TEST 34: next_upstream_statuses: a word twice
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses 5xx error 5xx;
}
--- warning
http.conf:3: duplicate value "5xx"



=== TEST 35: next_upstream_timeout: a time that is none
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 1x;
}
--- must_die
--- emerg
http.conf:3: invalid value "1x"



=== TEST 36: next_upstream_timeout twice
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout 0;
    next_upstream_timeout 1s;
}
--- must_die
--- emerg
http.conf:4: "next_upstream_timeout" directive is duplicate



=== TEST 37: next_upstream_tries: a number that is none
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 1.5;
}
--- must_die
--- emerg
http.conf:3: invalid value "1.5"



=== TEST 38: next_upstream_tries twice
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 0;
    next_upstream_tries 1;
}
--- must_die
--- emerg
http.conf:4: "next_upstream_tries" directive is duplicate



=== TEST 39: intercept_statuses: non_idempotent
--- http
upstrand a {
    upstream u1;
    intercept_statuses non_idempotent /f;
}
--- must_die
--- emerg
http.conf:3: invalid value "non_idempotent"



=== TEST 40: intercept_statuses: a word that an earlier line covers
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx /f;
    intercept_statuses 503 /g;
}
--- warning
http.conf:4: "503" is intercepted by an earlier "intercept_statuses"



=== TEST 41: intercept_statuses: a URI that is none
--- http
upstrand a {
    upstream u1;
    intercept_statuses 502 503;
}
--- must_die
--- emerg
http.conf:3: invalid URI "503"



=== TEST 42: intercept_statuses: a URI with a variable without a name
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx /f$;
}
--- must_die
--- emerg
http.conf:3: invalid variable name



=== TEST 43: intercept_statuses: a URI with an unknown variable
--- http
upstrand a {
    upstream u1;
    intercept_statuses 5xx /f/$nope;
}
--- must_die
--- emerg
- unknown "nope" variable



=== TEST 44: zone: an empty name
--- http
upstrand a {
    upstream u1;
    zone "" 64k;
}
--- must_die
--- emerg
http.conf:3: invalid zone name ""



=== TEST 45: zone: a size that is none
--- http
upstrand a {
    upstream u1;
    zone z 64q;
}
--- must_die
--- emerg
http.conf:3: invalid zone size "64q"



=== TEST 46: zone: a size below nginx's least
--- http
upstrand a {
    upstream u1;
    zone z 8k;
}
--- must_die
--- emerg
http.conf:3: zone "z" is too small: its upstrands need ...k



=== TEST 47: zone: a size below what its upstrands need
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets _ 4000;
    combine_server_singlets - 4000;
    combine_server_singlets s 4000;
    combine_server_singlets t 4000;
    combine_server_singlets u 4000;
    combine_server_singlets v 4000;
    combine_server_singlets w 4000;
    combine_server_singlets x 4000;
}
upstrand a {
    upstream ~^c.0;
    zone z 32k;
}
--- must_die
--- emerg
http.conf:14: zone "z" is too small: its upstrands need ...k



=== TEST 48: zone: no size
--- http
upstrand a {
    upstream u1;
    zone z;
}
--- must_die
--- emerg
http.conf:3: zone "z" has no size: its upstrands need ...k



=== TEST 49: zone: two sizes
--- http
upstrand a { upstream u1; zone z 64k; }
upstrand b {
    upstream u1;
    zone z 128k;
}
--- must_die
--- emerg
http.conf:4: the size 131072 of shared memory zone "z" conflicts with already declared size 65536



=== TEST 50: zone: the name of a zone that is none of an upstrand
--- http
upstream c { server 127.0.0.1:9; zone z 64k; }
upstrand a {
    upstream u1;
    zone z 64k;
}
--- must_die
--- emerg
http.conf:4: the shared memory zone "z" is already declared for a different use



=== TEST 51: zone twice
--- http
upstrand a {
    upstream u1;
    zone z 64k;
    zone z;
}
--- must_die
--- emerg
http.conf:4: "zone" directive is duplicate



=== TEST 52: dynamic_upstrand: a variable without a dollar sign
--- server
dynamic_upstrand d a;
--- must_die
--- emerg
server.conf:1: invalid variable name "d"



=== TEST 53: dynamic_upstrand: a lone dollar sign
--- server
dynamic_upstrand $d $ a;
--- must_die
--- emerg
server.conf:1: invalid variable name "$"



=== TEST 54: dynamic_upstrand: a variable with a value of its own
--- server
dynamic_upstrand $host a;
--- must_die
--- emerg
server.conf:1: the duplicate "host" variable



=== TEST 55: dynamic_upstrand: two lines for one variable
--- http
upstrand a { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d a;
    dynamic_upstrand $d a;
}
--- must_die
--- emerg
server.conf:3: duplicate "dynamic_upstrand" for variable "$d"



=== TEST 56: dynamic_upstrand: words after the literal
--- http
upstrand a { upstream u1; }
--- server
location /t {
    dynamic_upstrand $d a $arg_x;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "$arg_x" after upstrand "a"



=== TEST 57: dynamic_upstrand: an unknown upstrand
--- server
location /t {
    dynamic_upstrand $d a;
}
--- must_die
--- emerg
server.conf:2: upstrand "a" is not found



=== TEST 58: dynamic_upstrand: an unknown variable
--- http
upstrand a { upstream u1; }
--- server
dynamic_upstrand $d $nope a;
--- must_die
--- emerg
- unknown "nope" variable



=== TEST 59: add_upstream: a wrong number of arguments
--- http
upstream c {
    server 127.0.0.1:9;
    add_upstream;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "add_upstream" directive



=== TEST 60: combine_server_singlets: a wrong number of arguments
--- http
upstream c {
    server 127.0.0.1:9;
    combine_server_singlets a 2 nobackup x;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "combine_server_singlets" directive



=== TEST 61: extend_single_peers: a wrong number of arguments
--- http
upstream c {
    server 127.0.0.1:9;
    extend_single_peers on;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "extend_single_peers" directive



=== TEST 62: upstrand: a wrong number of arguments
--- http
# no name

upstrand {
    upstream u1;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "upstrand" directive



=== TEST 63: upstream: a wrong number of arguments
--- http
upstrand a {
    upstream u1;
    upstream;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "upstream" directive



=== TEST 64: order: a wrong number of arguments
--- http
upstrand a {
    upstream u1;
    order;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "order" directive



=== TEST 65: next_upstream_statuses: a wrong number of arguments
--- http
upstrand a {
    upstream u1;
    next_upstream_statuses;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "next_upstream_statuses" directive



=== TEST 66: next_upstream_timeout: a wrong number of arguments
--- http
upstrand a {
    upstream u1;
    next_upstream_timeout;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "next_upstream_timeout" directive



=== TEST 67: next_upstream_tries: a wrong number of arguments
--- http
upstrand a {
    upstream u1;
    next_upstream_tries 1 2;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "next_upstream_tries" directive



=== TEST 68: intercept_statuses: a wrong number of arguments
--- http
upstrand a {
    upstream u1;
    intercept_statuses /f;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "intercept_statuses" directive



=== TEST 69: zone: a wrong number of arguments
--- http
upstrand a {
    upstream u1;
    zone;
}
--- must_die
--- emerg
http.conf:3: invalid number of arguments in "zone" directive



=== TEST 70: dynamic_upstrand: a wrong number of arguments
--- server
dynamic_upstrand $d;
--- must_die
--- emerg
server.conf:1: invalid number of arguments in "dynamic_upstrand" directive



=== TEST 71: add_upstream: a wrong place
--- server
location /t {
    add_upstream x y;
}
--- must_die
--- emerg
server.conf:2: "add_upstream" directive is not allowed here



=== TEST 72: combine_server_singlets: a wrong place
--- server
location /t {
    combine_server_singlets x y;
}
--- must_die
--- emerg
server.conf:2: "combine_server_singlets" directive is not allowed here



=== TEST 73: extend_single_peers: a wrong place
--- server
location /t {
    extend_single_peers x y;
}
--- must_die
--- emerg
server.conf:2: "extend_single_peers" directive is not allowed here



=== TEST 74: upstrand: a wrong place
--- server
location /t {
    upstrand x y { }
}
--- must_die
--- emerg
server.conf:2: "upstrand" directive is not allowed here



=== TEST 75: upstream: a wrong place
--- server
location /t {
    upstream x y;
}
--- must_die
--- emerg
server.conf:2: "upstream" directive is not allowed here



=== TEST 76: order: a wrong place
--- server
location /t {
    order x y;
}
--- must_die
--- emerg
server.conf:2: "order" directive is not allowed here



=== TEST 77: next_upstream_statuses: a wrong place
--- server
location /t {
    next_upstream_statuses x y;
}
--- must_die
--- emerg
server.conf:2: "next_upstream_statuses" directive is not allowed here



=== TEST 78: next_upstream_timeout: a wrong place
--- server
location /t {
    next_upstream_timeout x y;
}
--- must_die
--- emerg
server.conf:2: "next_upstream_timeout" directive is not allowed here



=== TEST 79: next_upstream_tries: a wrong place
--- server
location /t {
    next_upstream_tries x y;
}
--- must_die
--- emerg
server.conf:2: "next_upstream_tries" directive is not allowed here



=== TEST 80: intercept_statuses: a wrong place
--- server
location /t {
    intercept_statuses x y;
}
--- must_die
--- emerg
server.conf:2: "intercept_statuses" directive is not allowed here



=== TEST 81: zone: a wrong place
--- server
location /t {
    zone x y;
}
--- must_die
--- emerg
server.conf:2: "zone" directive is not allowed here



=== TEST 82: dynamic_upstrand: a wrong place
--- http
dynamic_upstrand $d a;
--- must_die
--- emerg
http.conf:1: "dynamic_upstrand" directive is not allowed here



=== TEST 83: dynamic_upstrand: a source twice
--- http
upstrand one { upstream u1; }
--- server
dynamic_upstrand $d $arg_x $arg_x one;
--- must_die
--- emerg
server.conf:1: duplicate parameter "$arg_x"



=== TEST 84: upstrand_status: a wrong number of arguments
--- server
location /t {
    upstrand_status json html;
}
--- must_die
--- emerg
server.conf:2: invalid number of arguments in "upstrand_status" directive



=== TEST 85: upstrand_api: a wrong number of arguments
--- server
location /t {
    upstrand_api on;
}
--- must_die
--- emerg
server.conf:2: invalid number of arguments in "upstrand_api" directive



=== TEST 86: upstrand_status: a wrong place
--- server
upstrand_status;
--- must_die
--- emerg
server.conf:1: "upstrand_status" directive is not allowed here



=== TEST 87: upstrand_api: a wrong place
--- server
upstrand_api;
--- must_die
--- emerg
server.conf:1: "upstrand_api" directive is not allowed here



=== TEST 88: upstrand_status: a format that is none
--- server
location /t {
    upstrand_status xml;
}
--- must_die
--- emerg
server.conf:2: invalid parameter "xml"



=== TEST 89: upstrand_status twice
--- server
location /t {
    upstrand_status;
    upstrand_status html;
}
--- must_die
--- emerg
server.conf:3: "upstrand_status" directive is duplicate



=== TEST 90: upstrand_status and upstrand_api in one location
--- server
location /t {
    upstrand_status;
    upstrand_api;
}
--- must_die
--- emerg
server.conf:3: "upstrand_api" directive can't stand beside the other one of "upstrand_status" and "upstrand_api"
