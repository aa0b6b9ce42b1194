"""What the bench measures with: an nginx of its own, a client, callgrind, strace.

All on 127.0.0.1 and bounded in time; only processes that were started here are stopped, by their pid.
"""
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

CHILDREN = []
# Requests before those that are counted: they make connections and take memory.
WARM = 8


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Dir:
    """A directory that goes at the end."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="upstrands-bench-")
        os.mkdir(self.file("logs"))
        # Whoever ends the bench ends what it started.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def file(self, name):
        return os.path.join(self.path, name)

    def write(self, name, text):
        with open(self.file(name), "w") as f:
            f.write(text)
        return self.file(name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in CHILDREN:
            stop(child)
        shutil.rmtree(self.path, ignore_errors=True)


def start(argv):
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet)
    CHILDREN.append(child)
    return child


def stop(child, by=signal.SIGTERM):
    if child.poll() is None:
        child.send_signal(by)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def until(what, is_so, seconds=30):
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit("bench: not in %d s: %s" % (seconds, what))
        time.sleep(0.01)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


class Nginx:
    """One process of nginx; `wrap` is what runs it."""

    def __init__(self, binary, dir, name, module, http, port, wrap=()):
        load = "load_module %s;\n" % os.path.abspath(module) if module else ""
        user = "user root;\n" if os.geteuid() == 0 else ""
        text = load + user + """
daemon off; master_process off; worker_rlimit_nofile %d;
error_log logs/%s.log crit; pid logs/%s.pid;
events { worker_connections 8192; }
http {
    access_log off; keepalive_requests 100000000; keepalive_timeout 60s;
    variables_hash_max_size 4096;
    client_body_temp_path logs/body; proxy_temp_path logs/proxy; fastcgi_temp_path logs/fastcgi;
    uwsgi_temp_path logs/uwsgi; scgi_temp_path logs/scgi;
    proxy_http_version 1.1; proxy_set_header Connection "";
%s}
""" % (min(60000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]), name, name, http)
        self.argv = [binary, "-p", dir.path + "/", "-c", dir.write(name + ".conf", text)]
        self.log = dir.file("logs/%s.log" % name)
        self.port = port
        if port:
            self.process = start(list(wrap) + self.argv)
            until("%s listens" % name, lambda: self.process.poll() is not None or listens(port))
            if self.process.poll() is not None:
                text = subprocess.run(self.argv + ["-t"], capture_output=True, text=True).stderr
                raise SystemExit("bench: nginx did not start: " + text)

    def memory(self):
        """Resident KiB."""
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def stop(self):
        stop(self.process)


class Client:
    """Asks for one path after the other over one connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def get(self, path):
        """Status and body; the answer must have a Content-Length."""
        self.socket.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path).encode())
        status = self.file.readline()
        length = 0
        for line in iter(self.file.readline, b"\r\n"):
            if not line:
                raise SystemExit("bench: %s: the connection was closed" % path)
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return int(status.split()[1]), self.file.read(length)

    def close(self):
        self.file.close()
        self.socket.close()


class Callgrind(Nginx):
    """An nginx whose instructions are counted: those of user space."""

    def __init__(self, binary, dir, name, module, http, port):
        self.out = dir.file(name + ".callgrind")
        self.dumps = 0
        super().__init__(binary, dir, name, module, http, port,
                         ("valgrind", "--tool=callgrind", "--callgrind-out-file=" + self.out))

    def dump(self):
        """Writes what was counted since the last time to a file."""
        subprocess.run(["vgdb", "--pid=%d" % self.process.pid, "dump"], check=True, timeout=30,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.dumps += 1
        file = "%s.%d" % (self.out, self.dumps)
        until("callgrind's counts", lambda: os.path.exists(file) and total(file) is not None)
        return file

    def count(self, path, requests):
        """Instructions a request, and the file that says where."""
        client = Client(self.port)
        for _ in range(WARM):
            client.get(path)
        self.dump()
        for _ in range(requests):
            status, _ = client.get(path)
            if status != 200:
                raise SystemExit("bench: %s answered %d" % (path, status))
        file = self.dump()
        client.close()
        return total(file) / requests, file


def total(file):
    with open(file) as f:
        found = re.search(r"^totals: (\d+)", f.read(), re.M)
    return int(found.group(1)) if found else None


def instructions(argv, out):
    """Instructions of a whole run."""
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out] + argv,
                         capture_output=True, text=True, timeout=600)
    if run.returncode:
        raise SystemExit("bench: %s: %s" % (argv, run.stderr[-800:]))
    return total(out)


def name_of(names, kind, value):
    """callgrind writes a name once, with a number, and then the number alone."""
    number, _, rest = value.partition(" ")
    if rest:
        names[kind, number] = rest
    return names.get((kind, number), value)


def functions(file):
    """Of a file of callgrind's: {function: [object, own instructions, with those it calls]}."""
    names, result = {}, {}
    ob = fn = None
    of_call = False
    with open(file) as f:
        for line in f:
            key, eq, value = line.rstrip("\n").partition("=")
            if eq and key == "ob":
                ob = os.path.basename(name_of(names, "o", value))
            elif eq and key == "fn":
                fn = re.sub(r"'\d+$", "", name_of(names, "f", value))
                result.setdefault(fn, [ob, 0, 0])
            elif eq and key == "cob":
                name_of(names, "o", value)
            elif eq and key == "cfn":
                name_of(names, "f", value)
            elif eq and key == "calls":
                of_call = True
            elif line[:1] in "0123456789+-*" and fn:
                fields = line.split()
                if len(fields) > 1:
                    result[fn][2] += int(fields[1])
                    if not of_call:
                        result[fn][1] += int(fields[1])
                of_call = False
    return result


def system_calls(nginx, path, requests, dir):
    """System calls a request: {name: number}."""
    client = Client(nginx.port)
    for _ in range(WARM):
        client.get(path)
    out = dir.file("strace")
    tracer = start(["strace", "-c", "-o", out, "-p", str(nginx.process.pid)])
    with open("/proc/%d/status" % nginx.process.pid) as f:
        until("strace is there", lambda: f.seek(0) or "TracerPid:\t0\n" not in f.read())
    time.sleep(0.2)
    for _ in range(requests):
        client.get(path)
    stop(tracer, signal.SIGINT)
    client.close()
    calls = {}
    with open(out) as f:
        for line in f:
            fields = line.split()
            if len(fields) > 4 and fields[0][:1].isdigit() and fields[-1] != "total":
                calls[fields[-1]] = int(fields[3]) / requests
    return calls


def table(title, head, rows):
    rows = [[str(cell) for cell in row] for row in [head] + rows]
    width = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rows.insert(1, ["-" * w for w in width])
    print("\n%s\n" % title if title else "")
    for row in rows:
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, width)) + " |")
