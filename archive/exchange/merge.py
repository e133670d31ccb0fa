"""Merge rules of dump records: the result does not depend on which of two records came first.

Merging is commutative, associative and idempotent for every kind of record, so archives that
exchange dumps in any order agree in the end. Measured values are never replaced. If two records
contradict each other (a study continued in two copies, two results with one id), merging is
refused; the remedy is another name for the study.

    evaluation            the longer text of the environment, which a published file has in part
    agent, evaluation     the earlier time of creation; of a training that paused and continued, the longer one
    task                  nothing to merge: one direction
    study                 the larger budget; of spaces that have grown, the join (`archive.parameters.growth`)
    proposal              the higher rung, then the later state, a retry being later than the failure; of two that wait,
                          the larger value
    worker                the latest heartbeat
    morph                 fewer operations, then alphabetically
    build                 the later one
    all other properties  the properties of both; of two values, the larger
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from archive.errors import SettingsError, StudyConflictError
from archive.exchange.record_schema import Record, text_of
from archive.store.properties import from_json, to_json
from archive.store.records import State
from archive.store.studies.creation import join_settings
from archive.store.studies.deletion import MARK_OF_DELETED
from archive.values import is_number

_SAME_STUDY = ("task", "protocol", "space")
_SAME_SEARCH = ("objective", "direction", "constrained", "operators", "bounds", "seed", "created")
_RENAME = "load the file's under another name with --rename"
_OF_STUDY = re.compile(r"([^#]+)#\d{5,}")  # as `properties.proposal_id` writes it


def merge_records(kind: str, stored: Record, loaded: Record) -> Record:
    """Return the merged record of two records with one identity.

    Raises:
        StudyConflictError: They contradict each other.
    """
    return _RULES[kind](stored, loaded)


def _agent(stored: Record, loaded: Record) -> Record:
    return {**loaded, "created": _earlier([stored["created"], loaded["created"]])}


def _worker(stored: Record, loaded: Record) -> Record:
    return max(
        stored, loaded, key=lambda record: (record["properties"]["heartbeat"], text_of(record))
    )


def _task(stored: Record, loaded: Record) -> Record:
    if stored["direction"] != loaded["direction"]:
        raise StudyConflictError(
            f"the archive has the task {loaded['task']!r} under the protocol "
            f"{loaded['protocol']!r} with direction {stored['direction']}, the file has "
            f"results with direction {loaded['direction']}: load it into another archive"
        )

    return loaded


def _study(stored: Record, loaded: Record) -> Record:
    name = loaded["name"]
    pairs = [(name, stored[name], loaded[name]) for name in _SAME_STUDY]
    for setting in _SAME_SEARCH:
        pairs.append(
            (setting, stored["properties"].get(setting), loaded["properties"].get(setting))
        )

    config = _join_settings(stored, loaded)
    if config is None:
        pairs.append(("space_config", stored["space_config"], loaded["space_config"]))

    for field, ours, theirs in pairs:
        if ours != theirs:
            raise StudyConflictError(
                f"the archive has another study {name!r}, with {field} {ours}, "
                f"the file's has {theirs}: {_RENAME} {name}=NEW"
            )

    properties = _larger(stored["properties"], loaded["properties"])
    return {**loaded, "space_config": config, "properties": properties}


def _join_settings(stored: Record, loaded: Record) -> str | None:
    """Return the settings of the space that both copies of a study have; None if they differ."""
    ours = stored["space_config"]
    theirs = loaded["space_config"]
    if ours == theirs or stored["space"] != loaded["space"]:
        return str(ours)

    try:
        joined = join_settings(stored["space"], from_json(ours), from_json(theirs))
    except SettingsError as error:
        raise StudyConflictError(
            f"the spaces of both copies of the study {loaded['name']!r} have grown apart: "
            f"{error}; {_RENAME} {loaded['name']}=NEW"
        ) from None

    return None if joined is None else to_json(joined)


def _evaluation(stored: Record, loaded: Record) -> Record:
    id_ = loaded["id"]
    for name in ("task", "protocol", "architecture"):
        if stored[name] != loaded[name]:
            raise _contradiction(
                id_, f"the {name} {stored[name]} in the archive, {loaded[name]} in the file"
            )

    ours = stored["properties"]
    theirs = loaded["properties"]
    if _length(ours) != _length(theirs):
        return max(stored, loaded, key=lambda record: _length(record["properties"]))

    # Publication cuts folders and names of hosts out of the environment.
    for name in sorted(ours.keys() & theirs.keys() - {"created", "environment"}):
        if text_of(_without_deletion(name, ours[name])) != text_of(
            _without_deletion(name, theirs[name])
        ):
            raise _contradiction(
                id_,
                f"{name} {_brief(ours[name])} in the archive, {_brief(theirs[name])} in the file",
            )

    saved = [study["weights"] for study in (stored, loaded) if study["weights"]]
    environments = [state["environment"] for state in (ours, theirs) if "environment" in state]
    whole = max(environments, key=lambda text: (len(text), text), default=None)
    return {
        **loaded,
        "properties": {
            **_larger(ours, theirs),
            **({} if whole is None else {"environment": whole}),
            "created": _earlier([ours.get("created"), theirs.get("created")]),
        },
        "weights": max(saved, key=text_of, default=None),
    }


def _without_deletion(name: str, value: Any) -> Any:
    """Return a value without the mark of a reused result of a study that was deleted."""
    return value.removesuffix(MARK_OF_DELETED) if name == "answered_from" else value


def _contradiction(id_: str, how: str) -> StudyConflictError:
    """Return the error about two results of one id; external ones have no study to rename."""
    study = _OF_STUDY.fullmatch(id_)
    why = (
        f"two copies of the study {study[1]!r} diverged; {_RENAME} {study[1]}=NEW"
        if study
        else (
            "it is an external result, imported from two versions of a file; load this one "
            "into another archive"
        )
    )
    return StudyConflictError(f"evaluation {id_} has {how}: {why}")


def _proposal(stored: Record, loaded: Record) -> Record:
    name = f"proposal {loaded['number']} of study {loaded['study']!r}"
    for time in ("architecture", "agent", "result"):
        if stored[time] != loaded[time] and not (
            time == "result" and None in (stored[time], loaded[time])
        ):
            raise StudyConflictError(
                f"{name} has the {time} {stored[time]} in the archive, {loaded[time]} in the file: "
                f"two copies of the study diverged; {_RENAME} {loaded['study']}=NEW"
            )

    ahead = max(stored, loaded, key=_progress)
    properties = ahead["properties"]
    if (
        _rank(stored) == _rank(loaded) == 0
        and _rung(stored) == _rung(loaded)
        and _retries(stored) == _retries(loaded)
    ):
        times = [record["properties"].get("created") for record in (stored, loaded)]
        properties = {
            **_larger(stored["properties"], loaded["properties"]),
            "created": _earlier(times),
        }

    claims: dict[tuple[str, int], Record] = {}
    for worker, time, about in (*stored["claims"], *loaded["claims"]):
        claims[worker, time] = _larger(claims.get((worker, time), {}), about)

    listed = sorted(([*claim, about] for claim, about in claims.items()), key=text_of)
    return {**ahead, "properties": properties, "claims": listed}


def _rank(record: Record) -> int:
    state = State(record["properties"]["state"])
    values = record["properties"].get("rung_values") or ()
    rung = _rung(record)
    if state is State.PRUNED and len(values) == rung > 0:
        # A promotion that was given up has the result of the rung before, and may be tried again
        # like a failure.
        return 1

    return 2 if state.evaluated else 1 if state is State.FAILED else 0


def _progress(record: Record) -> tuple[int, bool, int, int, int, bool, str]:
    properties = record["properties"]
    rank = _rank(record)
    finished = properties.get("finished") or 0
    has_result = record["result"] is not None
    # A retry comes after the failure that it follows; a result comes after all.
    return (
        _rung(record),
        rank == 2,
        _retries(record),
        rank,
        finished,
        has_result,
        text_of(properties),
    )


def _retries(record: Record) -> int:
    return len(record["properties"].get("retried") or ())


def _rung(record: Record) -> int:
    rung = record["properties"].get("rung")
    return rung if isinstance(rung, int) else 0


def _length(evaluation: Record) -> tuple[bool, int]:
    """Return the length of a training that may have paused at a rung and continued."""
    if not evaluation.get("partial"):
        return True, 0

    return False, evaluation.get("epochs") or 0


def _morph(stored: Record, loaded: Record) -> Record:
    return min(stored, loaded, key=lambda record: (len(record["operations"]), record["operations"]))


def _build(stored: Record, loaded: Record) -> Record:
    return max(stored, loaded, key=lambda record: (record["properties"]["built"], text_of(record)))


def _with_properties(stored: Record, loaded: Record) -> Record:
    return {**loaded, "properties": _larger(stored["properties"], loaded["properties"])}


def _distances(stored: Record, loaded: Record) -> Record:
    """Merge the distances from one network, pair by pair."""
    return {
        **loaded,
        "to": {
            key: _larger(stored["to"].get(key, {}), kinds) for key, kinds in loaded["to"].items()
        },
    }


_RULES: dict[str, Callable[[Record, Record], Record]] = {
    "agent": _agent,
    "worker": _worker,
    "task": _task,
    "study": _study,
    "warm_start": _with_properties,
    "architecture": _with_properties,
    "morph": _morph,
    "build": _build,
    "evaluation": _evaluation,
    "proposal": _proposal,
    "distances": _distances,
    "proxies": _with_properties,
}


def _larger(ours: Record, theirs: Record) -> Record:
    """Return the properties of both records; of two values, the larger."""
    larger = {}
    for name in sorted(ours.keys() | theirs.keys()):
        values = [state[name] for state in (ours, theirs) if name in state]
        larger[name] = max(values, key=_order)

    return larger


def _order(value: Any) -> tuple[Any, ...]:
    """Return the sort key of a value: numbers by size, NaN last; equal only for equal texts."""
    if is_number(value):
        unknown = math.isnan(value)
        return 0, unknown, 0.0 if unknown else value, text_of(value)

    return 1, False, 0.0, text_of(value)


def _earlier(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _brief(value: Any) -> str:
    text = text_of(value)
    return text if len(text) <= 40 else text[:37] + "..."
