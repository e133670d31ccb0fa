"""`archive search`: agent, trainers and archive in one command."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from archive.agents.study_setup import agent_of
from archive.cli.exit_codes import ExitCode
from archive.cli.names import AGENT, LAUNCHER, PROTOCOL, RECIPE, SPACE, STUDY, STUDY_LIST, TASK
from archive.cli.parameters import Count, listed, settings_of
from archive.cli.render import json_option, print_fields, print_json, print_line
from archive.cli.study.best import interval, print_pareto
from archive.cli.trainer.options import limit_options, observe_option, proxies_option
from archive.errors import UsageError
from archive.searches.results import unmet_line
from archive.store.metric_names import OWN_UNIT
from archive.values import counted, settings_text

if TYPE_CHECKING:
    from archive.searches.call import GainItem, IncumbentItem, RecommendedItem, SearchResult
    from archive.store.records import Direction, Study


@click.command()
@click.option(
    "--agent",
    "agent_name",
    type=AGENT,
    metavar="AGENT[:NAME=VALUE,…]",
    show_default="the study's, else nasbot, or portfolio on parameters",
    help="Search agent (archive agents); settings after a colon, as in tw:preset=paper.",
)
@click.option(
    "--task",
    "task_name",
    type=TASK,
    show_default="the study's, else digits",
    help="Task: a name (archive tasks), csv:PATH#TARGET, images:FOLDER, npz:PATH, parquet:PATH#TARGET, text:PATH, or table:PATH#COLUMN.",
)
@click.option(
    "--protocol",
    "protocol_name",
    type=PROTOCOL,
    show_default="the study's, else the task's first",
    help="Training protocol of the task (archive protocols).",
)
@click.option(
    "--recipe",
    type=RECIPE,
    show_default="the study's, else default",
    help="Recipe that trains the networks (archive recipes). Results of different recipes are "
    "kept apart.",
)
@click.option(
    "--objective",
    "objectives",
    metavar="METRIC[:minimise|maximise]",
    multiple=True,
    show_default="the study's, else the task's",
    help="Metric to optimise: any that the recipe reports, or a cost (params, latency_ms …). "
    "Repeat it for a front.",
)
@click.option(
    "--constraint",
    "constraints",
    metavar="'METRIC<=NUMBER'",
    multiple=True,
    show_default="the study's, else none",
    help="Bound on a metric or a cost, with <=, <, >= or >: 'params<=0.3M'. Repeat it for several.",
)
@click.option(
    "--direction",
    type=click.Choice(["maximise", "minimise"]),
    show_default="the study's, else the task's",
    help="Whether larger or smaller values of the only objective are better.",
)
@click.option(
    "--space",
    "space_name",
    type=SPACE,
    show_default="the study's, else the task's first",
    help="Search space: a name (archive spaces), or a file of parameters: space.toml, space.py:NAME.",
)
@click.option(
    "--parameters",
    metavar="FILE",
    help="Parameters that are searched beside the networks of the space: knobs.toml, "
    "knobs.py:NAME.",
)
@click.option(
    "--fix",
    "fixed",
    metavar="NAME=VALUE",
    multiple=True,
    help="Keep a parameter of the space at one value. Repeat it for several.",
)
@click.option(
    "--only",
    metavar="NAME[,NAME…]",
    help="Search these parameters alone, the others as in the study's best configuration, or at "
    "their defaults.",
)
@click.option(
    "--study",
    "study_name",
    type=STUDY,
    show_default="AGENT-SPACE-TASK",
    help="Name of the study. A study that exists is resumed with its own settings.",
)
@click.option(
    "--budget",
    type=int,
    metavar="N",
    show_default="the study's, else 20",
    help="Total number of evaluations, earlier runs included.",
)
@click.option(
    "--batch",
    type=Count(1),
    show_default="one per trainer",
    help="Maximum number of pending proposals.",
)
@click.option(
    "--warm-start",
    type=STUDY_LIST,
    metavar="STUDY[,STUDY…]|all|zoo",
    help="Warm-start from these studies, or from published networks. Studies of other tasks are "
    "weighted by how well they predict this one.",
)
@click.option(
    "--trainers",
    type=Count(0),
    default=1,
    help="Number of trainers to start, which end with the search.",
)
@click.option(
    "--on",
    "engine",
    type=LAUNCHER,
    metavar="NAME[:KEY=VALUE,…]",
    default="local",
    help="Engine that runs the trainers: local, slurm … with its options, which archive launch "
    "NAME --help lists.",
)
@click.option(
    "--device",
    metavar="DEVICE",
    show_default="auto",
    help="Device of the trainers: cpu, cuda, cuda:1 …",
)
@click.option(
    "--devices-per-trial",
    type=Count(1),
    default=1,
    help="Devices of each trial, with one process of its recipe on each, under the variables of "
    "torchrun; on a CPU, processes of each trial.",
)
@limit_options
@proxies_option
@observe_option
@click.option(
    "--seed", type=Count(0), show_default="the study's, else 0", help="Random seed of the study."
)
@click.option(
    "--rungs",
    metavar="EPOCHS,…|N",
    show_default="the study's, else none",
    help="Pause trainings after these numbers of epochs, or at N rungs; only the best at each "
    "rung continue.",
)
@click.option(
    "--reduction",
    type=Count(2),
    show_default="the study's, else 3",
    help="At each rung, one of N trainings continues.",
)
@click.option(
    "--stop-when",
    metavar="'gain<NUMBER'|'gain<noise'",
    help="Stop before the budget is spent, when searching on would gain less: than a number in the "
    "objective's unit, or than the noise of an evaluation.",
)
@click.option(
    "--retrain",
    is_flag=True,
    help="Retrain architectures that another study has already evaluated.",
)
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    /,
    agent_name: str | None,
    task_name: str | None,
    protocol_name: str | None,
    recipe: str | None,
    objectives: tuple[str, ...],
    constraints: tuple[str, ...],
    direction: Direction | None,
    space_name: str | None,
    parameters: str | None,
    fixed: tuple[str, ...],
    only: str | None,
    study_name: str | None,
    budget: int | None,
    batch: int | None,
    warm_start: str | None,
    trainers: int,
    engine: str,
    device: str | None,
    devices_per_trial: int,
    proxies: int | None,
    observe: tuple[str, ...],
    seed: int | None,
    rungs: str | None,
    reduction: int | None,
    stop_when: str | None,
    retrain: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Search for architectures: an agent proposes, trainers train, the archive stores every result.

    The same command again resumes the study, and so does --study NAME alone. Options that are left
    out take the study's values. An option that contradicts the study is refused; only the agent and
    the budget may change, and --warm-start adds sources. Finished results survive a killed process.

    A search ends after --budget evaluations, or when every network of a small space is evaluated. A
    network that any study has evaluated by the same task, protocol and recipe gets that result
    without training, except with --retrain.

    --rungs is asynchronous successive halving. A training pauses at the epochs of the first rung,
    and continues to the next rung if it is among the best 1 / --reduction there; the last rung is
    the whole training. Under --constraint, trainings that meet all bounds at the rung come before
    the others. Trainings that never continue are pruned, and count as evaluations.

    With several --objective, the search looks for the Pareto set: networks that no other one
    dominates, by being at least as good in every objective and better in one. Costs that need no
    training (params, flops …) are computed for every candidate. The agent is portfolio, unless
    --agent names another one for several objectives.

    With --constraint, the best network is the best one that meets all bounds. A network whose known
    costs do not meet them is never proposed. Metrics that a training measures are modelled:
    proposals maximise the acquisition times the probability that all bounds are met. Quote the
    text, since < and > redirect in a shell.

    With --stop-when, a model of the results, whatever the agent is, judges after each tenth more
    results. The search ends when the gain is less with 97.5 % probability, twice in a row; open
    trainings are awaited. archive study gain shows the same estimate.
    """
    from archive.cli.search.live import SearchView
    from archive.searches.call import search as run_search
    from archive.settings import load

    sources = (
        "all"
        if warm_start == "all"
        else listed("--warm-start", "the names of studies, or all", warm_start) or ()
    )
    with SearchView() as view:
        result = run_search(
            agent_name,
            task_name,
            space_name,
            parameters=parameters,
            study=study_name,
            protocol=protocol_name,
            recipe=recipe,
            objectives=objectives,
            constraints=constraints,
            fix=_values(fixed),
            only=listed("--only", "names of parameters", only) or (),
            direction=direction,
            budget=budget,
            seed=seed,
            warm_start=sources,
            batch=batch,
            trainers=trainers,
            on=engine,
            device=device,
            devices_per_trial=devices_per_trial,
            observe=observe,
            proxies=proxies,
            rungs=rungs,
            reduction=reduction,
            retrain=retrain,
            stop_when=stop_when,
            settings=load(**settings_of(ctx)),
            progress=view.show,
            archive_command=archive_command(ctx),
            **limits,
        )

    if as_json:
        print_json(result)
    else:
        print_outcome(ctx, result, view.study)

    if result.best is None:
        ctx.exit(ExitCode.NOTHING_SUCCEEDED)


def _values(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of `--fix` by name.

    Raises:
        UsageError: A text is no pair, or a name is given twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip() or name.strip() in values:
            raise UsageError(f"--fix takes NAME=VALUE, once for each parameter, got {text!r}")

        values[name.strip()] = value.strip()

    return values


PASSING = (
    "fixed",
    "only",
    "batch",
    "trainers",
    "engine",
    "device",
    "devices_per_trial",
    "observe",
    "retrain",
    "proxies",
    "stall_seconds",
    "trial_seconds",
    "scratch_bytes",
    "memory_bytes",
)
"""Options that no study stores: the command that continues a search repeats them."""


OUTCOME_WIDTH = 18
"""Width of the names in the outcome of a search."""


def print_outcome(ctx: click.Context, result: SearchResult, study: Study) -> None:
    """Write the result of a search, and the commands that continue from it.

    Args:
        ctx: Context of the search command.
        result: The result.
        study: The stored study.
    """
    best = result.best
    if best is None:
        _print_failure(ctx, result, study)
        return

    _print_best(result, best, study)
    if result.pareto is not None:
        print_line()
        print_pareto(result.pareto)

    print_line()
    print_line("next:")
    print_line(f"  {archive_command(ctx)} arch show {best.architecture[:8]}", wrap=False)
    if not result.exhausted:
        print_line(f"  {longer_search(ctx, result, study)}", wrap=False)


def _print_failure(ctx: click.Context, result: SearchResult, study: Study) -> None:
    """Write why there is no best network."""
    if result.evaluations and study.constraints:
        constraints = [str(constraint) for constraint in study.constraints]
        print_line(unmet_line(constraints, result.evaluations, result.nearest))
    elif result.evaluations + result.failed:
        reasons = f"{archive_command(ctx)} study show {shlex.quote(study.name)}"
        print_line(f"no evaluation succeeded; see the reasons with: {reasons}")
    else:
        print_line("no network was evaluated")


def _print_best(result: SearchResult, best: IncumbentItem, study: Study) -> None:
    """Write the best network, the gain over the initial ones, and where the results are."""
    metric = result.objective.removeprefix("valid_")
    held_out = "" if best.held_out is None else f", {best.held_out:.4g} on held-out test data"
    # A column of a user's table may be a latency, which has no held-out data.
    where = f" on validation data{held_out}" if result.objective.startswith("valid_") else ""
    fields = {"best architecture": f"{best.architecture}  (proposal {best.proposal})"}
    if best.configuration:
        fields["configuration"] = settings_text(best.configuration)

    fields[metric] = f"{best.value:.4g}{where}"
    for name, value in best.error.items():
        fields[name.removeprefix("valid_")] = f"{value:.4g} {OWN_UNIT}"

    if result.recommended is not None:
        fields["recommended"] = _estimate(result.recommended)

    if result.gain is not None:
        fields["gain"] = _gain(result.gain, result.evaluations, study.direction)

    if result.pruned:
        fields["rungs"] = f"{result.pruned} of {result.evaluations} evaluations were pruned early"

    if result.answered:
        answered = f"{result.answered} of {result.evaluations} evaluations came from the archive"
        fields["answered"] = f"{answered} and were not trained (--retrain does)"

    fields["stored in"] = f"{result.server}, study {study.name}"
    if best.weights is not None:
        fields["weights"] = best.weights
    elif best.unsaved is not None:
        fields["weights"] = f"not saved: {best.unsaved}"

    print_line()
    print_fields(fields, OUTCOME_WIDTH)


def _estimate(recommended: RecommendedItem) -> str:
    """Return the recommended network with its estimate, in words."""
    estimate = recommended.expected
    evaluations = counted(estimate.evaluations, "evaluation")
    ends = "" if estimate.low is None else f", 95 %: {interval(estimate)}"
    return f"{recommended.architecture}  (expected {estimate.mean:.4g}{ends}; {evaluations})"


def _gain(gain: GainItem, evaluations: int, direction: str) -> str:
    """Return the gain over the initial networks, in words."""
    if evaluations <= gain.initial:
        return "none yet: only initial networks have been evaluated"

    networks = (
        "initial network" if gain.initial == 1 else (f"best of the {gain.initial} initial networks")
    )
    initial = f"the {networks} ({gain.initial_best:.4g})"
    position = f"found at evaluation {gain.found_at} of {evaluations}"
    if not gain.gain:
        return f"none: no later network is better than {initial}, {position}"

    difference = gain.best - gain.initial_best
    return (
        f"{difference:+.3g} {'over' if direction == 'maximise' else 'from'} {initial}, {position}"
    )


def longer_search(ctx: click.Context, result: SearchResult, study: Study) -> str:
    """Return the command that continues this study; the study supplies task, protocol and space."""
    total = 2 * max(result.budget, result.evaluations)
    parts = [archive_command(ctx), "search --study", shlex.quote(study.name), f"--budget {total}"]
    if result.agent != agent_of(study):
        parts += ["--agent", shlex.quote(result.agent)]

    passing = PASSING if result.stopped else (*PASSING, "stop_when")
    return _command(" ".join(parts), ctx, passing)


def archive_command(ctx: click.Context) -> str:
    """Return the command `archive` with the options that stand before the name of a command."""
    return _command("archive", ctx.find_root())


def _command(name: str, ctx: click.Context, selected: Collection[str] | None = None) -> str:
    """Return a command with its options from the command line, all of them or the selected ones."""
    parts = [name]
    for option in ctx.command.params:
        key = str(option.name)
        if ctx.get_parameter_source(key) is not ParameterSource.COMMANDLINE or (
            selected is not None and key not in selected
        ):
            continue

        values = ctx.params[key]
        for value in values if isinstance(values, tuple) else (values,):
            parts.append(option.opts[0])
            if value is not True:
                parts.append(_quote(value))

    return " ".join(parts)


def _quote(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else shlex.quote(str(value))
