"""Merge rules of dump records: the result does not depend on which of two records came first.

Merging is commutative, associative and idempotent for every kind of record, so archives that exchange dumps in any
order agree in the end. Measured values are never replaced. If two records contradict each other (a study continued in
two copies, two results with one id), merging is refused; the remedy is another name for the study.

    agent, evaluation     the earlier time of creation; of a training that paused and continued, the longer one
    task                  nothing to merge: one direction
    study                 the larger budget
    proposal              the higher rung, then the later state, a retry being later than the failure; of two that wait,
                          the larger value
    worker                the latest heartbeat
    morph                 fewer operations, then alphabetically
    all other properties  those of both; of two values, the larger
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from archive.errors import StudyConflictError
from archive.exchange.record_lines import text_of
from archive.exchange.record_schema import Record
from archive.store.records import State

_SAME_STUDY = ("task", "protocol", "space", "space_config")
_SAME_SEARCH = ("objective", "direction", "seed", "created")
_RENAME = "load the file's under another name with --rename"
_OF_STUDY = re.compile(r"([^#]+)#\d{5,}")  # as `rows.proposal_id` writes it


def merged(kind: str, there: Record, given: Record) -> Record:
    """Return what two records of one identity become.

    Raises:
        StudyConflictError: They cannot both be true.
    """
    return _RULES[kind](there, given)


def _agent(there: Record, given: Record) -> Record:
    return {**given, "created": _earlier([there["created"], given["created"]])}


def _worker(there: Record, given: Record) -> Record:
    return max(there, given, key=lambda record: (record["properties"]["heartbeat"], text_of(record)))


def _task(there: Record, given: Record) -> Record:
    if there["direction"] != given["direction"]:
        raise StudyConflictError(
            f"the archive has the task {given['task']!r} under the protocol {given['protocol']!r} with direction "
            f"{there['direction']}, the file has results with direction {given['direction']}: load it into another "
            "archive"
        )
    return given


def _study(there: Record, given: Record) -> Record:
    name = given["name"]
    pairs = [(at, there[at], given[at]) for at in _SAME_STUDY]
    pairs += [(at, there["properties"].get(at), given["properties"].get(at)) for at in _SAME_SEARCH]
    for at, ours, theirs in pairs:
        if ours != theirs:
            raise StudyConflictError(
                f"the archive has another study {name!r}, with {at} {ours}, the file's has {theirs}: "
                f"{_RENAME} {name}=NEW"
            )
    return {**given, "properties": _larger(there["properties"], given["properties"])}


def _evaluation(there: Record, given: Record) -> Record:
    id_ = given["id"]
    for at in ("task", "protocol", "architecture"):
        if there[at] != given[at]:
            raise _apart(id_, f"the {at} {there[at]} in the archive, {given[at]} in the file")
    ours, theirs = there["properties"], given["properties"]
    if _length(ours) != _length(theirs):
        return max(there, given, key=lambda record: _length(record["properties"]))
    for at in sorted(ours.keys() & theirs.keys() - {"created"}):
        if text_of(ours[at]) != text_of(theirs[at]):
            raise _apart(id_, f"{at} {_brief(ours[at])} in the archive, {_brief(theirs[at])} in the file")
    saved = [each["checkpoint"] for each in (there, given) if each["checkpoint"]]
    return {
        **given,
        "properties": {**_larger(ours, theirs), "created": _earlier([ours.get("created"), theirs.get("created")])},
        "checkpoint": max(saved, key=text_of, default=None),
    }


def _apart(id_: str, how: str) -> StudyConflictError:
    """Word why two results of one id cannot both be true; those of others have no study that could be renamed."""
    study = _OF_STUDY.fullmatch(id_)
    why = (
        f"two copies of the study {study[1]!r} went on apart; {_RENAME} {study[1]}=NEW"
        if study
        else ("it is a result of others, imported from two versions of their file; load this one into another archive")
    )
    return StudyConflictError(f"evaluation {id_} has {how}: {why}")


def _proposal(there: Record, given: Record) -> Record:
    name = f"proposal {given['number']} of study {given['study']!r}"
    for at in ("architecture", "agent", "result"):
        if there[at] != given[at] and not (at == "result" and None in (there[at], given[at])):
            raise StudyConflictError(
                f"{name} has the {at} {there[at]} in the archive, {given[at]} in the file: two copies of the study "
                f"went on apart; {_RENAME} {given['study']}=NEW"
            )
    ahead = max(there, given, key=_progress)
    properties = ahead["properties"]
    if _rank(there) == _rank(given) == 0 and _rung(there) == _rung(given) and _retries(there) == _retries(given):
        times = [each["properties"].get("created") for each in (there, given)]
        properties = {**_larger(there["properties"], given["properties"]), "created": _earlier(times)}
    claims: dict[tuple[str, int], Record] = {}
    for worker, at, about in (*there["claims"], *given["claims"]):
        claims[worker, at] = _larger(claims.get((worker, at), {}), about)
    listed = sorted(([*claim, about] for claim, about in claims.items()), key=text_of)
    return {**ahead, "properties": properties, "claims": listed}


def _rank(record: Record) -> int:
    state = State(record["properties"]["state"])
    return 2 if state.evaluated else 1 if state is State.FAILED else 0


def _progress(record: Record) -> tuple[int, bool, int, int, int, bool, str]:
    properties, rank = record["properties"], _rank(record)
    finished, has_result = properties.get("finished") or 0, record["result"] is not None
    # A retry comes after the failure that it follows; a result comes after all.
    return _rung(record), rank == 2, _retries(record), rank, finished, has_result, text_of(properties)


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


def _morph(there: Record, given: Record) -> Record:
    return min(there, given, key=lambda record: (len(record["operations"]), record["operations"]))


def _with_properties(there: Record, given: Record) -> Record:
    return {**given, "properties": _larger(there["properties"], given["properties"])}


def _distances(there: Record, given: Record) -> Record:
    """Merge the distances from one network, pair by pair."""
    return {**given, "to": {key: _larger(there["to"].get(key, {}), kinds) for key, kinds in given["to"].items()}}


_RULES: dict[str, Callable[[Record, Record], Record]] = {
    "agent": _agent,
    "worker": _worker,
    "task": _task,
    "study": _study,
    "warm_start": _with_properties,
    "architecture": _with_properties,
    "morph": _morph,
    "evaluation": _evaluation,
    "proposal": _proposal,
    "distances": _distances,
}


def _larger(ours: Record, theirs: Record) -> Record:
    """Return the properties of both, of two values the larger."""
    return {
        name: max((each[name] for each in (ours, theirs) if name in each), key=_order)
        for name in sorted(ours.keys() | theirs.keys())
    }


def _order(value: Any) -> tuple[Any, ...]:
    """Order all values there are, numbers by their size and NaN last; equal only where the text is."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        unknown = math.isnan(value)
        return 0, unknown, 0.0 if unknown else value, text_of(value)
    return 1, False, 0.0, text_of(value)


def _earlier(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _brief(value: Any) -> str:
    text = text_of(value)
    return text if len(text) <= 40 else text[:37] + "..."
