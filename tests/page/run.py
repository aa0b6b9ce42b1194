#!/usr/bin/env python3
"""The page of upstrand_status (src/status/page.html) in headless Chromium; see tools/test-page.sh.

    run.py              against a server made up here, which shows all states and fails on purpose
    run.py URL          a real server: that its page shows what its JSON says

SHOTS=DIRECTORY keeps screenshots there.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
from browser import Browser, Tab, program  # noqa: E402
from mock import HASTE, Server, document, out, peer, upstrand, upstream  # noqa: E402

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
failed = 0


def check(what, good, *details):
    global failed
    print(("ok - page: " if good else "not ok - page: ") + what, flush=True)
    if not good:
        failed += 1
        for detail in details:
            print("#", detail, file=sys.stderr)


def shot(tab, name, whole=False):
    if os.environ.get("SHOTS"):
        tab.screenshot(os.path.join(os.environ["SHOTS"], name + ".png"), whole)


def text(selector):
    """What is to be read there. (innerText of what is hidden is not empty.)"""
    found = f"document.querySelector({json.dumps(selector)})"
    return f"({found}?.checkVisibility() ? {found}.innerText : '')"


# The section of an upstrand, as JavaScript.
def section(name):
    return f"[...document.querySelectorAll('section')].find(s => s.querySelector('h2').textContent === {json.dumps(name)})"


def cell(strand, name):
    return f"[...{section(strand)}.querySelectorAll('.cell')].find(c => c.title === {json.dumps(name)})"


def refreshed(tab, server):
    """Waits until the page has drawn what the server says from now on."""
    before = server.asked
    end = time.monotonic() + 40
    while server.asked < before + 2 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)
    return server.asked >= before + 2


HEADINGS = "[...document.querySelectorAll('section h2')].map(h => h.textContent)"

# The lowest contrast of text to what is behind it, and whose.
CONTRAST = """(() => {
  const number = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => number(color).slice(0, 3).map((c) => c / 255)
    .map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  let lowest = [99, ''];
  for (const element of document.querySelectorAll('body *')) {
    if (!element.checkVisibility() || ![...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    let behind = element;
    while (behind && number(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const [a, b] = [light(getComputedStyle(element).color), light(getComputedStyle(behind || document.body).backgroundColor)];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < lowest[0]) lowest = [ratio, element.className + ': ' + element.textContent.slice(0, 40)];
  }
  return lowest;
})()"""

EVIL = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
QUOTES = "a\"b'c&amp;</section>"


def all_states(failovers=31, us="up", extra=()):
    return lambda: document({
        "quiet": upstrand(upstream("q1"), upstream("q2"), upstream("q3", tier=1)),
        "regions": upstrand(out("eu"), upstream("us", us, 1, reason=None if us == "up" else "blacklisted after timeout",
                                                peers=[peer("192.0.2.21:8080", active=3),
                                                       peer("192.0.2.22:8080", "unavail", fails=1, max_conns=50)], peers_total=900),
                            failovers=failovers, exhausted=2, intercepted=1),
        "mixed": upstrand(
            upstream("m-up"),
            upstream("m-draining", "draining", reason="taken out by hand", since=-7500),
            upstream("m-down", "down", reason="all its servers are marked down"),
            upstream("m-checking", "checking", reason="blacklisted after timeout, probed by the next request", since=-65, until=-5),
            upstream("m-unhealthy", "unhealthy", reason="health checks fail")),
        "dark": upstrand(out("d1", reason="error"), out("d2", 1, "timeout", 70, 50)),
        "alone": upstrand(upstream("a1", last_failure=(-10, "http_502"), interval=0), upstream("a2"), zone=None),
        "drained": upstrand(upstream("r1"), upstream("r2", "draining", reason="taken out by hand", since=-90000)),
        EVIL: upstrand(out(EVIL), upstream(QUOTES, reason="<b>bold</b>"), upstream("x" * 200)),
        "__proto__": upstrand(upstream("constructor")),
        **dict(extra),
    })


def many(n=500, bad=7):
    return lambda: document({
        "fleet": upstrand(*[out(f"app_{i:03}") if i % (n // bad) == 3 else upstream(f"app_{i:03}") for i in range(n)],
                          upstream("spare", tier=1)),
        "small": upstrand(upstream("one")),
    })


def two_hundred():
    return document({f"site{i:03}": upstrand(out("east") if i % 50 == 7 else upstream("east"), upstream("west", tier=1),
                                             upstream("south", tier=1)) for i in range(200)})


def valid(scene):
    done = subprocess.run([sys.executable, os.path.join(TOP, "tools/check-status.py")], input=json.dumps(scene()),
                          capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def mocked(browser):
    server = Server()
    host = server.url.rsplit("/", 1)[0]
    for what, scene in (("all states", all_states()), ("500 upstreams", many())):
        good, said = valid(scene)
        check(f"the made-up document of {what} is as the schema has it", good, said)

    tab = Tab(browser)
    tab.media("light")
    server.scene = all_states()
    tab.open(server.url)
    check("shows something", tab.wait("document.querySelectorAll('section').length === 8"), tab.js(text("body")))

    # States and reasons.
    for state, strand, name, reason in (
            ("up", "regions", "us", ""), ("unavail", "regions", "eu", "blacklisted after http_503"),
            ("draining", "mixed", "m-draining", "taken out by hand"),
            ("down", "mixed", "m-down", "all its servers are marked down"),
            ("checking", "mixed", "m-checking", "probed by the next request"),
            ("unhealthy", "mixed", "m-unhealthy", "health checks fail")):
        shown = tab.js(f"{cell(strand, name)}.innerText")
        check(f"a member that is {state} says so and why", state in shown.split() and reason in shown, shown)
    whole = tab.js(f"{section('regions')}.innerText")
    check("who is out, since when, why and until when is said in words",
          "eu is out since" in whole and "(10 s): blacklisted after http_503, tried again at" in whole, whole)
    check("who serves is said, and that it is a backup", "us serves" in whole and "on backup (tier 1)" in whole, whole)
    check("an upstrand with nothing up says so, and what requests do", tab.js(
        f"{section('dark')}.innerText.includes('no upstream is up') && "
        f"{section('dark')}.innerText.includes('blacklisted ones are asked all the same')"))
    check("without a zone it says whose figures these are",
          "worker 4242 alone knows" in tab.js(f"{section('alone')}.innerText"))
    check("a failure of an upstream that is not blacklisted is told",
          "a1 failed and is still asked" in tab.js(f"{section('alone')}.innerText"))
    order = tab.js(HEADINGS)
    check("problems first, the worst on top, the rest as configured",
          order == ["dark", "regions", "mixed", EVIL, "alone", "drained", "quiet", "__proto__"], order)
    check("the summary counts them", tab.js(text("#summary")).startswith("✕ 8 upstrands: 1 has no upstream up, 1 runs on a backup"),
          tab.js(text("#summary")))
    check("the title of the tab tells of problems", tab.js("document.title") == "✕ 4 Upstrands", tab.js("document.title"))

    # Names are text.
    check("names with markup and quotes are shown as text", tab.js(
        f"!window.hacked && !document.querySelector('main img, main script') && !!{cell(EVIL, EVIL)} && !!{cell(EVIL, QUOTES)}"))
    shot(tab, "light", True)
    lowest = tab.js(CONTRAST)
    check("light: contrast of all text is 4.5 at least", lowest[0] >= 4.5, lowest)

    # Details: by mouse and by keyboard, kept over refreshes.
    tab.js(f"{cell('regions', 'us')}.click()")
    tab.js(f"{cell('regions', 'eu')}.focus()")
    tab.key("Enter")
    check("details open by click and by keyboard",
          tab.js(f"[...{section('regions')}.querySelectorAll('[aria-expanded=true]')].map(c => c.title)") == ["eu", "us"])
    panels = tab.js(f"[...{section('regions')}.querySelectorAll('.panel')].map(p => p.innerText).join('\\n')")
    check("details have counts, failures by reason, responses, the last failure and servers", all(
        part in panels for part in ("http 29 · error 1", "2xx 868 · 4xx 2 · 5xx 30", "http_503", "192.0.2.22:8080",
                                    "3 active", "blacklisted for 30 s", "… and 898 more")), panels)
    check("aria-controls names the panel", tab.js(
        f"document.getElementById({cell('regions', 'us')}.getAttribute('aria-controls')).getAttribute('aria-label')") == "us")
    time.sleep(0.5)  # what was opened is drawn
    tab.js("window.shifts = 0; window.moved = []; new PerformanceObserver((l) => { for (const e of l.getEntries()) {"
           "shifts += e.value; moved.push(...e.sources.map((s) => s.node?.outerHTML?.slice(0, 80))); } })"
           ".observe({ type: 'layout-shift' })")
    check("it refreshes", refreshed(tab, server))
    check("an ordinary refresh moves nothing", tab.js("shifts") < 0.001, tab.js("[shifts, ...moved]"))
    server.scene = all_states(failovers=51)
    refreshed(tab, server)
    check("the chart shows the failovers since the last answer", tab.js(
        f"{section('regions')}.querySelector('path').getAttribute('d') !== '' && "
        f"/peak [1-9][0-9.]*\\/s/.test({section('regions')}.querySelector('.chart').innerText)"),
        tab.js(f"{section('regions')}.querySelector('.chart').innerText"))
    server.scene = all_states(failovers=51, us="unavail", extra={"new": upstrand(upstream("n1"))}.items())
    refreshed(tab, server)
    check("a refresh brings new states, new upstrands and another order", tab.js(
        f"{cell('regions', 'us')}.innerText.includes('unavail') && !!{section('new')}") and
        tab.js(HEADINGS)[:2] == ["regions", "dark"], tab.js(HEADINGS))
    check("details and focus stay over refreshes", tab.js(
        f"[...{section('regions')}.querySelectorAll('[aria-expanded=true]')].length === 2 && "
        f"{section('regions')}.querySelectorAll('.panel').length === 2 && document.activeElement.title === 'eu'"),
        tab.js("document.activeElement.outerHTML"))
    shot(tab, "details")
    server.scene = all_states()
    refreshed(tab, server)
    check("what has gone from the configuration goes from the page", not tab.js(f"!!{section('new')}"))

    # Filter and toggle.
    tab.js("filter.value = 'M-DR'; filter.oninput()")
    check("the filter finds upstreams by name", tab.js(HEADINGS) == ["mixed"] and
          tab.js(f"{section('mixed')}.querySelectorAll('.cell').length") == 1)
    tab.js("filter.value = 'regi'; filter.oninput()")
    check("the filter finds upstrands by name, whole",
          tab.js(HEADINGS) == ["regions"] and tab.js(f"{section('regions')}.querySelectorAll('.cell').length") == 2)
    tab.js("filter.value = 'nothing'; filter.oninput()")
    check("a filter that finds nothing says so", "No name matches “nothing”" in tab.js(text("main")))
    tab.js("filter.value = ''; problems.click()")
    check("problems only", "quiet" not in tab.js(HEADINGS) and "regions" in tab.js(HEADINGS) and
          tab.js(f"!{cell('regions', 'us')}"))
    tab.js("problems.click()")

    # Dark.
    tab.media("dark")
    check("dark is dark", tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)")
    lowest = tab.js(CONTRAST)
    check("dark: contrast of all text is 4.5 at least", lowest[0] >= 4.5, lowest)
    shot(tab, "dark", True)
    tab.media("light")

    # A phone.
    tab.size(360, 740, True)
    check("360 px wide: nothing to scroll sideways", tab.js("document.documentElement.scrollWidth <= 360 && innerWidth === 360"),
          tab.js("[document.documentElement.scrollWidth, innerWidth]"))
    check("360 px wide: members are 36 px high at least, for thumbs",
          tab.js("Math.min(...[...document.querySelectorAll('.cell')].map(c => c.offsetHeight))") >= 36)
    shot(tab, "phone", True)
    shot(tab, "phone-first")
    tab.size(1280, 900)

    # Failures.
    def banner():
        return tab.js(text("#banner"))

    for scene, said in (("503", "status 503"), ("drop", "no connection"), ("html", "what it says is not JSON")):
        server.scene = scene
        check(f"a banner when the answer is bad: {said}",
              tab.wait(f"{text('#banner')}.includes({json.dumps(said)})", 20) and "not answering since" in banner()
              and "showing data of" in banner() and tab.js("document.querySelectorAll('section').length === 8"), banner())
        if scene == "503":
            shot(tab, "failure")
        server.scene = all_states()
        check("it recovers by itself", tab.wait(f"{text('#banner')} === ''", 20), banner())
    server.scene = "503"
    tab.wait(f"{text('#banner')} !== ''")
    server.asked = 0
    time.sleep(7 / HASTE)
    check("it asks less and less often while that lasts", 1 <= server.asked <= 3, server.asked)
    lowest = tab.js(CONTRAST)
    check("contrast of the banner", lowest[0] >= 4.5, lowest)
    server.scene = all_states()
    tab.js("document.querySelector('#banner button').click()")
    check("asked to, it tries at once", tab.wait(f"{text('#banner')} === ''", 2))

    server.most_running = 0
    server.scene = (5 / HASTE, all_states())
    time.sleep(9 / HASTE)
    check("slow answers do not pile up", server.most_running == 1, server.most_running)
    server.scene = "hang"
    check("an answer that does not come at all is given up", tab.wait(f"{text('#banner')}.includes('nothing within 2 s')", 25),
          banner())
    server.scene = all_states()
    check("and it recovers from that", tab.wait(f"{text('#banner')} === ''", 10), banner())

    # Hidden, and paused.
    tab.js("Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
           "document.dispatchEvent(new Event('visibilitychange'))")
    time.sleep(0.5)
    server.asked = 0
    time.sleep(5 / HASTE)
    check("a hidden page does not ask", server.asked == 0, server.asked)
    tab.js("Object.defineProperty(document, 'hidden', { value: false, configurable: true });"
           "document.dispatchEvent(new Event('visibilitychange'))")
    time.sleep(0.5 / HASTE)
    check("it asks at once when it is seen again", server.asked == 1, server.asked)
    tab.js("pause.click()")
    time.sleep(0.5)
    server.asked = 0
    time.sleep(3 / HASTE)
    check("paused, it does not ask", server.asked == 0, server.asked)
    tab.js("pause.click()")

    # Counters: by worker without a zone, and from 0 after a reload. The documents are given to the page.
    rates = tab.js("""(() => {
      const one = (zone, walks, failovers) => ({ zone, walks, failovers, exhausted: 0, deadline_exceeded: 0 });
      const t = Date.now();
      remember('w', one(null, 100, 50), 1, t);
      remember('w', one(null, 9000, 4000), 2, t + 2000);
      remember('w', one(null, 110, 54), 1, t + 4000);
      const workers = remember('w', one(null, 9010, 4002), 2, t + 6000).points.map((p) => [p.failovers, p.rate]);
      remember('z', one('zone', 1000, 400), 1, t);
      remember('z', one('zone', 10, 6), 2, t + 2000);
      const reloaded = remember('z', one('zone', 20, 6), 3, t + 4000).points.map((p) => [p.failovers, p.rate]);
      histories.delete('w'); histories.delete('z');
      return [workers, reloaded];
    })()""")
    check("without a zone the rate is of one worker against itself", rates[0] == [[4, 1], [2, 0.5]], rates)
    check("counters that began anew count from 0", rates[1] == [[6, 3], [0, 0]], rates)

    # 500 members, 200 upstrands.
    server.scene = many()
    tab.call("Page.navigate", url=server.url)
    tab.wait("document.querySelectorAll('section').length === 2")
    shot(tab, "500")
    check("500 upstreams: those out are told, and shown among the first of those up", tab.js(
        f"{section('fleet')}.querySelectorAll('.cell.red').length") == 7 and
        tab.js(f"{section('fleet')}.querySelector('.more').innerText").startswith("… and 45"),
        tab.js(f"{section('fleet')}.innerText"))
    took = tab.js(f"""(() => {{
      {section('fleet')}.querySelector('.more').click();
      const begin = performance.now(); draw(); document.body.offsetHeight;
      return performance.now() - begin; }})()""")
    check("500 upstreams: a refresh is drawn within 0.5 s", took < 500, took)
    print(f"# 500 upstreams drawn again in {took:.0f} ms")
    check("500 upstreams: all can be shown", tab.js("document.querySelectorAll('.cell').length") == 502)
    shot(tab, "500-all", True)
    refreshed(tab, server)
    check("500 upstreams: it goes on refreshing", tab.js(text("#banner")) == "")
    took = tab.js("(() => { views.clear(); const begin = performance.now(); draw(); document.body.offsetHeight;"
                  " return performance.now() - begin; })()")
    check("500 upstreams: the first drawing takes 2 s at most", took < 2000, took)
    print(f"# 500 upstreams drawn for the first time in {took:.0f} ms")
    tab.size(360, 740, True)
    check("500 upstreams on a phone: nothing to scroll sideways", tab.js("document.documentElement.scrollWidth <= 360"))
    shot(tab, "500-phone")
    tab.size(1280, 900)
    server.scene = two_hundred
    check("200 upstrands are shown", tab.wait("document.querySelectorAll('section').length === 200"))
    took = tab.js("(() => { const begin = performance.now(); draw(); document.body.offsetHeight;"
                  " return performance.now() - begin; })()")
    check("200 upstrands: a refresh is drawn within 0.5 s", took < 500, took)
    print(f"# 200 upstrands drawn again in {took:.0f} ms")
    shot(tab, "200")
    server.scene = lambda: document({"site": upstrand(upstream("one"))})
    tab.wait("document.querySelectorAll('section').length === 1")
    shot(tab, "fine")
    server.scene = lambda: document({})
    check("no upstrands at all", tab.wait(f"{text('main')} === 'This configuration has no upstrands.'"), tab.js(text("main")))

    complaints = tab.complaints()
    check("no errors, warnings or violations in the console", not complaints, *complaints)
    others = [url for url in tab.requests() if not url.startswith(host + "/upstrands-status")]
    check("no request to anything but its own address", not others, others)
    asked = {path for path in server.paths if not path.startswith("/upstrands-status")}
    check("nothing else was asked of the server, no icon either", not asked, asked)
    with open(os.path.join(TOP, "src/status/page.html"), "rb") as file:
        size = len(file.read())
    check("the page is below 40 KB", size < 40000, size)

    # Without JavaScript.
    tab = Tab(browser)
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(server.url)
    time.sleep(1)
    tree = tab.call("DOM.getDocument", depth=-1, pierce=True)["root"]
    check("without JavaScript it points to the other formats", "?format=prometheus" in json.dumps(tree))


def real(browser, url):
    request = urllib.request.Request(url.split("?")[0] + "?format=json")
    with urllib.request.urlopen(request, timeout=20) as response:
        said = json.load(response)
    tab = Tab(browser)
    tab.open(url)
    names = sorted(said["upstrands"])
    check(f"{len(names)} upstrands of the JSON are shown",
          tab.wait(f"JSON.stringify({HEADINGS}.sort()) === JSON.stringify({json.dumps(names)}.sort())"), tab.js(text("body")))
    tab.js("document.querySelectorAll('.more').forEach((more) => more.click())")
    missing = [(name, one["name"]) for name, strand in said["upstrands"].items() for one in strand["upstreams"]
               if not tab.js(f"!!{cell(name, one['name'])}")]
    check("their upstreams are shown", not missing, missing)
    first = tab.js(text("#about"))
    check("nginx and module are named", said["nginx"] in first and said["module"] in first, first)
    check("it refreshes", tab.wait(f"{text('#about')} !== {json.dumps(first)}"), first)
    check("no banner", tab.js(text("#banner")) == "", tab.js(text("#banner")))
    complaints = tab.complaints()
    check("no errors, warnings or violations in the console", not complaints, *complaints)
    own = url.split("?")[0]
    others = [request for request in tab.requests() if request.split("?")[0] != own]
    check("no request to anything but its own address", not others, others)
    shot(tab, "real", True)


def main():
    browser = Browser(program())
    try:
        if len(sys.argv) > 1:
            real(browser, sys.argv[1])
        else:
            mocked(browser)
    finally:
        browser.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
