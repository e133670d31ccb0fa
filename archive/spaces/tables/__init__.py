"""Tables of evaluated architectures (NAS-Bench-101 and -201, CSV files), and their spaces."""
