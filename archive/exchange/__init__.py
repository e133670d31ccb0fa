"""Archives as files: dump, load, and importers of external results.

Imports the queue, the store and what is below them.
"""
