"""Schema of the records of a dump, and their validation before a load.

    record         fields                                                                     identity
    agent          kind, version, config, created                                             all but created
    worker         id, properties                                                             id
    task           task, protocol, direction (of results without a study)                     task, protocol
    study          name, task, protocol, space, space_config, properties                      name
    warm_start     study, source, properties                                                  both
    architecture   key, architecture (see `archive.architecture.codec`), properties                        key
    morph          parent, child, operations                                                  both
    build          configuration, network, model, properties                                  all but properties
    evaluation     id, task, protocol, architecture, properties, weights                      id
    proposal       study, number, architecture, agent, properties, result, claims             study, number
    distances      of, to {key: {kind of distance: number or numbers}}                        pair
    proxies        of, task, protocol, source, properties                                     all but properties

Every record refers to records of earlier lines only. `properties` are the properties of the node, except
derived ones: a load computes keys, ids and counts of layers again, so a file cannot forge them.
Transient properties (tokens, leases, curves of running trials) are not written: a proposal without
a result is WAITING. Unknown properties are kept if a database can store them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, UsageError
from archive.exchange.validators import (
    is_basis,
    is_bounds,
    is_claims,
    is_direction,
    is_directions,
    is_distances,
    is_key,
    is_map,
    is_name,
    is_operators,
    is_property,
    is_real,
    is_reals,
    is_settings,
    is_study,
    is_study_settings,
    is_text,
    is_texts,
    is_weights,
    is_whole,
    is_wholes,
)
from archive.store.properties import CURVE, EPOCH, METRIC, PROXY
from archive.store.records import PROVENANCE, State
from archive.values import brief, is_non_finite, mapped

Record = dict[str, Any]
Check = Callable[[Any], bool]


class RecordShape(NamedTuple):
    """Schema of one kind of record.

    Attributes:
        fields: Check of each field; all fields are required.
        properties: Check of each property; those with the prefix of curves or metrics have separate
            checks.
        needed: Required properties.
        computed: Properties that the store computes, and a file may not set.
    """

    fields: Mapping[str, Check]
    properties: Mapping[str, Check] = MappingProxyType({})
    needed: tuple[str, ...] = ()
    computed: frozenset[str] = frozenset()


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


_PROPOSAL_OWN = frozenset(
    "id study number open architecture functional_key agent touched".split()
    + "token change_token lease lease_until suspected".split()
)
_NUMBERS = dict.fromkeys(("acquisition", "mean", "std", "fidelity", "seconds", "priority"), is_real)
_TIMES = dict.fromkeys(("created", "started", "finished"), is_whole)

SHAPES: Mapping[str, RecordShape] = MappingProxyType(
    {
        "agent": RecordShape(
            {"kind": is_name, "version": is_text, "config": is_settings, "created": _or_none(is_whole)},
        ),
        "worker": RecordShape(
            {"id": is_name, "properties": is_map},
            {"host": is_text, "device": is_text, "heartbeat": is_whole},
            ("heartbeat",),
            frozenset(["id"]),
        ),
        "task": RecordShape({"task": is_name, "protocol": is_name, "direction": is_direction}),
        "study": RecordShape(
            {
                "name": is_study, "task": is_name, "protocol": is_name, "space": is_name,
                "space_config": is_settings, "properties": is_map,
            },
            {
                "objective": is_name, "direction": is_direction,
                "budget": is_whole, "config": is_study_settings, "seed": is_whole, "created": is_whole,
                "objectives": is_texts, "directions": is_directions,
                "constrained": is_texts, "operators": is_operators, "bounds": is_bounds,
            },
            ("objective", "direction", "budget", "created"),
            frozenset(["name", "revision", "admitted", "next_number", "rewritten", "rung_borders"]),
        ),
        "warm_start": RecordShape({"study": is_study, "source": is_study, "properties": is_map}),
        "architecture": RecordShape(
            {"key": is_key, "architecture": is_map, "properties": is_map},
            {"params": is_real, "flops": is_real},
            computed=frozenset("key functional_key space depth layers edges mass code revision".split()),
        ),
        "morph": RecordShape({"parent": is_key, "child": is_key, "operations": is_texts}),
        "build": RecordShape(
            {"configuration": is_key, "network": is_key, "model": is_name, "properties": is_map},
            {"version": is_text, "reads": is_texts, "state": is_text, "built": is_whole},
            ("built",),
            frozenset(["model"]),
        ),
        "evaluation": RecordShape(
            {
                "id": is_name, "task": is_name, "protocol": is_name, "architecture": is_key,
                "properties": is_map, "weights": is_weights,
            },
            {
                "value": is_real, "epochs": is_whole, "seconds": is_real, "seed": is_whole, "device": is_text,
                "hardware": is_text, "environment": is_settings, "created": is_whole, "answered_from": is_name,
                **dict.fromkeys(PROVENANCE, is_text),
            },
            ("value", "created"),
            frozenset(["id"]),
        ),
        "proposal": RecordShape(
            {
                "study": is_study, "number": lambda value: is_whole(value) and 0 <= value < 2**31,
                "architecture": is_key,
                "agent": _or_none(is_name), "properties": is_map, "result": _or_none(is_name), "claims": is_claims,
            },
            {
                "state": lambda value: value in set(State) - {State.RUNNING}, "attempts": is_whole,
                "hyperparameters": is_settings, "based_on": is_basis, "request": is_text, "worker": is_text,
                "motivation": is_text, "inspired_by": is_texts, "repeat": lambda value: value is True,
                "reason": is_text, "cancelled": is_wholes, "retried": is_wholes, "rung": is_whole,
                "rung_values": is_reals, "rung_constrained": is_reals, **_NUMBERS, **_TIMES,
            },
            ("state", "created", "attempts"),
            _PROPOSAL_OWN,
        ),
        "distances": RecordShape({"of": is_key, "to": is_distances}),
        "proxies": RecordShape(
            {"of": is_key, "task": is_name, "protocol": is_name, "source": is_name, "properties": is_map},
            {"created": is_whole, "undefined": is_texts},
            computed=frozenset(["source"]),
        ),
    }
)  # fmt: skip
"""Kind of record to its schema, in the order of writing to a database."""


def check(kind: str, record: Record) -> None:
    """Check that this release can store a record.

    Raises:
        UsageError: It cannot; the message names the field and shows the value.
    """
    if kind not in SHAPES:
        raise UsageError(f"there is no record {kind!r:.60}")

    shape = SHAPES[kind]
    for name, right in shape.fields.items():
        if name not in record:
            raise UsageError(f"{kind} has no field {name!r}")

        if not right(record[name]):
            raise UsageError(f"{kind} has an invalid {name}: {brief(record[name], 60)}")

    for name in record:
        if name not in shape.fields:
            raise UsageError(f"{kind} has no field {name!r:.60}")

    if "properties" in record:
        _check_properties(kind, shape, record["properties"])

    # A promoted proposal waits, and has the result of its last rung.
    promoted = (
        kind == "proposal" and record["result"] is not None and record["properties"].get("rung")
    )
    if (
        kind == "proposal"
        and (record["result"] is None) == State(record["properties"]["state"]).evaluated
        and not promoted
    ):
        raise UsageError(
            f"proposal is {record['properties']['state']} with the result "
            f"{brief(record['result'], 60)}"
        )


def references(kind: str, record: Record) -> Iterable[tuple[str, str]]:
    """Return kind and identity of each record that a valid record refers to."""
    if kind == "warm_start":
        return [("study", record["study"]), ("study", record["source"])]

    if kind == "morph":
        return [("architecture", record["parent"]), ("architecture", record["child"])]

    if kind == "build":
        return [("architecture", record["configuration"]), ("architecture", record["network"])]

    if kind == "evaluation":
        return [("architecture", record["architecture"])]

    if kind == "proxies":
        return [("architecture", record["of"])]

    if kind == "distances":
        return [("architecture", key) for key in (record["of"], *record["to"])]

    if kind != "proposal":
        return []

    named = [("study", record["study"]), ("architecture", record["architecture"])]
    for what, field in (("agent", "agent"), ("evaluation", "result")):
        if record[field]:
            named.append((what, record[field]))

    return named + [("worker", worker) for worker, _, _ in record["claims"]]


def _check_properties(kind: str, shape: RecordShape, properties: Mapping[str, Any]) -> None:
    for name in shape.needed:
        if name not in properties:
            raise UsageError(f"{kind} has no property {name!r}")

    lengths = set()
    for name, value in properties.items():
        if not is_name(name) or name in shape.computed or not _right(shape, name)(value):
            raise UsageError(
                f"{kind} has an invalid property: {brief(name, 60)} = {brief(value, 60)}"
            )

        if name.startswith(CURVE):
            lengths.add(len(value))

    if len(lengths) > 1:
        raise UsageError(f"{kind} has a curve whose lists have the lengths {sorted(lengths)}")


def _right(shape: RecordShape, name: str) -> Check:
    if name == CURVE + EPOCH:
        return is_wholes

    if name.startswith(CURVE):
        return is_reals

    if name.startswith((METRIC, PROXY)):
        return is_real

    return shape.properties.get(name, is_property)


def architecture_of(record: Record) -> Architecture:
    """Return the network of an architecture record, which may have been read before.

    Raises:
        UsageError: Its layers are no network, or do not have its key.
    """
    if isinstance(record["architecture"], Architecture):
        return record["architecture"]

    try:
        network = codec.from_dict(record["architecture"])
    except ArchiveError as error:
        raise UsageError(f"architecture {record['key']} cannot be read: {error}") from None

    if network.key != record["key"]:
        raise UsageError(f"architecture {record['key']} has layers whose key is {network.key}")

    return network


_WRITER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def text_of(record: Any) -> str:
    """Return the line of a record, equal for equal records."""
    try:
        return _WRITER.encode(record)
    except ValueError:
        # Searching each record for such numbers would double the time of a dump.
        return _WRITER.encode(mapped(record, _number_or_name))


def parse_record(path: Path, number: int, line: bytes) -> Record:
    """Return the record of a line.

    Raises:
        UsageError: The line is no JSON object.
    """
    try:
        record = json.loads(line, object_hook=_float_or_map, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        why = "it nests too deep" if isinstance(error, RecursionError) else f"{error}"
        raise UsageError(f"line {number} of {path} is no JSON: {why:.80}") from None

    if not isinstance(record, dict):
        raise UsageError(f"line {number} of {path} must be a JSON object, got {brief(record)}")

    return record


def _number_or_name(value: Any) -> Any:
    return {"float": str(value)} if is_non_finite(value) else value


def _float_or_map(record: Record) -> Any:
    if record.keys() == {"float"} and record["float"] in ("nan", "inf", "-inf"):
        return float(record["float"])

    return record


def _no_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")
