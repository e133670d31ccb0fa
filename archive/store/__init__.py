"""Nodes and relationships of the archive.

Modules for schema, records, architectures, studies, results, distances and weights.

Imports the database, and the packages architecture and spaces below it.
"""
