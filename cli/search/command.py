"""`archive search`: agent, trainers and archive in one command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archive.cli.exit_codes import ExitCode
from archive.cli.names import AGENT, LAUNCHER, PROTOCOL, RECIPE, SPACE, STUDY, STUDY_LIST, TASK
from archive.cli.parameters import Count, listed, settings_of
from archive.cli.render import json_option, print_json
from archive.cli.search.report import archive_command, print_outcome
from archive.cli.trainer.options import limit_options, observe_option, proxies_option

if TYPE_CHECKING:
    from archive.store.records import Direction


@click.command()
@click.option(
    "--agent",
    "agent_name",
    type=AGENT,
    metavar="AGENT[:NAME=VALUE,…]",
    show_default="the study's, else nasbot",
    help="Search agent (archive agents); settings after a colon, as in tw:preset=paper.",
)
@click.option(
    "--task",
    "task_name",
    type=TASK,
    show_default="the study's, else digits",
    help="Task: a name (archive tasks), csv:PATH#TARGET, npz:PATH, or table:PATH#COLUMN.",
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
    help="Search space (archive spaces).",
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
    metavar="STUDY[,STUDY…]|all",
    help="Warm-start from these studies. Studies of other tasks are weighted by how well they "
    "predict this one.",
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
    study_name: str | None,
    budget: int | None,
    batch: int | None,
    warm_start: str | None,
    trainers: int,
    engine: str,
    device: str | None,
    proxies: int | None,
    observe: tuple[str, ...],
    seed: int | None,
    rungs: str | None,
    reduction: int | None,
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
            study=study_name,
            protocol=protocol_name,
            recipe=recipe,
            objectives=objectives,
            constraints=constraints,
            direction=direction,
            budget=budget,
            seed=seed,
            warm_start=sources,
            batch=batch,
            trainers=trainers,
            on=engine,
            device=device,
            observe=observe,
            proxies=proxies,
            rungs=rungs,
            reduction=reduction,
            retrain=retrain,
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
