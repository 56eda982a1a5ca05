"""tools/check_layers finds what it is there to find."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


class CheckLayers(unittest.TestCase):
    def complaints(self, files: dict[str, str]) -> list[str]:
        """The complaints about a tree of these files."""
        with tempfile.TemporaryDirectory() as top:
            for name, text in {"compat.h": '#include "postgres.h"\n', **files}.items():
                path = Path(top) / "src" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            run = subprocess.run(
                [TOP / "tools" / "check_layers", top], capture_output=True, text=True
            )
            lines = run.stdout.splitlines()[:-1]
            self.assertEqual(run.returncode, 1 if lines else 0, run.stdout + run.stderr)
            return lines

    def test_good_tree(self) -> None:
        files = {
            "containers/heap.h": "#include <stdint.h>\n",
            "kernels/kernels.h": '#include "containers/heap.h"\n',
            "kernels/cpu.c": "#include <cpuid.h>\nint x = __builtin_cpu_supports(1);\n",
            "types/type_ops.h": '#include "postgres.h"\n#include "kernels/kernels.h"\n',
            "graph/graph.h": '#include "compat.h"\n#include "types/type_ops.h"\n',
            "graph/page/meta.h": "",
            "graph/search/scan.c": '#include "graph/graph.h"\n#include "graph/page/meta.h"\n',
            "graph/check.c": '#include "graph/page/meta.h"\n',
            "am/hnsw.c": '#include "graph/graph.h"\n',
            "quiver.c": '#include "graph/graph.h"\n',
        }
        self.assertEqual(self.complaints(files), [])

    def test_each_breach(self) -> None:
        base = {
            "containers/heap.h": "",
            "graph/graph.h": "",
            "graph/search/scan.h": "",
            "ivf/ivf.h": "",
            "ivf/check.h": "",
            "ivf/page/meta.h": "",
            "types/type_ops.h": "",
            "types/dense.h": "",
        }
        breaches = {
            "containers/a.c": '#include "postgres.h"',
            "kernels/a.c": '#include "compat.h"',
            "quant/a.c": '#include "types/type_ops.h"',
            "cluster/a.c": "#include <access/genam.h>",
            "pages/a.c": '#include "graph/graph.h"',
            "graph/a.c": '#include "ivf/ivf.h"',
            "ivf/a.c": '#include "graph/graph.h"',
            "am/a.c": '#include "types/dense.h"',
            "types/a.c": '#include "containers/heap.h"',
            "graph/b.c": "#if PG_VERSION_NUM >= 160000",
            "kernels/b.c": "int x = __builtin_cpu_supports(1);",
            "graph/c.c": '#include "graph.h"',
            "graph/page/a.c": '#include "graph/search/scan.h"',
            "ivf/codec/a.c": '#include "ivf/page/meta.h"',
            "ivf/search/a.c": '#include "ivf/check.h"',
            "graph/cellar/a.c": "",
            "odd/a.c": "",
        }
        for name, line in breaches.items():
            with self.subTest(name):
                found = self.complaints({**base, name: line + "\n"})
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(f"src/{name}:1: "), found)

    def test_circles(self) -> None:
        by_header = {
            "graph/a.h": '#include "graph/b.h"\n',
            "graph/b.c": '#include "graph/b.h"\n\n#include "graph/a.h"\n',
            "graph/b.h": "",
        }
        self.assertEqual(len(self.complaints(by_header)), 1)
        # a and b call each other, and both are declared in the folder's face
        by_call = {
            "ivf/ivf.h": "extern void A(void);\nextern void B(void);\n",
            "ivf/a.c": '#include "ivf/ivf.h"\n\nvoid\nA(void)\n{\n\tB();\n}\n',
            "ivf/b.c": '#include "ivf/ivf.h"\n\nvoid\nB(void)\n{\n\tA();\n}\n',
        }
        found = self.complaints(by_call)
        self.assertEqual(len(found), 1, found)
        self.assertIn("a circle of files: a takes B, b takes A", found[0])
        by_call["ivf/b.c"] = '#include "ivf/ivf.h"\n\nstatic void\nA(void)\n{\n}\n\nvoid\nB(void)\n{\n}\n'
        self.assertEqual(self.complaints(by_call), [])

    def test_headers_of_their_files(self) -> None:
        files = {
            "graph/a.c": "int\nA(void)\n{\n}\n",
            "graph/a.h": "extern int\tA(void);\nextern int\tB(void);\n",
            "graph/b.c": '#include "graph/a.h"\n\nint\nB(void)\n{\n}\n',
        }
        found = self.complaints(files)
        self.assertEqual(found, ["src/graph/a.h:2: B() is not in a.c"])

    def test_comments_do_not_count(self) -> None:
        self.assertEqual(self.complaints({"graph/a.c": "/* PG_VERSION_NUM */\n"}), [])


if __name__ == "__main__":
    unittest.main()
