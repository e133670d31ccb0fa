"""Answers to requests, one module a view; each has a list `ROUTES`.

Functions run in threads, so they may block.
"""
