"""Architectures as labelled directed acyclic graphs: operations, canonical form, masses, codecs.

Imports errors only.
"""
