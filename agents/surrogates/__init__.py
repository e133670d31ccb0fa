"""Surrogates: models that predict the scores of architectures that have not been evaluated.

Imports kernels.
"""
