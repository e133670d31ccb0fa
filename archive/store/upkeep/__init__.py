"""Upkeep of an embedded archive: its integrity, and upgrades of the engine."""
