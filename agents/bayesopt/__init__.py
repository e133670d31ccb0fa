"""Bayesian optimisation: the agents with a surrogate, and their initial designs."""
