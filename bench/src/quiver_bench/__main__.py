"""python -m quiver_bench is quiver-bench."""

from __future__ import annotations

import sys

from quiver_bench.cli import main

sys.exit(main())
