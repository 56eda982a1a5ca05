"""TAP files are numbered from 001 on, without gaps or twins."""

from __future__ import annotations

import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


class TapFiles(unittest.TestCase):
    def test_numbers(self) -> None:
        names = sorted(path.name for path in (TOP / "test" / "t").glob("*.pl"))
        self.assertTrue(names)
        for number, name in enumerate(names, start=1):
            self.assertTrue(name.startswith(f"{number:03}_"), f"{name}: should be {number:03}_...")


if __name__ == "__main__":
    unittest.main()
