"""Trained weights on record: where they are, and which may be deleted."""
