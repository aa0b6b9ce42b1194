#!/usr/bin/env python3
"""What an upstrand costs, against plain proxy_pass in the same nginx.

Instructions of user space (callgrind; they repeat to about 1 %), requests at the backend, system
calls (strace). No times: they are mostly the kernel's and the machine's.

    bench.py --nginx BIN --module SO             measures, and compares with bounds.json
    bench.py ... --check                         the same; fails if something got worse
    bench.py ... --record                        the same; what was measured is the new bound
    bench.py ... --profile                       where the instructions go
    bench.py ... --memory | --configuration      memory held a hop; what a configuration costs
"""
import argparse
import json
import os
import shutil
import socket
import sys
import time

sys.dont_write_bytecode = True  # nothing is left beside the sources

from harness import (WARM, Callgrind, Client, Dir, Nginx, free_ports, functions, instructions, listens,
                     system_calls, table, until)

BOUNDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bounds.json")
MANY = 1000
# Requests whose memory is measured.
WAITING = 1000
TOLERANCE = 0.03

# name: (what it says, decimals, how much worse it may get: relative, or in its own unit)
MEASURES = {
    "happy": ("happy path / plain", 3, None),
    "logged": ("the same, path, addr, status and response_time logged / plain", 3, None),
    "logged_all": ("the same, all ten $upstrand_* logged / plain", 3, None),
    "zone": ("the same, marks in a zone: instructions more", 0, 100),
    "hop8": ("a failed hop of 8 / plain", 3, None),
    "hop32": ("a failed hop of 32 / plain", 3, None),
    "growth": ("a hop of 32 / a hop of 1", 3, None),
    "calls": ("system calls a hop", 2, None),
    "held8": ("KiB that a failed hop of 8 holds", 2, 0.3),
    "held32": ("KiB that a failed hop of 32 holds", 2, 0.3),
    "many": ("%d upstreams, %d blacklisted / plain" % (MANY, MANY - 1), 3, None),
    "slope": ("instructions for each of these", 2, 1),
    "hits": ("upstreams tried a request, of these", 2, 0),
    "deep": ("failing upstreams before the answer, in one request", 0, 0),
}


def upstream(name, port, keepalive="keepalive 64;"):
    return "upstream %s { server 127.0.0.1:%d max_fails=0; %s }\n" % (name, port, keepalive)


def upstrand(name, members, more=""):
    return "upstrand %s { %s order per_request; next_upstream_statuses error timeout 5xx; %s }\n" % (
        name, " ".join("upstream %s;" % m for m in members), more)


def location(path, target, more=""):
    return "location = /%s { %s proxy_pass http://%s; }\n" % (path, more, target)


def of_upstrand(name, more=""):
    return location(name, "$upstrand_" + name, more)


class Bench:
    def __init__(self, args, dir):
        self.nginx, self.dir = args.nginx, dir
        # A copy: a build that writes over a loaded module kills nginx.
        self.module = shutil.copy(args.module, dir.path)
        self.good, self.bad, self.status, self.front = free_ports(4)
        Nginx(self.nginx, dir, "backend", None, """
server { listen 127.0.0.1:%d backlog=4096; location / { return 200 "0123456789abcdef"; } }
server { listen 127.0.0.1:%d backlog=4096; location / { return 503 "0123456789abcdef"; } }
server { listen 127.0.0.1:%d; location / { stub_status; } }
""" % (self.good, self.bad, self.status), self.status)
        self.own = 0

    def hits(self):
        """Requests at the backend since the last call."""
        client = Client(self.status)
        _, body = client.get("/")
        client.close()
        all = int(body.split(b"requests")[1].split()[2])
        since, self.own = all - self.own - 1, all
        return since

    # Scenarios 1 and 2: k failing upstreams, then a good one.
    def hops(self):
        four = ("path", "addr", "status", "response_time")
        rest = ("cache_status", "connect_time", "header_time", "response_length", "reason", "tries")
        text = "".join("log_format %s '%s';\n" % (name, "|".join("$upstrand_" + v for v in values))
                       for name, values in (("four", four), ("all", four + rest)))
        # What nginx's own log takes for as many variables of its own.
        own = ("$proxy_host", "$upstream_addr", "$upstream_status", "$upstream_response_time",
               "$upstream_cache_status", "$upstream_connect_time", "$upstream_header_time",
               "$upstream_response_length", "$upstream_bytes_sent", "$upstream_bytes_received")
        text += "log_format own4 '%s';\nlog_format own10 '%s';\n" % ("|".join(own[:4]), "|".join(own))
        text += upstream("good", self.good)
        text += "".join(upstream("bad%d" % n, self.bad) for n in range(32))
        locations = "set $good good;\n" + location("plain", "good") + location("variable", "$good")
        for k in (0, 1, 8, 32):
            text += upstrand("us%d" % k, ["bad%d" % n for n in range(k)] + ["good"])
            locations += of_upstrand("us%d" % k)
        for name in ("four", "all"):
            locations += location(name, "$upstrand_us0", "access_log logs/access.log %s;" % name)
        for name in ("own4", "own10"):
            locations += location(name, "good", "access_log logs/access.log %s;" % name)
        text += upstrand("zoned", ["good"], "zone upstrands 64k;")
        locations += of_upstrand("zoned")
        return text + "server { listen 127.0.0.1:%d backlog=4096;\n%s}\n" % (self.front, locations)

    # Scenario 3: MANY upstreams, all but the last one blacklisted; and the same of 10.
    def many(self):
        names = ["pool%04d" % n for n in range(MANY - 1)] + ["poolgood"]
        text = "".join(upstream(n, self.bad, "") for n in names[:-1])
        text += upstream("poolgood", self.good)
        locations = ""
        for name, members in (("few", names[-10:]), ("many", names)):
            text += upstrand(name, ["%s blacklist_interval=3600s" % m for m in members])
            locations += of_upstrand(name)
        return text + "server { listen 127.0.0.1:%d;\n%s}\n" % (self.front, locations)

    def callgrind(self, name, text):
        return Callgrind(self.nginx, self.dir, name, self.module, text, self.front)

    def measure(self):
        cost, value = {}, {}
        nginx = self.callgrind("hops", self.hops())
        for path, requests in (("plain", 200), ("variable", 100), ("us0", 200), ("four", 100),
                               ("all", 100), ("own4", 100), ("own10", 100), ("zoned", 200),
                               ("us1", 200), ("us8", 40), ("us32", 20)):
            cost[path], _ = nginx.count("/" + path, requests)
        nginx.stop()
        hop = {k: (cost["us%d" % k] - cost["us0"]) / k for k in (1, 8, 32)}
        value["happy"] = cost["us0"] / cost["plain"]
        value["logged"] = cost["four"] / cost["plain"]
        value["logged_all"] = cost["all"] / cost["plain"]
        value["zone"] = cost["zoned"] - cost["us0"]
        value["hop8"] = hop[8] / cost["plain"]
        value["hop32"] = hop[32] / cost["plain"]
        value["growth"] = hop[32] / hop[1]

        nginx = Nginx(self.nginx, self.dir, "calls", self.module, self.hops(), self.front)
        calls = {path: sum(system_calls(nginx, "/" + path, 100, self.dir).values())
                 for path in ("us0", "us8")}
        nginx.stop()
        value["calls"] = (calls["us8"] - calls["us0"]) / 8

        held = self.held(("plain", "us8", "us32"))
        value["held8"] = (held["us8"] - held["plain"]) / 8
        value["held32"] = (held["us32"] - held["plain"]) / 32

        nginx = self.callgrind("many", self.many())
        client = Client(self.front)
        self.hits()
        status, _ = client.get("/many")
        client.close()
        value["deep"] = self.hits() - 1 if status == 200 else 0
        cost["few"], _ = nginx.count("/few", 200)
        self.hits()
        cost["many"], _ = nginx.count("/many", 200)
        value["hits"] = self.hits() / (200 + WARM)
        nginx.stop()
        value["many"] = cost["many"] / cost["plain"]
        value["slope"] = (cost["many"] - cost["few"]) / (MANY - 10)
        return cost, value

    def profile(self):
        nginx = self.callgrind("hops", self.hops())
        cost = {}
        for path, requests in (("plain", 200), ("us0", 200), ("us8", 40)):
            _, file = nginx.count("/" + path, requests)
            for name, (ob, own, all) in functions(file).items():
                row = cost.setdefault(name, {"object": short(ob)})
                row[path], row[path + " all"] = own / requests, all / requests
        nginx.stop()
        for row in cost.values():
            for key in ("plain", "us0", "us8", "plain all", "us0 all", "us8 all"):
                row.setdefault(key, 0)
            row["happy"] = row["us0"] - row["plain"]
            row["hop"] = (row["us8"] - row["us0"]) / 8
            row["hop all"] = (row["us8 all"] - row["us0 all"]) / 8
        sums = {}
        for row in cost.values():
            for key in ("plain", "us0", "happy", "hop"):
                sums.setdefault(row["object"], {}).setdefault(key, []).append(row[key])
        table("Own instructions a request", ["object", "plain", "happy path", "more than plain", "a hop"],
              [[ob] + ["%.0f" % sum(keys[k]) for k in ("plain", "us0", "happy", "hop")]
               for ob, keys in sorted(sums.items(), key=lambda x: -sum(x[1]["us0"]))
               if sum(keys["us0"]) >= 1])
        for key, title in (("happy", "The happy path, more than plain"), ("hop", "A hop")):
            rows = sorted(cost.items(), key=lambda x: -abs(x[1][key]))[:40]
            table(title + ": own instructions", ["function", "object", "instructions"],
                  [[demangled(name), row["object"], "%+.0f" % row[key]] for name, row in rows])
        rows = sorted(cost.items(), key=lambda x: -x[1]["hop all"])[:60]
        table("A hop, with what is called (recursion counts twice)",
              ["function", "object", "instructions"],
              [[demangled(name), row["object"], "%.0f" % row["hop all"]] for name, row in rows])

    def memory(self):
        held = self.held(("plain", "us0", "us1", "us8", "us32"))
        rows = []
        for name, kib in held.items():
            over = kib - held["plain"]
            k = int(name[2:]) if name != "plain" else 0
            rows.append([name, "%.2f" % kib, "%+.2f" % over, "%.2f" % (over / k) if k else ""])
        table("KiB held by each of %d requests that wait for their last upstream" % WAITING,
              ["path", "a request", "over plain", "a hop"], rows)

    # KiB for each of many requests that wait for their last upstream, in a process of their own for
    # each depth.
    def held(self, paths):
        requests = WAITING
        silent = socket.socket()
        silent.bind(("127.0.0.1", 0))
        silent.listen(4096)
        held = {}
        for name in paths:
            k = int(name[2:]) if name != "plain" else 0
            text = upstream("silent", silent.getsockname()[1], "")
            text += "".join(upstream("bad%d" % n, self.bad) for n in range(k))
            text += upstrand("s", ["bad%d" % n for n in range(k)] + ["silent"])
            text += "server { listen 127.0.0.1:%d backlog=4096;\n%s}\n" % (self.front, location(
                "x", "silent" if name == "plain" else "$upstrand_s", "proxy_connect_timeout 60s;"))
            nginx = Nginx(self.nginx, self.dir, "memory", self.module, text, self.front)
            before, clients, asked = nginx.memory(), [], 0
            self.hits()
            for n in range(requests):
                client = Client(self.front)
                client.socket.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                clients.append(client)
                if n % 20 == 19:
                    while asked < (n + 1) * k:
                        asked += self.hits()
            time.sleep(0.5)
            held[name] = (nginx.memory() - before) / requests
            for client in clients:
                client.close()
            nginx.stop()
        silent.close()
        return held

    def configuration(self):
        count = 5000
        rows, base = [], None
        for kind in ("plain", "regex", "names", "add_upstream"):
            names = ["u%05d" % n for n in range(count)]
            text = "".join("upstream %s { server 127.0.0.1:80; }\n" % n for n in names)
            text += {"plain": "",
                     "regex": upstrand("s", ["~^u"]),
                     "names": upstrand("s", names),
                     "add_upstream": "upstream all { %s }\n" % " ".join(
                         "add_upstream %s;" % n for n in names)}[kind]
            nginx = Nginx(self.nginx, self.dir, kind, self.module, text, None)
            cost = instructions(nginx.argv + ["-t"], self.dir.file(kind + ".callgrind"))
            base = base or cost
            rows.append([kind, "%.0f" % (cost / 1e6), "%.3f" % (cost / base)])
        table("nginx -t with %d upstreams" % count, ["upstrand", "million instructions", "/ plain"], rows)

        rows, base = [], None
        for kind in ("", "combine_server_singlets;", "combine_server_singlets _s_ nobackup;"):
            servers = " ".join("server 127.%d.%d.1:80;" % (n // 250, n % 250) for n in range(1000))
            text = "upstream u { %s %s }\nserver { listen 127.0.0.1:%d; }\n" % (servers, kind, self.front)
            nginx = Nginx(self.nginx, self.dir, "singlets", self.module, text, self.front)
            memory = nginx.memory() / 1024
            nginx.stop()
            base = base or memory
            rows.append([kind or "none", "%.1f" % memory, "%+.1f" % (memory - base)])
        table("An upstream of 1,000 servers, MiB of nginx", ["singlets", "all", "over none"], rows)


def short(ob):
    if ob and "combined_upstreams" in ob:
        return "module"
    return ob or "?"


def demangled(name):
    """Of Rust's symbols, the path without its hash."""
    if not name.startswith("_ZN"):
        return name
    parts, text = [], name[3:]
    while text[:1].isdigit():
        digits = len(text) - len(text.lstrip("0123456789"))
        size = int(text[:digits])
        parts.append(text[digits:digits + size])
        text = text[digits + size:]
    return "::".join(parts[:-1])[-70:]


def is_worse(name, value, bound):
    allowed = MEASURES[name][2]
    if name == "deep":
        return value < bound
    return value > bound + (bound * TOLERANCE if allowed is None else allowed)


def report(cost, value, bounds):
    table("Instructions a request", ["path", "instructions", "/ plain"],
          [[path, "%.0f" % n, "%.3f" % (n / cost["plain"])] for path, n in cost.items()])
    rows, worse = [], []
    for name, (text, decimals, _) in MEASURES.items():
        show = "%%.%df" % decimals
        bound = bounds.get(name)
        bad = bound is not None and is_worse(name, value[name], bound)
        worse += [name] if bad else []
        rows.append([text, show % value[name], "" if bound is None else show % bound,
                     "WORSE" if bad else ""])
    table("Against plain proxy_pass", ["measure", "value", "bound", ""], rows)
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nginx", required=True)
    parser.add_argument("--module", required=True)
    for mode in ("check", "record", "profile", "memory", "configuration"):
        parser.add_argument("--" + mode, action="store_true")
    args = parser.parse_args()
    began = time.monotonic()
    with Dir() as dir:
        bench = Bench(args, dir)
        other = [mode for mode in ("profile", "memory", "configuration") if getattr(args, mode)]
        for mode in other:
            getattr(bench, mode)()
        if other:
            return 0
        cost, value = bench.measure()
    bounds = {}
    if os.path.exists(BOUNDS):
        with open(BOUNDS) as f:
            bounds = json.load(f)
    worse = report(cost, value, bounds)
    print("\n%.0f s" % (time.monotonic() - began))
    if args.record:
        with open(BOUNDS, "w") as f:
            json.dump({k: round(v, MEASURES[k][1]) for k, v in value.items()}, f, indent=4)
            f.write("\n")
    elif args.check and (worse or not bounds):
        print("not ok - bench: worse than bench/bounds.json: %s" % (", ".join(worse) or "no bounds"))
        return 1
    elif args.check:
        print("ok - bench")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
