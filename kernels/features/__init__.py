"""Distances that are a norm of the difference of features: paths, adjacency, Weisfeiler-Lehman counts, topology."""
