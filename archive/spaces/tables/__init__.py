"""Tables of evaluated architectures (NAS-Bench-101, NAS-Bench-201, any CSV of their forms), and the spaces of their rows."""
