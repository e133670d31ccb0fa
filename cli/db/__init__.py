"""`archive db`."""
