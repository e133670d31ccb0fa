"""Genotypes of DARTS: a normal and a reduction cell as one architecture.

`codec` has the conventions, and turns genotypes into architectures and back; `genotype` reads and
writes genotypes as text and JSON, and says which of them a space has; `operations` has the
vocabularies `darts` and `nasnet`.
"""
