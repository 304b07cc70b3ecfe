"""Runs every benchmark; each prints one JSON line. Nothing else should run beside them."""

from tests.benchmark import client_overhead, import_time, prefix_cache

for bench in (import_time, client_overhead, prefix_cache):
    bench.main()
