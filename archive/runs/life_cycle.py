"""Begin and end of a run, for recorded commands and for `archive.record` alike."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from archive import settings as settings_module
from archive.errors import UsageError
from archive.runs import known_runs
from archive.runs.arguments import split_seed
from archive.runs.code_state import CodeState, read_state
from archive.runs.known_runs import KnownRun
from archive.runs.measurements import Measurements
from archive.runs.program import RUN_VARIABLE
from archive.runs.run_folder import LOGGED, RunFolder, RunRecord, now, runs_of
from archive.runs.secrets import LEAST_LETTERS, MASK, Secrets, is_secret_name
from archive.values import LARGEST, MOST_NAME, check_length, is_number, whole_number

if TYPE_CHECKING:
    from archive.settings import Settings
    from archive.store.records import Direction

TOLD = "told.json"
"""Name of the file with what a program has told of itself, within `archive record`."""

BESIDE_STUDY = "-runs"
"""End of the name of a study for the runs that the study of the rest of the name cannot have."""

DELIVERY_LOG = "delivery.log"

MOST_TEXT = 10_000
"""Longest text that is a value of a run, in letters; a longer one is cut."""

_TOLD_NAMES = ("parent", "motivation", "objective", "direction", "task", "seed")


@dataclass(frozen=True)
class RunRequest:
    """What a user says of a run.

    Attributes:
        study: Name of its study; None takes the name of the repository or of the folder.
        parent: The run that it is a change of: STUDY#NUMBER, a number in the study, `best` or
            `last`; None without one.
        motivation: Reason for the run in words; None without one.
        objective: Metric that it is judged by; None leaves it to the study, or to its metrics.
        direction: `maximise` or `minimise` that metric; None with None.
        task: Name of the task; None for the study's.
        pattern: Regular expression for lines with metrics; None for `name: value`.
        keep: Patterns of files to keep.
        limit: Seconds after which the program is ended; None for no limit.
    """

    study: str | None = None
    parent: str | None = None
    motivation: str | None = None
    objective: str | None = None
    direction: str | None = None
    task: str | None = None
    pattern: str | None = None
    keep: Sequence[str] = ()
    limit: float | None = None


def check_objective(
    minimise: str | None, maximise: str | None
) -> tuple[str | None, Direction | None]:
    """Return the metric that a run is judged by, and its direction; None and None without one.

    Raises:
        UsageError: Both are given.
    """
    if minimise is not None and maximise is not None:
        raise UsageError(
            f"a run is judged by one metric: minimise {minimise!r} or maximise {maximise!r}"
        )

    if minimise is not None:
        return minimise, "minimise"

    return (None, None) if maximise is None else (maximise, "maximise")


def check_request(request: RunRequest, runs: Path) -> None:
    """Check what a user says of a run, before it starts.

    Args:
        request: What the user says.
        runs: Folder of the runs, which may be the parent.

    Raises:
        UsageError: The study cannot have this name, the parent can be none, or the current folder
            is gone.
    """
    from archive.store.properties import whole_id
    from archive.store.studies.creation import check_new_name

    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(f"the current folder cannot be read: {error.strerror}") from error

    named = {"study": request.study, "task": request.task, "metric": request.objective}
    for what, name in named.items():
        if name is not None:
            check_length(f"the name of the {what}", name)

        if name == "":
            raise UsageError(f"the name of the {what} is empty")

    if request.study is not None:
        check_new_name(request.study)

    parent = request.parent
    if parent is None or parent in ("best", "last") or whole_number(parent.lstrip("#")) is not None:
        return

    if "#" in parent:
        whole_id(parent)
    elif PurePath(parent).name != parent or not os.path.isdir(runs / parent):
        raise UsageError(
            "the parent of a run is best, last, a number in its study, STUDY#NUMBER, or the id of "
            f"a run on this machine: got {parent!r:.80}"
        )


def start_delivery(configuration: Settings) -> None:
    """Start a process that delivers the runs of a home, which this one does not wait for."""
    runs = runs_of(configuration.home)
    environment = {**os.environ, **settings_module.environment(configuration)}
    # The process of the delivery is no part of the run.
    environment.pop(RUN_VARIABLE, None)
    command = [sys.executable, "-m", "archive.runs.delivery"]
    with (runs / DELIVERY_LOG).open("ab") as log:
        # A shell starts it and ends at once: a process of long life keeps no child of each run.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=configuration.home,
            start_new_session=True,
            check=False,
        )


def begin(folder: RunFolder, request: RunRequest, program: str) -> RunRecord:
    """Return the record of a run that begins now, with the state of its source files."""
    here = Path.cwd()
    state = read_state(here, folder.blobs)
    return RunRecord(
        id=folder.id,
        study=request.study or _default_study(state, here),
        program=program,
        folder=str(here),
        motivation=request.motivation,
        parent=request.parent,
        objective=request.objective,
        direction=request.direction,
        task=request.task,
        pattern=request.pattern,
        code=state.json() if state.files else None,
        host=os.uname().nodename,
        started=now(),
    )


def _default_study(state: CodeState, here: Path) -> str:
    """Return the name of the repository, or else of the folder, as a study may have it."""
    return study_name((state.folder if state.commit else here).name)


def study_name(name: str) -> str:
    """Return the name of a folder or a project as a study may have it."""
    text = name.encode(errors="replace").decode()
    kept = "".join(letter for letter in text if letter not in ",#").lstrip("-").strip()
    return kept if kept and kept != "all" else "runs"


def study_beside(name: str) -> str:
    """Return the name of the study for the runs that the study of a search cannot have."""
    return f"{name[: MOST_NAME - len(BESIDE_STUDY)]}{BESIDE_STUDY}"


def fingerprint(run: RunRecord) -> str:
    """Return the digest of what a run is given."""
    digest = run.diff
    if run.code is not None:
        digest = CodeState.from_json(run.code).digest

    return known_runs.fingerprint_of(run, digest)


def take_told(
    folder: RunFolder, run: RunRecord, measurements: Measurements, secrets: Secrets
) -> None:
    """Add what the program has told of itself to what was read of its output."""
    with suppress(OSError):
        measurements.read_file(folder.path / LOGGED)

    facts = read_told(folder)
    values = facts.pop("values", {})
    seed = None
    if isinstance(values, dict):
        values, seed = split_seed(values)
        run.values |= masked(values, secrets)

    for name in _TOLD_NAMES:
        # What the command says comes before what the program says.
        if getattr(run, name) is None:
            setattr(run, name, facts.get(name))

    if run.seed is None:
        run.seed = seed

    run.metrics = measurements.result()
    run.curve = measurements.curve()


def read_told(folder: RunFolder) -> dict[str, Any]:
    """Return what a program has told of itself; nothing without a readable file."""
    with suppress(OSError, ValueError):
        document = json.loads((folder.path / TOLD).read_text(encoding="utf-8"))
        return document if isinstance(document, dict) else {}

    return {}


def end(folder: RunFolder, run: RunRecord, digest: str | None = None) -> None:
    """Write the end of a run, and make it known to later ones.

    Args:
        folder: The folder of the run.
        run: The run.
        digest: What it was given at its start, as `fingerprint` gives it; None takes what the record
            says at its end.
    """
    folder.write(run)
    network = folder.network()
    ended_run = KnownRun(
        run=run.id,
        study=run.study,
        fingerprint=digest or fingerprint(run),
        network=None if network is None else network.get("key"),
        metrics=run.metrics,
        reason=run.reason,
        motivation=run.motivation,
        seed=run.seed,
    )
    with suppress(OSError):
        known_runs.add(folder.path.parent, ended_run)

    folder.release()


def masked(values: Mapping[str, Any], secrets: Secrets) -> dict[str, Any]:
    """Return values by name as JSON that a server holds, with secrets masked."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        plain = plain_value(value, secrets)
        # A secret is no part of a configuration.
        is_secret = is_secret_name(str(name)) and len(str(value)) >= LEAST_LETTERS
        if plain != MASK and not is_secret:
            kept[str(name)] = plain

    return kept


def plain_value(value: Any, secrets: Secrets) -> Any:
    """Return a value as JSON that a server holds, with secrets masked in its texts."""
    if isinstance(value, bool) or value is None:
        return value

    if is_number(value) and math.isfinite(value) and abs(value) < LARGEST:
        return value

    if isinstance(value, Mapping):
        return masked(value, secrets)

    if isinstance(value, list | tuple | set | frozenset):
        return [plain_value(item, secrets) for item in value]

    text = secrets.mask(str(value)).encode(errors="replace").decode()
    if len(text) > MOST_TEXT:
        digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]
        return f"{text[:MOST_TEXT]}… {len(text)} letters, {digest}"

    return text


def say(text: str) -> None:
    """Write a line for the user, where it does not mix with the program's output."""
    print(f"archive: {text}", file=sys.stderr, flush=True)
