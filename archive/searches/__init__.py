"""A search from its request to its outcome: `archive.search(…)`, for the command line, notebooks
and programs.

It joins agents and trainers, which do not know each other, and imports nothing above `launchers`.
"""
