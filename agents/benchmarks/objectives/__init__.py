"""Searches of a table for several objectives, and under constraints: an agent's own loop in this
process.
"""
