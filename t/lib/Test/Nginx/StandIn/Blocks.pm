package Test::Nginx::StandIn::Blocks;

# Blocks of a test file: "=== name", "--- section filters", as Test::Base
# reads them.  What Test::Base would pass over in silence is refused here:
# a section that nobody reads is a check that nobody makes.

use strict;
use warnings;

use Exporter 'import';
use Scalar::Util ();
use Test::More ();
use Test::Nginx::Util 'bail_out';

our @EXPORT_OK = qw(blocks filters next_block first_block);

our $AUTOLOAD;

my @default_filters = qw(norm trim);
my %filters_map;
my $block_list;
my @next_list;


# As in Test::Base, the scalar form only counts; filters run, once, when the
# blocks themselves are asked for, so that they see the variables of the file.

sub blocks () {
    $block_list ||= read_blocks();

    return scalar @$block_list if !wantarray;

    $_->run_filters() for grep { !$_->{filtered} } @$block_list;

    return @$block_list;
}


sub next_block () {
    if (!@next_list) {
        @next_list = (blocks(), undef);
    }

    return shift @next_list;
}


sub first_block () {
    @next_list = ();

    return next_block();
}


sub filters {
    if (ref $_[0] eq 'HASH') {
        %filters_map = %{ $_[0] };

    } else {
        push @default_filters, @_;
    }
}


sub read_blocks {
    no warnings 'once';

    my $handle = Scalar::Util::openhandle(\*main::DATA);

    return [] if !$handle;

    my $spec = do { local $/; <$handle> };

    return [] if !defined $spec;

    my @list;

    for my $hunk ($spec =~ /^(===.*?(?=^===|\z))/msg) {
        my $block = parse_block($hunk);

        if (exists $block->{values}{ONLY}) {
            Test::More::diag("I found ONLY: maybe you're debugging?");
            return [$block];
        }

        next if exists $block->{values}{SKIP};

        push @list, $block;

        last if exists $block->{values}{LAST};
    }

    return \@list;
}


sub parse_block {
    my ($hunk) = @_;

    $hunk =~ s/\A===[ \t]*(.*)\s+// or bail_out("cannot parse: $hunk");

    my $block = bless { name => $1, values => {}, filters => {}, order => [],
                        seen => {}, filtered => 0 };

    my @parts = split /^--- +\(?(\w+)\)? *(.*)?\n/m, $hunk;

    my $description = shift @parts;

    $description = '' if !defined $description;
    $description =~ s/\s*\z//;
    $block->{description} = $description =~ /\S/ ? $description
                                                 : $block->{name};

    refuse_headers($block, $description);

    while (@parts) {
        my ($type, $filters, $value) = splice @parts, 0, 3;

        $filters = '' if !defined $filters;
        $value   = '' if !defined $value;

        refuse_headers($block, $value);

        # Test::Base has names of this kind, too

        if ($type =~ /^_/ || __PACKAGE__->can($type)) {
            bail_out("$block->{name} - '$type' is a reserved name");
        }

        if (exists $block->{values}{$type}) {
            bail_out("$block->{name} - section --- $type is given twice");
        }

        if ($filters =~ /:(\s|\z)/) {

            if ($value =~ /\S/) {
                bail_out("$block->{name} - "
                         . "Extra lines not allowed in '$type' section");
            }

            ($filters, $value) = split /\s*:(?:\s+|\z)/, $filters, 2;
            $value = '' if !defined $value;
            $value =~ s/^\s*(.*?)\s*$/$1/;
        }

        push @{ $block->{order} }, $type;
        $block->{filters}{$type} = $filters;
        $block->{values}{$type} = [$value];
    }

    return $block;
}


# A header with a slip in it ("---config", " === TEST") would become text of
# the section above.

sub refuse_headers {
    my ($block, $text) = @_;

    if ($text =~ /^([ \t]*---(?:[ \t].*|\w.*)?|[ \t]*=+[ \t]*TEST\b.*)$/m)
    {
        bail_out("$block->{name} - looks like a broken header: \"$1\"");
    }
}


sub run_filters {
    my ($self) = @_;

    $self->{filtered} = 1;

    for my $type (@{ $self->{order} }) {
        my @value = @{ $self->{values}{$type} };

        for my $filter ($self->filters_of($type)) {
            @value = $self->apply($type, $filter, @value);
            $self->{values}{$type} = [@value];
        }

        # an accessor would give the first element only

        if (@value != 1) {
            bail_out("$self->{name} - filters of --- $type give ",
                     scalar @value, " values, not one (an array must be a",
                     " reference: [...], or the filter \"array\")");
        }

        if (!defined $value[0]) {
            bail_out("$self->{name} - filters of --- $type give undef");
        }
    }
}


# "-name" takes a filter away, "+name" puts it at the end

sub filters_of {
    my ($self, $type) = @_;

    my $mapped = $filters_map{$type};
    my (@list, @append);

    for my $filter (@default_filters,
                    ref $mapped ? @$mapped : defined $mapped ? $mapped : (),
                    split ' ', $self->{filters}{$type})
    {
        if ($filter =~ /^-(.+)/) {
            my $gone = $1;
            @list = grep { $_ ne $gone } @list;

        } elsif ($filter =~ /^\+(.+)/) {
            push @append, $1;

        } else {
            push @list, $filter;
        }
    }

    return @list, @append;
}


my %builtin = (
    norm => sub {
        my ($text) = @_;
        $text = '' if !defined $text;
        $text =~ s/\015\012/\n/g;
        $text =~ s/\r/\n/g;
        return $text;
    },

    trim => sub {
        return map { s/\A([ \t]*\n)+//; s/(?<=\n)\s*\z//g; $_ } @_;
    },

    lines => sub {
        my ($text) = @_;
        return length $text ? $text =~ /^(.*\n?)/gm : ();
    },

    split => sub {
        my ($text) = @_;
        my $sep = $Test::Base::Filter::arguments;
        $sep = defined $sep && $sep =~ m{^/(.*)/$} ? $1 : $sep || '\s+';
        return split /$sep/, $text;
    },

    chomp         => sub { map { chomp; $_ } @_ },
    chop          => sub { map { chop; $_ } @_ },
    unchomp       => sub { map { "$_\n" } @_ },
    array         => sub { [@_] },
    join          => sub { join argument(), @_ },
    append        => sub { my $arg = argument(); map { $_ . $arg } @_ },
    prepend       => sub { my $arg = argument(); map { $arg . $_ } @_ },
    base64_decode => sub { require MIME::Base64;
                           MIME::Base64::decode_base64($_[0]) },
    base64_encode => sub { require MIME::Base64;
                           MIME::Base64::encode_base64($_[0]) },
);


# "join=\n": a filter may have one argument

sub argument {
    my $arg = $Test::Base::Filter::arguments;

    return '' if !defined $arg;

    my %escape = (n => "\n", r => "\r", t => "\t", s => ' ');

    $arg =~ s/\\([nrts])/$escape{$1}/g;

    return $arg;
}


sub apply {
    my ($self, $type, $filter, @value) = @_;

    no warnings 'once';

    local $Test::Base::Filter::arguments = $filter =~ s/=(.*)$// ? $1 : undef;

    # a function of the test file goes first; it may edit $_ and return a
    # number, as s/// does

    if (my $code = main->can($filter)) {
        local $_ = join '', @value;
        my $old = $_;

        my @result = $code->(@value);

        if (!@result
            || @result == 1 && defined $result[0]
               && $result[0] =~ /\A(\d+|)\z/)
        {
            if ($result[0] && $_ eq $old) {
                Test::More::diag("filter $filter returns a number and leaves"
                                 . " \$_ as it is");
            }

            return $_;
        }

        return @result;
    }

    if ($filter eq 'eval') {
        my ($code) = @value;
        my @result = Test::Base::Filter::evaluate($code);

        # Test::Base would go on with the message as the value

        bail_out("$self->{name} - eval of --- $type fails: $@") if $@;

        return @result;
    }

    if (my $code = $builtin{$filter}) {
        return $code->(@value);
    }

    bail_out("$self->{name} - Can't find a function or method for"
             . " '$filter' filter of --- $type");
}


# Values.  A list of one, as everywhere after run_filters().

sub name        { $_[0]{name} }
sub description { $_[0]{description} }


sub set_value {
    my ($self, $type, @value) = @_;

    $self->{values}{$type} = [@value];
}


# Reads a section without taking note of it.

sub peek {
    my ($self, $type) = @_;

    my $value = $self->{values}{$type};

    return $value ? $value->[0] : undef;
}


# $block->section: undef where the block has no such section.  Remembers what
# has been read: a section of an unknown name is all right if a preprocessor
# of the test file has a use for it.

sub AUTOLOAD {
    my ($self) = @_;

    (my $type = $AUTOLOAD) =~ s/.*:://;

    die "no function $AUTOLOAD" if !ref $self;

    $self->{seen}{$type} = 1;

    return $self->peek($type);
}


sub DESTROY { }


# Sections of the file that have neither a meaning nor a reader.

sub unknown_sections {
    my ($self, $known) = @_;

    return grep { !$known->{$_} && !$self->{seen}{$_} } @{ $self->{order} };
}


# Code of "eval" runs where Test::Base runs it: in this package and under
# strict, so variables of the test file are "our" there and $::x here.

package Test::Base::Filter;

our $arguments;

sub evaluate {
    return eval $_[0];
}


1;
