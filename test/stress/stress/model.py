"""Which rows must be there: the model of a table, outside the server."""

from __future__ import annotations

from collections.abc import Iterator

Row = tuple[int, int]  # version, n of the value
Changes = dict[int, Row | None]  # id: the row as it is to be; None: deleted


class Ledger:
    """One writer's rows of one table. No other writer changes them.

    A transaction is unsure when its COMMIT was sent and the answer lost: the rows may be as
    before it or as after it. They are left alone until settle() has seen which it is.
    """

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.unsure: list[Changes] = []
        self.next_id = 0
        self.written = 0  # row versions sent since the last VACUUM, rolled back or not

    def known(self) -> list[int]:
        unsure = set().union(*self.unsure)
        return [i for i in self.rows if i not in unsure]

    def commit(self, changes: Changes) -> None:
        for i, row in changes.items():
            if row is None:
                self.rows.pop(i, None)
            else:
                self.rows[i] = row

    def lose(self, changes: Changes) -> None:
        """The answer to the COMMIT of these was lost."""
        self.unsure.append(changes)

    def settle(self, found: dict[int, Row]) -> Iterator[str]:
        """What is wrong with the rows that the table has; afterwards they are the model."""
        for changes in self.unsure:
            if all(found.get(i) == row for i, row in changes.items()):
                self.commit(changes)
        # Those that did not commit are as before, or else found here, one by one.
        for i in self.rows.keys() | found.keys():
            if found.get(i) != self.rows.get(i):
                yield f"row {i} is {found.get(i)} and must be {self.rows.get(i)}"
        self.rows = found
        self.unsure = []
