#!/usr/bin/env python3
"""Checks a document of upstrand_status, or an answer of upstrand_api, against contrib/schema/status.schema.json.

    check-status.py [--live] [--as WHAT] [FILE]      standard input without FILE

WHAT: status (the default), upstrands, upstrand, upstream, explain or error.
--live: requests were counted while the document was made, so sums are not compared.
Prints lines of TAP; exit status 1 if something is wrong.
"""

import argparse
import json
import os
import sys

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../contrib/schema/status.schema.json")


def without_duplicates(pairs):
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"a key is there twice: {', '.join(twice)}")
    return dict(pairs)


def no_constant(word):
    raise ValueError(f"{word} is not JSON")


def main():
    parser = argparse.ArgumentParser(description="Checks a document of upstrand_status against its schema.")
    parser.add_argument("--as", dest="what", default="status",
                        choices=["status", "upstrands", "upstrand", "upstream", "explain", "error"])
    parser.add_argument("--live", action="store_true")
    parser.add_argument("file", nargs="?")
    arguments = parser.parse_args()

    try:
        import jsonschema
    except ImportError:
        # The packages of Debian are those of Debian's own Python.
        if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3") and os.path.exists("/usr/bin/python3"):
            os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
        sys.exit("check-status: no jsonschema: apt-get install python3-jsonschema")

    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    if arguments.what == "upstrands":
        schema = {"$defs": schema["$defs"], **schema["properties"]["upstrands"]}
    elif arguments.what != "status":
        schema = {"$defs": schema["$defs"], "$ref": f"#/$defs/{arguments.what}"}

    failed = False

    def check(what, complaints):
        nonlocal failed
        print(f"{'not ok' if complaints else 'ok'} - {what}")
        for complaint in complaints:
            print(f"# {complaint}", file=sys.stderr)
        failed = failed or bool(complaints)

    data = open(arguments.file, "rb").read() if arguments.file else sys.stdin.buffer.read()
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=without_duplicates, parse_constant=no_constant)
    except ValueError as error:  # of UTF-8 and of JSON, too
        check("status is JSON", [error])
        sys.exit(1)
    check("status is JSON", [])

    validator = jsonschema.Draft202012Validator(schema)
    check(f"status is as the schema has it ({arguments.what})",
          [f"/{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in validator.iter_errors(document)][:20])
    if not failed:
        check("status does not contradict itself", list(contradictions(arguments.what, document, arguments.live)))
    sys.exit(1 if failed else 0)


def contradictions(what, document, live):
    """What a schema cannot say."""
    upstrands = {"status": lambda: document["upstrands"], "upstrands": lambda: document,
                 "upstrand": lambda: {"": document}}.get(what, dict)()
    upstreams = [("", document)] if what == "upstream" else []
    for name, upstrand in upstrands.items():
        members = upstrand["upstreams"]
        upstreams += [(f"{name}/", upstream) for upstream in members]
        if len({upstream["name"] for upstream in members}) != len(members):
            yield f"{name}: an upstream is there twice"
        tiers = [upstream["tier"] for upstream in members]
        if tiers != sorted(tiers):
            yield f"{name}: not by tier: {tiers}"
        if not live and upstrand["exhausted"] + upstrand["deadline_exceeded"] > upstrand["walks"]:
            yield f"{name}: more walks ended badly than there were"
    for prefix, upstream in upstreams:
        name = prefix + upstream["name"]
        if upstream["state"] == "draining" and not upstream["draining"]:
            yield f"{name}: draining, and not"
        if not upstream["reason"] and upstream["state"] != "up":
            yield f"{name}: no reason"
        if live:
            continue
        if sum(upstream["failures"].values()) > upstream["tries"]:
            yield f"{name}: more failures than tries"
        # A try that the client ended, or that had no answer at all, has no status.
        if sum(upstream["responses"].values()) > upstream["tries"]:
            yield f"{name}: more responses than tries"
        if len(upstream["peers"]) > upstream["peers_total"]:
            yield f"{name}: more peers than there are"
        if any(upstream["failures"][word] for word in ("http", "error", "timeout")) and upstream["last_failure"] is None:
            yield f"{name}: failures, and no last failure"
    if what == "explain":
        positions = [upstream["position"] for upstream in document["upstreams"]]
        visited = [position for position in positions if position is not None]
        if positions != [*range(1, len(visited) + 1), *[None] * (len(positions) - len(visited))]:
            yield f"positions are not 1, 2, ... and then null: {positions}"


if __name__ == "__main__":
    main()
