"""Runs that a program, such as a language model, tells of when they have ended.

The run takes the way of recorded runs: a folder on disk first, then the archive. What cannot be a run
is refused before the folder is made. A run that the database cannot take now stays on disk, and is
delivered with the next one; what its study cannot have is then seen only at the delivery.

The id of a run is made of its token and of what is told, so that a repeated call adds nothing, on
whichever machine; a token that stands for two runs is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.agents.ask_tell.enqueueing import LANGUAGE_MODEL
from archive.architecture import codec
from archive.errors import ArchiveError, QueryError, StoreError, UsageError, first_line
from archive.queries.runs import TriedRun, runs_by_id
from archive.queue.causes import Cause
from archive.runs.code_state import difference_text, told_changes
from archive.runs.delivery import deliver
from archive.runs.identity.graphs import graphs_of, program_of
from archive.runs.identity.parents import require_parent
from archive.runs.life_cycle import end, fingerprint, masked, start_delivery
from archive.runs.run_folder import RunFolder, RunRecord, now, pending_runs, runs_of
from archive.runs.secrets import Secrets
from archive.runs.told.told_run import ToldRun, check, check_in_study, measure
from archive.values import storable

if TYPE_CHECKING:
    from archive.api import Archive

MOST_REASON = 2000


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


def record_told(archive: Archive, report: ToldRun) -> ToldOutcome:
    """Put a run on record that a program tells of.

    Args:
        archive: The archive.
        report: The run.

    Raises:
        UsageError: What is told is no run, its study cannot have it, or its token stands for another
            run.
        StoreError: Its folder cannot be made.
    """
    settings = archive.connection.settings
    runs = runs_of(settings.home)
    folder = RunFolder(runs / _identify(report, runs))
    record = folder.read()
    new = record is None
    if record is None:
        record = _record(report, folder.id, runs)
        try:
            _check_in_study(archive, report, folder, record)
        except (StoreError, OSError) as error:
            if isinstance(error, QueryError):
                raise

            _write(report, folder, record)
            return _kept(record, folder, _unreachable(error), new=True)

        _write(report, folder, record)

    outcome = _deliver(archive, folder, record, new=new)
    if outcome.run is not None and next(pending_runs(runs), None) is not None:
        # Runs that were kept while the database was away.
        start_delivery(settings)

    return outcome


def keep_told(home: Path, report: ToldRun, error: ArchiveError) -> ToldOutcome:
    """Keep a run that a program tells of while the archive cannot be opened.

    Args:
        home: Home of the archive.
        report: The run.
        error: Why the archive cannot be opened.

    Raises:
        UsageError: What is told is no run, or its token stands for another run.
        StoreError: Its folder cannot be made.
    """
    runs = runs_of(home)
    folder = RunFolder(runs / _identify(report, runs))
    record = folder.read()
    new = record is None
    if record is None:
        record = _record(report, folder.id, runs)
        _write(report, folder, record)

    return _kept(record, folder, _unreachable(error), new=new)


def _check_in_study(
    archive: Archive, report: ToldRun, folder: RunFolder, record: RunRecord
) -> None:
    """Check that the study of a run can have it, before anything is written.

    Raises:
        UsageError: It cannot.
    """
    study = check_in_study(archive, report, record.metrics)
    if study is None:
        return

    parent = require_parent(archive, folder, record)
    named = replace(record, program=program_of(record, parent))
    graphs_of(archive, study, named, _document(report), parent)


def _write(report: ToldRun, folder: RunFolder, record: RunRecord) -> None:
    """Write the folder of a run that has ended."""
    if not folder.path.exists():
        folder = RunFolder.create(folder.path.parent, folder.id)

    if report.network is not None:
        folder.write_network(_document(report) or {})

    end(folder, record, fingerprint(record))


def _unreachable(error: Exception) -> str:
    return f"until the database answers, and is then delivered with the next run: {first_line(error, 300)}"


def _kept(record: RunRecord, folder: RunFolder, reason: str, *, new: bool) -> ToldOutcome:
    """Return a run that is on disk alone."""
    return ToldOutcome(record.id, new, None, f"the run is kept in {folder.path} {reason}")


def _deliver(archive: Archive, folder: RunFolder, record: RunRecord, *, new: bool) -> ToldOutcome:
    """Bring a run from its folder to the archive, as far as that is possible now."""
    try:
        proposal = deliver(archive, folder, record)
    except (StoreError, OSError) as error:
        if isinstance(error, QueryError):
            _discard(folder, new=new)
            raise

        return _kept(record, folder, _unreachable(error), new=new)
    except ArchiveError:
        _discard(folder, new=new)
        raise

    if proposal is None:
        reason = "until its study begins, with its first run that has a metric"
        return _kept(record, folder, reason, new=new)

    (run,) = runs_by_id(archive.connection, [proposal.id])
    return ToldOutcome(record.id, new, run, None)


def _discard(folder: RunFolder, *, new: bool) -> None:
    """Delete the folder of a run that this call has made: the caller corrects it, and tells it again."""
    if new:
        shutil.rmtree(folder.path, ignore_errors=True)
        folder.set_delivered()


def _identify(report: ToldRun, runs: Path) -> str:
    """Return the id of a run.

    Raises:
        UsageError: Its token stands for another run.
    """
    document = {**vars(report), "network": _key(report), "token": None}
    content = _digest(document)
    if report.token is None:
        return f"told-{content}"

    token = _digest([report.study, report.token])
    identifier = f"told-{token}-{content}"
    for other in runs.glob(f"told-{token}-*"):
        if other.name != identifier:
            record = RunFolder(other).read()
            named = other.name if record is None else record.proposal or record.id
            raise UsageError(
                f"the token {report.token!r:.80} stands for another run, {named}: give each run its own"
            )

    return identifier


def _key(report: ToldRun) -> str | None:
    return None if report.network is None else report.network.key


def _digest(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha1(text.encode(errors="replace"), usedforsecurity=False).hexdigest()[:16]


def _document(report: ToldRun) -> dict[str, Any] | None:
    """Return the network of a run as its folder has it."""
    if report.network is None:
        return None

    network = report.network.network.canonical
    return {"architecture": codec.to_dict(network), "key": network.functional_key}


def _record(report: ToldRun, identifier: str, runs: Path) -> RunRecord:
    """Return the record of a run, with its secrets masked.

    Raises:
        UsageError: What is told is no run.
    """
    check(report, runs)
    measured = measure(report)
    secrets = Secrets.find(os.environ)
    finished = now()
    started = finished - round(1000 * (report.seconds or 0.0))

    def mask(text: str | None) -> str | None:
        return None if text is None else secrets.mask(storable(text))

    reason = mask(report.reason)
    return RunRecord(
        id=identifier,
        study=report.study,
        program=report.program or "",
        values=masked(report.values, secrets),
        seed=report.seed,
        motivation=mask(report.motivation),
        parent=report.parent,
        objective=report.objective,
        direction=report.direction,
        task=report.task,
        started=max(0, started),
        finished=finished,
        reason=None if reason is None else reason[:MOST_REASON],
        cause=None if reason is None else Cause.TRAINING.value,
        metrics=measured.result(),
        curve=measured.curve(),
        diff=_difference(report.diff, secrets),
        recorder=LANGUAGE_MODEL,
        model=report.model,
    )


def _difference(diff: str | None, secrets: Secrets) -> str | None:
    """Return a difference as it is kept; None where it changes nothing."""
    changes = [] if diff is None else told_changes(storable(diff))
    return difference_text(changes, secrets) or None
