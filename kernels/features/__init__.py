"""Distances by features: paths, adjacency, Weisfeiler-Lehman counts, topology, Arc."""
