"""Runs every benchmark; each prints JSON lines. Nothing else should run beside them."""

from tests.benchmark import (
    bootstrap_speed,
    client_overhead,
    import_time,
    large_scoring,
    panel_vs_autogen,
    prefix_cache,
    refine_overhead,
    retrieval_scale,
)

for bench in (
    import_time,
    bootstrap_speed,
    large_scoring,
    client_overhead,
    refine_overhead,
    panel_vs_autogen,
    prefix_cache,
    retrieval_scale,
):
    bench.main()
