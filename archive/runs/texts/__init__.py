"""Texts of runs for readers: differences by file and line, output without control sequences."""
