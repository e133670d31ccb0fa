"""The trainer: proposals in, evaluations out.

A daemon claims proposals, each trial builds and trains its network in a process of its own, and what it measured goes
back into the archive. The trainer imports nothing of the agents: the two meet in the database.
"""
