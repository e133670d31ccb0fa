"""`archive dump`, `archive load` and `archive import`."""
