#!/usr/bin/env python3
"""Checks the Prometheus text of upstrand_status, by the parser of Prometheus' own client.

    check-metrics.py [FILE]      standard input without FILE

Prints lines of TAP; exit status 1 if something is wrong.
"""

import math
import os
import re
import sys

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    # The packages of Debian are those of Debian's own Python.
    if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3") and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    sys.exit("check-metrics: no prometheus_client: apt-get install python3-prometheus-client")

REASONS = {"http", "error", "timeout"}
RESULTS = {"final", "http", "error", "timeout", "deadline", "tries", "non_idempotent", "unbuffered", "exhausted", "aborted"}
CLASSES = {"1xx", "2xx", "3xx", "4xx", "5xx"}
BOUNDS = "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf".split()

# Name: type, labels, and what a label may say where that is a closed list.
FAMILIES = {
    "nginx_upstrand_info": ("gauge", ("nginx", "module"), {}),
    "nginx_upstrand_shared": ("gauge", ("upstrand",), {}),
    "nginx_upstrand_walks_total": ("counter", ("upstrand",), {}),
    "nginx_upstrand_exhausted_total": ("counter", ("upstrand",), {}),
    "nginx_upstrand_intercepted_total": ("counter", ("upstrand",), {}),
    "nginx_upstrand_deadline_exceeded_total": ("counter", ("upstrand",), {}),
    "nginx_upstrand_failovers_total": ("counter", ("upstrand", "from", "reason"), {"reason": REASONS}),
    "nginx_upstrand_tries_total": ("counter", ("upstrand", "upstream", "result"), {"result": RESULTS}),
    "nginx_upstrand_requests_total": ("counter", ("upstrand", "upstream", "code"), {"code": CLASSES}),
    "nginx_upstrand_upstream_state": ("gauge", ("upstrand", "upstream"), {}),
    "nginx_upstrand_upstream_tier": ("gauge", ("upstrand", "upstream"), {}),
    "nginx_upstrand_try_duration_seconds": ("histogram", ("upstrand", "upstream"), {}),
}

failed = False


def check(what, complaints):
    global failed
    complaints = list(complaints)
    print(f"{'not ok' if complaints else 'ok'} - metrics: {what}")
    for complaint in complaints[:20]:
        print(f"# {complaint}", file=sys.stderr)
    failed = failed or bool(complaints)


def family_of(sample, types):
    """The name of its family: the parser lets a sample without one pass."""
    if sample in types:
        return sample
    base = re.sub(r"_(bucket|sum|count)$", "", sample)
    return base if types.get(base) in ("histogram", "summary") else None


def values(families, name):
    """{labels: value} of all samples of a name."""
    return {tuple(sorted(sample.labels.items())): sample.value
            for family in families for sample in family.samples if sample.name == name}


def layout(lines):
    """What the parser is too kind to complain about. Gives the types, and complaints."""
    types, helped, order, complaints = {}, set(), [], []
    for line in lines:
        words = line.split(None, 3)
        if line.startswith("# HELP "):
            if words[2] in helped:
                complaints.append(f"HELP of {words[2]} is there twice")
            if len(words) < 4:
                complaints.append(f"HELP of {words[2]} says nothing")
            helped.add(words[2])
        elif line.startswith("# TYPE "):
            if words[2] in types:
                complaints.append(f"TYPE of {words[2]} is there twice")
            if words[2] in order:
                complaints.append(f"TYPE of {words[2]} stands behind its samples")
            types[words[2]] = words[3].strip() if len(words) > 3 else ""
        elif line and not line.startswith("#"):
            name = re.match(r"[a-zA-Z_:][a-zA-Z0-9_:]*", line)
            family = name and family_of(name[0], types)
            if not family:
                complaints.append(f"no TYPE above {line[:100]}")
            elif family not in helped:
                complaints.append(f"no HELP above {line[:100]}")
            elif not order or order[-1] != family:
                if family in order:
                    complaints.append(f"the samples of {family} do not stand together")
                order.append(family)
    return types, complaints


def histograms(families):
    series = {}
    for family in families:
        if family.type != "histogram":
            continue
        for sample in family.samples:
            labels = {key: value for key, value in sample.labels.items() if key != "le"}
            one = series.setdefault((family.name, tuple(sorted(labels.items()))), {"buckets": []})
            if sample.name.endswith("_bucket"):
                one["buckets"].append((sample.labels.get("le"), sample.value))
            else:
                one[sample.name.rsplit("_", 1)[1]] = sample.value
    for (name, labels), one in series.items():
        where = f"{name} {dict(labels)}"
        if [bound for bound, _ in one["buckets"]] != BOUNDS:
            yield f"{where}: buckets are {[bound for bound, _ in one['buckets']]}"
            continue
        counts = [count for _, count in one["buckets"]]
        if counts != sorted(counts):
            yield f"{where}: buckets are not cumulative: {counts}"
        if counts[-1] != one.get("count"):
            yield f"{where}: +Inf is {counts[-1]}, _count is {one.get('count')}"
        if one.get("sum", -1) < 0:
            yield f"{where}: _sum is {one.get('sum')}"


def by_contract(families, types):
    for name in FAMILIES.keys() - types.keys():
        yield f"{name} is missing"
    for name in types.keys() - FAMILIES.keys():
        yield f"{name} is not known"
    for name in FAMILIES.keys() & types.keys():
        if types[name] != FAMILIES[name][0]:
            yield f"{name} is a {types[name]}, expected a {FAMILIES[name][0]}"
    for family in families:
        for sample in family.samples:
            name = family_of(sample.name, types)
            if name not in FAMILIES:
                continue
            _, labels, words = FAMILIES[name]
            expected = {*labels, "le"} if sample.name.endswith("_bucket") else {*labels}
            if set(sample.labels) != expected:
                yield f"{sample.name} has the labels {sorted(sample.labels)}, expected {sorted(expected)}"
            for label, allowed in words.items():
                if sample.labels.get(label) not in allowed:
                    yield f"{sample.name}: {label} is {sample.labels.get(label)!r}"
            if name == "nginx_upstrand_upstream_state" and sample.value not in range(1, 7):
                yield f"{sample.name} {sample.labels}: {sample.value}"
            if name == "nginx_upstrand_shared" and sample.value not in (0, 1):
                yield f"{sample.name} {sample.labels}: {sample.value}"
            if name == "nginx_upstrand_info" and sample.value != 1:
                yield f"{sample.name}: {sample.value}"


def completeness(families):
    """Counters are there from the start, at 0: rate() does not see the first step of one that appears."""
    members = values(families, "nginx_upstrand_upstream_state")
    strands = {dict(labels)["upstrand"] for labels in members}
    for name, (_, labels, words) in FAMILIES.items():
        if name == "nginx_upstrand_info":
            if len(values(families, name)) != 1:
                yield f"{name} is there {len(values(families, name))} times"
            continue
        sample = name + "_count" if name.endswith("_seconds") else name
        have = {tuple(dict(key)[label] for label in labels) for key in values(families, sample) if len(key) == len(labels)}
        for member in (dict(key) for key in members) if "upstream" in labels or "from" in labels else \
                ({"upstrand": strand} for strand in strands):
            member = {**member, "from": member.get("upstream")}
            label = labels[-1] if labels[-1] in words else None
            for word in sorted(words[label]) if label else [None]:
                key = tuple(word if one == label else member[one] for one in labels)
                if key not in have:
                    yield f"{sample} lacks {dict(zip(labels, key))}"


def main():
    data = open(sys.argv[1], "rb").read() if len(sys.argv) > 1 else sys.stdin.buffer.read()
    try:
        text = data.decode("utf-8")
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        check("the client of Prometheus parses them", [error])
        sys.exit(1)
    check("the client of Prometheus parses them", [])
    check("the text ends with the end of a line", [] if text.endswith("\n") else ["it does not"])

    types, complaints = layout(text.split("\n"))
    check("every sample has HELP and TYPE above it, families stand together", complaints)
    samples = [sample for family in families for sample in family.samples]
    seen, twice = set(), []
    for sample in samples:
        key = (sample.name, tuple(sorted(sample.labels.items())))
        if key in seen:
            twice.append(f"{sample.name} {sample.labels}")
        seen.add(key)
    check("no sample is there twice", twice)
    check("no sample has a time of its own", [sample.name for sample in samples if sample.timestamp is not None])
    check("counters end in _total, and nothing else does",
          [name for name, kind in types.items() if (kind == "counter") != name.endswith("_total")])
    check("figures are finite, counters whole and not negative",
          [f"{sample.name} {sample.labels}: {sample.value}" for sample in samples
           if not math.isfinite(sample.value) or sample.value < 0
           or (not sample.name.endswith("_sum") and sample.value != int(sample.value))])
    check("buckets are cumulative and end with +Inf, which is _count", histograms(families))
    check("names, types and labels are the documented ones", by_contract(families, types))
    check("all series of all upstrands and upstreams are there", completeness(families))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
