#!/usr/bin/env python3
"""The dashboard, the alerts, and the checks of what upstrand_status says; see tools/test-monitoring.sh.

    run.py METRICS      METRICS: a Prometheus text, a file or a URL
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "../..")
RULES = os.path.join(TOP, "contrib/prometheus/alerts.yml")
TESTS = os.path.join(TOP, "contrib/prometheus/alerts.test.yml")
DASHBOARD = os.path.join(TOP, "contrib/grafana/upstrands.json")
failed = False


def check(what, good, *details):
    global failed
    print(f"{'ok' if good else 'not ok'} - monitoring: {what}")
    if not good:
        failed = True
        for detail in details:
            print("#", detail, file=sys.stderr)


def read(path):
    if "://" in path:
        with urllib.request.urlopen(path, timeout=20) as response:
            return response.read().decode()
    with open(path, encoding="utf-8") as file:
        return file.read()


def known_names(text):
    """What a query may name: families as HELP has them, and the samples of histograms."""
    names = set(re.findall(r"^# HELP (\S+)", text, re.M))
    for name in re.findall(r"^# TYPE (\S+) histogram", text, re.M):
        names |= {name + end for end in ("_bucket", "_sum", "_count")}
    return names


def known_labels(text):
    labels = {}
    for name, inside in re.findall(r"^([a-z_]+)\{(.*)\} \S+$", text, re.M):
        labels.setdefault(name, set()).update(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', inside))
    return labels


def names_in(queries):
    return set(re.findall(r"\bnginx_[a-z0-9_]+", "\n".join(queries)))


def wrong_labels(queries, labels):
    for query in queries:
        for name, inside in re.findall(r"\b(nginx_[a-z0-9_]+)\{([^}]*)\}", query):
            for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"[^"]*"', '""', inside)):
                if label not in labels.get(name, set()) | {"job", "instance"}:
                    yield f"{name} has no label {label}"


def dashboard(names, labels):
    board = json.loads(read(DASHBOARD))
    panels = [panel for top in board["panels"] for panel in (top, *top.get("panels", []))]
    ids = [panel["id"] for panel in panels]
    check("the dashboard is JSON, and no id of a panel is there twice", len(ids) == len(set(ids)), ids)
    places = [panel["gridPos"] for panel in panels]
    overlaps = [(a, b) for i, a in enumerate(places) for b in places[:i]
                if a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]]
    check("no panel lies on another, none is too wide",
          not overlaps and all(place["x"] + place["w"] <= 24 for place in places), overlaps)
    variables = {variable["name"] for variable in board["templating"]["list"]}
    queries = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    asked = [variable["definition"] for variable in board["templating"]["list"] if variable["type"] == "query"]
    used = set(re.findall(r"\$(\w+)", "\n".join(queries + asked))) - {"__rate_interval", "__range"}
    check("the dashboard's variables are those that its queries use", used == variables - {"datasource"}, used, variables)
    sources = re.findall(r'"uid": "(.*?)"', json.dumps([panels, board["templating"]]))
    check("the data source is a variable everywhere", set(sources) == {"${datasource}"}, set(sources))
    check("the dashboard uses metrics that there are", names_in(queries + asked) <= names, names_in(queries + asked) - names)
    wrong = list(wrong_labels(queries, labels))
    check("and labels that they have", not wrong, *wrong)
    unused = {name for name in names if not name.endswith(("_sum", "_count"))} - names_in(queries + asked)
    check("the dashboard shows every metric", unused <= {"nginx_upstrand_try_duration_seconds"}, unused)
    return [re.sub(r"\$__(rate_interval|range)", "5m", query) for query in queries]


def alerts(names, labels, queries):
    text = read(RULES)
    code = re.sub(r"^\s*#.*", "", text, flags=re.M)
    found = names_in([code])
    check("the alerts use metrics that there are", found <= names, found - names)
    wrong = list(wrong_labels([code], labels))
    check("and labels that they have", not wrong, *wrong)
    alert = re.compile(r"- alert: (\w+)\n(.*?)(?=\n      - alert:|\Z)", re.S)
    rules = alert.findall(code)
    lacking = [name for name, body in rules if not re.search(r"^ {8}for: ", body, re.M)
               or not re.search(r"^ {10}severity: (critical|warning|info)$", body, re.M)
               or not re.search(r"^ {10}summary: '.+'$", body, re.M) or not re.search(r"^ {10}description: '.+'$", body, re.M)]
    check(f"each of {len(rules)} alerts has for, severity, summary and description", rules and not lacking, lacking)
    tested = set(re.findall(r"alertname: (\w+)", read(TESTS)))
    check("each alert has a test", {name for name, _ in rules} == tested, {name for name, _ in rules} ^ tested)
    promtool = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if not promtool:
        print("ok - monitoring: promtool # skip not installed (it is in Debian's package prometheus)")
        return

    def run(*words):
        done = subprocess.run([promtool, *words], capture_output=True, text=True)
        return done.returncode == 0, done.stdout + done.stderr

    check("promtool check rules", *run("check", "rules", RULES))
    check("promtool test rules", *run("test", "rules", TESTS))
    # Queries of the dashboard are no rules, but may be written as some.
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump({"groups": [{"name": "dashboard", "rules": [
            {"record": f"query:{i}", "expr": query} for i, query in enumerate(queries)]}]}, file)
        file.flush()
        check(f"promtool takes the {len(queries)} queries of the dashboard", *run("check", "rules", file.name))


def checker(program, *words, data):
    done = subprocess.run([sys.executable, os.path.join(TOP, "tools", program), *words], input=data,
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def checks_of_checks(sample):
    """Whether check-metrics.py and check-status.py find what is wrong, and nothing else."""
    status, said = checker("check-metrics.py", data=sample)
    if "apt-get install" in said:
        print(f"ok - monitoring: check-metrics # skip {said.strip()}")
    else:
        check("check-metrics: the metrics are right", status == 0, said)
        own = read(os.path.join(HERE, "sample.prom"))
        for what, old, new in (
                ("a sample without TYPE", "# TYPE nginx_upstrand_walks_total counter\n", ""),
                ("a sample without HELP", "# HELP nginx_upstrand_walks_total Requests that began to ask upstreams.\n", ""),
                ("a wrong type", "failovers_total counter", "failovers_total gauge"),
                ("a counter without _total", "nginx_upstrand_walks_total", "nginx_upstrand_walks"),
                ("a bucket less than the one before", 'upstream="eu",le="0.01"} 300', 'upstream="eu",le="0.01"} 99'),
                ("+Inf that is not _count", 'upstream="eu",le="+Inf"} 900', 'upstream="eu",le="+Inf"} 901'),
                ("a bucket that is missing", 'nginx_upstrand_try_duration_seconds_bucket{upstrand="regions",upstream="eu",le="1"} 898\n', ""),
                ("a name that nobody knows", "nginx_upstrand_intercepted_total", "nginx_upstrand_intercept_total"),
                ("a label that nobody knows", "walks_total{upstrand=", "walks_total{name="),
                ("a reason that there is not", 'from="eu",reason="http"', 'from="eu",reason="http_503"'),
                ("a state that there is not", 'upstream_state{upstrand="regions",upstream="us"} 1', 'upstream_state{upstrand="regions",upstream="us"} 7'),
                ("a counter below 0", 'walks_total{upstrand="regions"} 1204', 'walks_total{upstrand="regions"} -1'),
                ("a sample twice", 'code="4xx"} 2\n', 'code="4xx"} 2\nnginx_upstrand_requests_total{upstrand="regions",upstream="eu",code="4xx"} 2\n'),
                ("a series that is missing", 'nginx_upstrand_requests_total{upstrand="regions",upstream="us",code="1xx"} 0\n', ""),
                ("a quote that is not escaped", 'od\\"d', 'od"d'),
                ("a family in two places", "# HELP nginx_upstrand_exhausted",
                 'nginx_upstrand_info{nginx="1",module="2"} 1\n# HELP nginx_upstrand_exhausted'),
                ("a figure that is none", 'walks_total{upstrand="regions"} 1204', 'walks_total{upstrand="regions"} NaN'),
                ("no end of the last line", 'le="+Inf"} 0\n', None)):
            broken = own.rstrip("\n") if new is None else own.replace(old, new)
            status, said = checker("check-metrics.py", data=broken)
            check(f"check-metrics finds {what}", broken != own and status == 1 and "not ok - " in said, said)
        check("check-metrics takes a file", checker("check-metrics.py", os.path.join(HERE, "sample.prom"), data="")[0] == 0)

    good = json.loads(read(os.path.join(HERE, "sample.json")))
    status, said = checker("check-status.py", data=json.dumps(good))
    if "apt-get install" in said:
        print(f"ok - monitoring: check-status # skip {said.strip()}")
        return
    check("check-status: the sample is right", status == 0, said)
    strand = good["upstrands"]["regions"]
    for what, document in (("upstrands", good["upstrands"]), ("upstrand", strand), ("upstream", strand["upstreams"][0]),
                           ("error", {"error": {"status": 404, "text": "no such upstrand"}}),
                           ("explain", {"upstrand": "regions", "zone": "z", "time": good["time"], "order": "by turns",
                                        "last_resort": False, "upstreams": [
                                            {"name": "us", "tier": 1, "position": 1, "reason": "first"},
                                            {"name": "eu", "tier": 0, "position": None, "reason": "blacklisted"}]})):
        status, said = checker("check-status.py", "--as", what, data=json.dumps(document))
        check(f"check-status --as {what}", status == 0, said)
        other = "error" if what != "error" else "upstream"
        status, said = checker("check-status.py", "--as", other, data=json.dumps(document))
        check(f"check-status: {what} is not {other}", status == 1 and "not ok - " in said, said)

    def changed(*path, to):
        document = json.loads(json.dumps(good))
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to
        return json.dumps(document)

    eu = ("upstrands", "regions", "upstreams", 0)
    for what, text in (
            ("what is not JSON", "{"), ("nothing", ""), ("a key that is there twice", json.dumps(good)[:-1] + ',"version":1}'),
            ("NaN", json.dumps(good).replace("1204", "NaN")), ("another version", changed("version", to=2)),
            ("a time without milliseconds", changed("time", to="2026-11-30T04:20:00Z")),
            ("a state that there is not", changed(*eu, "state", to="out")),
            ("a key that is missing", changed(*eu, to={})), ("a key too many", changed(*eu, "more", to=1)),
            ("a count that is text", changed(*eu, "tries", to="900")), ("a count below 0", changed(*eu, "tries", to=-1)),
            ("more failures than tries", changed(*eu, "tries", to=3)), ("more peers than there are", changed(*eu, "peers_total", to=0)),
            ("one that is out for no reason", changed(*eu, "reason", to="")),
            ("upstreams not by tier", changed(*eu, "tier", to=5)),
            ("an upstream that is there twice", changed("upstrands", "regions", "upstreams", to=[strand["upstreams"][0]] * 2)),
            ("failures without a last one", changed(*eu, "last_failure", to=None))):
        status, said = checker("check-status.py", data=text)
        check(f"check-status finds {what}", status == 1 and "not ok - " in said, said)
    status, said = checker("check-status.py", "--live", data=changed(*eu, "tries", to=3))
    check("check-status --live does not compare sums", status == 0, said)


def main():
    text = read(sys.argv[1])
    names, labels = known_names(text), known_labels(text)
    alerts(names, labels, dashboard(names, labels))
    checks_of_checks(text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
