"""Distances by features: paths, adjacency, Weisfeiler-Lehman counts, topology, conditional layers
(Arc).
"""
