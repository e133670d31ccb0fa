"""Benchmarks of agents, one module for each subject; each has a function `measure`."""
