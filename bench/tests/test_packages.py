"""The quickstart reads apt's package lists."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "src"))

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


class Packages(unittest.TestCase):
    def test_parse(self) -> None:
        chess, foo = parse(DUMP.splitlines(keepends=True))
        self.assertEqual(chess.name, "gnuchess")
        self.assertEqual(chess.summary, "Plays a game of chess")
        self.assertIn("board gameplaying application", chess.text)
        self.assertEqual(foo.summary, "Foo library (development files)")

    def test_libraries_do_not_teach(self) -> None:
        self.assertEqual(teachers(list(parse(DUMP.splitlines()))), [0])


if __name__ == "__main__":
    unittest.main()
