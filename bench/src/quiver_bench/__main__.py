"""The command quiver-bench, and python -m quiver_bench."""

from __future__ import annotations

import os
import sys


def main() -> int:
    # A client and what is in its process compute with one thread; numpy reads this when
    # it is imported.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from quiver_bench.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
