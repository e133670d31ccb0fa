"""Models that a user's own code makes: `MODULE:FACTORY`, from the command line only."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn

from archive.errors import UnknownNameError, UsageError
from archive.trainer.intake.weightless import without_weights


def model_of(reference: str, settings: Mapping[str, Any], *, meta: bool = False) -> nn.Module:
    """Import a module, and return the model that its factory makes; its prints go to stderr.

    Args:
        reference: `MODULE:FACTORY`; modules of the current folder are found, and files
            `FOLDER/MODULE.py:FACTORY`. A factory is a
            function or a class that returns a `torch.nn.Module`, or such a module.
        settings: Keyword arguments of the factory.
        meta: Make the model without memory for its weights.

    Raises:
        UsageError: The module cannot be imported, has no such factory, or that raises an error or
            returns no model.
    """
    module, separator, name = reference.partition(":")
    if not separator or not module or not name:
        raise UsageError(
            "a model is given as MODULE:FACTORY, as in "
            f"torchvision.models:resnet18, got {reference!r}"
        )

    with redirect_stdout(sys.stderr):
        factory = _factory(module, name)
        if isinstance(factory, nn.Module):
            return factory

        try:
            with without_weights() if meta else nullcontext():
                model = factory(**settings)
        except (Exception, SystemExit) as error:
            raise UsageError(f"the factory {reference} raised {_describe(error)}") from error

    if not isinstance(model, nn.Module):
        raise UsageError(
            f"the factory {reference} must return a torch.nn.Module, got {type(model).__name__}"
        )

    return model


def _factory(module: str, name: str) -> Any:
    file = Path(module)
    folder = str(Path.cwd())
    if file.suffix == ".py":
        folder = str(file.parent.absolute())
        module = file.stem

    if folder not in sys.path:
        sys.path.insert(0, folder)

    try:
        target: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise UsageError(
                f"there is no module {error.name!r}: "
                "install its package, or run the command in its folder"
            ) from error

        raise UsageError(
            f"the module {module!r} cannot be imported: it needs {error.name!r}"
        ) from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"the module {module!r} cannot be imported: {_describe(error)}") from error

    for part in name.split("."):
        if not hasattr(target, part):
            callables: list[str] = []
            for attribute in dir(target):
                if not attribute.startswith("_") and callable(getattr(target, attribute)):
                    callables.append(attribute)

            raise UnknownNameError(f"factory of {module}", name, callables)

        target = getattr(target, part)

    if not callable(target):
        raise UsageError(
            f"the factory {module}:{name} must be callable, got {type(target).__name__}"
        )

    return target


def _describe(error: BaseException) -> str:
    """Return an error with the line of code that raised it, without a traceback."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__
    ]
    location = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first:.200}{location}"
