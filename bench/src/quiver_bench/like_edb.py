"""The tables of the edb report: builds, sizes, and searches as memory gets less."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from quiver_bench.charts import Dot
from quiver_bench.like import GIB, dataset_title
from quiver_bench.records import OK
from quiver_bench.tables import Table, count, seconds_of
from quiver_bench.views import Row, at_recall, groups, parameters, select, shown

TARGET = 0.95


def size(value: float) -> str:
    return f"{value / GIB:.0f} GB" if value >= 10 * GIB else f"{value / 2**20:,.0f} MB"


def _ms(value: float) -> str:
    """As the report has it; below 1 with two decimals, of which small sets need both."""
    return f"{value:.1f} ms" if value >= 1 else f"{value:.2f} ms"


def _indexes(rows: Sequence[Row]) -> list[Row]:
    return [
        r for r in rows if r.workload == "build" and r.status == OK and r.get("index_bytes") > 0
    ]


def build_speedup(a: Sequence[float], b: Sequence[float]) -> str:
    """The best build of a over the best of b."""
    return f"{min(a) / max(min(b), 1e-9):.1f}x"


def size_ratio(name: str, a: Sequence[float], b: Sequence[float]) -> str:
    """How much larger or smaller the largest of b is than the largest of a."""
    share = max(b) / max(a) - 1
    return f"{name} ~{abs(share):.0%} {'larger' if share > 0 else 'smaller'}"


def build_table(rows: Sequence[Row], baseline: str) -> Table:
    """A line a data set and engine against the baseline."""
    table = Table("Build time", ("Dataset", "Engine", "Builds", f"Speedup over {baseline} (best vs. best)"))  # fmt: skip
    for data, some in groups(_indexes(rows), dataset_title).items():
        engines = groups(some, lambda r: r.engine)
        base = [r.get("build_s") for r in engines.get(baseline, [])]
        for engine, built in engines.items():
            texts = [
                f"{seconds_of(r.get('build_s'))}"
                + (f" {parameters(r.build)}" if shown(r.build) else "")
                for r in built
            ]
            own = [r.get("build_s") for r in built]
            speedup = build_speedup(base, own) if base and engine != baseline else ""
            table.add(data, engine, "; ".join(texts), speedup)
    return table


def size_table(rows: Sequence[Row], baseline: str) -> Table:
    table = Table("Index size", ("Dataset", "Engine", "Sizes", f"Ratio to {baseline}"))
    for data, some in groups(_indexes(rows), dataset_title).items():
        engines = groups(some, lambda r: r.engine)
        base = [r.get("index_bytes") for r in engines.get(baseline, [])]
        for engine, built in engines.items():
            own = [r.get("index_bytes") for r in built]
            ratio = size_ratio(engine, base, own) if base and engine != baseline else ""
            table.add(data, engine, " / ".join(size(one) for one in own), ratio)
    return table


def tier_of(row: Row) -> tuple[int, int]:
    """Buffers and memory in MB; no limit is above all others."""
    if not row.tier:
        return 1 << 30, 1 << 30
    buffers, memory = row.tier.split(":")
    return int(buffers), int(memory)


def _mb(value: int) -> str:
    if value >= 1 << 30:
        return "no limit"
    return f"{value / 1024:,.0f} GB" if value >= 1024 and value % 1024 == 0 else f"{value:,} MB"


def _buffers(row: Row) -> str:
    """The shared_buffers of its tier; without one what the server said, and nothing of others."""
    if row.tier:
        return _mb(tier_of(row)[0])
    said = re.fullmatch(r"(\d+)(kB|MB|GB|TB)", str(row.settings.get("shared_buffers", "")))
    return f"{int(said[1]):,} {said[2]}" if said else ""


def operating(rows: Sequence[Row], recall: str, target: float) -> list[Row]:
    """All rows of the search parameters whose recall is nearest to the target."""
    near = at_recall(rows, target, "nearest", recall)
    if near is None:
        return []
    return [r for r in rows if r.query == near.query and r.status == OK]


def best_over_tiers(rows: Sequence[Row], clients: int, target: float = TARGET, recall: str = "recall_ids") -> Table:  # fmt: skip
    """Of every index the most QPS over all tiers, at the point nearest to the target."""
    table = Table(
        f"{dataset_title(rows[0])}: best results at ~{target} recall, {clients} client{'s' * (clients > 1)}",
        ("Engine", "Config", "Recall", "QPS", "P50", "P99", "shared_buffers"),
    )
    best = []
    for some in groups([r for r in rows if r.clients == clients], lambda r: r.graph).values():
        points = operating(some, recall, target)
        if points:
            best.append(max(points, key=lambda r: r.get("qps")))
    for row in best:
        text = ", ".join(t for t in (parameters(row.build), parameters(row.query)) if t)
        table.add(row.engine, text, f"{row.get(recall):.3f}", count(row.get("qps")),
                  _ms(row.get("p50_ms")), _ms(row.get("p99_ms")), _buffers(row))  # fmt: skip
    if best:
        table.bold.add(max(range(len(best)), key=lambda i: best[i].get("qps")))
    return table


def low_tier(rows: Sequence[Row], target: float = TARGET, recall: str = "recall_ids") -> Table:
    """The same at the tier of the least memory."""
    least = min(tier_of(r) for r in rows)
    several = sorted({r.clients for r in rows})
    table = Table(
        f"{dataset_title(rows[0])}: with {_mb(least[0])} shared_buffers, {_mb(least[1])} of memory",
        ("Engine", "Config", *(f"QPS ({c}c)" for c in several), f"P50 ({several[0]}c)"),
    )
    for some in groups([r for r in rows if tier_of(r) == least], lambda r: r.graph).values():
        points = {r.clients: r for r in operating(some, recall, target)}
        if not points:
            continue
        first = next(iter(points.values()))
        text = ", ".join(t for t in (parameters(first.build), parameters(first.query)) if t)
        rates = [_rate(points[c].get("qps")) if c in points else "" for c in several]
        p50 = points[several[0]].get("p50_ms") if several[0] in points else math.nan
        table.add(first.engine, text, *rates, "" if math.isnan(p50) else _ms(p50))
    return table


def _rate(value: float) -> str:
    return count(value) if value >= 10 else f"{value:.1f}"


def reaching(rows: Sequence[Row], target: float) -> list[Row]:
    """rows: of one index and number of clients. Of every tier the fastest whose recall is at least
    the target; none of a tier where no search has it."""
    chosen = [at_recall(some, target, "best") for some in groups(rows, lambda r: r.tier).values()]
    return [row for row in chosen if row]


def same_memory(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Rows of tiers, by memory in MB, where one memory has several buffers."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        if row.tier:
            found.setdefault(tier_of(row)[1], []).append(row)
    return {m: some for m, some in found.items() if len({tier_of(r)[0] for r in some}) > 1}


def _dots(rows: Sequence[Row], part: int) -> list[Dot]:
    """By memory (part 1) or buffers (part 0) the most QPS."""
    best: dict[int, Row] = {}
    for row in sorted(rows, key=lambda r: r.get("qps")):
        best[tier_of(row)[part]] = row
    return [Dot(float(x), r.get("qps"), f"{r.tier} MB, recall {r.get('recall'):.3f}, {_rate(r.get('qps'))} QPS")
            for x, r in sorted(best.items())]  # fmt: skip


def buffer_curves(rows: Sequence[Row], target: float) -> dict[int, dict[str, list[Dot]]]:
    """rows: of one number of clients. memory: index: QPS by shared_buffers."""
    found: dict[int, dict[str, list[Dot]]] = {}
    for memory, some in same_memory(rows).items():
        curves = {t: _dots(reaching(own, target), 0)
                  for t, own in groups(some, lambda r: r.title).items()}  # fmt: skip
        found[memory] = {title: dots for title, dots in curves.items() if dots}
    return {memory: curves for memory, curves in found.items() if curves}


def memory_curves(rows: Sequence[Row], target: float) -> dict[str, list[Dot]]:
    """rows: of one number of clients. index: QPS by memory."""
    found = {t: _dots(reaching(own, target), 1)
             for t, own in groups(rows, lambda r: r.title).items()}  # fmt: skip
    return {title: dots for title, dots in found.items() if dots}


def buffers_table(rows: Sequence[Row], target: float = TARGET) -> Table | None:
    """The curve of shared_buffers at a memory that stays the same."""
    found = same_memory(rows)
    if not found:
        return None
    table = Table(
        f"{dataset_title(rows[0])}: shared_buffers at a fixed memory, recall >= {target}",
        ("Memory", "shared_buffers", "Engine", "Clients", "Recall", "QPS", "P50 (ms)", "P99 (ms)",
         "Buffers hit", "Buffers read", "Read from storage"),
    )  # fmt: skip
    for memory, some in found.items():
        for own in groups(some, lambda r: f"{r.graph} {r.clients}").values():
            for r in sorted(reaching(own, target), key=tier_of):
                counts = [r.get("pages_hit"), r.get("pages_read")]
                pages = ["-" if math.isnan(number) else f"{number:,.1f}" for number in counts]
                read = r.get("read_bytes")
                table.add(
                    _mb(memory), _mb(tier_of(r)[0]), r.title, str(r.clients),
                    f"{r.get('recall'):.3f}", _rate(r.get("qps")), f"{r.get('p50_ms'):.2f}",
                    f"{r.get('p99_ms'):.2f}", *pages,
                    "-" if math.isnan(read) else f"{read / 2**20:,.0f} MB",
                )  # fmt: skip
    fewest = min(r.clients for some in found.values() for r in some)
    spread = [
        f"{title}: {max(values) / max(min(values), 1e-9):.2f}x between its best and its worst"
        for title, own in groups(
            [r for some in found.values() for r in some if r.clients == fewest], lambda r: r.title
        ).items()
        if (values := [r.get("qps") for r in reaching(own, target)])
    ]
    table.notes += spread
    return table


def tier_sweep(rows: Sequence[Row], target: float = TARGET, recall: str = "recall_ids") -> Table:
    """rows: of one index. Every tier and number of clients at the point nearest to the target."""
    points = operating(rows, recall, target)
    first = points[0]
    heading = ", ".join(t for t in (parameters(first.build), parameters(first.query)) if t)
    table = Table(
        f"{dataset_title(first)}: {first.engine} {heading} (recall {first.get(recall):.3f})",
        ("Available RAM", "shared_buffers", "Clients", "QPS", "P50 (ms)", "P99 (ms)"),
    )
    for row in sorted(points, key=lambda r: (r.clients, tier_of(r))):
        table.add(_mb(tier_of(row)[1]), _buffers(row), str(row.clients), f"{row.get('qps'):,.2f}",
                  f"{row.get('p50_ms'):.2f}", f"{row.get('p99_ms'):.2f}")  # fmt: skip
    table.notes += sorted({note for row in points for note in row.notes if "tier by" in note})
    return table


def build_metrics(rows: Sequence[Row]) -> Table:
    table = Table("Build metrics", ("Test Name", "Suite", "Dataset", "Index Config", "Build Time", "Index Size"))  # fmt: skip
    for row in _indexes(rows):
        table.add(row.title, row.engine, dataset_title(row), parameters(row.build) or "defaults",
                  seconds_of(row.get("build_s")), size(row.get("index_bytes")))  # fmt: skip
    return table


def claims(rows: Sequence[Row], baseline: str, target: float = TARGET, recall: str = "recall_ids") -> list[str]:  # fmt: skip
    """Sentences whose numbers come of the same rows as the tables."""
    found = []
    for data, some in groups(rows, dataset_title).items():
        for clients in sorted({r.clients for r in some}):
            best = {}
            for engine, own in groups(
                [r for r in some if r.clients == clients], lambda r: r.engine
            ).items():
                points = [
                    p
                    for one in groups(own, lambda r: r.graph).values()
                    for p in operating(one, recall, target)
                ]
                if points:
                    best[engine] = max(points, key=lambda r: r.get("qps"))
            base = best.get(baseline)
            for engine, row in best.items():
                if base and engine != baseline:
                    found.append(
                        f"{data}, {clients} client{'s' * (clients > 1)}: {engine} has"
                        f" {row.get('qps') / base.get('qps'):.2f}x the QPS of {baseline}"
                        f" (recall {row.get(recall):.3f} and {base.get(recall):.3f})"
                    )
    return found


def edb(rows: Sequence[Row], baseline: str) -> list[Table]:
    queries = [r for r in select(rows, workload="query") if not r.load.get("rate")]
    found = [build_table(rows, baseline), size_table(rows, baseline)]
    for same in groups(queries, dataset_title).values():
        good = [r for r in same if r.status == OK]
        if not good:
            continue
        found += [best_over_tiers(good, c) for c in sorted({r.clients for r in good})]
        tiered = [r for r in good if r.tier]
        if tiered:
            found.append(low_tier(tiered))
            curve = buffers_table(tiered)
            found += [curve] if curve else []
        for some in groups(tiered or good, lambda r: r.graph).values():
            found.append(tier_sweep([r for r in good if r.graph == some[0].graph]))
    found.append(build_metrics(rows))
    found[-1].notes += claims([r for r in queries if r.status == OK], baseline)
    return found
