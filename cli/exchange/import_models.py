"""`archive import model` and `archive import onnx`: models in the space `torch`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from archive import runtime
from archive.cli.exchange.provenance import ORIGIN, provenance_of, provenance_options
from archive.cli.names import PROTOCOL, STUDY, TASK
from archive.cli.parameters import Count, Duration
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message
from archive.errors import UsageError
from archive.values import assignments

if TYPE_CHECKING:
    from archive.exchange.importers.models import Place
    from archive.store.records import Result
    from archive.trainer.intake.models import ImportedModel

F = TypeVar("F", bound=Callable[..., Any])

RESULT_FIELDS = ("metrics", "curve", "epochs", "seconds", "seed", "device")
"""Keys of a file of results."""


@dataclass(frozen=True)
class ModelImport:
    """A model that was imported.

    Attributes:
        key: Key of the architecture.
        space: Name of its space.
        layers: Number of its layers.
        edges: Number of its edges.
        params: Number of trained weights.
        flops: Multiply-adds of one input; null where they are not known.
        task: Name of the task; null without a result.
        protocol: How the result was measured; null without one.
        study: Name of the study; null for none.
        proposal: Id of the proposal in the study.
        evaluation: Id of the result; null where the proposal waits for a trainer.
        notes: What the architecture does otherwise than the model in training.
    """

    key: str
    space: str
    layers: int
    edges: int
    params: int | None
    flops: int | None
    task: str | None
    protocol: str | None
    study: str | None
    proposal: str | None
    evaluation: str | None
    notes: list[str]


def result_options(command: F) -> F:
    """Add the options of a result, which both commands have."""
    options = (
        click.option(
            "--metric",
            "metrics",
            multiple=True,
            metavar="NAME=NUMBER",
            help="Metric. May be repeated.",
        ),
        click.option(
            "--results",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help=f"Results as a JSON object: {', '.join(RESULT_FIELDS)}.",
        ),
        click.option(
            "--task",
            type=TASK,
            show_default="the study's",
            help="Task of the results, or of the study.",
        ),
        click.option(
            "--protocol",
            type=PROTOCOL,
            show_default="the study's, else TASK/own, or the task's to train it",
            help="Training protocol.",
        ),
        click.option(
            "--objective",
            metavar="NAME",
            show_default="the study's, else the first metric or the task's",
            help="Metric that is the value.",
        ),
        click.option("--minimise", is_flag=True, help="Smaller values are better."),
        click.option(
            "--study",
            type=STUDY,
            help="Study to add the model to. Without a metric it waits there for a trainer.",
        ),
        click.option(
            "--params", type=Count(0), show_default="counted", help="Number of trained weights."
        ),
        click.option(
            "--flops", type=Count(0), show_default="counted", help="Multiply-adds of one input."
        ),
        click.option("--fold", is_flag=True, help="Fold repeated blocks."),
        provenance_options,
        json_option,
    )
    for option in reversed(options):
        command = option(command)

    return command


@click.command()
@click.argument("reference", metavar="MODULE:FACTORY")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    required=True,
    metavar="SHAPE",
    help="Shape of an input without the batch, as in 3x224x224, or 128:int64. May be repeated.",
)
@click.option(
    "--set",
    "assigned",
    multiple=True,
    metavar="NAME=VALUE",
    help="Argument of the factory. May be repeated.",
)
@click.option("--meta", is_flag=True, help="Make the model without memory for its weights.")
@click.option(
    "--timeout",
    type=Duration(0.1),
    default="15m",
    help="Give up on the factory and the import after this long.",
)
@result_options
@click.pass_context
def model(
    ctx: click.Context,
    /,
    reference: str,
    inputs: tuple[str, ...],
    assigned: tuple[str, ...],
    meta: bool,
    timeout: float,
    **options: Any,
) -> None:
    """Import a PyTorch model as an architecture of the space torch.

    MODULE is imported, and FACTORY called with the arguments of --set; it returns a
    torch.nn.Module, as torchvision.models:resnet18 does. torch.export turns the model, in both
    modes, into operations of the core set. What its training does otherwise than the network is
    said in notes. Its weights are not stored.
    """
    from archive.architecture.aten.wiring import read_input
    from archive.trainer.intake.factories import model_of
    from archive.trainer.intake.models import import_model

    target, result = _results(_complete(ctx, options), reference)
    shapes = list(map(read_input, inputs))
    settings = assignments(assigned, "an argument of the factory")
    late = UsageError(
        f"{reference} takes longer than {timeout:g} s: give it more by --timeout, "
        "or look for a loop that never ends"
    )
    with runtime.limit_time(timeout, late):
        made = model_of(reference, settings, meta=meta)
        imported = import_model(made, shapes, fold=options["fold"])

    if target is not None and result is None:
        _check_trainable(imported, target)

    _store(ctx, imported, target, result, options)


@click.command("onnx")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="SHAPE",
    show_default="the inputs of the file",
    help="Shape of an input without the batch, as in 3x224x224. May be repeated.",
)
@result_options
@click.pass_context
def onnx_file(ctx: click.Context, /, file: Path, inputs: tuple[str, ...], **options: Any) -> None:
    """Import an ONNX FILE as an architecture of the space torch.

    Tensors of real numbers count as trained, except the statistics of batch normalisations. The
    weights are not stored. Needs the extra onnx.
    """
    from archive.architecture.aten.wiring import read_input
    from archive.trainer.intake.models import import_model
    from archive.trainer.intake.onnx_graphs import files
    from archive.trainer.intake.onnx_graphs.module import OnnxModule

    target, result = _results(_complete(ctx, options), file.name)
    model = files.read(file)
    shapes, batch = (list(map(read_input, inputs)), None) if inputs else files.inputs(model)
    imported = import_model(OnnxModule(model, batch), shapes, fold=options["fold"])
    if target is not None and result is None:
        _check_trainable(imported, target)

    _store(ctx, imported, target, result, options)


def _complete(ctx: click.Context, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options; options that are left out are the study's, if it exists."""
    if options["study"] is None:
        return options

    with open_archive(ctx) as archive:
        if options["study"] not in archive.studies.names():
            return options

        study = archive.studies.get(options["study"])

    if options["task"] not in (None, study.task):
        return options

    completed = {**options, "task": study.task, "protocol": options["protocol"] or study.protocol}
    if options["objective"] is None:
        completed["objective"] = study.objective
        completed["minimise"] = options["minimise"] or study.direction == "minimise"

    return completed


def _results(options: Mapping[str, Any], origin: str) -> tuple[Place | None, Result | None]:
    """Return where to add a model and its result, from the options.

    Raises:
        UsageError: Options are missing or contradict each other.
    """
    from archive.exchange.importers.models import Place
    from archive.store.records import Direction, Result

    read = _read(options["results"]) if options["results"] else {}
    metrics = {**read.pop("metrics", {}), **assignments(options["metrics"], "a metric")}
    for name, value in metrics.items():
        if not _is_number(value) or not math.isfinite(value):
            raise UsageError(f"the metric {name} must be a finite number, got {value!s:.60}")

    for option in ("results", "objective", "minimise", *ORIGIN):
        to_train = options["study"] and option in ("objective", "minimise")
        if options[option] and not metrics and not to_train:
            raise UsageError(
                f"--{option} needs a metric: by --metric, or as one of metrics in "
                "the file of --results"
            )

    if options["task"] is None:
        if metrics or options["study"] or options["protocol"]:
            raise UsageError(
                "a metric, a protocol or a study needs --task, "
                "the name of what was or will be learned"
            )

        return None, None

    if not metrics:
        return _place_to_train(options), None

    objective = options["objective"] or next(iter(metrics))
    if objective not in metrics:
        raise UsageError(
            f"the objective {objective!r} must be one of the metrics: {', '.join(metrics)}"
        )

    protocol = options["protocol"] or f"{options['task']}/own"
    direction: Direction = "minimise" if options["minimise"] else "maximise"
    target = Place(options["task"], protocol, objective, direction, options["study"])
    environment = {"imported": origin}
    provenance = {"source": origin, **provenance_of(options)}
    value = float(metrics[objective])
    return target, Result(value, metrics, environment=environment, provenance=provenance, **read)


def _place_to_train(options: Mapping[str, Any]) -> Place:
    """Return the place of a model that a trainer evaluates."""
    from archive.exchange.importers.models import Place
    from archive.store.protocol_names import ProtocolName, check_word
    from archive.trainer.tasks import registry

    if not options["study"]:
        raise UsageError("--task needs a metric, or --study for the model to be trained in")

    task = registry.get(options["task"])
    named = ProtocolName.parse(task.protocol(options["protocol"]).name)
    objective = check_word("metric", options["objective"] or named.objective or task.objective)
    is_task_objective = objective == task.objective
    if is_task_objective and options["minimise"] and task.direction == "maximise":
        raise UsageError(
            f"the task {task.name} maximises {objective}: "
            "--minimise needs a metric, or another --objective"
        )

    minimise = task.direction == "minimise" if is_task_objective else options["minimise"]
    protocol = task.protocol(
        str(replace(named, objective=None if is_task_objective else objective))
    )
    return Place(
        task.name,
        protocol.name,
        objective,
        "minimise" if minimise else "maximise",
        options["study"],
    )


def _check_trainable(imported: ImportedModel, target: Place) -> None:
    """Check before a trainer does that a model suits its task.

    Raises:
        UsageError: It does not.
    """
    from archive.errors import InvalidArchitectureError
    from archive.trainer.nn.aten import network
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.tabular import TabularTask

    task = registry.get(target.task)
    if isinstance(task, TabularTask):
        raise UsageError(
            f"the task {task.name} is a table, which has no result of this model: give a --metric"
        )

    if not imported.params:
        raise UsageError(
            f"the task {task.name} cannot train this model, which has no weights: give a --metric"
        )

    try:
        network.check(imported.architecture, task.form(task.protocol(target.protocol)))
    except InvalidArchitectureError as error:
        raise UsageError(f"the task {task.name} cannot train this model: {error.reason}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"no results can be read from {path}: {type(error).__name__}") from None

    if not isinstance(read, dict) or not isinstance(read.get("metrics", {}), dict):
        raise UsageError(f"{path} must hold a JSON object with the object metrics")

    for name, value in read.items():
        if name not in RESULT_FIELDS:
            raise UsageError(
                f"{path} has the unknown key {name!r:.60}; known: {', '.join(RESULT_FIELDS)}"
            )

        if name != "metrics" and not _fits(name, value):
            bits = (
                "; a whole number has 64 bits, with its sign"
                if type(value) is int and abs(value) >= 2**63
                else ""
            )
            raise UsageError(f"{path} has an invalid {name}: {value!s:.60}{bits}")

    return read


def _fits(name: str, value: Any) -> bool:
    """Return whether a value of a file is of the kind that a result has."""
    from archive.exchange.validators import is_real, is_whole

    if name == "curve":
        return isinstance(value, dict) and all(
            isinstance(values, list) and all(map(_is_number, values)) for values in value.values()
        )

    if name == "device":
        return isinstance(value, str)

    return is_real(value) and 0 <= value < math.inf if name == "seconds" else is_whole(value)


def _is_number(value: Any) -> bool:
    # Metrics are stored as floats.
    return isinstance(value, float) or (type(value) is int and abs(value) <= sys.float_info.max)


def _store(
    ctx: click.Context,
    imported: ImportedModel,
    target: Place | None,
    result: Result | None,
    options: Mapping[str, Any],
) -> None:
    from archive.exchange.importers.models import add_model

    architecture = imported.architecture
    params = imported.params if options["params"] is None else options["params"]
    flops = imported.flops if options["flops"] is None else options["flops"]
    with open_archive(ctx) as archive:
        id_ = add_model(
            archive, architecture, params=params, flops=flops, place=target, result=result
        )

    in_study = target is not None and target.study is not None
    document = ModelImport(
        key=architecture.key,
        space=architecture.space,
        layers=len(architecture.layers),
        edges=len(architecture.edges),
        params=params,
        flops=flops,
        task=None if target is None else target.task,
        protocol=None if target is None else target.protocol,
        study=None if target is None else target.study,
        proposal=id_ if in_study else None,
        evaluation=id_ if result is not None else None,
        notes=list(imported.notes),
    )
    for note in imported.notes:
        print_message(f"note: {note}")

    if options["as_json"]:
        print_json(document)
    else:
        fields = {name: value for name, value in vars(document).items() if value is not None}
        del fields["notes"]
        print_fields(fields, 12)
