"""Architectures as vectors of decisions."""
