"""The directives of ngx_http_combined_upstreams_module for crossplane.

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
    "add_upstream": [
        NGX_HTTP_UPS_CONF |
        NGX_CONF_TAKE1 |
        NGX_CONF_TAKE2 |
        NGX_CONF_TAKE3,
    ],
    "combine_server_singlets": [
        NGX_HTTP_UPS_CONF |
        NGX_CONF_NOARGS |
        NGX_CONF_TAKE1 |
        NGX_CONF_TAKE2 |
        NGX_CONF_TAKE3,
    ],
    "extend_single_peers": [
        NGX_HTTP_UPS_CONF |
        NGX_CONF_NOARGS,
    ],
    "upstrand": [
        NGX_HTTP_MAIN_CONF |
        NGX_CONF_BLOCK |
        NGX_CONF_TAKE1,
    ],
    "upstream": [
        NGX_HTTP_UPSTRAND_CONF |
        NGX_CONF_TAKE1 |
        NGX_CONF_TAKE2 |
        NGX_CONF_TAKE3,
    ],
    "order": [
        NGX_HTTP_UPSTRAND_CONF |
        NGX_CONF_TAKE1 |
        NGX_CONF_TAKE2,
    ],
    "next_upstream_statuses": [
        NGX_HTTP_UPSTRAND_CONF |
        NGX_CONF_1MORE,
    ],
    "next_upstream_timeout": [
        NGX_HTTP_UPSTRAND_CONF |
        NGX_CONF_TAKE1,
    ],
    "next_upstream_tries": [
        NGX_HTTP_UPSTRAND_CONF |
        NGX_CONF_TAKE1,
    ],
    "intercept_statuses": [
        NGX_HTTP_UPSTRAND_CONF |
        NGX_CONF_2MORE,
    ],
    "zone": [
        NGX_HTTP_UPSTRAND_CONF |
        NGX_CONF_TAKE1 |
        NGX_CONF_TAKE2,
    ],
    "dynamic_upstrand": [
        NGX_HTTP_SRV_CONF |
        NGX_HTTP_LOC_CONF |
        NGX_HTTP_LIF_CONF |
        NGX_CONF_2MORE,
    ],
    "upstrand_status": [
        NGX_HTTP_LOC_CONF |
        NGX_CONF_NOARGS |
        NGX_CONF_TAKE1,
    ],
    "upstrand_api": [
        NGX_HTTP_LOC_CONF |
        NGX_CONF_NOARGS,
    ],
}


def register():
    """Makes crossplane know the directives. Names that it knows already keep their other uses."""
    analyzer.CONTEXTS[("http", "upstrand")] = NGX_HTTP_UPSTRAND_CONF
    # An include is allowed inside upstrand, too.
    known = dict(DIRECTIVES, include=[NGX_HTTP_UPSTRAND_CONF | NGX_CONF_TAKE1])  # noqa: F405
    for name, masks in known.items():
        others = analyzer.DIRECTIVES.get(name, [])
        analyzer.DIRECTIVES[name] = [mask for mask in others if mask not in masks] + masks
