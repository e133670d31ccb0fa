"""Graphs of any operations, whose names no vocabulary lists."""
