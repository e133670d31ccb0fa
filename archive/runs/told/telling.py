"""Runs that a program tells of when they have ended, such as those of a language model.

The run takes the way of recorded runs: a folder on disk first, then the archive. What cannot be a run
is refused before the folder is made. A run that the database cannot take now stays on disk, and is
delivered with the next one.

The id of a run is made of its token and of what is told, so that a repeated call adds nothing, on
whichever machine; a token that stands for two runs is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.agents.ask_tell.enqueueing import LANGUAGE_MODEL
from archive.architecture import codec
from archive.errors import ArchiveError, QueryError, StoreError, UsageError, first_line
from archive.queries.runs import TriedRun, runs_by_id
from archive.queue.causes import Cause
from archive.runs.code_state import difference_text, told_changes
from archive.runs.delivery import deliver
from archive.runs.graphs import graphs_of
from archive.runs.life_cycle import end, masked
from archive.runs.measurements import (
    Measurements,
)
from archive.runs.parents import require_parent
from archive.runs.run_folder import RunFolder, RunRecord, now, runs_of
from archive.runs.secrets import Secrets
from archive.runs.told.told_run import ToldRun, check, measure
from archive.spaces.named_values import values_of_graph
from archive.values import storable

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.runs.parents import ParentRun

MOST_REASON = 2000
UNNAMED = "program"
"""Name of a program that is not told."""


@dataclass(frozen=True)
class ToldOutcome:
    """A run that was told.

    Attributes:
        id: Its id.
        new: Whether this call added it.
        run: The run as the archive has it; null where it is still on disk.
        note: Why it is on disk alone; null where the archive has it.
    """

    id: str
    new: bool
    run: TriedRun | None
    note: str | None


def record_told(archive: Archive, told: ToldRun) -> ToldOutcome:
    """Put a run on record that a program tells of.

    Args:
        archive: The archive.
        told: The run.

    Raises:
        UsageError: What is told is no run, its study cannot have it, or its token stands for another
            run.
        StoreError: Its folder cannot be made.
    """
    runs = runs_of(archive.connection.settings.home)
    identifier = _identify(told, runs)
    folder = RunFolder(runs / identifier)
    record = folder.read()
    new = record is None
    if record is None:
        measured = measure(told)
        study = check(archive, told, runs, measured)
        record = _record(told, identifier, measured)
        if study is not None:
            parent = require_parent(archive, folder, record)
            record.program = told.program or _program_of(parent)
            # What the study cannot have is refused before anything is written.
            graphs_of(archive, study, record, _document(told), parent)

        if not folder.path.exists():
            folder = RunFolder.create(runs, identifier)

        if told.network is not None:
            folder.write_network(_document(told) or {})

        end(folder, record)

    return _deliver(archive, folder, record, new=new)


def _deliver(archive: Archive, folder: RunFolder, record: RunRecord, *, new: bool) -> ToldOutcome:
    """Bring a run from its folder to the archive, as far as that is possible now."""
    try:
        proposal = deliver(archive, folder, record)
    except (StoreError, OSError) as error:
        if isinstance(error, QueryError):
            _discard(folder, new=new)
            raise

        note = (
            f"the run is kept in {folder.path} until the database answers: {first_line(error, 300)}"
        )
        return ToldOutcome(record.id, new, None, note)
    except ArchiveError:
        _discard(folder, new=new)
        raise

    if proposal is None:
        note = (
            f"the run is kept in {folder.path}: a study begins with its first run that has a metric"
        )
        return ToldOutcome(record.id, new, None, note)

    (run,) = runs_by_id(archive.connection, [proposal.id])
    return ToldOutcome(record.id, new, run, None)


def _discard(folder: RunFolder, *, new: bool) -> None:
    """Delete the folder of a run that this call has made: the caller corrects it, and tells it again."""
    if new:
        shutil.rmtree(folder.path, ignore_errors=True)
        folder.set_delivered()


def _identify(told: ToldRun, runs: Path) -> str:
    """Return the id of a run.

    Raises:
        UsageError: Its token stands for another run.
    """
    document = {**vars(told), "network": _key(told), "token": None}
    content = _digest(document)
    if told.token is None:
        return f"told-{content}"

    token = _digest([told.study, told.token])
    identifier = f"told-{token}-{content}"
    for other in runs.glob(f"told-{token}-*"):
        if other.name != identifier:
            record = RunFolder(other).read()
            named = other.name if record is None else record.proposal or record.id
            raise UsageError(
                f"the token {told.token!r:.80} stands for another run, {named}: give each run its own"
            )

    return identifier


def _key(told: ToldRun) -> str | None:
    return None if told.network is None else told.network.key


def _digest(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha1(text.encode(errors="replace"), usedforsecurity=False).hexdigest()[:16]


def _document(told: ToldRun) -> dict[str, Any] | None:
    """Return the network of a run as its folder has it."""
    if told.network is None:
        return None

    network = told.network.network.canonical
    return {"architecture": codec.to_dict(network), "key": network.functional_key}


def _record(told: ToldRun, identifier: str, measured: Measurements) -> RunRecord:
    """Return the record of a run, with its secrets masked."""
    secrets = Secrets.find(os.environ)
    finished = now()
    started = finished - round(1000 * (told.seconds or 0.0))

    def mask(text: str | None) -> str | None:
        return None if text is None else secrets.mask(storable(text))

    reason = mask(told.reason)
    return RunRecord(
        id=identifier,
        study=told.study,
        program=told.program or UNNAMED,
        values=masked(told.values, secrets),
        seed=told.seed,
        motivation=mask(told.motivation),
        parent=told.parent,
        objective=told.objective,
        direction=told.direction,
        task=told.task,
        started=max(0, started),
        finished=finished,
        reason=None if reason is None else reason[:MOST_REASON],
        cause=None if reason is None else Cause.TRAINING.value,
        metrics=measured.result(),
        curve=measured.curve(),
        diff=_difference(told.diff, secrets),
        recorder=LANGUAGE_MODEL,
        model=told.model,
    )


def _difference(diff: str | None, secrets: Secrets) -> str | None:
    """Return a difference as it is kept; None where it changes nothing."""
    changes = [] if diff is None else told_changes(storable(diff))
    return difference_text(changes, secrets) or None


def _program_of(parent: ParentRun | None) -> str:
    """Return the name of the program of a parent."""
    if parent is None:
        return UNNAMED

    return str(values_of_graph(parent.architecture).get("program", UNNAMED))
