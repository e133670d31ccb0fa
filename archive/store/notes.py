"""Notes and tags that users give studies and architectures.

They are the properties `note` and `tags` of the nodes.

They are for people: no agent reads them, and a dump carries them. The last writer wins, except over
a note that it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from archive.errors import UnknownNameError, UsageError
from archive.store.properties import read_column

if TYPE_CHECKING:
    from archive.database.connection import Connection

LONGEST_NOTE = 10_000
LONGEST_TAG = 50
MOST_TAGS = 20

Annotated = Literal["Study", "Architecture"]
"""Labels of nodes that have notes."""

_KEYS: dict[Annotated, str] = {"Study": "name", "Architecture": "key"}

READ = "MATCH (n:{label} {{{key}: $id}}) RETURN n.note AS note, n.tags AS tags"
# Work may run again after its commit: a note that is already as it shall be is no other one.
WRITE = """
MATCH (n:{label} {{{key}: $id}})
WHERE $seen IS NULL
   OR [coalesce(n.note, ''), coalesce(n.tags, [])] IN [$seen, [coalesce($note, ''), coalesce($tags, [])]]
SET n.note = $note, n.tags = $tags
RETURN n.{key} AS id
"""
NAMES = "MATCH (s:Study) RETURN s.name AS name"


@dataclass(frozen=True)
class UserNote:
    """Note and tags of a study or an architecture."""

    text: str = ""
    tags: tuple[str, ...] = ()


def read(connection: Connection, label: Annotated, id_: str) -> UserNote:
    """Return the note of a node.

    Args:
        connection: Connection to the archive.
        label: Label of the node.
        id_: Name of the study, or key of the architecture.

    Raises:
        UnknownNameError: There is no such node.
    """
    query = READ.format(label=label, key=_KEYS[label])
    row = connection.read(lambda tx: tx.run(query, id=id_).single())
    if row is None:
        existing = (
            connection.read(lambda tx: read_column(tx.run(NAMES), "name"))
            if label == "Study"
            else ()
        )
        raise UnknownNameError(label.lower(), id_, existing, "the archive has none of this name")

    return UserNote(row["note"] or "", tuple(row["tags"] or ()))


def write(
    connection: Connection,
    label: Annotated,
    id_: str,
    text: str,
    tags: Sequence[str],
    *,
    seen: UserNote | None = None,
) -> UserNote:
    """Set the note and the tags of a node, and return them as they are stored.

    Tags are sorted, each once.

    Args:
        connection: Connection to the archive.
        label: Label of the node.
        id_: Name of the study, or key of the architecture.
        text: The note.
        tags: The tags.
        seen: Note that the writer has read; another one is not replaced. None replaces any.

    Raises:
        UnknownNameError: There is no such node.
        UsageError: The note or a tag is too long, there are too many tags, or the node has another
            note than `seen`.
    """
    if len(text) > LONGEST_NOTE:
        raise UsageError(f"a note has at most {LONGEST_NOTE} characters, got {len(text)}")

    kept = sorted({tag.strip() for tag in tags} - {""})
    if len(kept) > MOST_TAGS:
        raise UsageError(f"there are at most {MOST_TAGS} tags, got {len(kept)}")

    for tag in kept:
        if len(tag) > LONGEST_TAG:
            raise UsageError(f"a tag has at most {LONGEST_TAG} characters, got {len(tag)}")

    query = WRITE.format(label=label, key=_KEYS[label])
    # A property without a value is absent.
    before = None if seen is None else [seen.text, list(seen.tags)]
    row = connection.write(
        lambda tx: tx.run(query, id=id_, note=text or None, tags=kept or None, seen=before).single()
    )
    if row is None:
        other = read(connection, label, id_)
        raise UsageError(
            f"another user has changed the note meanwhile, to {other.text[:200]!r} with the tags "
            f"{', '.join(other.tags) or 'none'}: copy yours, load the page again, and write both"
        )

    return UserNote(text, tuple(kept))
