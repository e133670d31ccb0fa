"""Nearest neighbours: lower bounds, and an index over many prepared networks."""
