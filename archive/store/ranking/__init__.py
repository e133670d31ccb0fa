"""Ranking of a study's results: means over replicates, the Pareto set, and the results whose
weights are kept.
"""
