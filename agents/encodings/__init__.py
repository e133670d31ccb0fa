"""Encodings of architectures as decisions, and of perceptrons with their training as conditional
parameters.
"""
