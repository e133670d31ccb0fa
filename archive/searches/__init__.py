"""A search from request to outcome: `archive.search(…)`, for commands and programs.

It joins agents and trainers, which do not know each other, and imports nothing above `launchers`.
"""
