"""Genotypes of DARTS: a normal and a reduction cell as one architecture.

`codec` has the conventions, and turns genotypes into architectures and back; `genotype` reads and
writes genotypes as text and JSON; `operations` has the vocabularies `darts` and `nasnet`; `rules`
says which genotypes a space has.
"""
