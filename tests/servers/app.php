<?php
// A FastCGI application for gateways.rs. A request's argument with the name of this server says
// what it does; the answer tells what it was asked.

$name = getenv('NAME');
$act = $_GET[$name] ?? '200';
$body = $act === 'deaf' ? '' : file_get_contents('php://input');
$seen = implode(' ', [
    $name,
    $_SERVER['UPSTREAM'],
    $_SERVER['REQUEST_METHOD'],
    strlen($body),
    hash('fnv1a64', $body),
]) . "\n";
file_put_contents(getenv('LOG'), $seen, FILE_APPEND);

switch ($act) {
    case 'close':
        posix_kill(getmypid(), 9);
        sleep(3);
        break;
    case 'hang':
        sleep(3);
        break;
    case 'deaf':
        http_response_code(503);
        break;
    case 'redirect':
        header('X-Accel-Redirect: /elsewhere');
        break;
    case 'redirect503':
        http_response_code(503);
        header('X-Accel-Redirect: /elsewhere');
        break;
    case 'noisy':
        error_log('the first word of ' . $name);
        error_log(str_repeat("noise ", 1000));
        http_response_code(503);
        break;
    case 'lost':
        error_log('all is lost in ' . $name);
        break;
    default:
        http_response_code((int) $act);
}
header('Content-Type: text/plain');
header("X-Server: $name");
echo $seen, str_repeat('x', (int) ($_GET['more'] ?? 0));
