"""Tools that write: a proposal with its motivation, and the wait for its result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import anyio
from pydantic import Field

from archive.agents.advice import overriding
from archive.agents.ask_tell import enqueueing
from archive.agents.ask_tell.types import EnqueuedArchitecture
from archive.api import Archive
from archive.constraints import NO_COSTS, KnownCosts
from archive.errors import UsageError
from archive.mcp.arguments import NetworkArgument, StudyName
from archive.mcp.candidates import Parameters, member_of
from archive.mcp.limits import WAIT_SECONDS, largest
from archive.store.properties import study_of, whole_id
from archive.store.records import State, Study
from archive.store.snapshots import ProposalView, read_view

POLL_SECONDS = 1.0
ENDED = (State.COMPLETE, State.PRUNED, State.FAILED)


@dataclass(frozen=True)
class ProposalStatus:
    """A proposal and its result.

    `new` says whether this call added it: a study has one proposal of each network. `value` is the
    objective, in the task's own unit; `epochs` are those trained so far. `configuration` has the
    values of named decisions and hyperparameters. `truncated` says whether
    metrics were left out for their size.
    """

    proposal: str
    architecture: str
    state: str
    new: bool
    ended: bool
    value: float | None
    metrics: Mapping[str, float | None]
    epochs: int | None
    seconds: float | None
    reason: str | None
    truncated: bool = False
    configuration: Mapping[str, Any] = field(default_factory=dict)


def propose(
    archive: Archive,
    study: StudyName,
    motivation: Annotated[
        str,
        Field(
            min_length=1,
            max_length=4000,
            description="Why this network should be good; kept with the proposal.",
        ),
    ],
    network: NetworkArgument | None = None,
    parameters: Parameters = None,
    parent: Annotated[
        str | None,
        Field(description="Key of the network that this one is a change of; kept as its lineage."),
    ] = None,
    operations: Annotated[
        list[str] | None,
        Field(description="The changes that make the network of its parent, one a text."),
    ] = None,
    inspired_by: Annotated[
        list[str] | None,
        Field(description="Keys of the networks that the motivation goes back to."),
    ] = None,
    model: Annotated[
        str | None, Field(max_length=200, description="Name of the model that proposes.")
    ] = None,
    retrain: Annotated[
        bool,
        Field(
            description="Train even if the archive has a result of the study's task and protocol."
        ),
    ] = False,
) -> ProposalStatus:
    """Propose a network for training in a study, before the proposals of its agents.

    Look it up with `is_known` and `nearest` first. A known result of the same task and protocol
    completes the proposal at once, without a training. A network that the study has already is not
    added again: the answer is its proposal.
    """
    if operations and parent is None:
        raise UsageError("operations need the parent that they change")

    record = archive.studies.get(study)
    _check_trainable(archive, record)
    space = enqueueing.space_of(archive, record, _known_costs(archive, record))
    proposed = member_of(archive, space, network, parameters)
    find = archive.architectures.find
    # The prediction is evidence of what the proposer knows beyond the model.
    expected = None
    if space.contains(proposed):
        expected = overriding.expected_score(archive, study, proposed)

    enqueued = EnqueuedArchitecture(
        proposed,
        1.0,
        motivation,
        tuple(map(find, inspired_by or ())),
        None if parent is None else archive.architectures.get(find(parent)),
        tuple(operations or ()),
        mean=None if expected is None else expected.mean,
        std=None if expected is None else expected.std,
    )
    config = {} if model is None else {"model": model}
    builder = enqueueing.builder_of(archive, record, space)
    try:
        proposal, new = enqueueing.add(
            archive,
            study,
            space,
            enqueued,
            enqueueing.LANGUAGE_MODEL,
            config,
            reuse=not retrain,
            retrain=retrain,
            builder=builder,
        )
    finally:
        if builder is not None:
            builder.close()

    if proposal is None:
        raise enqueueing.budget_spent(record)

    return _status(read_view(archive.connection, proposal.id, record), new)


async def wait(
    archive: Archive,
    proposal: Annotated[str, Field(description="Id of a proposal, STUDY#NUMBER.")],
    seconds: Annotated[float, Field(ge=0, le=WAIT_SECONDS, description="Longest wait.")] = 30.0,
) -> ProposalStatus:
    """Wait until a proposal has ended, at most `seconds`, and return its state: value, metrics,
    reason of a failure.

    Without a trainer at work (`study` tells their number) a proposal waits forever. Call again
    while `ended` is false.
    """
    id_ = whole_id(proposal)
    study = archive.studies.find(study_of(id_))
    deadline = time.monotonic() + seconds
    while True:
        view = await anyio.to_thread.run_sync(partial(read_view, archive.connection, id_, study))
        left = deadline - time.monotonic()
        if view.state in ENDED or left <= 0:
            return _status(view, new=False)

        await anyio.sleep(min(POLL_SECONDS, left))


def _check_trainable(archive: Archive, study: Study) -> None:
    """Refuse a proposal for a study whose recipe here is for other tasks or spaces."""
    from archive.trainer.recipes.registry import RecipeAccess
    from archive.trainer.recipes.suitability import check_known
    from archive.trainer.tasks.file_access import FileAccess

    home = archive.connection.settings.home
    check_known(study, RecipeAccess(home), FileAccess.of(home))


def _known_costs(archive: Archive, study: Study) -> KnownCosts:
    """Return the known costs of a study; none without constraints."""
    if not study.constraints:
        return NO_COSTS

    # Imported here because it loads the builders of networks.
    from archive.trainer.tasks import known_costs

    return known_costs.of_study(study, archive.connection.settings.home)


def _status(view: ProposalView, new: bool) -> ProposalStatus:
    ended = view.state in ENDED
    metrics = list(view.metrics.items())

    def first(count: int) -> ProposalStatus:
        return ProposalStatus(
            view.id,
            view.architecture_key,
            view.state.value,
            new,
            ended,
            view.value,
            dict(metrics[:count]),
            view.epochs,
            view.seconds,
            view.reason,
            count < len(metrics),
            view.configuration,
        )

    return largest(first, len(metrics))
