"""Constraints of studies for agents: which results meet them, and how probable it is that a network does."""
