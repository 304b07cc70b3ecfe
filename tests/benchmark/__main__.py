"""Runs every benchmark; each prints one JSON line. Nothing else should run beside them."""

from tests.benchmark import bootstrap_speed, client_overhead, import_time, large_scoring, prefix_cache

for bench in (import_time, bootstrap_speed, large_scoring, client_overhead, prefix_cache):
    bench.main()
