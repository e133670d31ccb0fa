"""Official releases of benchmarks, read without the packages of their authors: NAS-Bench-101, -201
and others.

Imports the spaces and the packages below them. `archive.exchange.importers` stores the trainings of
a release as evaluations; `tables` writes a release as a table of `archive.spaces.tables`.
"""
