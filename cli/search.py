"""`archive search`: a whole search in one command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from archive import __version__
from archive.cli.render import json_option, messages, open_archive, out, print_json
from archive.errors import SearchError, UsageError

if TYPE_CHECKING:
    from archive.agents.base import Agent, Source
    from archive.archive import Archive
    from archive.records import State, Study
    from archive.snapshots import Snapshot
    from archive.trainer.tabular import Reading, TabularTask
    from archive.trainer.tasks import Protocol, Task

TABLE_PAUSE = 0.01
"""Seconds between two looks at a study that a table answers."""


@click.command()
@click.option("--agent", "agent_name", default="nasbot", show_default=True, help="Who proposes.")
@click.option(
    "--task",
    "task_name",
    default="digits",
    show_default=True,
    help="What is learned: a name, csv:PATH#TARGET, npz:PATH, or table:PATH#COLUMN.",
)
@click.option("--protocol", "protocol_name", help="How it is trained and measured [the task's first].")
@click.option("--space", "space_name", help="Where to search [the task's first].")
@click.option("--study", "study_name", help="Name of the study [AGENT-SPACE-TASK]; one that exists is resumed.")
@click.option("--budget", type=int, help="Evaluations in total, those of earlier runs included [20].")
@click.option("--batch", type=click.IntRange(1), help="Proposals kept open at a time [one a trainer].")
@click.option(
    "--warm-start",
    metavar="STUDY[,STUDY…]|all",
    help="Begin with what these studies found; those of other tasks count as far as they foretell this one.",
)
@click.option("--trainers", type=click.IntRange(0), default=1, show_default=True, help="Local trainers to start.")
@click.option("--device", help="Where they train [auto].")
@click.option("--seed", type=click.IntRange(0), help="Seed of the study [0].")
@click.option(
    "--rungs",
    metavar="EPOCHS,…|COUNT",
    help="Pause trainings at these epochs, or at so many rungs; only the best of each rung go on.",
)
@click.option("--reduction", type=click.IntRange(2), help="One of so many goes on from each rung [3].")
@click.option("--retrain", is_flag=True, help="Train networks too whose result other studies have.")
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    agent_name: str,
    task_name: str,
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

    The same command again resumes the study: --budget is the total number of evaluations. Nothing that finished is
    lost when a process is killed. Networks that any study evaluated on the same task and protocol are answered from the
    archive, unless --retrain is given.

    With --rungs (asynchronous successive halving), each training pauses after the first number of epochs, and goes on
    from where it was to the next one if it is among the best third there; the last rung is the whole training. What
    never goes on is pruned, and counts as evaluated.
    """
    from archive import agents
    from archive.agents.opening import open_study
    from archive.cli.rungs import chosen_rungs
    from archive.records import Study
    from archive.trainer import tasks

    task = tasks.get(task_name)
    protocol = task.protocol(protocol_name)
    tasks.prepare(task, protocol)
    space = task.search_space(space_name)
    agent = agents.get(agent_name, space)
    asked = Study(
        name=f"{agent_name}-{space.name}-{task.label}" if study_name is None else study_name,
        task=task.name,
        protocol=protocol.name,
        space=space.name,
        objective=task.objective,
        direction=task.direction,
        config={"agent": agent_name, "protocol": protocol.as_dict(), **chosen_rungs(rungs, reduction, task, protocol)},
        space_config=space.config,
    )
    with open_archive(ctx) as archive:
        study = open_study(archive, asked, budget=budget, seed=seed, sources=_sources(warm_start), agent=agent)
        last = _search(ctx, archive, study, agent, protocol, trainers, batch or max(1, trainers), device, retrain)
        result = _outcome(archive, last.study, agent_name, task, last)
    if as_json:
        print_json(result)
    else:
        _print_outcome(result)


def _sources(text: str | None) -> list[str] | Literal["all"]:
    if text == "all":
        return "all"
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise UsageError(f"--warm-start takes names of studies, or all, got {text!r}")
    return names


def _search(
    ctx: click.Context,
    archive: Archive,
    study: Study,
    agent: Any,
    protocol: Protocol | Reading,
    trainers: int,
    batch: int,
    device: str | None,
    retrain: bool,
) -> Snapshot:
    """Run the loop with its trainers and its view, and return the last snapshot."""
    from archive.agents import loop
    from archive.cli.interruption import Interruption
    from archive.cli.live import LiveView
    from archive.cli.local_trainers import LocalTrainers
    from archive.records import State
    from archive.trainer.tabular import Reading

    counts = archive.studies.snapshot(study.name).counts
    own, under_way = _evaluated(counts), counts[State.WAITING] + counts[State.RUNNING]
    history = loop.history_of(archive, study)
    warm = len(history.observations) - own - archive.studies.snapshot(study.name).counts[State.PRUNED]
    _announce(study, own, warm)
    _announce_sources(history.sources, agent)
    settings = archive.connection.settings
    local = LocalTrainers(0 if own >= study.budget and not under_way else trainers, study.name, settings, device=device)
    snapshot: Snapshot | None = None
    view = LiveView(study, agent.kind, _place(archive), protocol.epochs, warm)
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
            local.keep_alive(_evaluated(snapshot.counts))
    if snapshot is None:
        raise SearchError(f"the study {study.name!r} has nothing to show")
    return snapshot


def _evaluated(counts: Mapping[State, int]) -> int:
    """Return how many proposals have a result for good, or until they go on from a rung."""
    return sum(count for state, count in counts.items() if state.evaluated)


def _place(archive: Archive) -> str:
    """Return where the archive is, in words that hold tomorrow: the embedded server's port does not."""
    settings = archive.connection.settings
    return f"the embedded archive in {settings.home}" if settings.embedded else archive.connection.address


def _announce(study: Study, own: int, warm: int) -> None:
    console = messages()
    if own >= study.budget:
        console.print(
            f"study {study.name} has its {study.budget} evaluations; --budget is the total, a larger one goes on"
        )
    elif own:
        console.print(f"study {study.name} resumes at {own} of {study.budget} evaluations (--budget is the total)")
    if warm:
        console.print(f"{warm} evaluations of other studies are observations: beside the budget, not trained again")


def _announce_sources(sources: Sequence[Source], agent: Agent) -> None:
    """Say what becomes of the sources of other tasks."""
    from archive.agents.sources import too_little

    for source in sources:
        what = f"{len(source.observations)} evaluations of the study {source.study} ({source.task}, {source.space})"
        if not agent.transfers:
            messages().print(f"{what} are not used: the agent {agent.kind} learns from its own task alone")
        elif reason := too_little(source):
            messages().print(f"{what} tell nothing: {reason}")
        else:
            messages().print(f"{what} count as far as they foretell this task")


def _outcome(archive: Archive, study: Study, agent: str, task: Task | TabularTask, last: Snapshot) -> dict[str, Any]:
    """Return what was found, as plain values."""
    from archive.records import State

    best = last.incumbent
    weights = None if best is None else archive.checkpoints.of_evaluation(best.id)
    result: dict[str, Any] = {
        "study": study.name,
        "agent": agent,
        "task": study.task,
        "protocol": study.protocol,
        "space": study.space,
        "objective": study.objective,
        "evaluations": _evaluated(last.counts),
        "pruned": last.counts[State.PRUNED],
        "answered": archive.answers.count(study.name),
        "failed": last.counts[State.FAILED],
        "budget": study.budget,
        "warm_started_from": list(archive.studies.sources(study.name)),
        "server": _place(archive),
        "best": None,
    }
    if best is not None:
        result["best"] = {
            "architecture": best.architecture_key,
            "proposal": best.id,
            "value": best.value,
            "held_out": best.metrics.get(f"test_{task.metric}"),
            "checkpoint": weights and weights.uri,
        }
    return result


def _print_outcome(result: dict[str, Any]) -> None:
    console = out()
    best = result["best"]
    if best is None:
        console.print("no evaluation succeeded; see the reasons with: archive study show " + result["study"])
        return
    metric = result["objective"].removeprefix("valid_")
    held_out = "–" if best["held_out"] is None else f"{best['held_out']:.4g}"
    # A column of a user's table may be a latency, which no data set is held out of.
    trained = result["objective"].startswith("valid_")
    where = f" on validation data, {held_out} on held-out test data" if trained else ""
    console.print(f"\n[bold]best architecture[/]  {best['architecture']}  (proposal {best['proposal']})")
    console.print(f"{metric:<17}  {best['value']:.4g}{where}", soft_wrap=True)
    if result["pruned"]:
        console.print(f"rungs              {result['pruned']} of {result['evaluations']} evaluations were pruned early")
    if result["answered"]:
        counted = f"{result['answered']} of {result['evaluations']} evaluations came from the archive"
        console.print(f"answered           {counted} and were not trained (--retrain does)")
    console.print(f"stored in          {result['server']}, study {result['study']}")
    if best["checkpoint"]:
        console.print(f"weights            {best['checkpoint']}", soft_wrap=True)
    console.print("\nnext:")
    console.print(f"  archive arch show {best['architecture'][:8]}")
    console.print(f"  {_longer(result)}", soft_wrap=True)


def _longer(result: dict[str, Any]) -> str:
    """Return the command that goes on with this study: what is not a default must be said again."""
    said = {"study": result["study"], "budget": 2 * result["budget"]}
    defaults = {option.name: option.default for option in search.params}
    for option in ("agent", "task"):
        if result[option] != defaults[f"{option}_name"]:
            said[option] = result[option]
    said["space"] = result["space"]
    return "archive search " + " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in said.items())
