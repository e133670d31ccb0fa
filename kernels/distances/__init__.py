"""Distances between architectures that compare two networks at a time: transport, edits, trees."""
