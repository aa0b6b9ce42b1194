#!/usr/bin/env bash
# The Grafana dashboard and the alerts of contrib/ use metrics that there are, and rules that work; and
# tools/check-metrics.py and tools/check-status.py find what is wrong.
#
#   tools/test-monitoring.sh [METRICS]      a Prometheus text of upstrand_status, file or URL; without
#                                           it the sample in tests/monitoring
#
# PROMTOOL: promtool, if it is not on the path.
set -eu
command -v python3 >/dev/null || { echo "ok - monitoring # skip no python3: apt-get install python3"; exit 0; }
top=$(cd "$(dirname "$0")/.." && pwd)
exec python3 "$top/tests/monitoring/run.py" "${1:-$top/tests/monitoring/sample.prom}"
