#!/usr/bin/env python3
"""Writes combined_upstreams.py, the directives of the module for crossplane, from ../directives.json.

    generate.py            writes it
    generate.py --check    checks that it is up to date, and, where crossplane is installed, that with
                           it crossplane reads the examples and refuses what the module refuses
"""

import glob
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OUTPUT = os.path.join(HERE, "combined_upstreams.py")

# crossplane's own numbers are nginx's of some version; it knows no upstrands, so theirs is a free one.
UPSTRAND = "NGX_HTTP_UPSTRAND_CONF"

HEAD = '''"""The directives of ngx_http_combined_upstreams_module for crossplane.

Written by generate.py. Use:

    import combined_upstreams, crossplane
    combined_upstreams.register()
    crossplane.parse("nginx.conf", strict=True)
"""

from crossplane import analyzer
from crossplane.analyzer import *  # noqa: F403: its NGX_* names

# Inside upstrand {}.
NGX_HTTP_UPSTRAND_CONF = 0x100000000

DIRECTIVES = {
'''

TAIL = '''}


def register():
    """Makes crossplane know the directives. Names that it knows already keep their other uses."""
    analyzer.CONTEXTS[("http", "upstrand")] = NGX_HTTP_UPSTRAND_CONF
    # An include is allowed inside upstrand, too.
    known = dict(DIRECTIVES, include=[NGX_HTTP_UPSTRAND_CONF | NGX_CONF_TAKE1])  # noqa: F405
    for name, masks in known.items():
        others = analyzer.DIRECTIVES.get(name, [])
        analyzer.DIRECTIVES[name] = [mask for mask in others if mask not in masks] + masks
'''


def generate():
    """The text of the module for Python."""
    with open(os.path.join(HERE, "..", "directives.json"), encoding="utf-8") as file:
        directives = json.load(file)["directives"]
    text = HEAD
    for directive in directives:
        flags = list(directive["flags"])
        if directive["contexts"] == ["upstrand"]:
            # The module parses its block by itself, and NGX_MAIN_CONF stands for "in it".
            flags = [UPSTRAND if flag == "NGX_MAIN_CONF" else flag for flag in flags]
        lines = " |\n        ".join(flags)
        text += f'    "{directive["name"]}": [\n        {lines},\n    ],\n'
    return text + TAIL


RESULT = 0


def check(what, passed, why=""):
    """Prints a line of TAP."""
    global RESULT
    print(("ok - " if passed else "not ok - ") + what)
    if not passed:
        RESULT = 1
        if why:
            print(why, file=sys.stderr)


# What crossplane must refuse: a directive in a wrong place or with wrong arguments.
WRONG = [
    "http { upstream u { add_upstream; } }",
    "http { upstream u { extend_single_peers 1; } }",
    "http { add_upstream u; }",
    "http { upstrand s; }",
    "http { upstrand s t { } }",
    "http { server { upstrand s { } } }",
    "http { upstrand s { upstream; } }",
    "http { upstrand s { upstream u { } } }",
    "http { upstrand s { server 127.0.0.1; } }",
    "http { upstrand s { intercept_statuses 404; } }",
    "http { upstrand s { no_such_directive 1; } }",
    "http { server { dynamic_upstrand $x; } }",
    "http { server { upstrand_status; } }",
    "http { server { location / { upstrand_status json html; } } }",
    "http { server { location / { upstrand_api on; } } }",
    "http { order per_request; }",
    "order per_request;",
]


def check_crossplane():
    """With the real crossplane."""
    try:
        import crossplane
    except ImportError:
        print("ok - crossplane # skip not installed: pip install crossplane")
        return
    sys.path.insert(0, HERE)
    sys.dont_write_bytecode = True
    import combined_upstreams

    example = os.path.join(HERE, "..", "..", "examples", "failover", "nginx.conf")

    def errors(path):
        return [error["error"] for error in crossplane.parse(path, strict=True)["errors"]]

    check("crossplane alone does not know the directives", errors(example))
    combined_upstreams.register()
    names = combined_upstreams.DIRECTIVES
    for path in sorted(glob.glob(os.path.join(HERE, "..", "..", "examples", "*", "nginx.conf"))):
        # crossplane takes the lines of a map for directives, which it does not know.
        why = [error for error in errors(path)
               if not error.startswith("unknown directive") or error.split('"')[1] in names]
        check(f"crossplane reads {os.path.relpath(path, os.path.join(HERE, '..', '..'))}", not why, why)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "nginx.conf")
        for text in WRONG:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            check(f"crossplane refuses {text}", errors(path))


def main():
    text = generate()
    if "--check" not in sys.argv[1:]:
        with open(OUTPUT, "w", encoding="utf-8") as file:
            file.write(text)
        return
    with open(OUTPUT, encoding="utf-8") as file:
        check("contrib/crossplane is what directives.json says", file.read() == text,
              "run contrib/crossplane/generate.py")
    check_crossplane()
    sys.exit(RESULT)


main()
