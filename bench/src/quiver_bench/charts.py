"""Charts as SVG text, for the HTML page."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

MARKERS = "osD^vP*X<>hp"
Series = Mapping[str, Sequence[tuple[float, float]]]


def _figure(title: str, height: float = 4.2) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.fonttype"] = "none"  # text stays text
    mpl.rcParams["svg.hashsalt"] = "quiver-bench"  # the same names in every run
    figure = Figure(figsize=(9.6, height), layout="constrained")
    axes = figure.subplots()
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r"^.*?(?=<svg)", "", svg, flags=re.DOTALL)


def _plain(axis: Any) -> None:
    """Numbers on a logarithmic axis as they are written: 2,000 and 0.5, no powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    few = high / max(low, 1e-12) < 300  # then 2 and 5 have numbers too
    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if few else (1,), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def _legend(axes: Any) -> None:
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _style(number: int, color: int) -> dict[str, Any]:
    """Of the number-th series, in the color of its engine."""
    import matplotlib as mpl

    # Neighbors are no pairs of light and dark, which would look like kin.
    colors = [*mpl.color_sequences["tab10"], *mpl.color_sequences["Dark2"]]
    return {"marker": MARKERS[number % len(MARKERS)], "color": colors[color % len(colors)]}


def lines(
    title: str, x: str, y: str, series: Series, colors: Mapping[str, int], log_x: bool = False,
    log_y: bool = False, ticks: Sequence[float] = (),
) -> str:  # fmt: skip
    """A line a series; points are shown, for they are what was measured.

    colors: a number a series, the same one in all charts of a page.
    """
    figure, axes = _figure(title)
    for number, (name, points) in enumerate(series.items()):
        style = _style(number, colors[name])
        axes.plot(*zip(*points, strict=True), markersize=4, linewidth=1.3, label=name, **style)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if log_x:
        axes.set_xscale("log", base=2)
    if log_y:
        axes.set_yscale("log")
        _plain(axes.yaxis)
    if ticks:
        axes.set_xticks(list(ticks), [f"{tick:g}" for tick in ticks])
    _legend(axes)
    return _svg(figure)


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those (recall, QPS) that no other beats in both, by rising recall."""
    found: list[tuple[float, float]] = []
    for recall, qps in sorted(points, reverse=True):
        if not found or qps > found[-1][1]:
            found.append((recall, qps))
    return found[::-1]


def recall_qps(title: str, series: Series, colors: Mapping[str, int]) -> str:
    """The best QPS of each engine by recall. The axis is stretched towards 1."""
    figure, axes = _figure(title, 5.0)
    floor = 1e-4
    marks = [0.5, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0]

    def place(recall: float) -> float:
        return max(floor, 1.0 - recall)

    low = min((recall for points in series.values() for recall, _ in points), default=0.5)
    for number, (name, points) in enumerate(series.items()):
        best = [(place(recall), qps) for recall, qps in frontier(points)]
        style = _style(number, colors[name])
        axes.plot(*zip(*best, strict=True), markersize=5, linewidth=1.4, label=name, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.invert_xaxis()
    shown = [m for m in marks if m >= low - 0.05] or marks[-2:]
    axes.set_xticks([place(m) for m in shown], [f"{m:g}" for m in shown])
    axes.minorticks_off()
    _plain(axes.yaxis)
    axes.set_xlabel("recall")
    axes.set_ylabel("queries a second, one client")
    _legend(axes)
    return _svg(figure)


def bars(title: str, x: str, values: Mapping[str, float]) -> str:
    """A bar a name, its value beside it. From 0 on: lengths are compared."""
    figure, axes = _figure(title, 1.2 + 0.32 * len(values))
    names = list(values)
    drawn = axes.barh(names, list(values.values()), height=0.65, color="#4878a8")
    axes.bar_label(
        drawn, labels=[f"{value:,.3g}" for value in values.values()], padding=3, fontsize=8
    )
    axes.invert_yaxis()
    axes.set_xlabel(x)
    axes.margins(x=0.12)
    return _svg(figure)


def ranges(title: str, x: str, values: Mapping[str, tuple[float, float, float]]) -> str:
    """p50, p95 and p99 of a name on one line."""
    figure, axes = _figure(title, 1.2 + 0.34 * len(values))
    names = list(values)
    for label, index, color, marker in (
        ("p50", 0, "#4878a8", "o"), ("p95", 1, "#d39a2d", "s"), ("p99", 2, "#b5443c", "D"),
    ):  # fmt: skip
        axes.plot(
            [values[n][index] for n in names], names, marker, color=color, label=label, markersize=5
        )
    axes.hlines(names, [values[n][0] for n in names], [values[n][2] for n in names],
                color="#bbbbbb", zorder=0)  # fmt: skip
    axes.invert_yaxis()
    axes.set_xscale("log")
    _plain(axes.xaxis)
    axes.set_xlabel(x)
    _legend(axes)
    return _svg(figure)
