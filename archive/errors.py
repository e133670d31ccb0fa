"""Every error that the archive raises on purpose.

    ArchiveError
    ├── UsageError                        the caller asked for something that cannot be
    │   ├── UnknownNameError              no agent, task, space, study … of that name
    │   ├── SettingsError                 a setting or credential that cannot be used
    │   ├── InvalidArchitectureError      a graph that is no network, or not of the space
    │   ├── CodecError                    text or a matrix that describes no architecture
    │   ├── StudyConflictError            a study exists with another task, space or objective
    │   ├── ProposalStateError            a proposal's state does not allow what was asked of it
    │   ├── UnusableFileError             a user's file does not hold what it must; `fault` quotes nothing of it
    │   └── ReadOnlyError                 a query that could write, without permission to
    ├── StoreError                        the database cannot do what was asked
    │   ├── StoreUnavailableError         no server answers
    │   ├── ServerStartError              the embedded server did not start
    │   ├── AuthenticationError           the server refused user or password
    │   ├── DatabaseNotFoundError         the server has no database of that name
    │   ├── SchemaVersionError            the archive was written by a newer release
    │   └── QueryError                    the server rejected a query
    │       └── IncompleteWriteError      what is to be changed, or what it refers to, is gone
    ├── LeaseLostError                    another worker owns, or has finished, the proposal
    ├── SearchError                       a search cannot go on: its proposals keep failing
    ├── TrainingError                     one trial failed; `reason` is what goes on record
    │   ├── CheckpointError               the state of a trial cannot be saved or resumed
    │   └── WeightsError                  trained weights cannot be read, written or removed
    └── NumericalError                    a computation that has no trustworthy result
        └── NotPositiveDefiniteError      a covariance that jitter could not repair

A message names the value that was wrong and the way out. Data travels as attributes.
`exit_code` is what the command line returns: 2 for a user's mistake, 1 for everything else.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ArchiveError(Exception):
    """Base of every error that the archive raises on purpose."""

    exit_code = 1


class UsageError(ArchiveError):
    """The caller asked for something that cannot be."""

    exit_code = 2


class UnknownNameError(UsageError):
    """No agent, task, space or study has this name.

    Args:
        kind: Kind of the name (`"agent"`).
        name: The name that was asked for.
        known: The names that exist.
        hint: A sentence to add when no known name comes near.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        """Word the message from the nearest valid names."""
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        near = difflib.get_close_matches(name, self.known, n=3, cutoff=0.4)
        if near:
            way_out = "did you mean " + " or ".join(near) + "?"
        elif self.known:
            shown = ", ".join(self.known[:8]) + (", …" if len(self.known) > 8 else "")
            way_out = f"known: {shown}"
        else:
            way_out = hint or f"there is no {kind} yet"
        super().__init__(f"unknown {kind} {name!r}: {way_out}")


class SettingsError(UsageError):
    """A setting or a credential that cannot be used."""


class InvalidArchitectureError(UsageError):
    """A graph that is no network, or no member of its space; `layer` is the index at fault, if one is."""

    def __init__(self, reason: str, layer: int | None = None) -> None:
        """Keep the reason and, if one layer is at fault, its index."""
        self.reason, self.layer = reason, layer
        super().__init__(reason if layer is None else f"{reason} (layer {layer})")


class CodecError(UsageError):
    """Text or a matrix that does not describe an architecture."""


class StudyConflictError(UsageError):
    """A study of this name exists with another task, space, objective or protocol."""


class ProposalStateError(UsageError):
    """A proposal's state does not allow what was asked of it.

    Args:
        proposal: Its id.
        state: Its state.
        fault: What cannot be done, and why.
    """

    def __init__(self, proposal: str, state: str, fault: str) -> None:
        """Word the message, which ends with the state."""
        self.proposal, self.state = proposal, state
        super().__init__(f"proposal {proposal} {fault} (state {state})")


class UnusableFileError(UsageError):
    """A user's file does not hold what it must.

    Args:
        fault: What is wrong, in rows, columns and kinds: the part that may go on record, for others to read. It quotes
            nothing of the file but names that the caller gave.
        message: What the user who named the file is told; None says the fault alone.
    """

    def __init__(self, fault: str, message: str | None = None) -> None:
        """Keep the fault beside the message."""
        self.fault = fault
        super().__init__(fault if message is None else message)


class ReadOnlyError(UsageError):
    """A query that could change the archive, without permission to."""


class StoreError(ArchiveError):
    """The database cannot answer or execute a request."""


class StoreUnavailableError(StoreError):
    """No server answers at the address; `address` is where it was looked for."""

    def __init__(self, message: str, address: str = "") -> None:
        """Keep the address beside the message."""
        self.address = address
        super().__init__(message)


class ServerStartError(StoreError):
    """The embedded server did not start; the message ends with the last lines of its log."""


class AuthenticationError(StoreError):
    """The server refused the user or the password."""


class DatabaseNotFoundError(StoreError):
    """The server has no database of that name."""


class SchemaVersionError(StoreError):
    """The archive was written by a newer release than this one."""


class QueryError(StoreError):
    """The server rejected a query; the message is the server's."""


class IncompleteWriteError(QueryError):
    """Rows of a write refer to missing nodes; nothing was stored."""

    def __init__(self, written: int, ids: Iterable[str]) -> None:
        """Word the message from how many were written, and the ids of all that should have been."""
        named = sorted(ids)
        shown = ", ".join(named[:3]) + (", …" if len(named) > 3 else "")
        super().__init__(
            f"only {written} of {len(named)} could be written (among {shown}): a node that they refer to is not in the "
            "archive, which someone must have deleted; nothing was stored"
        )


class LeaseLostError(ArchiveError):
    """The proposal is no longer this worker's; `proposal` is its id."""

    def __init__(self, proposal: str, why: str) -> None:
        """Keep the proposal's id beside the message."""
        self.proposal = proposal
        super().__init__(f"lease on proposal {proposal} lost: {why}")


class SearchError(ArchiveError):
    """A search that stops because its proposals keep failing."""


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
    """A covariance that escalating jitter could not make positive definite; `jitter` is the last tried."""

    def __init__(self, size: int, jitter: float) -> None:
        """Keep the last jitter that was tried."""
        self.size, self.jitter = size, jitter
        super().__init__(
            f"a {size} x {size} covariance is not positive definite, not even with jitter {jitter:g}: "
            "look for NaN, duplicate architectures with different distances, or an indefinite distance"
        )
