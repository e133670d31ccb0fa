"""Benchmarks of kernels, one module for each subject; each has a function `measure`."""
