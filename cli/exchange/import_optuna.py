"""`archive import optuna`: a study of Optuna as a study of the archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import click

from archive import files
from archive.cli.exchange.provenance import provenance_of, provenance_options
from archive.cli.names import RECIPE, SPACE, TASK
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message
from archive.errors import UsageError

if TYPE_CHECKING:
    import optuna as optuna_package

    from archive.api import Archive
    from archive.exchange.importers.optuna.study import Read
    from archive.spaces.base import Space


@dataclass(frozen=True)
class StudyImport:
    """A study that was imported.

    Attributes:
        study: Its name in the archive.
        task: Name of the task.
        protocol: How it was measured.
        space: Name of its space.
        evaluated: Trials with a result.
        pruned: Trials that were pruned after they had reported a value.
        failed: Trials without one.
        left_out: Trials that are not finished.
    """

    study: str
    task: str
    protocol: str
    space: str
    evaluated: int
    pruned: int
    failed: int
    left_out: int


@click.command(short_help="Import an Optuna study.")
@click.argument("reference", metavar="URL#STUDY")
@click.option(
    "--task",
    type=TASK,
    show_default="the study's name, for ask and tell",
    help="Task of the study.",
)
@click.option(
    "--space",
    type=SPACE,
    show_default="the parameters of the trials",
    help="Search space of the architectures, or a file of parameters: space.toml, space.py:NAME.",
)
@click.option(
    "--protocol", metavar="NAME", show_default="TASK/own", help="Name of the training protocol."
)
@click.option(
    "--recipe",
    type=RECIPE,
    help="Recipe that trained the trials: archive search --study NAME continues with it.",
)
@click.option(
    "--study",
    metavar="NAME",
    show_default="Optuna's name",
    help="Name of the study in the archive.",
)
@click.option(
    "--objective",
    "objectives",
    metavar="NAME",
    multiple=True,
    show_default="Optuna's metric names, else the recipe's objective, else value",
    help="Name of an optimised metric; of several, in their order. May be repeated.",
)
@click.option(
    "--architecture",
    "function",
    metavar="MODULE:FUNCTION",
    help="Function that returns the architecture for the parameters of a trial.",
)
@provenance_options
@json_option
@click.pass_context
def optuna(
    ctx: click.Context,
    /,
    reference: str,
    task: str | None,
    space: str | None,
    protocol: str | None,
    recipe: str | None,
    study: str | None,
    objectives: tuple[str, ...],
    function: str | None,
    as_json: bool,
    **origin: str | None,
) -> None:
    """Import an Optuna study, sqlite:///FILE#STUDY, with its parameters or with architectures.

    Without --space, the distributions of the trials become a space of parameters. A parameter that
    some trials lack exists under the condition on another one that explains it, or under a switch
    has_NAME. Agents continue the study.

    With the --space of an architecture, the architecture of a trial is its user attribute
    `architecture` (JSON, a NAS-Bench-201 string or a genotype), the result of --architecture for
    its parameters, or the network of its parameters as decisions of `archive search --agent tpe`.

    Several objectives, constraints, pruned trials with their curves, times and user attributes are
    kept; a NaN or an infinity fails its trial.
    """
    from archive import spaces
    from archive.exchange.importers.optuna import import_study, objective_names, open_study
    from archive.store.records import Objective, Study
    from archive.store.studies.creation import PARAMETERS

    if function and space is None:
        raise UsageError("--architecture makes networks of a space: name it with --space")

    search_space = None if space in (None, PARAMETERS) else spaces.of(str(space))
    convert = None if function is None else _load_function(function)
    external = open_study(reference)
    name = study or external.study_name
    with open_archive(ctx) as archive:
        names = objective_names(archive, external, name, objectives)
        if recipe is not None and names == ["value"] and not objectives:
            names = [_objective_of(task or name)]

        content = _content_of(archive, external, name, search_space, convert)
        task = task or name
        target = Study(
            name,
            task,
            protocol or _protocol(task, recipe, names[0], content.space.name),
            content.space.name,
            names[0],
            space_config=content.space.config,
            further=tuple(map(Objective, names[1:])),
        )
        counts = import_study(
            archive,
            external,
            target,
            content.read,
            print_message,
            content.renamed,
            provenance_of(origin),
        )

    for line in content.lines:
        print_message(line)

    imported = StudyImport(name, task, target.protocol, target.space, **counts)
    if as_json:
        print_json(imported)
    else:
        print_fields(vars(imported), 12)


@dataclass(frozen=True)
class _TrialContent:
    """How the trials of a study are read.

    Attributes:
        space: Their space.
        read: Function that reads a trial.
        renamed: Names in the trials by the names of the parameters, where they differ.
        lines: Lines for the user on what the trials did not say.
    """

    space: Space
    read: Read
    renamed: Mapping[str, str]
    lines: Sequence[str] = ()


def _content_of(
    archive: Archive,
    external: optuna_package.Study,
    name: str,
    space: Space | None,
    function: Callable[[Mapping[str, Any]], Any] | None,
) -> _TrialContent:
    """Return how the trials of a study of Optuna are read.

    Args:
        archive: The archive.
        external: The study of Optuna.
        name: Name of the study in the archive.
        space: The requested space; None for the parameters of the trials.
        function: The user's function that makes networks of the space.
    """
    from archive.agents.encodings import decisions_of, from_choices
    from archive.exchange.importers.optuna import find_space
    from archive.exchange.importers.optuna.trials import by_function, reader
    from archive.spaces.parameters import Parameters

    if space is None or (isinstance(space, Parameters) and function is None):
        requested = None if space is None else space.parameters
        content = find_space(archive, external, name, requested)
        lines = list(content.describe()) if requested is None else []
        return _TrialContent(content.search_space, content.read, content.renamed, lines)

    if function is not None:
        choose = by_function(function)
    else:
        choose = partial(from_choices, decisions_of(space, "tpe"))

    return _TrialContent(space, reader(space, choose), {})


def _objective_of(task: str) -> str:
    """Return the metric that recipes of a task report."""
    from archive.trainer.tasks import registry

    return registry.get(task).objective


def _protocol(task: str, recipe: str | None, objective: str, space: str) -> str:
    """Return the name of the protocol of trials that a recipe trained, or of the user's own."""
    from archive.store.protocol_names import ProtocolName, check_word
    from archive.trainer.tasks import registry

    if recipe is None:
        return f"{task}/own"

    trained = registry.get(task)
    changes: dict[str, Any] = {"recipe": check_word("recipe", recipe)}
    if objective != trained.objective:
        changes["objective"] = check_word("metric", objective)

    name = replace(ProtocolName.parse(trained.protocol(None, space).name), **changes)
    return trained.protocol(str(name)).name


def _load_function(reference: str) -> Callable[[Mapping[str, Any]], Any]:
    module, separator, name = reference.partition(":")
    if not separator or not module or not name:
        raise UsageError(f"--architecture takes MODULE:FUNCTION, got {reference!r}")

    try:
        function = attrgetter(name)(files.imported(module))
    except (Exception, SystemExit) as error:
        reason = f"{next(iter(str(error).splitlines()), ''):.200}"
        if not isinstance(error, ImportError | AttributeError):
            reason = f"{type(error).__name__}: {reason}"

        raise UsageError(f"--architecture {reference} cannot be loaded: {reason}") from None

    if not callable(function):
        raise UsageError(
            f"--architecture {reference} must be a function, got {type(function).__name__}"
        )

    read: Callable[[Mapping[str, Any]], Any] = function
    return read
