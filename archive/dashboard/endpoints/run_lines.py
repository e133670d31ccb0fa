"""Runs as the page lists them: what each was given, changed of its parent, and brought."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archive.queries.runs import TriedRun, runs_by_id
from archive.runs.texts.plain_text import cut_line, plain_text
from archive.store.properties import METRIC, proposal_id, study_of
from archive.store.studies.rows import PARAMETER, SOME, read_rows
from archive.values import setting_text, whole_number

if TYPE_CHECKING:
    from archive.api import Archive

MOST_TEXT = 300
"""Letters of a reason, or of another text in a list."""

MOST_VALUE = 80
"""Letters of a value."""

MOST_STEPS = 8
"""Changes of a run that a list names."""


def brief_text(text: str | None, letters: int = MOST_TEXT) -> str | None:
    """Return a text of a run in one line of bounded length; None without one."""
    if not text or not text.strip():
        return None

    line = " ".join(plain_text(text[: 4 * letters]).split())
    return line if len(line) <= letters and len(text) <= 4 * letters else f"{line[:letters]} …"


def brief_value(value: Any) -> Any:
    """Return a value of bounded length; numbers stay."""
    if value is None or isinstance(value, bool | int | float):
        return value

    return cut_line(plain_text(setting_text(value)), MOST_VALUE)


def steps_of(run: TriedRun) -> list[dict[str, Any]]:
    """Return what a run changes of its parent: values, the network in words, source files."""
    steps: list[dict[str, Any]] = []
    for change in run.changes:
        steps.append(
            {
                "name": cut_line(change.name, MOST_VALUE),
                "first": brief_value(change.first),
                "second": brief_value(change.second),
            }
        )

    for words in run.network_changes:
        steps.append({"network": cut_line(words, MOST_VALUE)})

    for file in run.changed:
        steps.append({"file": cut_line(plain_text(file), MOST_VALUE)})

    return steps


def parent_number(study: str, parent: str | None) -> int | None:
    """Return the number of a parent in a study; None without one, or in another study."""
    if parent is None or study_of(parent) != study:
        return None

    return whole_number(parent.rpartition("#")[2])


def describe_runs(
    archive: Archive, study: str, numbers: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """Return runs of a study in short, by number.

    Args:
        archive: The archive.
        study: Name of the study.
        numbers: Numbers of the runs.
    """
    ids = [proposal_id(study, number) for number in numbers]
    runs = {run.run: run for run in runs_by_id(archive.connection, ids)} if ids else {}
    lines = {}
    for number, identifier in zip(numbers, ids, strict=True):
        if identifier in runs:
            lines[number] = describe_run(number, runs[identifier])

    return lines


def describe_run(number: int, run: TriedRun) -> dict[str, Any]:
    """Return a run in short."""
    steps = steps_of(run)
    return {
        "number": number,
        "run": run.run,
        "state": run.state,
        "value": run.value,
        "parent": run.parent,
        "parent_number": parent_number(run.study, run.parent),
        "gain": run.gain,
        "gain_low": run.gain_low,
        "gain_high": run.gain_high,
        "motivation": brief_text(run.motivation),
        "steps": steps[:MOST_STEPS],
        "further_steps": max(0, len(steps) - MOST_STEPS),
        "program": brief_text(run.program),
        "seed": run.seed,
        "seconds": run.seconds,
        "started": run.started,
        "reason": brief_text(run.reason),
    }


def chosen_cells(
    archive: Archive, study: str, numbers: Sequence[int], names: Collection[str]
) -> Mapping[int, dict[str, Any]]:
    """Return further columns of some runs by number: values, metrics, commit and branch.

    Args:
        archive: The archive.
        study: Name of the study.
        numbers: Numbers of the runs.
        names: `parameter_NAME`, `metric_NAME`, `code_commit` or `code_branch`.
    """
    ids = [proposal_id(study, number) for number in numbers]
    if not ids or not names:
        return {}

    columns = ("number", *names)
    rows = archive.connection.read(lambda tx: read_rows(tx, columns, SOME, ids=ids))
    cells = {}
    for number, *values in rows:
        cells[number] = dict(zip(names, map(brief_value, values), strict=True))

    return cells


def is_cell(name: str) -> bool:
    """Return whether a column is one of `chosen_cells`."""
    return name in ("code_commit", "code_branch") or name.startswith((PARAMETER, METRIC))
