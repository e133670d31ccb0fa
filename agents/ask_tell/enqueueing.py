"""Addition of single networks to a study, by a person or a program that is no agent."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archive import __version__
from archive.constraints import KnownCosts
from archive.errors import InvalidArchitectureError, UsageError
from archive.queue import admission, lookups
from archive.queue.reuse import RETRAIN
from archive.spaces import stored_spaces
from archive.spaces.constrained import constrain
from archive.values import counted

if TYPE_CHECKING:
    from archive.agents.ask_tell.types import EnqueuedArchitecture
    from archive.api import Archive
    from archive.spaces.base import Space
    from archive.store.records import Proposal, Study
    from archive.store.studies.builds import ConfigurationBuilder
    from archive.trainer.recipes.model_process import ModelProcess

PERSON = "person"
"""Kind of agent on record for architectures that a person enqueued or told."""

LANGUAGE_MODEL = "language-model"
"""Kind of agent on record for architectures that a language model enqueued."""


def builder_of(archive: Archive, study: Study, space: Space) -> ModelProcess | None:
    """Return the process that builds networks of a study's configurations, which the caller closes.

    It starts at the first network.

    Args:
        archive: The archive of the study.
        study: The study.
        space: Its space.

    Returns:
        None in another space, or where this machine knows no model of it.
    """
    from archive.spaces.parameters import Parameters

    if not isinstance(space.whole, Parameters):
        return None

    from archive.trainer.recipes.model_process import process_of_study
    from archive.trainer.tasks.file_access import FileAccess

    home = archive.connection.settings.home
    return process_of_study(study, space.whole.parameters, home, FileAccess.of(home))


def space_of(archive: Archive, study: Study, costs: KnownCosts) -> Space:
    """Return the members of a stored study's space that meet its constraints.

    Args:
        archive: The archive of the study.
        study: The study.
        costs: Known costs of its networks.

    Raises:
        SettingsError: The table of its space may not be opened here.
        UnknownNameError: No space has its name here.
        UsageError: The table cannot be read.
    """
    whole = stored_spaces.of_record(
        study.space, study.space_config, archive.connection.settings.home
    )
    return constrain(whole, study.constraints, costs)


def add(
    archive: Archive,
    study: str,
    space: Space,
    enqueued: EnqueuedArchitecture,
    kind: str = PERSON,
    config: Mapping[str, Any] | None = None,
    *,
    reuse: bool = False,
    retrain: bool = False,
    builder: ConfigurationBuilder | None = None,
) -> tuple[Proposal | None, bool]:
    """Return the study's proposal of a network, and whether this call added it.

    Args:
        archive: The archive of the study.
        study: Name of the study.
        space: Space of the study, with its constraints on known costs (`space_of`).
        enqueued: The network, with the reason for it.
        kind: Kind of the agent on record.
        config: Its settings on record.
        reuse: Whether a known result of another study completes the proposal at once.
        retrain: Whether no result of an equal network replaces the training.
        builder: Builds the network of a configuration; None leaves it to the trainer.

    Returns:
        None instead of a proposal where the budget is spent (`budget_spent`).

    Raises:
        InvalidArchitectureError: The network is not a member of the space, or does not meet a
            constraint on a known cost; or its parent is of another space.
        UnknownNameError: There is no such study.
        UsageError: The priority is not a finite number.
    """
    admission.checked_priority(enqueued.priority)
    space.validate(enqueued.architecture)
    _check_parent(enqueued)
    if builder is not None:
        for build in builder.builds([enqueued.architecture]):
            archive.builds.add([] if build is None else [build])

    answers = archive.answers.known(archive.studies.get(study), [enqueued]) if reuse else None
    agent = archive.proposals.register_agent(kind, config or {}, __version__)
    made = archive.proposals.create(
        study, agent, [enqueued], outcomes=answers, basis={RETRAIN: True} if retrain else None
    )
    if made:
        return made[0], True

    network = enqueued.architecture.network
    configuration = enqueued.architecture.configuration
    key = network.functional_key
    if configuration:
        return lookups.of_pair(archive.connection, study, key, configuration), False

    return lookups.of_network(archive.connection, study, key), False


def _check_parent(enqueued: EnqueuedArchitecture) -> None:
    network = enqueued.architecture
    parent = enqueued.parent
    if parent is not None and parent.space != network.space:
        raise InvalidArchitectureError(
            f"the parent {parent.key[:8]} is of space {parent.space}, and its child of "
            f"{network.space}: "
            "a change of a network stays in its space"
        )


def budget_spent(study: Study) -> UsageError:
    """Return the error of an addition without budget, with the ways to raise it."""
    return UsageError(
        f"the study {study.name!r} has spent its budget of "
        f"{counted(study.budget, 'evaluation')}: raise it by "
        f"archive search --study {shlex.quote(study.name)} --budget N, or in Python by "
        f"archive.studies.set_budget({study.name!r}, N)"
    )
