"""A WSGI application for gateways.rs, as app.php is for FastCGI."""

import os
import signal
import time
from urllib.parse import parse_qs

NAME = os.environ["NAME"]


def fnv1a64(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def application(environ, start_response):
    arguments = parse_qs(environ["QUERY_STRING"])
    act = arguments.get(NAME, ["200"])[0]
    body = b"" if act == "deaf" else environ["wsgi.input"].read()
    seen = "%s %s %s %d %016x\n" % (
        NAME,
        environ["UPSTREAM"],
        environ["REQUEST_METHOD"],
        len(body),
        fnv1a64(body),
    )
    with open(os.environ["LOG"], "a", encoding="ascii") as log:
        log.write(seen)

    status = "200"
    headers = [("Content-Type", "text/plain"), ("X-Server", NAME)]
    if act == "close":
        os.kill(os.getpid(), signal.SIGKILL)
    elif act == "hang":
        time.sleep(3)
    elif act == "deaf":
        status = "503"
    elif act in ("redirect", "redirect503"):
        status = "503" if act == "redirect503" else "200"
        headers.append(("X-Accel-Redirect", "/elsewhere"))
    else:
        status = act
    start_response(status + " X", headers)
    more = int(arguments.get("more", ["0"])[0])
    return [seen.encode(), b"x" * more]
