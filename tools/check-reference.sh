#!/usr/bin/env bash
# Compares what is written about the module with what the module has:
# - README.md has a section for each directive of the table in src/lib.rs, with Syntax, Default,
#   Context and Since, and the context is the table's;
# - README.md has each variable of src/variables.rs, and each message that src/ can log;
# - contrib/directives.json is what the tables say, and Vim's syntax file knows all directives;
# - src/ opens no files and no sockets of its own.
#
#   tools/check-reference.sh            prints TAP, fails if anything differs
#   tools/check-reference.sh --write    writes contrib/directives.json
set -eu
cd "$(dirname "$0")/.."
exec perl - "$@" <<'PERL'
use strict;
use warnings;

my $write = @ARGV && $ARGV[0] eq '--write';
my $json  = 'contrib/directives.json';
my $wrong = 0;

sub slurp {
    open my $file, '<', $_[0] or return undef;
    local $/;
    return scalar <$file>;
}

sub ok {
    my ($good, $what, @why) = @_;
    print +($good ? 'ok' : 'not ok'), " - $what\n";
    print STDERR "  $_\n" for $good ? () : @why;
    $wrong = 1 unless $good;
}

sub need { slurp($_[0]) // die "$_[0]: $!\n" }

# The tables.
my $lib = need('src/lib.rs');
my %constant;
$constant{$1} = $2 while $lib =~ /const (\w+): u32 = ([^;]+);/g;

sub bits {
    return map { exists $constant{$_} ? bits($constant{$_}) : $_ } $_[0] =~ /\w+/g;
}

my %context = (
    NGX_MAIN_CONF      => 'upstrand',     # see src/conf/upstrand.rs
    NGX_HTTP_MAIN_CONF => 'http',
    NGX_HTTP_SRV_CONF  => 'server',
    NGX_HTTP_LOC_CONF  => 'location',
    NGX_HTTP_UPS_CONF  => 'upstream',
    NGX_HTTP_SIF_CONF  => 'if in server',
    NGX_HTTP_LIF_CONF  => 'if in location',
    NGX_HTTP_LMT_CONF  => 'limit_except',
);
my %count = (
    NGX_CONF_NOARGS => [0, 0],
    NGX_CONF_FLAG   => [1, 1],
    NGX_CONF_ANY    => [0, undef],
    map({ ("NGX_CONF_TAKE$_" => [$_, $_]) } 1 .. 7),
    NGX_CONF_1MORE => [1, undef],
    NGX_CONF_2MORE => [2, undef],
);

my ($table) = $lib =~ /static mut COMMANDS\b.*? = \[(.*?)\n\];/s or die "src/lib.rs: no table\n";
$table =~ s{//.*}{}g;
my @directives;
while ($table =~ /\bdirective\(\s*b"(\w+)\\0",\s*([^,]+),/g) {
    my ($name, @bits) = ($1, bits($2));
    my ($min, $max, $more) = (99, 0);
    my %own = (name => $name, flags => \@bits, contexts => [], block => 0);
    for my $bit (@bits) {
        if (my $context = $context{$bit}) { push @{ $own{contexts} }, $context }
        elsif (my $count = $count{$bit}) {
            $min = $count->[0] if $count->[0] < $min;
            if (defined $count->[1]) { $max = $count->[1] if $count->[1] > $max }
            else                     { $more = 1 }
        }
        elsif ($bit eq 'NGX_CONF_BLOCK') { $own{block} = 1 }
        else                             { die "src/lib.rs: what is $bit?\n" }
    }
    @own{qw(min max)} = ($min, $more ? undef : $max);
    push @directives, \%own;
}
die "src/lib.rs: no directives\n" unless @directives;

my $variables_rs = need('src/variables.rs');
my ($variable_table) = $variables_rs =~ /const TABLE:[^=]*=\s*\[(.*?)\];/s
    or die "src/variables.rs: no table\n";
my @variables = $variable_table =~ /\(b"(\w+)"/g;
die "src/variables.rs: no variables\n" unless @variables;

# The list for tools.
my $list = qq({\n  "module": "ngx_http_combined_upstreams_module",\n  "directives": [\n);
$list .= join ",\n", map {
    my $own = $_;
    sprintf qq(    {\n      "name": "%s",\n      "contexts": [%s],\n)
        . qq(      "arguments": {"min": %d, "max": %s},\n      "block": %s,\n      "flags": [%s]\n    }),
        $own->{name}, join(', ', map { qq("$_") } @{ $own->{contexts} }), $own->{min},
        $own->{max} // 'null', $own->{block} ? 'true' : 'false',
        join(', ', map { qq("$_") } @{ $own->{flags} });
} @directives;
$list .= qq(\n  ],\n  "variables": [\n);
$list .= join ",\n", map { qq(    "$_") } @variables, 'upstrand_*';
$list .= qq(\n  ]\n}\n);

if ($write) {
    open my $file, '>', $json or die "$json: $!\n";
    print $file $list;
    close $file or die "$json: $!\n";
    exit;
}

my $there = slurp($json) // '';
ok($there eq $list, "$json is what the tables say", 'run tools/check-reference.sh --write');

my $vim = slurp('contrib/vim/after/syntax/nginx.vim') // '';
my @unknown = grep { $vim !~ /\b$_\b/ } map { $_->{name} } @directives;
ok(!@unknown, 'the syntax file for Vim knows all directives', @unknown);

# README.md.
my $readme = slurp('README.md') // '';
my %section;
$section{$1} = $2 while $readme =~ /^### `?(\w+)`?$(.*?)(?=^#{1,3} |\z)/gms;

for my $own (@directives) {
    my $name = $own->{name};
    my $text = $section{$name};
    my @why;
    if (!defined $text) { push @why, "no section \"### $name\"" }
    else {
        my %line;
        $line{$1} = $2 while $text =~ /^\*\*(Syntax|Default|Context|Since):?\*\*:? *(.+?)\\?$/gm;
        push @why, map { "no $_" } grep { !defined $line{$_} } qw(Syntax Default Context Since);
        push @why, "Syntax is another directive's"
            if defined $line{Syntax} && $line{Syntax} !~ /^`$name\b/;
        push @why, 'Since is no version' if defined $line{Since} && $line{Since} !~ /^\d+\.\d+\.\d+$/;
        my $said = join ', ', sort split /, */, ($line{Context} // '') =~ tr/`//dr;
        my $is   = join ', ', sort @{ $own->{contexts} };
        push @why, "Context is \"$said\", in the table \"$is\"" if $said ne $is;
    }
    ok(!@why, "README.md: $name", @why);
}
for my $variable (@variables) {
    ok(scalar($readme =~ /`\$$variable`/), "README.md: \$$variable", "not there");
}

# Messages: what src/ writes as {} stands in README.md as a word of its choice.
my @messages;
for my $path (split /\n/, `find src -name '*.rs'`) {
    my $code = need($path);
    my $text = qr/"((?:[^"\\]|\\.)*)"/s;
    push @messages, [$path, $1]
        while $code =~ /\.(?:refuse|refuse_at|warn|warn_at)\((?:[^()"]|\(\))*?format_args!\(\s*$text/gs;
    push @messages, [$path, $1] while $code =~ /ngx_log_error!\([^"]*$text/gs;
    push @messages, [$path, "directive $1"] while $code =~ /Refused::Directive\(\s*c"((?:[^"\\]|\\.)*)",?\s*\)/gs;
}
my (%seen, @missing);
for (@messages) {
    my ($path, $message) = @$_;
    $message =~ s/\\\n\s*//g;
    $message =~ s/\\(.)/$1/g;
    $message =~ s/\{place\}$//;
    next if $message =~ /^[{}\w]*\}$/ || $seen{$message}++;     # nginx's or a library's text
    my $pattern = join '.+?', map { quotemeta } split /\{\w*\}/, $message, -1;
    push @missing, "$path: $message" unless $readme =~ /$pattern/;
}
ok(%seen > 10 && !@missing, 'README.md: messages', @missing);

# SECURITY.md: no listener, and no files. (src/nginx/fault.rs is not in a build for use.)
my $reach = qr/\bstd::(?:fs|net|os::unix::net|process::Command)\b|\bngx_(?:create_listening|open_\w*file\w*|create_file\w*)\b|\bfn (?:socket|open|fopen)\b/;
my @reaching;
for my $path (split /\n/, `find src -name '*.rs' -o -name '*.c'`) {
    my $line = 0;
    $line++, /$reach/ && push @reaching, "$path:$line" for split /\n/, need($path);
}
ok(!@reaching, 'src/ opens no files and no sockets', @reaching);

exit $wrong;
PERL
