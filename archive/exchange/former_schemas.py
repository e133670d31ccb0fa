"""Records of dumps that were written with an earlier schema, converted to those of this release.

schema of the database    format    evaluation
up to 6                   1         weights are in the field `checkpoint`
7                         2         weights are in the field `weights`
8                         3         the same; there are records of proxies
"""

from __future__ import annotations

from archive.exchange.record_lines import Record

_WEIGHTS = 7


def converted(schema: int, kind: str, record: Record) -> Record:
    """Return a record as this release would have written it.

    Args:
        schema: Version of the schema, from the header of the dump.
        kind: Kind of the record.
        record: The record; may be changed.
    """
    if schema < _WEIGHTS and kind == "evaluation" and "checkpoint" in record:
        record["weights"] = record.pop("checkpoint")

    return record
