"""quiver-bench: vector indexes measured side by side. bench/README.md is its specification."""

VERSION = "0.1.0"
