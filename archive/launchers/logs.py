"""Logs of trainers, in messages."""

from __future__ import annotations

from pathlib import Path

LINES = 3


def tail(path: Path) -> str:
    """Return the place of a log and its last lines, as one line."""
    lines = path.read_text(errors="replace").splitlines()[-LINES:] if path.exists() else []
    return f"see {path}: " + " | ".join(lines)
