"""Published models in the archive: the architecture with its costs, its name and its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.architecture.decoders import costs
from archive.architecture.graph import Architecture
from archive.exchange.hugging_face.reading import PublishedModel
from archive.exchange.importers.models import add_model
from archive.store import notes
from archive.values import checked_size

if TYPE_CHECKING:
    from archive.api import Archive


def add_published(archive: Archive, model: PublishedModel, name: str) -> Architecture:
    """Store a published model, and return its architecture.

    Its name and its family become tags, and its source the note, unless a user wrote another one.
    A second model with the same architecture adds its name.

    Raises:
        UsageError: It has more parameters than a server stores.
    """
    architecture = model.design.graph()
    # A number that no server stores is refused before anything is written.
    params = checked_size("params", costs.params(architecture))
    add_model(archive, architecture, params=params)
    before = notes.read(archive.connection, "Architecture", architecture.key)
    tags = sorted({*before.tags, name[: notes.LONGEST_TAG], model.model_type})
    text = before.text or _source_text(model, name)
    if (text, tags) != (before.text, sorted(before.tags)):
        notes.write(archive.connection, "Architecture", architecture.key, text, tags, seen=before)

    return architecture


def _source_text(model: PublishedModel, name: str) -> str:
    words = [f"{name}, a published configuration of {model.model_type}"]
    if model.causal_class:
        words.append(f"transformers builds it by {model.causal_class}")

    return "; ".join([*words, *model.notes])
