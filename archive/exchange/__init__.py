"""Archives as files: dump, load, and importers of external results.

Imports the queue, the store and the packages below them.
"""
