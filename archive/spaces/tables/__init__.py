"""Tables of evaluated architectures (NAS-Bench-101, NAS-Bench-201, CSV files of their forms) and
their spaces.
"""
