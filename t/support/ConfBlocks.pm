# What the blocks of t/conf_*.t mean.
#
# --- http and --- server are included as http.conf in http{} and as server.conf
# in the server, so that a message has the same file and line everywhere;
# more.conf is for them to include.  Above http.conf stand upstreams u1 to u3,
# which answer their number, bad, which answers 503, and dead, which refuses.
# Without --- server, /t is passed to $upstrand_a or to upstream c.
#
# --- emerg and --- warning have lines "FILE:LINE: MESSAGE", or "- MESSAGE" where
# nginx names no line; "..." stands for anything.  Other warnings there must not
# be.  --- answers is a request for each word and who answers it, --- paths one
# for each line, of status and $upstrand_path.

package ConfBlocks;

use strict;
use warnings;

use Test::Nginx::Util qw(add_block_preprocessor html_dir);

my $backends = <<'_EOC_';
server { listen unix:$DIR/s1.sock; return 200 "1\n"; }
server { listen unix:$DIR/s2.sock; return 200 "2\n"; }
server { listen unix:$DIR/s3.sock; return 200 "3\n"; }
server { listen unix:$DIR/s4.sock; return 503 "bad\n"; }
upstream u1 { server unix:$DIR/s1.sock; }
upstream u2 { server unix:$DIR/s2.sock; }
upstream u3 { server unix:$DIR/s3.sock; }
upstream bad { server unix:$DIR/s4.sock; }
upstream dead { server 127.0.0.1:1; }
_EOC_

add_block_preprocessor(sub {
    my ($block) = @_;

    my ($http, $server, $more) = map {
        my $text = $block->$_;
        defined $text ? $text : "\n";
    } qw(http server more);

    my $to = $http =~ /^upstrand a\b/m ? 'proxy_pass http://$upstrand_a;'
           : $http =~ /^upstream c\b/m ? 'proxy_pass http://c;'
           :                             'return 200;';

    if (!defined $block->server) {
        $server = "location /t { $to add_header X-Path \$upstrand_path always; }";
    }

    my @files = (['backends.conf', $backends], ['http.conf', $http],
                 ['server.conf', $server], ['more.conf', $more]);

    $_->[1] =~ s/\$DIR\b/html_dir()/eg for @files;

    $block->set_value(user_files => \@files);
    $block->set_value(http_config => join '', map { "include $_;\n" }
                      map { html_dir() . "/$_.conf" } qw(backends http));
    $block->set_value(config => 'include ' . html_dir() . "/server.conf;\n");

    my @log = (patterns('emerg', scalar $block->emerg),
               patterns('warn', scalar $block->warning));

    $block->set_value(error_log => \@log) if @log;

    return if defined $block->must_die;

    my $said = join '|', @log, '(?!)';

    $block->set_value(no_error_log =>
                      [qr/^(?!.*(?:$said)).*\[warn\].* in \S+:\d+$/]);

    my @answers = split ' ', defined $block->answers ? $block->answers : '';

    if (@answers) {
        my @requests = map { 'GET /t' } @answers;
        my @bodies = map { "$_\n" } @answers;

        $block->set_value(request => @answers > 1 ? \@requests : @requests);
        $block->set_value(response_body => @answers > 1 ? \@bodies : @bodies);

    } elsif (defined $block->paths) {
        my @lines = split /\n/, $block->paths;

        $block->set_value(request => [map { 'GET /t' } @lines]);
        $block->set_value(error_code => [map { (split ' ')[0] } @lines]);
        $block->set_value(response_headers =>
                          [map { 'X-Path: ' . (split ' ', $_, 2)[1] } @lines]);

    } elsif (!defined $block->request) {
        $block->set_value(request => 'GET /t');
    }
});

sub patterns {
    my ($level, $text) = @_;

    return map {
        /^(?:([\w.]+):(\d+):|-) (.*)$/ or die "no pattern: $_";

        my $message = join '.+', map { quotemeta } split /\.\.\./, $3, -1;
        my $place = defined $1 ? " in \\S*/\Q$1\E:$2" : '';

        qr/\[$level\] (?:\d+\#\d+: )?$message$place$/;
    } split /\n/, defined $text ? $text : '';
}

1;
