"""`archive search`: a whole search in one command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from archive import __version__
from archive.cli.render import json_option, open_archive, print_json, print_message
from archive.cli.search import report
from archive.cli.search.report import evaluated
from archive.cli.search.request import Asked, Given, asked, named
from archive.errors import SearchError, UsageError

if TYPE_CHECKING:
    from archive.agents.base import Agent, Source
    from archive.api import Archive
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot

TABLE_PAUSE = 0.01
"""Seconds between two looks at a study that a table answers."""


@click.command()
@click.option("--agent", "agent_name", help="Who proposes [who began the study, else nasbot].")
@click.option(
    "--task",
    "task_name",
    help="What is learned: a name, csv:PATH#TARGET, npz:PATH, or table:PATH#COLUMN [the study's, else digits].",
)
@click.option(
    "--protocol", "protocol_name", help="How it is trained and measured [the study's, else the task's first]."
)
@click.option("--space", "space_name", help="Where to search [the study's, else the task's first].")
@click.option(
    "--study",
    "study_name",
    help="Name of the study; one that exists is resumed, and what is not given is its own [AGENT-SPACE-TASK].",
)
@click.option(
    "--budget",
    type=int,
    help="Evaluations in total, those of earlier runs included; fewer than there are change nothing "
    "[the study's, else 20].",
)
@click.option("--batch", type=click.IntRange(1), help="Proposals kept open at a time [one a trainer].")
@click.option(
    "--warm-start",
    metavar="STUDY[,STUDY…]|all",
    help="Begin with what these studies found; those of other tasks count as far as they foretell this one.",
)
@click.option("--trainers", type=click.IntRange(0), default=1, show_default=True, help="Local trainers to start.")
@click.option("--device", help="Where they train [auto].")
@click.option("--seed", type=click.IntRange(0), help="Seed of the study [the study's, else 0].")
@click.option(
    "--rungs",
    metavar="EPOCHS,…|COUNT",
    help="Pause trainings at these epochs, or at so many rungs; only the best of each rung go on "
    "[the study's, else none].",
)
@click.option(
    "--reduction", type=click.IntRange(2), help="One of so many goes on from each rung [the study's, else 3]."
)
@click.option("--retrain", is_flag=True, help="Train networks too whose result other studies have.")
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    agent_name: str | None,
    task_name: str | None,
    protocol_name: str | None,
    space_name: str | None,
    study_name: str | None,
    budget: int | None,
    batch: int | None,
    warm_start: str | None,
    trainers: int,
    device: str | None,
    seed: int | None,
    rungs: str | None,
    reduction: int | None,
    retrain: bool,
    as_json: bool,
) -> None:
    """Search for architectures: an agent proposes, a trainer trains, the archive keeps everything.

    The same command again resumes the study, and so does its name alone, --study NAME: what is not given is then the
    study's own, and what is given and differs is refused, but for the agent and the budget. --budget is the total
    number of evaluations; a search also ends when all networks of a small space are evaluated. Nothing that finished is
    lost when a process is killed. Networks that any study evaluated on the same task and protocol are answered from the
    archive, unless --retrain is given.

    With --rungs (asynchronous successive halving), each training pauses after the first number of epochs, and goes on
    from where it was to the next one if it is among the best third there; the last rung is the whole training. What
    never goes on is pruned, and counts as evaluated.
    """
    from archive.agents.study_setup import open_study
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.file_access import Access

    given = Given(agent_name, task_name, protocol_name, space_name, study_name, rungs, reduction)
    sources = _sources(warm_start)
    # What can be refused without the archive is refused before a server is started.
    chosen = asked(given) if study_name is None else None
    if task_name is not None:
        registry.get(task_name)
    with open_archive(ctx) as archive:
        if chosen is None:
            access = Access.of(archive.connection.settings.home)
            chosen = asked(given, named(archive, given.study or ""), access)
        more = _has_more(archive, chosen.study.name, budget)
        study = open_study(
            archive, chosen.study, budget=None if more else budget, seed=seed, sources=sources, agent=chosen.agent
        )
        if task_name is not None:
            # Trainers read no file on the database's word alone.
            registry.name_file(chosen.task, archive.connection.settings.home)
        if more:
            last = archive.studies.snapshot(study.name)
            _announce_more(study, evaluated(last.counts), budget)
        else:
            last = _search(ctx, archive, study, chosen, trainers, batch or max(1, trainers), device, retrain)
        reason = report.nothing_left(archive, last, chosen.agent, searched=not more)
        if reason is not None:
            print_message(reason)
        result = report.outcome(archive, last, str(chosen.study.config["agent"]), chosen.task, reason)
    if as_json:
        print_json(result)
    else:
        report.print_outcome(ctx, result, study)


def _sources(text: str | None) -> list[str] | Literal["all"]:
    if text == "all":
        return "all"
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise UsageError(f"--warm-start takes names of studies, or all, got {text!r}")
    return names


def _has_more(archive: Archive, name: str, budget: int | None) -> bool:
    """Return whether a study has more evaluations than are asked for: a total that cannot be had changes nothing."""
    if budget is None or budget < 1 or named(archive, name) is None:
        return False
    return evaluated(archive.studies.counts(name)) > budget


def _search(
    ctx: click.Context,
    archive: Archive,
    study: Study,
    chosen: Asked,
    trainers: int,
    batch: int,
    device: str | None,
    retrain: bool,
) -> Snapshot:
    """Run the loop with its trainers and its view, and return the last snapshot."""
    from archive.agents import loop
    from archive.cli.search.interruption import Interruption
    from archive.cli.search.live import LiveView
    from archive.cli.search.local_trainers import LocalTrainers
    from archive.store.records import State
    from archive.trainer.tasks.tabular import Reading

    agent, protocol = chosen.agent, chosen.protocol
    counts = archive.studies.counts(study.name)
    own, under_way = evaluated(counts), counts[State.WAITING] + counts[State.RUNNING]
    history = loop.history_of(archive, study)
    warm = len(history.observations) - own
    _announce(study, own, warm)
    _announce_sources(history.sources, agent)
    settings = archive.connection.settings
    local = LocalTrainers(0 if own >= study.budget and not under_way else trainers, study.name, settings, device=device)
    snapshot: Snapshot | None = None
    view = LiveView(study, agent.kind, report.place(archive), protocol.epochs, warm)
    # A table answers at once: the loop looks as often as it may, to go on as soon as there is something to learn from.
    pause = TABLE_PAUSE if isinstance(protocol, Reading) else loop.PAUSE
    with Interruption() as interruption, view, local:
        snapshots = loop.run(
            *(archive, study, agent),
            version=__version__,
            batch=batch,
            retrain=retrain,
            pause=pause,
            wait=interruption.wait,
        )
        for snapshot in snapshots:
            interruption.check()
            view.update(snapshot)
            local.keep_alive(evaluated(snapshot.counts))
    if snapshot is None:
        raise SearchError(f"the study {study.name!r} has nothing to show")
    return snapshot


def _announce(study: Study, own: int, warm: int) -> None:
    if own:
        verb = "has" if own >= study.budget else "resumes at"
        so_far = f"{own} of {study.budget} evaluations (--budget is the total)"
        print_message(f"study {study.name} {verb} {so_far}")
    if warm:
        print_message(f"{warm} evaluations of other studies are observations: beside the budget, not trained again")


def _announce_more(study: Study, own: int, budget: int | None) -> None:
    print_message(
        f"study {study.name} has {own} evaluations already, more than the {budget} asked for: nothing is done, "
        f"and its budget stays {study.budget} (--budget is the total)"
    )


def _announce_sources(sources: Sequence[Source], agent: Agent) -> None:
    """Say what becomes of the sources of other tasks."""
    from archive.agents.transfer.source_tasks import too_little

    for source in sources:
        what = f"{len(source.observations)} evaluations of the study {source.study} ({source.task}, {source.space})"
        if not agent.transfers:
            print_message(f"{what} are not used: the agent {agent.kind} learns from its own task alone")
        elif reason := too_little(source):
            print_message(f"{what} tell nothing: {reason}")
        else:
            print_message(f"{what} count as far as they foretell this task")
