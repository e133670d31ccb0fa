"""Several objectives: what a history says about them, and the choice of networks that extend the Pareto front."""
