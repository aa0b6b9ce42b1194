"""Headless Chromium by its DevTools protocol over a pipe: Python's standard library is enough."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")

# Without these Chromium asks for hosts of its maker at start, and takes QUIC and a GPU into account.
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe""".split()


def program():
    """The path of Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    def __init__(self, path, zone="UTC"):
        self.profile = tempfile.mkdtemp(prefix="test-page-")
        # Chromium reads file descriptor 3 and writes 4. High numbers first, so that none is in the way.
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]

        def in_child():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.log = open(os.path.join(self.profile, "log"), "wb")
        self.process = subprocess.Popen(
            [path, *FLAGS, "--user-data-dir=" + self.profile, "about:blank"],
            env={**os.environ, "TZ": zone, "HOME": self.profile},
            preexec_fn=in_child, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self.out = os.fdopen(ours_out, "wb")
        self.input = os.fdopen(ours_in, "rb")
        self.number = 0
        self.answers = {}
        self.events = []  # (session, method, parameters)
        self.news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        rest = b""
        while True:
            data = self.input.read1(1 << 16)
            if not data:
                break
            *messages, rest = (rest + data).split(b"\0")
            with self.news:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self.events.append((message.get("sessionId"), message["method"], message["params"]))
                self.news.notify_all()

    def call(self, method, session=None, timeout=60, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self.out.write(json.dumps(message).encode() + b"\0")
        self.out.flush()
        with self.news:
            if not self.news.wait_for(lambda: number in self.answers, timeout):
                raise RuntimeError(f"no answer to {method} within {timeout} s")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def close(self):
        try:
            self.call("Browser.close", timeout=10)
            self.process.wait(10)
        except Exception:  # whatever it is, it has to go
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)


class Tab:
    def __init__(self, browser):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **parameters):
        return self.browser.call(method, session=self.session, **parameters)

    def events(self, *methods):
        with self.browser.news:
            return [(method, parameters) for session, method, parameters in self.browser.events
                    if session == self.session and method in methods]

    def open(self, url, width=1280, height=900):
        self.size(width, height)
        self.call("Page.navigate", url=url)

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def media(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, expression, timeout=15):
        """Whether the expression is true in time."""
        end = time.monotonic() + timeout
        while True:
            if self.js(expression):
                return True
            if time.monotonic() > end:
                return False
            time.sleep(0.1)

    def key(self, key):
        text = {"Enter": "\r"}.get(key, "")
        code = {"Enter": 13, "Tab": 9}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def screenshot(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """What the console shows: exceptions, errors, warnings, violations of the policy. Answers that
        failed are left out: Chromium logs each one, and the tests make some."""
        found = []
        for method, parameters in self.events("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            if method == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(str(parameters["args"]))
            elif method == "Log.entryAdded":
                entry = parameters["entry"]
                if entry["level"] in ("error", "warning") and entry["source"] != "network":
                    found.append(entry["text"])
        return found

    def requests(self):
        return [parameters["request"]["url"] for _, parameters in self.events("Network.requestWillBeSent")
                if not parameters["request"]["url"].startswith("data:")]
