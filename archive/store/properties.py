"""Conversion between records and properties of nodes, and the ids of nodes.

Nested settings are JSON text in the database. A learning curve is a set of parallel list properties
`curve_<metric>`, final metrics are flat properties `metric_<name>`, and zero-cost proxies
`proxy_<name>`, so that a Cypher query can read each by name.

Curves of running trials are lists of a proposal, which reports extend:

    stored             a b c d e
    report from 4              E f g        stored afterwards: a b c d E f g

A report sends only the entries that the store may lack. Those from its begin on are replaced, so
that a repeated report, or one whose predecessor was stored without an answer, has the same effect.
A report that begins after the end of the stored lists leaves them unchanged; its sender then sends
the whole curve.

Both servers write a changed list as a whole, and yet an appended entry costs them less than a new
list. Milliseconds of a report of four metrics, with the server's processor time, on a machine
with other work (2026-11-23, two cores):

| epochs | embedded: whole list | appended | Neo4j 5: whole list | appended |
|---|---|---|---|---|
| 100 | 17 (5) | 14 (3) | 16 (7) | 13 (6) |
| 1,000 | 23 (6) | 16 (5) | 26 (9) | 18 (7) |
| 10,000 | 103 (21) | 29 (10) | 120 (29) | 72 (31) |

Lists in parts would cost less beyond ten thousand epochs only, and every query for a curve would
have to join them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from archive.errors import UsageError
from archive.store.records import (
    PROVENANCE,
    Constraint,
    Curve,
    Evaluation,
    Objective,
    Proposal,
    Result,
    State,
    Study,
)
from archive.values import checked_seconds, whole_number

if TYPE_CHECKING:
    import neo4j

    from archive.architecture.graph import Architecture

Row = Mapping[str, Any]

CURVE = "curve_"
UNSAVED_WEIGHTS = "weights_not_saved"
"""Key of an evaluation's environment: why its weights could not be saved."""
METRIC = "metric_"
PROXY = "proxy_"
EPOCH = "epoch"


def task_id(task: str, protocol: str) -> str:
    r"""Return the id of the node of a task under a protocol, `task@protocol`.

    An `@` in the task's name is `\@`.
    """
    # The first bare @ ends the task's name, so that no two pairs of names give one id.
    escaped = task.replace("\\", "\\\\").replace("@", "\\@")
    return f"{escaped}@{protocol}"


def space_id(space: str, config: str) -> str:
    """Return the id of the node of a space; `config` is the stored text of its settings."""
    return f"{space} {config}"


def proposal_id(study: str, number: int) -> str:
    """Return the id of a study's proposal; ids of one study sort by number up to 99,999."""
    return f"{study}#{number:05d}"


def whole_id(name: str) -> str:
    """Return the id of a proposal, whose number may be written without its zeros.

    Raises:
        UsageError: The text is not of the form STUDY#NUMBER.
    """
    study = study_of(name)
    number = whole_number(name.rpartition("#")[2])
    if not study or number is None:
        raise UsageError(f"a proposal is named STUDY#NUMBER, got {name!r:.80}")

    return proposal_id(study, number)


def study_of(id_: str) -> str:
    """Return the name of the study in the id of a proposal.

    It is also the id of its evaluation.
    """
    return id_.rpartition("#")[0]


def number_of(id_: str) -> int:
    """Return the number of a proposal in its study, from the proposal's id."""
    return int(id_.rpartition("#")[2])


def plain(result: neo4j.Result) -> list[dict[str, Any]]:
    """Return the rows of a query whose values are numbers, text, lists and maps.

    Faster than `neo4j.Result.data`, which searches every list and map for nodes.
    """
    columns = result.keys()
    return [dict(zip(columns, row.values(), strict=True)) for row in result]


def read_column(rows: Iterable[Row], name: str) -> list[Any]:
    """Return one column of rows."""
    return list(map(itemgetter(name), rows))


def metric_properties(measures: Iterable[Objective | Constraint]) -> list[str]:
    """Return the properties of the metrics of objectives or constraints."""
    return [METRIC + measure.name for measure in measures]


def to_json(settings: Mapping[str, Any]) -> str:
    """Return the stored text of settings, equal for equal settings."""
    return json.dumps(settings, sort_keys=True, default=_plain)


def from_json(text: str | None) -> dict[str, Any]:
    """Return settings from their stored text; empty if there is none."""
    # Shortcut for the most frequent text: a history has a hundred thousand of them.
    return json.loads(text) if text and text != "{}" else {}


def curve_properties(curve: Curve, begin: int = 0) -> dict[str, list[float] | list[int]]:
    """Return a curve as parallel list properties, `curve_epoch` among them.

    Args:
        curve: The whole curve.
        begin: Number of entries of each list to leave out.

    Raises:
        UsageError: The lists differ in length.
    """
    lengths = set(map(len, curve.values()))
    if len(lengths) > 1:
        described = ", ".join(f"{name} {len(values)}" for name, values in sorted(curve.items()))
        raise UsageError(f"the lists of a curve must have one length, got {described}")

    count = lengths.pop() if lengths else 0
    epochs = list(map(int, curve.get(EPOCH, range(1, count + 1))[begin:]))
    # A list that mixes integers and floats cannot be stored on Neo4j, nor one that holds a null.
    lists = {}
    for name, values in curve.items():
        if name != EPOCH:
            lists[CURVE + name] = _floats(values[begin:])

    return {CURVE + EPOCH: epochs, **lists} if count else {}


def latest(curve: Curve) -> dict[str, float]:
    """Return the last value of each list that is not NaN.

    An epoch may lack metrics that others have.
    """
    last = {}
    for name, values in curve.items():
        if values:
            last[name] = next((value for value in reversed(values) if value == value), values[-1])

    return last


def result_properties(result: Result) -> dict[str, Any]:
    """Return the properties of the Evaluation that a result becomes.

    Raises:
        UsageError: The lists of its curve differ in length, a step is no whole number that a server
            holds, its seconds are no duration, or its provenance has another name.
    """
    if unknown := sorted(result.provenance.keys() - set(PROVENANCE)):
        raise UsageError(
            f"the provenance of a result has {', '.join(PROVENANCE)}, got {unknown[0]!r:.60}"
        )

    curve = curve_properties(result.curve)
    return {
        "value": float(result.value),
        "epochs": _epochs(result, curve),
        "seconds": checked_seconds(result.seconds),
        "seed": None if result.seed is None else int(result.seed),
        "device": result.device,
        "hardware": result.hardware,
        "environment": to_json(result.environment),
        "answered_from": result.answered_from,
        "partial": True if result.partial else None,
        **result.provenance,
        **{METRIC + name: float(value) for name, value in result.metrics.items()},
        **curve,
    }


def with_prefix(prefix: str, properties: Row) -> dict[str, Any]:
    """Return the properties whose names begin with a prefix, without it, sorted by name."""
    named = {}
    for name in sorted(properties):
        if name.startswith(prefix):
            named[name[len(prefix) :]] = properties[name]

    return named


def study_from(row: Row) -> Study:
    """Return a Study from the properties of its node and its neighbours.

    These are `task`, `protocol`, `space` and `space_config`.
    """
    node = row["study"]
    return Study(
        name=node["name"],
        task=row["task"],
        protocol=row["protocol"],
        space=row["space"],
        objective=node["objective"],
        direction=node["direction"],
        budget=node["budget"],
        config=from_json(node.get("config")),
        space_config=from_json(row["space_config"]),
        seed=node.get("seed", 0),
        created=node["created"],
        # A single objective is stored without these lists. A user may have written lists of
        # different lengths.
        further=tuple(map(Objective, node.get("objectives") or (), node.get("directions") or ()))[
            1:
        ],
        constraints=tuple(
            map(
                Constraint,
                *(node.get(name) or () for name in ("constrained", "operators", "bounds")),
            )
        ),
    )


_AS_STORED = (
    "id",
    "study",
    "number",
    "functional_key",
    "agent",
    "acquisition",
    "mean",
    "std",
    "fidelity",
    "worker",
    "lease_until",
    "reason",
    "created",
    "started",
    "finished",
    "seconds",
    "request",
    "motivation",
    "cause",
    "memory_bytes",
)


def proposal_from(node: Row) -> Proposal:
    """Return a Proposal from the properties of its node."""
    stored: dict[str, Any] = {name: node.get(name) for name in _AS_STORED}
    return Proposal(
        **stored,
        state=State(node["state"]),
        architecture_key=node["architecture"],
        priority=node.get("priority", 0.0),
        hyperparameters=from_json(node.get("hyperparameters")),
        inspired_by=tuple(node.get("inspired_by") or ()),
        attempts=node.get("attempts", 0),
        rung=node.get("rung") or 0,
        refused_by=tuple(node.get("refused_by") or ()),
        alone=bool(node.get("alone")),
        repeat=bool(node.get("repeat")),
        curve=with_prefix(CURVE, node),
        based_on=from_json(node.get("based_on")),
    )


def evaluation_from(row: Row, architecture: Architecture) -> Evaluation:
    """Return an Evaluation from the properties of its node.

    Arguments are also the names of its neighbours and its architecture.
    """
    node = row["evaluation"]
    # Curves and metrics in one pass, for speed: a history has a hundred thousand evaluations.
    named: dict[str, dict[str, Any]] = {METRIC: {}, CURVE: {}}
    for name in sorted(node):
        prefix, underscore, rest = name.partition("_")
        if underscore and prefix + underscore in named:
            named[prefix + underscore][rest] = node[name]

    return Evaluation(
        id=node["id"],
        study=row["study"],
        number=row["number"],
        task=row["task"],
        protocol=row["protocol"],
        architecture=architecture,
        value=node["value"],
        direction=row["direction"] or "maximise",
        agent=row["agent"],
        metrics=named[METRIC],
        curve=named[CURVE],
        epochs=node.get("epochs"),
        seconds=node.get("seconds"),
        seed=node.get("seed"),
        device=node.get("device"),
        hardware=node.get("hardware"),
        created=node.get("created"),
        hyperparameters=from_json(row.get("hyperparameters")),
        answered_from=node.get("answered_from"),
        partial=bool(node.get("partial")),
        rung_constrained=tuple(row.get("rung_constrained") or ()),
        provenance=_provenance(node),
    )


def _provenance(node: Row) -> dict[str, str]:
    if "source" not in node:
        return {}

    return {name: node[name] for name in PROVENANCE if name in node}


def _epochs(result: Result, curve: Row) -> int | None:
    if result.epochs is None:
        return len(curve[CURVE + EPOCH]) if curve else None

    return int(result.epochs)


def _floats(values: Sequence[float | None]) -> list[float]:
    floats = []
    for value in values:
        floats.append(math.nan if value is None else float(value))

    return floats


def _plain(value: Any) -> Any:
    """Convert numpy scalars and arrays, tuples of them and paths to JSON values."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def curve_reaches(node: str, begin: str, names: Sequence[str]) -> str:
    """Return the condition that the stored lists reach to the begin of a report.

    Args:
        node: Variable of the proposal.
        begin: Cypher expression for the number of entries before the report's first one.
        names: Names of the lists.
    """
    return " AND ".join(f"size(coalesce({node}.{quoted(name)}, [])) >= {begin}" for name in names)


def extend_curve(node: str, begin: str, entries: str, names: Sequence[str]) -> str:
    """Return the assignments that extend the lists, for `SET`.

    Args:
        node: Variable of the proposal.
        begin: Cypher expression for the number of stored entries that stay.
        entries: Cypher expression for a map of the new entries by name.
        names: Names of the lists.
    """
    parts = (
        f"{node}.{name} = {node}.{name}[0..{begin}] + {entries}.{name}"
        for name in map(quoted, names)
    )
    return ", ".join(parts)


def quoted(name: str) -> str:
    """Return the name of a property in backticks: the name of a metric may be any text."""
    return "`" + name.replace("`", "``") + "`"
