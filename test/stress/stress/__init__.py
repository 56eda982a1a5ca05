"""Load, faults and checks on a private server with Quiver: see test/stress/README.md."""
