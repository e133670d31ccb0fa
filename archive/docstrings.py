"""Summaries of docstrings, as lists and help texts show them."""

from __future__ import annotations

import inspect


def read_summary(documented: object) -> str:
    """Return the first paragraph of a docstring as one line; an empty text without a docstring."""
    paragraph = (inspect.getdoc(documented) or "").partition("\n\n")[0]
    return " ".join(paragraph.split())
