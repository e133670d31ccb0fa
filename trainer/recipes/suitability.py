"""Fit of a study's task, space and recipe, as far as it shows before any training.

| what is known                                   | where it comes from                              |
|-------------------------------------------------|--------------------------------------------------|
| kind of task, shape of inputs, number of classes | the task                                        |
| kinds of tasks, spaces, inputs of the recipe    | its declaration (`archive.trainer.recipes.declarations`) |
| parameters and modules that every trial reads   | the text of the recipe                           |
| whether the model takes the task's inputs       | one build on the device `meta` (`check_model`)   |

Searches, trainers and the MCP server ask the same function, so that a study that cannot be trained
is refused in one line, wherever it shows first.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from archive.architecture.layer import BESIDE
from archive.errors import ArchiveError, SettingsError, UnknownNameError, UsageError
from archive.store.protocol_names import DEFAULT_RECIPE
from archive.store.studies.creation import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from archive.parameters.parameter_space import ParameterSpace
    from archive.store.records import Study
    from archive.trainer.recipes.declarations import RecipeDeclaration
    from archive.trainer.recipes.model_answers import Shape
    from archive.trainer.recipes.registry import RecipeAccess
    from archive.trainer.recipes.source import RecipeSource
    from archive.trainer.tasks.base import Task
    from archive.trainer.tasks.file_access import FileAccess

HYPERPARAMETERS = ("learning_rate", "weight_decay", "dropout", "max_norm", "batch_size")
"""Names that agents may set beside any network (`archive.trainer.fit.hyperparameters`)."""

MOST_NAMES = 12
"""Most names of parameters in a message."""

CONFIGURATIONS = 3
"""Configurations of which one must have a model that can be built."""


def check_suitable(study: Study, task: Task, recipes: RecipeAccess) -> None:
    """Check that a study's recipe is written for its task and its space.

    Nothing is imported.

    Args:
        study: The study, with the names of its protocol and its space.
        task: Its task.
        recipes: The recipes of this machine.

    Raises:
        UsageError: It is not; the message is one line with the ways out.
        SettingsError: The recipe is not on this machine, or its declaration cannot be read.
        UnknownNameError: The task has no such protocol.
    """
    source = recipes.find(task.protocol(study.protocol).recipe)
    model = recipes.model_of(source, study.space_config.get("model"))
    if study.space == PARAMETERS:
        named = model is not None or study.space_config.get("model") is not None
        check_trained(source.name, model=named)

    declaration = source.declaration()
    for fault in (
        _task_fault(declaration, task),
        _space_fault(declaration, study),
        _inputs_fault(declaration, task),
        _reads_fault(declaration, study.space, study.space_config),
        _module_fault(declaration, source, study, model=model is not None),
    ):
        if fault:
            raise UsageError(f"the recipe {source.name!r} {fault}")


def check_known(study: Study, recipes: RecipeAccess, access: FileAccess | None) -> None:
    """Check a study as far as this machine knows its task and its recipe.

    Args:
        study: The study.
        recipes: The recipes of this machine.
        access: Files that may be opened because the study names them; None for any, as its user
            names it here.

    Raises:
        UsageError: Its recipe is not written for its task or its space.
    """
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.base import Task

    try:
        task = registry.get(study.task) if access is None else registry.of_study(study, access)
    except ArchiveError:
        return

    if isinstance(task, Task):
        # Trainers elsewhere may have the protocol and the recipe.
        with suppress(SettingsError, UnknownNameError):
            check_suitable(study, task, recipes)


def check_trained(recipe: str, *, model: bool) -> None:
    """Check that something makes networks of a space of parameters.

    Args:
        recipe: Name of the recipe.
        model: Whether the space or the recipe has a model.

    Raises:
        UsageError: The built-in training would have to.
    """
    if recipe == DEFAULT_RECIPE and not model:
        raise UsageError(
            "the built-in training makes no network of parameters: name a recipe that does, "
            "--recipe NAME (archive recipes lists yours, and archive init writes one), or give the "
            "space a model"
        )


def _task_fault(declaration: RecipeDeclaration, task: Task) -> str:
    if not declaration.tasks or task.kind in declaration.tasks:
        return ""

    return (
        f"is for {' and '.join(declaration.tasks)} ({declaration.place}), and the task "
        f"{task.name!r} is a {task.kind}: choose another task or recipe, or change its tasks there"
    )


def _space_fault(declaration: RecipeDeclaration, study: Study) -> str:
    if not declaration.spaces or study.space in declaration.spaces:
        return ""

    spaces = " and ".join(_words(space) for space in declaration.spaces)
    return (
        f"is for {spaces} ({declaration.place}), and this is {_words(study.space)}: "
        f"{_way_to(declaration.spaces[0])}, or choose another recipe"
    )


def _words(space: str) -> str:
    return "a space of parameters" if space == PARAMETERS else f"the space {space}"


def _way_to(space: str) -> str:
    return "name its file, --space space.toml" if space == PARAMETERS else f"--space {space}"


def _inputs_fault(declaration: RecipeDeclaration, task: Task) -> str:
    form = "images" if len(task.input_shape) == 3 else "features"
    if declaration.inputs in (None, "any", form):
        return ""

    taken = "images" if declaration.inputs == "images" else "rows of numbers"
    return (
        f"takes {taken} ({declaration.place}), and an input of the task {task.name!r} is "
        f"{_shape_words(task.input_shape)}: choose another task or recipe"
    )


def _shape_words(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"{shape[0]} numbers"

    sides = " x ".join(str(side) for side in shape)
    return f"an image of {sides}" if len(shape) == 3 else f"an array of {sides}"


def _reads_fault(
    declaration: RecipeDeclaration, space: str, space_config: Mapping[str, Any]
) -> str:
    document = space_config if space == PARAMETERS else space_config.get(BESIDE, {})
    names = [name for name, _ in document.get("parameters") or ()]
    for name, position in declaration.reads.items():
        if name in names or name in HYPERPARAMETERS:
            continue

        if not document:
            return (
                f"reads trial.parameters[{name!r}] ({position}), and networks of the space {space} "
                "have no parameters: name a file of them, --space space.toml, or --parameters "
                "knobs.toml beside the networks"
            )

        return (
            f"reads trial.parameters[{name!r}] ({position}), and the space has no such parameter: "
            f"it has {_listed(names)}; add it, or read it by .get"
        )

    return ""


def _listed(names: list[str]) -> str:
    """Return the first names, and how many there are in all."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names)

    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"


def _module_fault(
    declaration: RecipeDeclaration, source: RecipeSource, study: Study, *, model: bool
) -> str:
    if study.space != PARAMETERS or model or source.name == DEFAULT_RECIPE:
        return ""

    if declaration.module and study.space_config.get("model") is None:
        return (
            f"trains trial.module() ({declaration.module}), and nothing makes one of the "
            'parameters: write model = "models.py:build" beside fit in recipes.toml'
        )

    if not declaration.configured and source.command is None:
        return (
            "reads no parameters, so that all trials of the space would be alike: read "
            "trial.parameters in it, or choose another recipe"
        )

    return ""


def check_model(
    space: ParameterSpace, task: Task, source: RecipeSource, recipes: RecipeAccess
) -> None:
    """Check that the model of a space can be built, and takes the inputs of a task.

    It is built once in a process that is bounded in time and memory
    (`archive.trainer.recipes.model_process`), on the device `meta` where it can be. A process that
    does not answer refuses nothing.

    The default recipe feeds the task's inputs to the model as they are, and compares its outputs
    with the classes. Another recipe may reshape inputs first: it is refused where a model of images
    meets a table or the other way round, and no reshaped input fits either.

    Args:
        space: The parameters, with their model.
        task: The task.
        source: The recipe.
        recipes: The recipes of this machine.

    Raises:
        UsageError: It cannot; the message has the error and its place.
    """
    from archive.trainer.recipes.model_process import ModelProcess

    reference = None if space.model is None else space.model.reference
    model = recipes.model_of(source, reference)
    declaration = source.declaration()
    default = source.name == DEFAULT_RECIPE
    if model is None or not (default or declaration.module):
        return

    example = () if space.model is None else space.model.shapes
    shapes = [task.input_shape]
    if not default:
        shapes = _reshaped(task.input_shape, example)

    process = ModelProcess(model.target, [])
    try:
        for configuration in _configurations(space):
            answer = process.try_inputs(configuration, shapes)
            if answer is None or not answer.fault:
                break
    finally:
        process.close()

    if answer is None:
        return

    name = f"the model {(reference or model.target.rpartition('/')[2])!r}"
    if answer.fault and not answer.built:
        raise UsageError(f"{name} cannot be built: {answer.fault}")

    if answer.fault and (default or (declaration.inputs != "any" and _differs(example, task))):
        raise UsageError(
            f"{name} does not take inputs of the task {task.name!r}, "
            f"{_shape_words(task.input_shape)}: {answer.fault}"
        )

    if default and not answer.fault and answer.outputs != (task.outputs,):
        words = " x ".join(map(str, answer.outputs)) or "no dimension"
        outputs = "1 value" if task.kind == "regression" else f"{task.outputs} classes"
        raise UsageError(
            f"{name} has outputs of {words} for each input, and the task {task.name!r} has "
            f"{outputs}: let it return (inputs, {task.outputs})"
        )


def _configurations(space: ParameterSpace) -> list[dict[str, Any]]:
    """Return a few configurations as trees, the central one first."""
    import numpy as np

    configurations = []
    central = space.complete({})
    if space.allows(central):
        configurations.append(space.nested(central))

    rng = np.random.default_rng(0)
    while len(configurations) < CONFIGURATIONS:
        configurations.append(space.nested(space.sample(rng)))

    return configurations


def _reshaped(shape: Shape, example: tuple[Shape, ...]) -> list[Shape]:
    """Return the shapes that a recipe may give to an input without changing its values."""
    size = math.prod(shape)
    shapes = [shape, (size,), (1, size), (size, 1)]
    for other in example:
        if math.prod(other) == size:
            shapes.append(other)

    return shapes


def _differs(example: tuple[Shape, ...], task: Task) -> bool:
    """Return whether one of model and task has images, and the other rows of numbers."""
    if not example:
        return len(task.input_shape) == 1

    return all((len(shape) >= 3) != (len(task.input_shape) == 3) for shape in example)
