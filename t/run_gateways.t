# fastcgi_pass, uwsgi_pass, scgi_pass and grpc_pass with an upstrand variable.

use strict;
use warnings;

use Digest::MD5 'md5_hex';
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Test::Nginx::Socket 'no_plan';

log_level('info');
no_long_string();

# A good and a bad server for each protocol. The good one answers 200 with the
# method, the length and the hash of the body, the bad one 503; both want to be
# followed by X-Accel-Redirect.

my %reader = (fastcgi => \&read_fastcgi, uwsgi => \&read_uwsgi,
              scgi => \&read_scgi);
my %listener;

for my $protocol (keys %reader) {
    for my $kind ('good', 'bad') {
        my $sock = IO::Socket::INET->new(Listen => 16,
                                         LocalAddr => '127.0.0.1')
            or die "cannot listen: $!";

        $listener{"$protocol $kind"} = $sock;
        $ENV{'TEST_NGINX_' . uc("${protocol}_$kind") . '_PORT'}
            = $sock->sockport();
    }
}

# A port that takes connections and requests, and never answers.

my $silent = IO::Socket::INET->new(Listen => 128, LocalAddr => '127.0.0.1')
    or die "cannot listen: $!";

$ENV{TEST_NGINX_SILENT_PORT} = $silent->sockport();

my $server = fork();

die "fork: $!" if !defined $server;

if ($server == 0) {
    serve();
    POSIX::_exit(0);
}

END { kill 'KILL', $server if $server }

sub serve {
    my $select = IO::Select->new(values %listener);

    $SIG{PIPE} = 'IGNORE';

    while (my @ready = $select->can_read()) {
        for my $sock (@ready) {
            my ($name) = grep { $listener{$_} == $sock } keys %listener;
            my ($protocol, $kind) = split / /, $name;
            my $client = $sock->accept() or next;

            my ($method, $body)
                = eval { $reader{$protocol}->(sub { take($client, @_) }) }
                or next;

            my $text = $kind eq 'bad'
                ? "bad\n"
                : join(' ', $protocol, $method, length $body, md5_hex($body))
                  . "\n";

            my $answer = 'Status: ' . ($kind eq 'bad' ? 503 : 200) . " X\r\n"
                . "X-Accel-Redirect: /e\r\nContent-Length: "
                . length($text) . "\r\n\r\n$text";

            $answer = pack('CCnnCC', 1, 6, 1, length $answer, 0, 0) . $answer
                . pack('CCnnCCNCCCC', 1, 3, 1, 8, 0, 0, 0, 0, 0, 0, 0)
                if $protocol eq 'fastcgi';

            print $client $answer;
            close $client;
        }
    }
}

sub take {
    my ($client, $length) = @_;

    my $buf = '';

    while (length $buf < $length) {
        sysread $client, $buf, $length - length $buf, length $buf
            or die "end of the request\n";
    }

    return $buf;
}

sub read_fastcgi {
    my ($take) = @_;

    my ($params, $body) = ('', '');

    while (1) {
        my (undef, $type, undef, $length, $padding)
            = unpack 'CCnnC', $take->(8);

        my $content = $take->($length);

        $take->($padding);

        $params .= $content if $type == 4;
        $body   .= $content if $type == 5;

        last if $type == 5 && $length == 0;
    }

    return $params =~ /REQUEST_METHOD([A-Z]+)/ ? $1 : '', $body;
}

sub read_uwsgi {
    my ($take) = @_;

    my (undef, $length) = unpack 'CvC', $take->(4);
    my %var = unpack '(v/a)*', $take->($length);

    return $var{REQUEST_METHOD}, $take->($var{CONTENT_LENGTH} || 0);
}

sub read_scgi {
    my ($take) = @_;

    my $length = '';

    while ((my $char = $take->(1)) ne ':') {
        $length .= $char;
    }

    my %var = split /\0/, $take->($length);

    $take->(1);

    return $var{REQUEST_METHOD}, $take->($var{CONTENT_LENGTH} || 0);
}

our $large = 'x' x 300_000;

sub seen {
    my ($protocol, $method, $body) = @_;

    return join(' ', $protocol, $method, length $body, md5_hex($body)) . "\n";
}

# A configuration with PROTO in it, three times: for each protocol.

sub each_protocol {
    my ($text) = @_;

    return join '', map {
        my ($p, $upper) = ($_, uc $_);

        (my $copy = $text) =~ s/\bPROTO\b/$p/g;

        $copy =~ s/PROTO_/${p}_/g;
        $copy =~ s/_PROTO/_$p/g;
        $copy =~ s/UPPER/$upper/g;
        $copy;
    } qw(fastcgi uwsgi scgi);
}

our $http = each_protocol(<<'_EOC_');
upstream PROTO_gone { server 127.0.0.1:1; }
upstream PROTO_bad { server 127.0.0.1:$TEST_NGINX_UPPER_BAD_PORT; }
upstream PROTO_silent { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
upstream PROTO_good { server 127.0.0.1:$TEST_NGINX_UPPER_GOOD_PORT; }
PROTO_param REQUEST_METHOD $request_method;
PROTO_param CONTENT_LENGTH $content_length;
_EOC_

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config => $http . $block->http_config);
    $block->set_value(config => "add_header X-Path \$upstrand_path always;\n"
                                . "add_header X-Status \$upstrand_status always;\n"
                                . $block->config);

    $block->set_value(no_error_log => '[alert]')
        if !defined $block->no_error_log;
});

run_tests();

__DATA__

=== refused, failed, silent, good
--- http_config eval
::each_protocol(<<'_EOC_')
upstrand PROTO {
    upstream PROTO_gone; upstream PROTO_bad; upstream PROTO_silent; upstream PROTO_good;
    order per_request; next_upstream_statuses error timeout 5xx;
}
_EOC_
--- config eval
::each_protocol(<<'_EOC_')
location /PROTO { PROTO_read_timeout 150ms; PROTO_pass $upstrand_PROTO; }
_EOC_
--- request eval
[map { "GET /$_" } qw(fastcgi uwsgi scgi)]
--- response_headers eval
[map { "X-Path: ${_}_gone -> ${_}_bad -> ${_}_silent -> ${_}_good\n"
       . "X-Status: (${_}_gone) 502 (${_}_bad) 503 (${_}_silent) 504 (${_}_good) 200" }
     qw(fastcgi uwsgi scgi)]
--- response_body eval
[map { ::seen($_, 'GET', '') } qw(fastcgi uwsgi scgi)]



=== bodies in memory and in files reach the next upstream
--- http_config eval
::each_protocol(<<'_EOC_')
upstrand PROTO { upstream PROTO_gone; upstream PROTO_bad; upstream PROTO_good; order per_request; next_upstream_statuses error non_idempotent 5xx; }
_EOC_
--- config eval
"client_body_buffer_size 8k;\n" . ::each_protocol(<<'_EOC_')
location /PROTO { PROTO_pass $upstrand_PROTO; }
_EOC_
--- request eval
[map { ("POST /$_\nhello", "PUT /$_\n$::large") } qw(fastcgi uwsgi scgi)]
--- response_body eval
[map { (::seen($_, 'POST', 'hello'), ::seen($_, 'PUT', $::large)) } qw(fastcgi uwsgi scgi)]



=== a POST stops at an answer, and goes on after a refusal
--- http_config eval
::each_protocol(<<'_EOC_')
upstrand PROTO { upstream PROTO_gone; upstream PROTO_bad; upstream PROTO_good; order per_request; next_upstream_statuses error 5xx; }
_EOC_
--- config eval
::each_protocol(<<'_EOC_')
location /PROTO { PROTO_pass $upstrand_PROTO; }
_EOC_
--- request eval
[map { "POST /$_\nhello" } qw(fastcgi uwsgi scgi)]
--- error_code eval
[503, 503, 503]
--- response_headers eval
[map { "X-Path: ${_}_gone -> ${_}_bad" } qw(fastcgi uwsgi scgi)]
--- response_body eval
["bad\n", "bad\n", "bad\n"]



=== request_buffering off: the next upstream after a refusal, else the answer
--- http_config eval
::each_protocol(<<'_EOC_')
upstrand PROTO_g { upstream PROTO_gone; upstream PROTO_good; order per_request; next_upstream_statuses error non_idempotent 5xx; }
upstrand PROTO_b { upstream PROTO_bad; upstream PROTO_good; order per_request; next_upstream_statuses error non_idempotent 5xx; }
_EOC_
--- config eval
::each_protocol(<<'_EOC_')
location /PROTO_g { PROTO_request_buffering off; PROTO_pass $upstrand_PROTO_g; }
location /PROTO_b { PROTO_request_buffering off; PROTO_pass $upstrand_PROTO_b; }
_EOC_
--- request eval
[map { ("POST /${_}_g\n$::large", "POST /${_}_b\n$::large") } qw(fastcgi uwsgi scgi)]
--- error_code eval
[(200, 503) x 3]
--- response_body eval
[map { (::seen($_, 'POST', $::large), "bad\n") } qw(fastcgi uwsgi scgi)]



=== X-Accel-Redirect is not followed, error_page and intercept_errors do not act
--- http_config eval
::each_protocol(<<'_EOC_')
upstrand PROTO { upstream PROTO_bad; order per_request; next_upstream_statuses error 5xx; }
_EOC_
--- config eval
"error_page 503 /e;\nlocation /e { return 200 \"e\\n\"; }\n" . ::each_protocol(<<'_EOC_')
location /PROTO { PROTO_intercept_errors on; PROTO_pass $upstrand_PROTO; }
_EOC_
--- request eval
[map { "GET /$_" } qw(fastcgi uwsgi scgi)]
--- error_code eval
[503, 503, 503]
--- response_headers eval
[("! X-Accel-Redirect") x 3]
--- response_body eval
["bad\n", "bad\n", "bad\n"]



=== the deadline cuts them
--- http_config eval
::each_protocol(<<'_EOC_')
upstrand PROTO { upstream PROTO_silent; upstream PROTO_good; order per_request; next_upstream_timeout 150ms; }
_EOC_
--- config eval
::each_protocol(<<'_EOC_')
location /PROTO { PROTO_pass $upstrand_PROTO; }
_EOC_
--- request eval
[map { "GET /$_" } qw(fastcgi uwsgi scgi)]
--- error_code eval
[504, 504, 504]
--- response_headers eval
[map { "X-Path: ${_}_silent" } qw(fastcgi uwsgi scgi)]



=== an interception from one protocol to another, with a walk of its own
--- http_config
upstrand u { upstream uwsgi_bad; next_upstream_statuses 5xx; intercept_statuses 5xx @f; }
upstrand f { upstream fastcgi_bad; upstream fastcgi_good; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { uwsgi_pass $upstrand_u; }
location @f { fastcgi_pass $upstrand_f; }
--- request
GET /t
--- response_body eval
::seen('fastcgi', 'GET', '')



=== blacklisting works for them
--- http_config
upstrand s { upstream scgi_bad blacklist_interval=60s; upstream scgi_good; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { scgi_pass $upstrand_s; }
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: scgi_bad -> scgi_good", "X-Path: scgi_good"]



=== their caches, too
--- http_config
scgi_cache_path $TEST_NGINX_HTML_DIR/cache keys_zone=c:1m;
upstrand s { upstream scgi_bad; upstream scgi_good; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { scgi_cache c; scgi_cache_key $uri; scgi_cache_valid any 1m; scgi_pass $upstrand_s; }
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: scgi_bad -> scgi_good", "X-Path: scgi_bad"]
--- response_body eval
[(::seen('scgi', 'GET', '')) x 2]



=== grpc: failed, refused, good
--- http_config
server { listen unix:$TEST_NGINX_HTML_DIR/g1.sock http2; return 503 "g1\n"; }
server { listen unix:$TEST_NGINX_HTML_DIR/g3.sock http2; return 200 "g3 $request_method $server_protocol\n"; }
upstream g1 { server unix:$TEST_NGINX_HTML_DIR/g1.sock; }
upstream g2 { server 127.0.0.1:1; }
upstream g3 { server unix:$TEST_NGINX_HTML_DIR/g3.sock; }
upstrand g { upstream ~^g; order per_request; next_upstream_statuses error 5xx; }
--- config
location /t { grpc_pass $upstrand_g; }
location /s { grpc_pass grpc://$upstrand_g; }
--- request eval
["GET /t", "GET /s", "GET /t"]
--- response_headers eval
[("X-Path: g1 -> g2 -> g3\nX-Status: (g1) 503 (g2) 502 (g3) 200") x 3]
--- response_body eval
[("g3 GET HTTP/2.0\n") x 3]



=== grpc: a unary call goes on after an answer, with its message
--- http_config
server { listen unix:$TEST_NGINX_HTML_DIR/g1.sock http2; return 503 "g1\n"; }
server { listen unix:$TEST_NGINX_HTML_DIR/g2.sock http2; location / { proxy_pass http://unix:$TEST_NGINX_HTML_DIR/end.sock; } }
server { listen unix:$TEST_NGINX_HTML_DIR/end.sock; return 200 "$request_method $http_content_length\n"; }
upstream g1 { server unix:$TEST_NGINX_HTML_DIR/g1.sock; }
upstream g2 { server unix:$TEST_NGINX_HTML_DIR/g2.sock; }
upstrand g { upstream ~^g; order per_request; next_upstream_statuses non_idempotent 5xx; }
--- config
location /t { client_body_buffer_size 8k; grpc_pass $upstrand_g; }
--- request
POST /t
hello
--- response_headers
X-Path: g1 -> g2
--- response_body
POST 5



=== grpc: a large call whose first upstream answered stays with this answer
--- http_config
server { listen unix:$TEST_NGINX_HTML_DIR/g1.sock http2; client_max_body_size 0; location / { proxy_pass http://unix:$TEST_NGINX_HTML_DIR/f.sock; } }
server { listen unix:$TEST_NGINX_HTML_DIR/g2.sock http2; return 200 "g2\n"; }
server { listen unix:$TEST_NGINX_HTML_DIR/f.sock; client_max_body_size 0; return 503 "g1\n"; }
upstream g1 { server unix:$TEST_NGINX_HTML_DIR/g1.sock; }
upstream g2 { server unix:$TEST_NGINX_HTML_DIR/g2.sock; }
upstrand g { upstream ~^g; order per_request; next_upstream_statuses non_idempotent 5xx; }
--- config
location /t { client_body_buffer_size 8k; add_header X-Reason $upstrand_reason always; grpc_pass $upstrand_g; }
--- request eval
"POST /t\n$::large"
--- error_code: 503
--- response_headers
X-Reason: (g1) unbuffered
--- response_body
g1



=== grpc: X-Accel-Redirect, the deadline, an interception
--- http_config
server { listen unix:$TEST_NGINX_HTML_DIR/g1.sock http2; add_header X-Accel-Redirect /e; return 200 "g1\n"; }
upstream g1 { server unix:$TEST_NGINX_HTML_DIR/g1.sock; }
upstream g2 { server 127.0.0.1:$TEST_NGINX_SILENT_PORT; }
upstream g3 { server 127.0.0.1:1; }
upstrand a { upstream g3; upstream g1; order per_request; }
upstrand d { upstream g2; upstream g1; order per_request; next_upstream_timeout 150ms; }
upstrand i { upstream g3; intercept_statuses error /f; }
--- config
location /a { grpc_pass $upstrand_a; }
location /d { grpc_pass $upstrand_d; }
location /i { grpc_pass $upstrand_i; }
location /e { return 200 "e\n"; }
location /f { internal; return 200 "f\n"; }
--- request eval
["GET /a", "GET /d", "GET /i"]
--- error_code eval
[200, 504, 200]
--- response_headers eval
["X-Path: g3 -> g1\n! X-Accel-Redirect", "X-Path: g2", "X-Path: g3 -> <intercepted>"]
--- response_body eval
["g1\n", qr/504 Gateway Time-out/, "f\n"]
