"""Whether JSON is of a documented shape (`archive.cli.json_reference`)."""

from __future__ import annotations

import dataclasses
import json
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from archive.cli.json_reference import ARRAYS, DOCUMENTS, MAPPINGS, STREAMS, fields, is_object
from archive.cli.render import SCHEMA_VERSION
from archive.values import finite_or_null, mapped

SCALARS = {str: str, int: int, float: int | float, bool: bool, type(None): type(None), Path: str}


def faults(value: Any, hint: Any, at: str = "$") -> list[str]:
    """Return where a value differs from a shape: keys that are missing or unknown, values of
    another type."""
    origin = get_origin(hint)
    arguments = get_args(hint)
    if hint is Any or hint is object:
        return []

    if dataclasses.is_dataclass(value):
        value = mapped(value, finite_or_null)

    if origin in (Union, types.UnionType):
        found = [faults(value, each, at) for each in arguments]
        return [] if [] in found else [fault for each in found for fault in each]

    if origin is Literal:
        return [] if value in arguments else [f"{at} is {value!r}, not one of {arguments}"]

    if origin in ARRAYS:
        if not isinstance(value, list):
            return [f"{at} is no list"]

        return [
            fault
            for place, item in enumerate(value)
            for fault in faults(item, arguments[0], f"{at}[{place}]")
        ]

    if origin in MAPPINGS or is_object(hint):
        if not isinstance(value, dict):
            return [f"{at} is no object"]

        if origin in MAPPINGS:
            return [
                fault
                for name, item in value.items()
                for fault in faults(item, arguments[1], f"{at}.{name}")
            ]

        known = {name: kind for name, (kind, _) in fields(hint).items()}
        if at == "$" and "schema_version" in value:
            # The root of a document that is a dataclass of the library.
            known["schema_version"] = int

        wrong = [f"{at}.{name} is missing" for name in known.keys() - value.keys()]
        wrong += [f"{at}.{name} is not documented" for name in value.keys() - known.keys()]
        return wrong + [
            f
            for name in known.keys() & value.keys()
            for f in faults(value[name], known[name], f"{at}.{name}")
        ]

    right = isinstance(value, SCALARS[hint]) and (hint is bool or not isinstance(value, bool))
    return [] if right else [f"{at} is {value!r}, not {hint.__name__}"]


def check(command: str, text: str) -> list[dict]:
    """Parse what a command wrote, and compare it with what is documented."""
    documents = (
        [json.loads(line) for line in text.splitlines()]
        if command in STREAMS
        else [json.loads(text)]
    )
    assert documents
    for document in documents:
        assert document["schema_version"] == SCHEMA_VERSION
        assert next(iter(document)) == "schema_version"
        found = [faults(document, shape) for shape in DOCUMENTS[command]]
        assert [] in found, found

    return documents
