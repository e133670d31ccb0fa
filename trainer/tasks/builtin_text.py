"""The built-in task on text; a module of its own, because each import reads the text."""

from __future__ import annotations

from archive.trainer.tasks.text import pydoc_topics

PYDOC_TOPICS = pydoc_topics()
