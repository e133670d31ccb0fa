"""Models of a search: the processes that build the modules of its configurations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archive.parameters.parameter_space import ParameterSpace
    from archive.searches.request import SearchRequest
    from archive.spaces.base import Space
    from archive.store.studies.builds import ConfigurationBuilder
    from archive.trainer.recipes.model_process import ModelProcess


def process_of(space: Space, home: Path | None) -> ModelProcess | None:
    """Return the process that builds the modules of a space; None without a model here."""
    parameters = parameters_of(space)
    if parameters is None or parameters.model is None:
        return None

    # Other spaces need no numpy.
    from archive.trainer.recipes import model_process

    return model_process.process_of(parameters, home)


def builder_of(request: SearchRequest, home: Path) -> ConfigurationBuilder | None:
    """Return what builds the networks of a search's configurations; None without a model here.

    A recipe's own model comes first, as for trainers.
    """
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.recipes.registry import RecipeAccess
    from archive.trainer.tasks.base import Task

    if not isinstance(request.protocol, TrainingProtocol) or not isinstance(request.task, Task):
        return request.builder

    parameters = parameters_of(request.agent.space)
    if parameters is None:
        return None

    from archive.trainer.recipes import model_process

    recipe = RecipeAccess(home).sources.get(request.protocol.recipe)
    if recipe is not None and recipe.model:
        shape = request.task.form(request.protocol).input_shape
        return model_process.process_of_target(recipe.model, parameters, shape)

    return request.builder or model_process.process_of(parameters, home)


def parameters_of(space: Space) -> ParameterSpace | None:
    """Return the parameters of a space of configurations; None for another space."""
    from archive.spaces.parameters import Parameters

    return space.whole.parameters if isinstance(space.whole, Parameters) else None
