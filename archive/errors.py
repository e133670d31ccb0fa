"""Exceptions of the archive.

    ArchiveError
    ├── UsageError                        invalid request of a caller
    │   ├── UnknownNameError              unknown agent, task, space, study …
    │   ├── SettingsError                 invalid setting or credential
    │   │   └── StorageUnavailableError   remote storage that cannot be read or written from this machine now
    │   │   └── MissingDataError          data of a task that are not on this machine
    │   ├── InvalidArchitectureError      graph that is no network, or no member of its space
    │   ├── CodecError                    text or matrix that describes no architecture
    │   ├── StudyConflictError            contradiction to a study of the same name
    │   ├── ProposalStateError            change that the state of a proposal does not allow
    │   ├── MessageTooLargeError          data that the embedded server does not take at once
    │   ├── UnusableFileError             user's file without the required content; `fault` quotes nothing of it
    │   └── ReadOnlyError                 query that could write, without permission
    │       └── UnknownStatementError     text that begins as no query does
    ├── StoreError                        failure of the database, or of the way to it
    │   ├── StoreUnavailableError         no answer from a server
    │   ├── ServerStartError              failed start of the embedded server
    │   ├── DamagedError                  database whose files or records are damaged
    │   ├── AuthenticationError           refused user or password
    │   ├── DatabaseNotFoundError         unknown database on the server
    │   ├── SchemaVersionError            archive of another release
    │   └── QueryError                    query that the server rejects
    │       └── IncompleteWriteError      write to a node that no longer exists
    ├── LaunchError                       engine that cannot start, list or stop trainers
    ├── LeaseLostError                    report of a worker about a proposal that it no longer holds
    ├── SearchError                       end of a search whose proposals keep failing
    ├── InfeasibleError                   constraints of a study that no network meets
    ├── TrainingError                     failure of one trial; `reason` is recorded with its proposal
    │   ├── CheckpointError               checkpoint that cannot be saved or resumed
    │   └── WeightsError                  trained weights that cannot be read, written or removed
    └── NumericalError                    computation without a trustworthy result
        └── NotPositiveDefiniteError      covariance that jitter could not repair

A message names the wrong value and the way out. Data travels as attributes. `exit_code` is the exit
code of the command
line: 2 for a user's mistake, 3 for constraints that no network meets, 1 for everything else.
"""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Iterable, Sequence


class ArchiveError(Exception):
    """Base of all exceptions of the archive."""

    exit_code = 1


class UsageError(ArchiveError):
    """An invalid request of a caller."""

    exit_code = 2


class UnknownNameError(UsageError):
    """No agent, task, space or study has this name.

    Args:
        kind: Kind of the name (`"agent"`).
        name: The unknown name.
        known: The existing names.
        hint: Way out for the message if there are no names.
        owner: Owner of the names, where it is not the whole archive (`"the task
            digits"`).
        stored: Whether the name may come from an archive: another package may define it.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        hint: str = "",
        *,
        owner: str = "",
        stored: bool = False,
    ) -> None:
        """Compose the message from the nearest existing names."""
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(known))
        if near := _near(name, self.known):
            way_out = "did you mean " + " or ".join(near) + "?"
        elif self.known:
            way_out = f"known: {', '.join(self.known[:50])}{' and others' if len(self.known) > 50 else ''}"
        else:
            way_out = hint or f"there is no {kind} yet"

        if stored:
            way_out = (
                f"{way_out.removesuffix('?')}, or is the package that defines it not installed?"
            )

        shown = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
        super().__init__(f"{f'{owner} has no' if owner else 'unknown'} {kind} {shown!r}: {way_out}")


def _near(name: str, names: Sequence[str]) -> list[str]:
    """Return up to three names that were probably meant.

    They contain the text, or differ from it by a slip.
    """
    longer = [
        candidate for candidate in names if len(name) > 1 and name.lower() in candidate.lower()
    ]
    similar = difflib.get_close_matches(name, names, n=3) if len(names) <= MOST_COMPARED else []
    return list(dict.fromkeys([*longer, *similar]))[:3]


LONGEST_NAME = 120
"""Characters of an unknown name in a message."""
MOST_COMPARED = 5000
"""Most names that are compared letter by letter: a hundred thousand keys of architectures would
take ten seconds."""


class SettingsError(UsageError):
    """An invalid setting or credential."""


class StorageUnavailableError(SettingsError):
    """Remote storage of checkpoints that cannot be read or written from this machine now."""


class MissingDataError(SettingsError):
    """Data of a task that are not on this machine, or may not be read here."""


class InvalidArchitectureError(UsageError):
    """A graph that is no network, or no member of its space.

    `layer` is the index of the wrong layer, if it is one.
    """

    def __init__(self, reason: str, layer: int | None = None) -> None:
        """Keep the reason and the index of the wrong layer."""
        self.reason = reason
        self.layer = layer
        super().__init__(reason if layer is None else f"{reason} (layer {layer})")


class CodecError(UsageError):
    """Text or a matrix that does not describe an architecture."""


class StudyConflictError(UsageError):
    """A contradiction to an existing study of the same name, or to its results."""


class ProposalStateError(UsageError):
    """A change of a proposal that its state does not allow.

    Args:
        proposal: Id of the proposal.
        state: Its state.
        fault: The refused change, with the reason.
    """

    def __init__(self, proposal: str, state: str, fault: str) -> None:
        """Compose the message, which ends with the state."""
        self.proposal = proposal
        self.state = state
        super().__init__(f"proposal {proposal} {fault} (state {state})")


class UnusableFileError(UsageError):
    """A user's file that lacks the required content.

    Args:
        fault: The fault in terms of rows, columns and types. It is recorded, and other users read
            it, so it quotes nothing of the file except names that the caller passed.
        message: Message for the user of the file, with more detail; None for the fault alone.
    """

    def __init__(self, fault: str, message: str | None = None) -> None:
        """Keep the fault beside the message."""
        self.fault = fault
        super().__init__(fault if message is None else message)


class MessageTooLargeError(UsageError):
    """Data of `size` bytes in one statement, of which the embedded server takes `most`."""

    def __init__(self, size: int, most: int) -> None:
        """Compose the message from both sizes."""
        self.size = size
        self.most = most
        super().__init__(
            f"the embedded server takes {most / 2**20:g} MiB in one statement, got {size / 2**20:.1f} MiB: send less "
            "at once, and a result with a curve of fewer values (one report an epoch); Neo4j has no such limit"
        )


class ReadOnlyError(UsageError):
    """A query that could change the archive, without permission to write."""


class UnknownStatementError(ReadOnlyError):
    """A text that begins as no query and no known command does."""


class StoreError(ArchiveError):
    """A failure of the database, or of the way to it."""


class StoreUnavailableError(StoreError):
    """No server answers at `address`."""

    def __init__(self, message: str, address: str = "") -> None:
        """Keep the address beside the message."""
        self.address = address
        super().__init__(message)


class ServerStartError(StoreError):
    """The embedded server did not start; the message ends with the last lines of its log."""


class DamagedError(StoreError):
    """The files or records of the database are damaged; the message names the way out.

    It is never retried.
    """


class AuthenticationError(StoreError):
    """The server refused the user or the password."""


class DatabaseNotFoundError(StoreError):
    """The server has no database of that name."""


class SchemaVersionError(StoreError):
    """The archive has the schema of a newer release, or of a version before the first release."""


class QueryError(StoreError):
    """The server rejected a query; the message is the server's."""


class IncompleteWriteError(QueryError):
    """A write whose rows refer to missing nodes; nothing was stored."""

    def __init__(self, written: int, ids: Iterable[str]) -> None:
        """Compose the message from the number of written rows and the ids of all rows."""
        named = sorted(ids)
        shown = ", ".join(named[:3]) + (", …" if len(named) > 3 else "")
        super().__init__(
            f"only {written} of {len(named)} could be written (among {shown}): a node that they refer to is not in the "
            "archive, which someone must have deleted; nothing was stored"
        )


class LaunchError(ArchiveError):
    """An engine, such as Slurm, that cannot start, list or stop trainers.

    The message quotes the engine.
    """


class LeaseLostError(ArchiveError):
    """The worker no longer holds the proposal with the id `proposal`."""

    def __init__(self, proposal: str, why: str) -> None:
        """Keep the proposal's id beside the message."""
        self.proposal = proposal
        super().__init__(f"lease on proposal {proposal} lost: {why}")


class SearchError(ArchiveError):
    """A search that stops because its proposals keep failing."""


class InfeasibleError(ArchiveError):
    """Constraints that no network meets.

    `nearest` is the key of the network of the smallest violation, if known.
    """

    exit_code = 3

    def __init__(self, reason: str, nearest: str | None = None) -> None:
        """Keep the key of the nearest network."""
        self.nearest = nearest
        super().__init__(reason)


class TrainingError(ArchiveError):
    """One trial failed; `reason` is recorded with its proposal."""

    def __init__(self, reason: str) -> None:
        """Keep the recorded reason."""
        self.reason = reason
        super().__init__(reason)


class CheckpointError(TrainingError):
    """A checkpoint that cannot be written or read, was altered, or belongs to another training."""


class WeightsError(TrainingError):
    """Trained weights that cannot be written, read or removed, or were altered."""


class NumericalError(ArchiveError):
    """A computation that has no trustworthy result."""


class NotPositiveDefiniteError(NumericalError):
    """A covariance that is not positive definite even with the largest jitter, `jitter`."""

    def __init__(self, size: int, jitter: float) -> None:
        """Keep size and jitter."""
        self.size = size
        self.jitter = jitter
        super().__init__(
            f"a {size} x {size} covariance is not positive definite, not even with jitter {jitter:g}: "
            "look for NaN, duplicate architectures with different distances, or an indefinite distance"
        )


def first_line(error: BaseException, most: int | None = None) -> str:
    """Return the first line of an error's message that is not blank, or its class.

    Long lines are cut.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:most]


def with_line(
    error: Exception, *, file: str | None = None, module: str = "", most: int | None = None
) -> str:
    """Return an error's class, message and innermost line in a file or a module's package.

    It ends in the place: `… (train.py, line 3)`.
    """
    package = module.partition(".")[0] or None
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if (
            file == frame.f_code.co_filename
            or package == str(frame.f_globals.get("__name__")).partition(".")[0]
        ):
            line = f" ({os.path.basename(frame.f_code.co_filename)}, line {number})"

    # The message of a syntax error has the line.
    return f"{type(error).__name__}: {error}"[:most] + (
        "" if isinstance(error, SyntaxError) else line
    )
