"""Covariances made of distances, and their repair where a matrix is not positive semi-definite."""
