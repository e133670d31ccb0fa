"""Surrogates of thousands of evaluations: boosted trees of all of them, corrected near the relevant
ones.
"""
