"""Nodes and relationships of the archive: schema, records, architectures, studies, results,
distances, weights.

Imports the database, and the packages architecture and spaces below it.
"""
