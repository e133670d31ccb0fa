"""Constraints of studies for agents: the slacks of results, and the probability of feasibility of
networks.
"""
