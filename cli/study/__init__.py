"""`archive study`."""
