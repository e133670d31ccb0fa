"""`archive arch`."""
