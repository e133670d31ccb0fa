"""Exact Gaussian processes on distances, their hyperparameters, and their priors."""
