"""Load real vectors into a private cluster, index them and measure: see ./quickstart --help."""
