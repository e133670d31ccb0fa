"""Architectures as labelled directed acyclic graphs: operations, canonical form, layer masses,
codecs.

Imports errors only.
"""
