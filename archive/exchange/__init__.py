"""Archives as files: dump, load, and importers of external results. Imports the queue and the store."""
