"""The table at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quiver_bench.quickstart.measure import Result


def table(
    results: Sequence[Result], build_seconds: Mapping[str, float], index_bytes: Mapping[str, int]
) -> str:
    """One line a way to search; building and size are those of the way's index."""
    head = ("", "recall@10", "QPS", "p50 ms", "p99 ms", "build s", "index MB")
    lines = [f"  {head[0]:<32}" + "".join(f"{name:>11}" for name in head[1:])]
    for r in results:
        method = r.way.method
        cells = (
            f"{r.recall:.4f}",
            f"{r.qps:,.0f}",
            f"{r.p50_ms:.2f}",
            f"{r.p99_ms:.2f}",
            f"{build_seconds[method]:.1f}" if method else "-",
            f"{index_bytes[method] / 2**20:.1f}" if method else "-",
        )
        lines.append(f"  {r.way.title:<32}" + "".join(f"{cell:>11}" for cell in cells))
    return "\n".join(lines)
