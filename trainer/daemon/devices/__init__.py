"""Devices of a trainer: which it takes, and which of its trials run on each."""
