"""A server that answers as upstrand_status does: the page, and documents that the tests make up."""

import http.server
import json
import os
import re
import threading
import time
import urllib.parse

PAGE = os.path.join(os.path.dirname(__file__), "../../src/status/page.html")
# The page's waits are shorter by this, so that its tests are.
HASTE = 5
FAILURES = "http error timeout deadline".split()


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%03dZ" % (seconds % 1 * 1000)


def peer(name, state="up", **more):
    return {"server": name, "name": name, "weight": 1, "backup": False, "down": state == "down", "state": state,
            "active": 0, "fails": 0, "max_fails": 1, "fail_timeout": 10000, "max_conns": 0, **more}


def upstream(name, state="up", tier=0, reason=None, since=None, until=None, failures=None, responses=None,
             last_failure=None, peers=None, interval=30000, peers_total=None):
    """Times are seconds from now."""
    now = time.time()
    at = lambda seconds: None if seconds is None else iso(now + seconds)  # noqa: E731
    failures = {**dict.fromkeys(FAILURES, 0), **(failures or {})}
    responses = {**dict.fromkeys(("1xx", "2xx", "3xx", "4xx", "5xx"), 0), **(responses or {"2xx": 1200})}
    peers = [peer("127.0.0.1:8001")] if peers is None else peers
    return {
        "name": name, "tier": tier, "state": state, "reason": reason or "", "since": at(since),
        "draining": state == "draining", "blacklisted_until": at(until), "blacklist_interval": interval,
        "tries": sum(failures.values()) + sum(responses.values()), "failures": failures, "responses": responses,
        "last_failure": last_failure and {"time": at(last_failure[0]), "reason": last_failure[1]},
        "peers_total": len(peers) if peers_total is None else peers_total, "peers": peers,
    }


def out(name, tier=0, reason="http_503", ago=10, left=20):
    return upstream(name, "unavail", tier, f"blacklisted after {reason}", -ago, left, {"http": 29, "error": 1},
                    {"2xx": 868, "4xx": 2, "5xx": 30}, (-ago, reason))


def upstrand(*upstreams, zone="upstrands", walks=1204, failovers=0, exhausted=0, intercepted=0, deadline_exceeded=0):
    return {"zone": zone, "walks": walks, "failovers": failovers, "exhausted": exhausted,
            "intercepted": intercepted, "deadline_exceeded": deadline_exceeded, "upstreams": list(upstreams)}


def document(upstrands, worker=4242):
    return {"version": 1, "nginx": "1.28.3", "module": "1.0.0", "worker": worker, "time": iso(time.time()),
            "upstrands": upstrands}


class Server(http.server.ThreadingHTTPServer):
    """`scene` is a function that makes the document; or the name of a failure: 503, drop, html, hang, or
    (seconds, function)."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.scene = lambda: document({})
        self.asked = 0       # documents
        self.running = 0
        self.most_running = 0
        self.paths = []
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/upstrands-status"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body):
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", len(body)), ("Cache-Control", "no-store")):
            self.send_header(name, str(value))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:  # the page did not wait
            self.close_connection = True

    def do_GET(self):
        server = self.server
        server.paths.append(self.path)
        path, _, query = self.path.partition("?")
        if path != "/upstrands-status":
            return self.answer(404, "application/json", b'{"error":{"status":404,"text":"not found"}}')
        with open(PAGE, encoding="utf-8") as file:
            page, waits = re.subn(r"(const (?:PERIOD|LONGEST|PATIENCE) = [0-9]+);", rf"\1 / {HASTE};", file.read())
        assert waits == 3, waits
        page = page.encode()
        if "json" not in urllib.parse.parse_qs(query).get("format", []):
            return self.answer(200, "text/html; charset=utf-8", page)
        with server.lock:
            server.asked += 1
            server.running += 1
            server.most_running = max(server.most_running, server.running)
        try:
            scene = server.scene
            if isinstance(scene, tuple):
                time.sleep(scene[0])
                scene = scene[1]
            if scene == "503":
                self.answer(503, "application/json", b'{"error":{"status":503,"text":"no"}}')
            elif scene == "html":
                self.answer(200, "text/html", page)
            elif scene == "drop":
                self.close_connection = True
            elif scene == "hang":
                time.sleep(14)
                self.close_connection = True
            else:
                self.answer(200, "application/json", json.dumps(scene()).encode())
        finally:
            with server.lock:
                server.running -= 1
