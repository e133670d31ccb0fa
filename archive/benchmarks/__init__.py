"""Benchmarks of the store and the spaces, for `archive bench`."""
