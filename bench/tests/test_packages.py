"""The quickstart reads apt's package lists."""

from __future__ import annotations

from quiver_bench.quickstart.packages import parse, teachers

DUMP = """\
Package: gnuchess
Version: 6.2.7-1
Description: Plays a game of chess
Tag: game::board, use::gameplaying,
 x11::application
Section: games

Package: gnuchess
Version: 6.2.6-1
Description: an older version

Package: nothing-said

Package: libfoo-dev
Description-en: Foo library (development files)
 The long text is not read.
"""


def test_stanzas() -> None:
    chess, foo = parse(DUMP.splitlines(keepends=True))
    assert chess.name == "gnuchess"
    assert chess.summary == "Plays a game of chess"
    assert "board gameplaying application" in chess.text
    assert foo.summary == "Foo library (development files)"


def test_libraries_do_not_teach() -> None:
    assert teachers(list(parse(DUMP.splitlines()))) == [0]
