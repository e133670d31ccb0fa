"""What all documents share.

A document is either a class derived from `Document`, which has no instances, or a dataclass of the
library that a command shows. The root of every document has the key `schema_version` besides.
"""

from __future__ import annotations

SCHEMA_VERSION = 1
"""Rises when a key changes its meaning or goes; a new key leaves it as it is."""


class JsonObject:
    """A JSON object: its keys are the annotations of the class, which has no instances."""


class Document(JsonObject):
    """The root of a document, or one line of a stream.

    Attributes:
        schema_version: Version of the shapes.
    """

    schema_version: int
