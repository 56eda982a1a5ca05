"""Charts as SVG text, for pages and files.

An engine has one color and one shape in all charts. Text and axes take the color of the page
(currentColor), or, where an SVG stands alone, that of the reader's light or dark mode. Every point
says what it is when the mouse is over it.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MARKERS = "osD^vP*X<>hp"
INK, GRID = "#010203", "#040506"  # replaced by currentColor
WIDTH = 8.4  # inches


@dataclass(frozen=True)
class Dot:
    """A measured point. Hollow: it is below the recall that the chart is about."""

    x: float
    y: float
    says: str = ""
    hollow: bool = False


Series = Mapping[str, Sequence[Dot]]


@dataclass(frozen=True)
class Chart:
    """A picture, its title, and what it shows in words (for those who do not see it)."""

    title: str
    svg: str
    alt: str
    caption: str = ""

    def html(self) -> str:
        caption = f"<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return (f'<figure><h3>{html.escape(self.title)}</h3><div class="scroll">{self.svg}</div>'
                f"{caption}</figure>")  # fmt: skip


STYLE = (
    "<style>svg.chart{color:#1c1c1c}@media(prefers-color-scheme:dark)"
    "{svg.chart{color:#e4e4e4}}@media print{svg.chart{color:#000}}</style>"
)


class Canvas:
    """One figure, with one or several axes."""

    def __init__(self, height: float = 4.4, panels: int = 1) -> None:
        import matplotlib as mpl
        from matplotlib.figure import Figure

        mpl.rcParams["svg.fonttype"] = "none"  # text stays text
        mpl.rcParams["svg.hashsalt"] = "quiver-bench"  # the same names in every run
        ink: Any = dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
        )
        with mpl.rc_context(ink):
            self.figure: Any = Figure(figsize=(WIDTH, height), layout="constrained")
            made = self.figure.subplots(1, panels, sharey=True, squeeze=False)
        self.all: list[Any] = list(made[0])
        self.axes = self.all[0]
        self.said: list[str] = []
        for axes in self.all:
            axes.grid(True, which="major", color=GRID, linewidth=0.6)
            axes.set_axisbelow(True)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)

    def dot(self, axes: Any, x: Any, y: Any, says: str, style: Mapping[str, Any]) -> None:
        """A point that says something."""
        drawn = axes.plot([x], [y], linestyle="none", **style)[0]
        drawn.set_gid(f"says-{len(self.said)}")
        self.said.append(says)

    def line(self, axes: Any, dots: Sequence[Dot], number: int, name: str, joined: bool) -> None:
        """The points of a series, by x; joined by a line."""
        style = look(number)
        if joined and len(dots) > 1:
            axes.plot([d.x for d in dots], [d.y for d in dots], color=style["color"], linewidth=1.3)
        for d in dots:
            face = {"markerfacecolor": "none"} if d.hollow else {}
            self.dot(axes, d.x, d.y, f"{name}: {d.says}" if d.says else name,
                     {**style, **face, "markersize": 6})  # fmt: skip

    def legend(self, colors: Mapping[str, int], names: Sequence[str]) -> None:
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], linewidth=1.3, markersize=6, label=n, **look(colors[n])) for n in names
        ]
        columns = max(1, min(4, 88 // (8 + max(map(len, names), default=1))))
        legend = self.figure.legend(handles=handles, loc="outside lower left", ncols=columns,
                                    fontsize=9, frameon=False)  # fmt: skip
        for text in legend.get_texts():
            text.set_color(INK)

    def svg(self, alt: str) -> str:
        file = io.StringIO()
        self.figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
        svg = re.sub(r"<metadata>.*?</metadata>", "", file.getvalue(), flags=re.DOTALL)
        svg = re.sub(r"^.*?(?=<svg)", "", svg, flags=re.DOTALL)
        for number, says in enumerate(self.said):
            mark = f'<g id="says-{number}">'
            svg = svg.replace(mark, f"<g><title>{html.escape(says)}</title>", 1)
        svg = svg.replace(f"stroke: {GRID}", "stroke: currentColor; stroke-opacity: 0.18")
        svg = svg.replace(INK, "currentColor")
        label = html.escape(alt, quote=True)
        return svg.replace(
            "<svg ", f'<svg class="chart" role="img" aria-label="{label}" ', 1
        ).replace("<defs>", f"{STYLE}<defs>", 1)


def look(number: int) -> dict[str, Any]:
    """Color and shape of the number-th engine."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    # Neighbors are no pairs of light and dark, which would look like kin.
    colors = [*mpl.color_sequences["tab10"], *mpl.color_sequences["Dark2"]]
    return {"marker": MARKERS[number % len(MARKERS)], "color": to_hex(colors[number % len(colors)])}


def _plain(axis: Any) -> None:
    """Numbers on a logarithmic axis as they are written: 2,000 and 0.5, no powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    few = high / max(low, 1e-12) < 300  # then 2 and 5 have numbers too
    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if few else (1,), numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def lines(
    title: str, x: str, y: str, series: Series, colors: Mapping[str, int], alt: str,
    caption: str = "",
) -> Chart:  # fmt: skip
    """A line a series over few values of x, which are its ticks; both axes logarithmic."""
    canvas = Canvas()
    axes = canvas.axes
    for name, dots in series.items():
        canvas.line(axes, dots, colors[name], name, joined=True)
    ticks = sorted({d.x for dots in series.values() for d in dots})
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    _plain(axes.yaxis)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    canvas.legend(colors, list(series))
    return Chart(title, canvas.svg(alt), alt, caption)


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those (recall, QPS) that no other beats in both, by rising recall."""
    found: list[tuple[float, float]] = []
    for recall, qps in sorted(points, reverse=True):
        if not found or qps > found[-1][1]:
            found.append((recall, qps))
    return found[::-1]


def recall_qps(
    title: str, series: Series, colors: Mapping[str, int], alt: str, caption: str = ""
) -> Chart:
    """Every measured point (recall, QPS), and a line through those that no other of the engine
    beats. The axis is stretched towards 1."""
    canvas = Canvas(5.0)
    axes = canvas.axes
    marks = [0.5, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0]

    def place(recall: float) -> float:
        return max(1e-4, 1.0 - recall)

    low = min((d.x for dots in series.values() for d in dots), default=0.5)
    for name, dots in series.items():
        best = frontier([(d.x, d.y) for d in dots])
        color = look(colors[name])["color"]
        if len(best) > 1:
            axes.plot(
                [place(r) for r, _ in best], [qps for _, qps in best], color=color, linewidth=1.4
            )
        at = [Dot(place(d.x), d.y, d.says) for d in dots]
        canvas.line(axes, at, colors[name], name, joined=False)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.invert_xaxis()
    shown = [m for m in marks if m >= low - 0.05] or marks[-2:]
    axes.set_xticks([place(m) for m in shown], [f"{m:g}" for m in shown])
    axes.minorticks_off()
    _plain(axes.yaxis)
    axes.set_xlabel("recall (stretched towards 1)")
    axes.set_ylabel("queries a second, one client")
    canvas.legend(colors, list(series))
    return Chart(title, canvas.svg(alt), alt, caption)


def panels(
    title: str, x: str, y: str, parts: Mapping[str, Series], colors: Mapping[str, int], alt: str,
    caption: str = "",
) -> Chart:  # fmt: skip
    """Several charts side by side with one axis of y; both axes logarithmic."""
    canvas = Canvas(4.0, len(parts))
    names = list(dict.fromkeys(name for series in parts.values() for name in series))
    for axes, (part, series) in zip(canvas.all, parts.items(), strict=True):
        axes.set_title(part, fontsize=10, color=INK)
        for name, dots in series.items():
            canvas.line(axes, dots, colors[name], name, joined=True)
        ticks = sorted({d.x for dots in series.values() for d in dots})
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], rotation=60, fontsize=8)
        axes.minorticks_off()
        axes.set_xlabel(x, fontsize=9)
    _plain(canvas.axes.yaxis)
    canvas.axes.set_ylabel(y)
    canvas.legend(colors, names)
    return Chart(title, canvas.svg(alt), alt, caption)


def rows(
    title: str, x: str, cases: Mapping[str, Mapping[str, Dot]], colors: Mapping[str, int],
    alt: str, caption: str = "",
) -> Chart:  # fmt: skip
    """A line a case, on it a point an engine (its y is not used). Logarithmic."""
    canvas = Canvas(1.6 + 0.34 * len(cases))
    axes = canvas.axes
    names = list(dict.fromkeys(name for one in cases.values() for name in one))
    for at, one in enumerate(cases.values()):
        for name, d in one.items():
            canvas.line(axes, [Dot(d.x, at, d.says, d.hollow)], colors[name], name, joined=False)
    axes.set_yticks(range(len(cases)), list(cases), fontsize=9)
    axes.invert_yaxis()
    axes.set_xscale("log")
    _plain(axes.xaxis)
    axes.set_xlabel(x)
    canvas.legend(colors, names)
    return Chart(title, canvas.svg(alt), alt, caption)


def bars(
    title: str, x: str, values: Mapping[str, float], colors: Mapping[str, int], alt: str
) -> Chart:
    """A bar a name, its value beside it. From 0 on: lengths are compared."""
    canvas = Canvas(1.2 + 0.32 * len(values))
    axes, names = canvas.axes, list(values)
    drawn = axes.barh(names, list(values.values()), height=0.65,
                      color=[look(colors[name])["color"] for name in names])  # fmt: skip
    texts = axes.bar_label(
        drawn, labels=[f"{value:,.3g}" for value in values.values()], padding=3, fontsize=9
    )
    for text in texts:
        text.set_color(INK)
    axes.invert_yaxis()
    axes.set_xlabel(x)
    axes.margins(x=0.12)
    return Chart(title, canvas.svg(alt), alt)


def ranges(
    title: str, x: str, values: Mapping[str, tuple[str, float, float, float]],
    colors: Mapping[str, int], alt: str, caption: str = "",
) -> Chart:  # fmt: skip
    """p50 (the engine's shape), p95 (a tick) and p99 (the end) of a name on one line.

    values: name: (engine, p50, p95, p99).
    """
    canvas = Canvas(1.2 + 0.34 * len(values))
    axes = canvas.axes
    for at, (name, (engine, p50, p95, p99)) in enumerate(values.items()):
        style = look(colors[engine])
        axes.plot([p50, p99], [at, at], color=style["color"], linewidth=1.6)
        axes.plot([p95, p99], [at, at], "|", color=style["color"], markersize=9)
        says = f"{name}: p50 {p50:.2f}, p95 {p95:.2f}, p99 {p99:.2f} ms"
        canvas.dot(axes, p50, at, says, {**style, "markersize": 6})
    axes.set_yticks(range(len(values)), list(values), fontsize=9)
    axes.invert_yaxis()
    axes.set_xscale("log")
    _plain(axes.xaxis)
    axes.set_xlabel(x)
    return Chart(title, canvas.svg(alt), alt, caption)
