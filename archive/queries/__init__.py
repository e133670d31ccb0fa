"""Saved queries: one documented Cypher file each, and the fast forms of those over all results.

Imports the store.
"""
