"""The table at the end."""

from __future__ import annotations

from collections.abc import Sequence

from quickstart.measure import Result


def table(results: Sequence[Result], build_seconds: float, index_bytes: int) -> str:
    """One line a way to search; building and size belong to the index's lines."""
    head = ("", "recall@10", "QPS", "p50 ms", "p99 ms", "build s", "index MB")
    lines = [f"  {head[0]:<30}" + "".join(f"{name:>11}" for name in head[1:])]
    for r in results:
        exact = "quiver" not in r.way.title
        cells = (
            f"{r.recall:.4f}",
            f"{r.qps:,.0f}",
            f"{r.p50_ms:.2f}",
            f"{r.p99_ms:.2f}",
            "-" if exact else f"{build_seconds:.1f}",
            "-" if exact else f"{index_bytes / 2**20:.1f}",
        )
        lines.append(f"  {r.way.title:<30}" + "".join(f"{cell:>11}" for cell in cells))
    return "\n".join(lines)
