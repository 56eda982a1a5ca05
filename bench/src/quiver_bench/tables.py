"""A table of text cells, and the forms it is printed in."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

NUMBER = re.compile(r"[-+]?[\d.,]+ ?(%|x|s|ms|MB|GB)?")


@dataclass
class Table:
    """Rows of cells as they are printed. Cells of numbers stand to the right."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bold: set[int] = field(default_factory=set)  # rows that won

    def add(self, *cells: str) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(cells)

    def _right(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] not in ("", "-")]
        numbers = [cell for cell in cells if NUMBER.fullmatch(cell)]
        return 2 * len(numbers) > len(cells)

    def text(self) -> str:
        """Fixed width, for a terminal."""
        widths = [
            max(len(name), *(len(row[i]) for row in self.rows), 0) if self.rows else len(name)
            for i, name in enumerate(self.columns)
        ]
        right = [self._right(i) for i in range(len(self.columns))]

        def line(cells: Sequence[str]) -> str:
            parts = [
                f"{cell:>{width}}" if flag else f"{cell:<{width}}"
                for cell, width, flag in zip(cells, widths, right, strict=True)
            ]
            return ("  " + "  ".join(parts)).rstrip()

        lines = [self.title, "", line(self.columns)]
        lines += [line(row) for row in self.rows]
        lines += [f"  ({note})" for note in self.notes]
        return "\n".join(lines)

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", "| " + " | ".join(self.columns) + " |"]
        lines.append("|" + "|".join("--:" if self._right(i) else "---" for i in range(len(self.columns))) + "|")  # fmt: skip
        for number, row in enumerate(self.rows):
            cells = [f"**{cell}**" if number in self.bold and cell else cell for cell in row]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines)

    def csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([self.title])
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return file.getvalue()

    def html(self) -> str:
        right = [
            ' class="remarks"' if name == "remarks" else ' class="n"' if self._right(i) else ""
            for i, name in enumerate(self.columns)
        ]
        lines = [f"<h3>{html.escape(self.title)}</h3>", '<div class="scroll"><table><thead><tr>']
        lines += [
            f"<th{mark}>{html.escape(name)}</th>"
            for name, mark in zip(self.columns, right, strict=True)
        ]
        lines.append("</tr></thead><tbody>")
        for number, row in enumerate(self.rows):
            lines.append('<tr class="won">' if number in self.bold else "<tr>")
            lines += [
                f"<td{mark}>{html.escape(cell)}</td>" for cell, mark in zip(row, right, strict=True)
            ]
            lines.append("</tr>")
        lines.append("</tbody></table></div>")
        lines += [f'<p class="note">{html.escape(note)}</p>' for note in self.notes]
        return "\n".join(lines)

    def form(self, kind: str) -> str:
        if kind == "markdown":
            return self.markdown()
        return self.csv() if kind == "csv" else self.text()


# Numbers as they are printed.


def count(value: float) -> str:
    """A whole number with separators."""
    return f"{value:,.0f}"


def rate(value: float) -> str:
    """Whole from 10 on, else with two decimals."""
    return f"{value:,.0f}" if value >= 9.995 else f"{value:.2f}"


def decimal(value: float) -> str:
    """Whole from 100 on, else with one decimal."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}"


def small(value: float) -> str:
    """Three decimals below 1, else two."""
    return f"{value:.3f}" if value < 1 else f"{value:,.2f}"


def milliseconds(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def megabytes(value: float) -> str:
    """Of bytes, in MB of 2^20."""
    return f"{value / 2**20:,.1f}" if value < 100 * 2**20 else f"{value / 2**20:,.0f}"


def seconds_of(value: float) -> str:
    """Seconds; from a thousand on in minutes or hours too: 8,580s (2.4h)."""
    text = f"{value:,.0f}s" if value >= 10 else f"{value:.2f}s"
    if value < 1000:
        return text
    return text + (f" ({value / 3600:.1f}h)" if value >= 3600 else f" ({value / 60:.0f}m)")
