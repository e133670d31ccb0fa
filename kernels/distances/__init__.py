"""Distances between architectures by optimal transport, edit operations and operation trees."""
