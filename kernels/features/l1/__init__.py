"""Compiled rows and blocks of weighted L1 and Euclidean distances."""
