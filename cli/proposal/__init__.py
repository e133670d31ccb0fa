"""`archive proposal`."""
