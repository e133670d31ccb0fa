"""Several objectives: the scores of a history for them, and the choice of networks that extend the
Pareto front.
"""
