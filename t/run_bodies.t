# Request bodies: the next upstream gets all of what the client has sent, or the
# answer that there is stands.

use strict;
use warnings;

use Digest::MD5 'md5_hex';
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Test::Nginx::Socket 'no_plan';

log_level('info');
no_long_string();

# Two servers that read whole requests: "bad" answers 503, "good" with a line for
# each request that any of them has read: name, method, length and hash of the
# body.

my %listener = map {
    $_ => IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1')
} qw(bad good);

$ENV{TEST_NGINX_BAD_PORT}  = $listener{bad}->sockport();
$ENV{TEST_NGINX_GOOD_PORT} = $listener{good}->sockport();

my $server = fork();

die "fork: $!" if !defined $server;

if ($server == 0) {
    serve();
    POSIX::_exit(0);
}

END { kill 'KILL', $server if $server }

sub serve {
    my $select = IO::Select->new(values %listener);
    my $seen = '';

    $SIG{PIPE} = 'IGNORE';

    while (my @ready = $select->can_read()) {
        for my $sock (@ready) {
            my $name = $sock == $listener{bad} ? 'bad' : 'good';
            my $client = $sock->accept() or next;
            my ($method, $body) = read_request($client) or next;

            $seen .= join(' ', $name, $method, length $body,
                          md5_hex($body)) . "\n";

            my ($status, $text) = $name eq 'bad' ? (503, "bad\n")
                                                 : (200, $seen);

            $seen = '' if $name eq 'good';

            print $client "HTTP/1.0 $status X\r\nContent-Length: "
                          . length($text) . "\r\n\r\n$text";
            close $client;
        }
    }
}

sub read_request {
    my ($client) = @_;

    my $buf = '';

    my $more = sub { sysread $client, $buf, 65536, length $buf };

    while ($buf !~ /\r\n\r\n/) {
        $more->() or return;
    }

    my ($head, $body) = split /\r\n\r\n/, $buf, 2;

    $buf = $body;

    if ($head =~ /^Transfer-Encoding: chunked/mi) {
        $body = '';

        while (1) {
            while ($buf !~ /\A[0-9a-f]+\r\n/i) {
                $more->() or return;
            }

            $buf =~ s/\A([0-9a-f]+)\r\n//i;

            my $size = hex $1;

            while (length $buf < $size + 2) {
                $more->() or return;
            }

            $body .= substr $buf, 0, $size, '';
            substr $buf, 0, 2, '';

            last if $size == 0;
        }

    } elsif ($head =~ /^Content-Length: (\d+)/mi) {
        while (length $buf < $1) {
            $more->() or return;
        }

        $body = $buf;
    }

    return $head =~ /\A(\S+)/, $body;
}

# What the two servers have to see of this body.

sub seen {
    my ($method, $body, @names) = @_;

    return join '', map {
        join(' ', $_, $method, length $body, md5_hex($body)) . "\n"
    } @names;
}

sub chunked {
    my ($body) = @_;

    my $text = '';

    while (length $body) {
        my $part = substr $body, 0, 10_000, '';

        $text .= sprintf "%x\r\n%s\r\n", length $part, $part;
    }

    return "${text}0\r\n\r\n";
}

our $large = join '', map { "line $_\n" } 1 .. 40_000;

chomp $large;       # ends of bodies are trimmed

# In each block: "bad" and then "good"; or nothing at all and then "good".

add_block_preprocessor(sub {
    my $block = shift;

    my $http = $block->http_config;

    $block->set_value(http_config => (defined $http ? $http : '') . <<'_EOC_');
upstream bad { server 127.0.0.1:$TEST_NGINX_BAD_PORT; }
upstream good { server 127.0.0.1:$TEST_NGINX_GOOD_PORT; }
upstream gone { server 127.0.0.1:1; }
upstrand a {
    upstream bad; upstream good; order per_request;
    next_upstream_statuses error non_idempotent 5xx;
}
upstrand g { upstream gone; upstream good; order per_request; }
upstrand three {
    upstream gone; upstream bad; upstream good; order per_request;
    next_upstream_statuses error non_idempotent 5xx;
}
_EOC_

    $block->set_value(no_error_log => "[alert]\n[crit]")
        if !defined $block->no_error_log;
});

run_tests();

__DATA__

=== a body in memory
--- config
location /t { proxy_pass http://$upstrand_a; }
--- request eval
["POST /t\nhello", "PUT /t\nhello", "PATCH /t\nhello", "POST /t"]
--- response_body eval
[::seen('POST', 'hello', qw(bad good)), ::seen('PUT', 'hello', qw(bad good)),
 ::seen('PATCH', 'hello', qw(bad good)), ::seen('POST', '', qw(bad good))]



=== a body in a file, since it is larger than client_body_buffer_size
--- config
location /t { client_body_buffer_size 8k; proxy_pass http://$upstrand_a; }
--- request eval
"POST /t\n$::large"
--- response_body eval
::seen('POST', $::large, qw(bad good))



=== a body whose file is asked for
--- config
location /on { client_body_in_file_only on; proxy_pass http://$upstrand_a; }
location /clean { client_body_in_file_only clean; proxy_pass http://$upstrand_a; }
--- request eval
["POST /on\nhello", "POST /clean\nhello", "POST /on\n$::large"]
--- response_body eval
[::seen('POST', 'hello', qw(bad good)), ::seen('POST', 'hello', qw(bad good)),
 ::seen('POST', $::large, qw(bad good))]
--- no_error_log
[alert]
[crit]
pread()



=== a body partly in memory, partly in a file; and in one buffer
--- config
location /part { client_body_buffer_size 300k; proxy_pass http://$upstrand_a; }
location /single { client_body_in_single_buffer on; client_body_buffer_size 1m; proxy_pass http://$upstrand_a; }
--- request eval
["POST /part\n$::large", "POST /single\n$::large"]
--- response_body eval
[(::seen('POST', $::large, qw(bad good))) x 2]



=== a chunked body
--- config
location /mem { client_body_buffer_size 1m; proxy_pass http://$upstrand_a; }
location /file { client_body_buffer_size 8k; proxy_pass http://$upstrand_a; }
--- request eval
["POST /mem\n" . ::chunked($::large), "POST /file\n" . ::chunked($::large), "PUT /file\n" . ::chunked('hello')]
--- more_headers
Transfer-Encoding: chunked
--- response_body eval
[(::seen('POST', $::large, qw(bad good))) x 2, ::seen('PUT', 'hello', qw(bad good))]



=== error_page acts if nginx finds fault with a body: no upstream was asked
--- config
error_page 413 = /large;
location /t { client_max_body_size 10; proxy_pass http://$upstrand_a; }
location /again { client_max_body_size 10; error_page 413 = @next; proxy_pass http://$upstrand_a; }
location = /large { return 200 "too large, [$upstrand_path]\n"; }
location @next {
    proxy_pass_request_body off; proxy_set_header Content-Length "";
    add_header X-Reason "$upstrand_reason, $upstrand_tries" always;
    proxy_pass http://$upstrand_g;
}
--- request eval
["POST /t\n" . ::chunked('hello, world'), "POST /again\n" . ::chunked('hello, world')]
--- more_headers
Transfer-Encoding: chunked
--- response_headers eval
["! X-Reason", "X-Reason: (gone) error (good) final, 2"]
--- response_body eval
["too large, []\n", ::seen('POST', '', 'good')]



=== error_page does not act once a body is there
--- config
error_page 503 = /error;
location /t { proxy_pass http://$upstrand_f; }
location = /error { return 200 "error\n"; }
--- http_config
upstream one { server unix:$TEST_NGINX_HTML_DIR/one.sock; }
server { listen unix:$TEST_NGINX_HTML_DIR/one.sock; return 503 "bad\n"; }
upstrand f { upstream one; next_upstream_statuses 5xx; }
--- request eval
["POST /t\nhello", "POST /t\n" . ::chunked('hello')]
--- more_headers eval
["", "Transfer-Encoding: chunked"]
--- error_code eval
[503, 503]
--- response_body eval
["bad\n", "bad\n"]



=== an upstream that refuses has taken nothing of the body
--- config
location /t { client_body_buffer_size 8k; proxy_pass http://$upstrand_g; }
--- request eval
["POST /t\nhello", "POST /t\n$::large"]
--- response_body eval
[::seen('POST', 'hello', 'good'), ::seen('POST', $::large, 'good')]



=== three upstreams in a row
--- config
location /t { client_body_buffer_size 8k; proxy_pass http://$upstrand_three; }
--- request eval
"PUT /t\n$::large"
--- response_body eval
::seen('PUT', $::large, qw(bad good))
--- error_log
connect() failed



=== what proxy_set_body makes
--- config
location /t { proxy_set_body "made of $request_uri"; proxy_pass http://$upstrand_a; }
--- request
POST /t
hello
--- response_body eval
::seen('POST', 'made of /t', qw(bad good))



=== proxy_pass_request_body off: no body for anyone
--- config
location /t {
    proxy_pass_request_body off;
    proxy_set_header Content-Length "";
    proxy_pass http://$upstrand_a;
}
--- request
POST /t
hello
--- response_body eval
::seen('POST', '', qw(bad good))



=== proxy_request_buffering off: the next upstream, if nothing was sent
--- config
location /t { proxy_request_buffering off; proxy_pass http://$upstrand_g; }
location /chunked { proxy_request_buffering off; proxy_http_version 1.1; proxy_pass http://$upstrand_g; }
--- request eval
["POST /t\nhello", "POST /t\n$::large", "POST /chunked\n" . ::chunked($::large)]
--- more_headers eval
["", "", "Transfer-Encoding: chunked"]
--- response_body eval
[::seen('POST', 'hello', 'good'), ::seen('POST', $::large, 'good'), ::seen('POST', $::large, 'good')]



=== proxy_request_buffering off: the answer stands, if the body was sent
--- config
location /t { add_header X-Path $upstrand_path always; proxy_request_buffering off; proxy_pass http://$upstrand_a; }
location /chunked { add_header X-Path $upstrand_path always; proxy_request_buffering off; proxy_http_version 1.1; proxy_pass http://$upstrand_a; }
location /flush { proxy_pass http://good; }
--- request eval
["POST /t\n$::large", "POST /chunked\n" . ::chunked($::large), "GET /flush"]
--- more_headers eval
["", "Transfer-Encoding: chunked", ""]
--- error_code eval
[503, 503, 200]
--- response_headers eval
["X-Path: bad", "X-Path: bad", "! X-Path"]
--- response_body eval
["bad\n", "bad\n", ::seen('POST', $::large, 'bad', 'bad') . ::seen('GET', '', 'good')]



=== proxy_request_buffering off: nginx has a body that came with the header, and it goes on
--- config
location /t { proxy_request_buffering off; proxy_pass http://$upstrand_a; }
--- request
POST /t
hello
--- response_body eval
::seen('POST', 'hello', qw(bad good))



=== proxy_request_buffering off: a small body that came later was passed on, and is gone
--- config
location /t { add_header X-Reason $upstrand_reason always; proxy_request_buffering off; proxy_pass http://$upstrand_a; }
location /flush { proxy_pass http://good; }
--- request eval
[["POST /t\n", { value => "hello", delay_before => 0.1 }], "GET /flush"]
--- error_code eval
[503, 200]
--- response_headers eval
["X-Reason: (bad) unbuffered", "! X-Reason"]
--- response_body eval
["bad\n", ::seen('POST', 'hello', 'bad') . ::seen('GET', '', 'good')]



=== proxy_request_buffering off: a request without a body goes on
--- config
location /t { proxy_request_buffering off; proxy_pass http://$upstrand_a; }
--- request
GET /t
--- response_body eval
::seen('GET', '', qw(bad good))



=== a body that comes in pieces
--- config
location /t { client_body_buffer_size 8k; proxy_pass http://$upstrand_a; }
location /off { proxy_request_buffering off; proxy_pass http://$upstrand_g; }
--- request eval
[["POST /t\n" . substr($::large, 0, 200_000), { value => substr($::large, 200_000), delay_before => 0.1 }],
 ["POST /off\n" . substr($::large, 0, 200_000), { value => substr($::large, 200_000), delay_before => 0.1 }]]
--- response_body eval
[::seen('POST', $::large, qw(bad good)), ::seen('POST', $::large, 'good')]



=== the body is there for a mirror as well
--- config
location /t { mirror /m; client_body_buffer_size 8k; proxy_pass http://$upstrand_a; }
location = /m { internal; proxy_pass http://bad; }
location /flush { proxy_pass http://good; }
--- request eval
["POST /t\n$::large", "GET /flush"]
--- response_body_like eval
[qr/^good POST \d+ @{[Digest::MD5::md5_hex($::large)]}$/m, qr/^good GET 0 /m]



=== method, URI and headers are the client's, at every upstream
--- http_config
log_format line '$server_port $request|$http_x_one|$http_x_two|$http_cookie';
server { listen unix:$TEST_NGINX_HTML_DIR/l1.sock; access_log $TEST_NGINX_HTML_DIR/line.log line; location / { return 503; } }
server { listen unix:$TEST_NGINX_HTML_DIR/l2.sock; access_log $TEST_NGINX_HTML_DIR/line.log line; location / { return 200 "l2\n"; } }
upstream l1 { server unix:$TEST_NGINX_HTML_DIR/l1.sock; }
upstream l2 { server unix:$TEST_NGINX_HTML_DIR/l2.sock; }
upstrand l { upstream l1; upstream l2; order per_request; next_upstream_statuses 5xx; }
--- config
location /t { proxy_pass http://$upstrand_l; }
--- request eval
["OPTIONS /t/a%2Fb%20c//d/../e?x=%41&y", "GET /line.log"]
--- more_headers
X-One: 1
X-Two: two words
Cookie: a=b; c=d
--- response_body eval
["l2\n", qr{\A(.* OPTIONS /t/a%2Fb%20c//d/../e\?x=%41&y HTTP/1\.[01]\|1\|two words\|a=b; c=d\n)\1\z}]



=== the Host header is the upstream's own name by default, and may be the client's
--- http_config
log_format host '$http_host';
server { listen unix:$TEST_NGINX_HTML_DIR/l1.sock; access_log $TEST_NGINX_HTML_DIR/host.log host; location / { return 503; } }
server { listen unix:$TEST_NGINX_HTML_DIR/l2.sock; access_log $TEST_NGINX_HTML_DIR/host.log host; location / { return 200 "l2\n"; } }
upstream l1 { server unix:$TEST_NGINX_HTML_DIR/l1.sock; }
upstream l2 { server unix:$TEST_NGINX_HTML_DIR/l2.sock; }
upstrand l { upstream l1; upstream l2; order per_request; next_upstream_statuses 5xx; }
map $upstrand_l $own { volatile; l1 one.test; l2 two.test; default none.test; }
--- config
location /default { proxy_pass http://$upstrand_l; }
location /client { proxy_set_header Host $host; proxy_pass http://$upstrand_l; }
location /map { proxy_set_header Host $own; proxy_pass http://$upstrand_l; }
--- request eval
["GET /default", "GET /client", "GET /map", "GET /host.log"]
--- response_body eval
["l2\n", "l2\n", "l2\n", "l1\nl2\nlocalhost\nlocalhost\none.test\ntwo.test\n"]
