"""Arguments of several tools, with their descriptions; networks in arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from archive.architecture import texts
from archive.errors import UnknownNameError, UsageError
from archive.mcp.access import UnopenedArchive
from archive.mcp.limits import MOST_ROWS

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture

LEAST_KEY = 4
MOST_KEY = 64
"""Characters of a key, or of the beginning of one, in an argument."""

NetworkArgument = Annotated[
    str | dict[str, Any],
    Field(
        description="A network: its key in the archive or the beginning of the key; JSON as `architecture` returns it; "
        "a NAS-Bench-201 string '|nor_conv_3x3~0|+|…|+|…|'; or a genotype of DARTS 'Genotype(normal=[…], …)'."
    ),
]
StudyName = Annotated[str, Field(description="Name of a study.")]
RowCount = Annotated[int, Field(ge=1, le=MOST_ROWS, description="Most rows to return.")]
TaskName = Annotated[str, Field(description="Name of a task.")]
ProtocolName = Annotated[
    str | None,
    Field(
        description="Training protocol of the task; needed where the task has results of several."
    ),
]


def network_of(archive: Archive | UnopenedArchive, described: str | dict[str, Any]) -> Architecture:
    """Return the network of an argument.

    Raises:
        CodecError: The text or object describes no graph.
        InvalidArchitectureError: The graph is no network.
        UsageError: It is neither a network nor a key of the archive, or several keys begin so.
    """
    text = described.strip() if isinstance(described, str) else json.dumps(described)
    if texts.is_text(text):
        return texts.from_text(text)

    if len(text) < LEAST_KEY:
        raise UsageError(
            f"the key of a network is given with at least {LEAST_KEY} characters, got {text!r}"
        )

    if isinstance(archive, UnopenedArchive):
        raise UsageError(
            f"the key {text!r:.80} cannot be looked up now: describe the network by JSON, a cell "
            f"string or a genotype, or call again later: {archive.error}"
        )

    try:
        return archive.architectures.get(archive.architectures.find(text[:MOST_KEY]))
    except UnknownNameError as error:
        raise UsageError(
            f"{error}; or describe a network by JSON, a cell string or a genotype"
        ) from None
