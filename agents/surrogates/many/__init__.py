"""Surrogates of thousands of evaluations: boosted trees, corrected where it matters."""
