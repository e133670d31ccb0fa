"""Official releases of benchmarks, such as NAS-Bench-101, read without their authors' code.

Imports the spaces and the packages below them. `archive.exchange.importers` stores the trainings of
a release as evaluations; `tables` writes a release as a table of `archive.spaces.tables`.
"""
