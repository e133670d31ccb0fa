"""What the kernels' benchmarks measure, one module a subject; each has a function `measure`."""
