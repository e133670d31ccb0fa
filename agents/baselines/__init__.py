"""Agents without a surrogate: random search, evolution, local search, REINFORCE, and Optuna's
samplers.
"""
