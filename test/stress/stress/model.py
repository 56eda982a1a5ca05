"""Which rows must be there: the model of a table, outside the server."""

from __future__ import annotations

from collections.abc import Iterable

Row = tuple[int, int]  # version, n of the value
Changes = dict[int, Row | None]  # id: the row as it is to be; None: deleted


class Ledger:
    """One writer's rows of one table. No other writer changes them.

    A row is known, or unsure: a COMMIT was sent and its answer lost, so that it may be as
    before or as after. Unsure rows are left alone until settle() has seen which it is.
    """

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.unsure: dict[int, set[Row | None]] = {}
        self.next_id = 0
        self.written = 0  # row versions sent since the last VACUUM, rolled back or not

    def known(self) -> list[int]:
        return [i for i in self.rows if i not in self.unsure]

    def commit(self, changes: Changes) -> None:
        for i, row in changes.items():
            if row is None:
                self.rows.pop(i, None)
            else:
                self.rows[i] = row

    def lose(self, changes: Changes) -> None:
        """The answer to the COMMIT of these was lost."""
        for i, row in changes.items():
            self.unsure[i] = {self.rows.get(i), row}

    def settle(self, found: dict[int, Row]) -> Iterable[str]:
        """What is wrong with the rows that the table has; afterwards they are the model."""
        for i in self.rows.keys() | self.unsure.keys() | found.keys():
            allowed = self.unsure.get(i) or {self.rows.get(i)}
            if found.get(i) not in allowed:
                wanted = " or ".join(str(row) for row in allowed)
                yield f"row {i} is {found.get(i)} and must be {wanted}"
        self.rows = found
        self.unsure = {}
