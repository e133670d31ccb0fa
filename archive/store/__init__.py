"""Nodes and relationships of the archive: schema, records, architectures, studies, results, distances, weights.

Imports the database, and architectures and spaces below it.
"""
