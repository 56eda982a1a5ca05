#!/usr/bin/env python3
"""Test of the stress program's model: what it takes for a lost row, and for a right one."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "stress"))
sys.dont_write_bytecode = True

from stress.model import Ledger  # noqa: E402


class Model(unittest.TestCase):
    def setUp(self) -> None:
        self.ledger = Ledger()
        self.ledger.commit({1: (1, 10), 2: (1, 20), 3: (1, 30)})

    def complaints(self, *found):
        return sorted(self.ledger.settle({i: (version, n) for i, version, n in found}))

    def test_committed(self):
        self.ledger.commit({1: None, 2: (2, 21), 4: (1, 40)})
        self.assertEqual(self.complaints((2, 2, 21), (3, 1, 30), (4, 1, 40)), [])

    def test_lost_and_extra(self):
        wrong = self.complaints((1, 1, 10), (2, 2, 20), (9, 1, 1))
        self.assertEqual(len(wrong), 3)
        self.assertIn("row 3 is None and must be (1, 30)", wrong)

    def test_unsure_is_all_or_nothing(self):
        changes = {1: (2, 11), 2: None, 5: (1, 50)}
        before = ((1, 1, 10), (2, 1, 20), (3, 1, 30))
        after = ((1, 2, 11), (3, 1, 30), (5, 1, 50))
        for found, wrong in ((before, 0), (after, 0), ((*before, (5, 1, 50)), 1)):
            with self.subTest(found=found):
                self.setUp()
                self.ledger.lose(dict(changes))
                self.assertEqual(self.ledger.known(), [3])
                self.assertEqual(len(self.complaints(*found)), wrong)
        self.assertEqual(self.ledger.unsure, [])


if __name__ == "__main__":
    unittest.main()
