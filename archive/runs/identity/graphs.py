"""What a run evaluated, as its study has it.

| space of the study | member                                                | network that it builds   |
|--------------------|-------------------------------------------------------|--------------------------|
| `program`          | graph of program, source files and values             | that the run captured    |
| with named values  | the configuration of the values                       | that the run captured    |
| networks           | the captured network, with the values beside it       |                          |
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archive.agents.ask_tell import enqueueing
from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import PROGRAM_NAME as PROGRAM
from archive.architecture.parameter_operations import graph_of_values
from archive.constraints import NO_COSTS
from archive.errors import UsageError
from archive.queries.tried.differences import changed_lines
from archive.runs.code_state import CodeState
from archive.spaces.joint import joint_space_of
from archive.spaces.named_values import values_of_graph

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.runs.identity.parents import ParentRun
    from archive.runs.run_folder import RunRecord
    from archive.spaces.base import Space
    from archive.store.records import Study

CODE = "code"
"""Name of the value that has the digest of the source files."""

NETWORK = "network_key"
"""Name of the value that has the digest of the network, of a run that is known by it."""

UNNAMED = "program"
"""Name of a program that is not told."""


def graphs_of(
    archive: Archive,
    study: Study,
    record: RunRecord,
    captured: Mapping[str, Any] | None,
    parent: ParentRun | None,
) -> tuple[Architecture, Architecture | None]:
    """Return what a run evaluated, and the network that this builds.

    Args:
        archive: The archive.
        study: Study of the run.
        record: The run.
        captured: The network that it trained, as its folder has it; None without one.
        parent: The run that it is a change of.

    Returns:
        The member of the study's space; and a network where that is a configuration, None without
        one.

    Raises:
        UsageError: The study's space has no such member.
    """
    network = None if captured is None else codec.from_dict(captured["architecture"])
    if study.space == PROGRAM:
        return configuration_graph(record, code_of(record, parent)), network

    space = enqueueing.space_of(archive, study, NO_COSTS)
    member = _member(space, record.values, network)
    space.validate(member)
    is_network = network is not None and member.network.key == network.key
    return member, None if is_network else network


def configuration_graph(record: RunRecord, code: str | None) -> Architecture:
    """Return the graph of what a run was given: its program, its source files, its values.

    Args:
        record: The run.
        code: Digest of its source files; None where they are unknown.
    """
    values = {"program": record.program}
    if code is not None:
        values[CODE] = code

    for name, value in record.values.items():
        # A program may have an option of that name.
        values[f"{name}_" if name in ("program", CODE) else name] = value

    return graph_of_values(values, name=PROGRAM)


def code_of(record: RunRecord, parent: ParentRun | None) -> str | None:
    """Return the digest of a run's source files; None where nothing is known of them.

    A run that is told with its difference alone has a digest of that difference and of the parent's
    digest, and without a difference the parent's source files.
    """
    if record.code is not None:
        return CodeState.from_json(record.code).digest

    before = None
    if record.is_told and parent is not None:
        before = values_of_graph(parent.architecture).get(CODE)

    if record.diff is None:
        return before

    total = hashlib.sha1(str(before or "").encode(), usedforsecurity=False)
    for (path, line), count in sorted(changed_lines(record.diff).items()):
        total.update(f"{path}\0{line}\0{count}\n".encode())

    return total.hexdigest()[:12]


def program_of(record: RunRecord, parent: ParentRun | None) -> str:
    """Return the name of a run's program: its own, or else the parent's."""
    if record.program or parent is None:
        return record.program or UNNAMED

    return str(values_of_graph(parent.architecture).get("program", UNNAMED))


def _member(space: Space, values: Mapping[str, Any], network: Architecture | None) -> Architecture:
    """Return the member of a space that a run evaluated.

    A value that is left out has its default, if it has one: a result belongs to no guessed value.
    """
    joint = joint_space_of(space)
    if network is not None and joint is not None:
        return joint.member(network, values)

    if values:
        return space.of_names(values)

    if network is None:
        raise UsageError(
            f"a run in a study of the space {space.name} has its network, or values by name"
        )

    return network
