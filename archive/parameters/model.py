"""The model of a space: the user's function that builds the network of a configuration.

    space.Space(..., model="models.py:build", example=[3, 32, 32])

The function takes the parameters that its signature names, as keyword arguments, or all of them as
one argument, and returns a `torch.nn.Module`. A space stores names and shapes alone. A trainer finds
the function under its own name of it (`archive.trainer.recipes.registry`), and a search in the
folder of the file that names it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from archive.errors import SettingsError
from archive.values import brief

_REFERENCE = re.compile(r"(?:[^:\0]+\.py|[A-Za-z_][\w.]*):[A-Za-z_][\w.]*")
_SHAPE = re.compile(r"(?:\d+(?:x\d+)*|scalar)(?::\w+)?")


@dataclass(frozen=True)
class Model:
    """A function that builds networks.

    Attributes:
        reference: `file.py:function` or `module:function`.
        inputs: Texts of the shapes of its inputs without the batch, `3x32x32` or `128:int64`.
        example: Reference of a function that returns an example of the inputs instead, with a
            batch; None for none.
        folder: Folder of relative paths on this machine; None where the name comes from a database,
            so that nothing may be imported by it.
    """

    reference: str
    inputs: tuple[str, ...] = ()
    example: str | None = None
    folder: Path | None = field(default=None, compare=False)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of its inputs without the batch; empty where a function returns an example."""
        shapes = []
        for text in self.inputs:
            sides = text.partition(":")[0]
            shape = [] if sides == "scalar" else [int(side) for side in sides.split("x")]
            shapes.append(tuple(shape))

        return tuple(shapes)

    def within(self, folder: Path) -> Model:
        """Return the model with a folder for its relative paths, unless it has one."""
        return self if self.folder is not None else replace(self, folder=folder.absolute())

    def target(self, reference: str) -> str | None:
        """Return a reference of this model with an absolute path; None without a folder."""
        if self.folder is None:
            return None

        source, _, attribute = reference.rpartition(":")
        return f"{self.folder / source}:{attribute}" if source.endswith(".py") else reference

    def json(self) -> dict[str, Any]:
        """Return the names and shapes, as `model_of` takes them."""
        example = list(self.inputs) if self.example is None else self.example
        return {"model": self.reference, "example": example}


def split_model(
    model: Any, example: Any, parameters: Mapping[str, Any]
) -> tuple[Model | None, dict[str, Any]]:
    """Return the model of a space, and its parameters.

    A declaration or a list named `model` is a parameter of that name, as is an example without a
    model.

    Raises:
        SettingsError: It describes no model.
    """
    named = dict(parameters)
    if isinstance(model, str) or callable(model):
        return model_of(model, example), named

    for name, value in (("model", model), ("example", example)):
        if value is not None:
            named[name] = value

    return None, named


def model_of(model: str | Callable[..., Any], example: Any) -> Model:
    """Return a model.

    Args:
        model: Its function, or the reference of it.
        example: Shape of its input without the batch, a list of shapes or of texts such as
            `128:int64`; or a function, or the reference of it.

    Raises:
        SettingsError: One of them cannot be used.
    """
    reference, folder = _reference("model", model)
    if callable(example) or (isinstance(example, str) and ":" in example and _is_name(example)):
        function, _ = _reference("example", example)
        return Model(reference, example=function, folder=folder)

    return Model(reference, _shapes(example), folder=folder)


def _is_name(text: str) -> bool:
    return _REFERENCE.fullmatch(text) is not None


def _reference(role: str, function: Any) -> tuple[str, Path | None]:
    """Return the reference of a function with the folder of its file; None for a text."""
    if isinstance(function, str):
        if not _is_name(function):
            raise SettingsError(
                f"the {role} is given as file.py:function or module:function, got {brief(function)}"
            )

        return function, None

    name = getattr(function, "__qualname__", "<")
    if "<" in name:
        raise SettingsError(
            f"the {role} must be a function at the top level of a file, got {brief(function)}"
        )

    try:
        file = Path(inspect.getfile(function)).absolute()
    except (TypeError, OSError):
        raise SettingsError(
            f'the {role} {name} must be named by a text, as "models.py:{name}": its file is unknown'
        ) from None

    return f"{file.name}:{name}", file.parent


def _shapes(example: Any) -> tuple[str, ...]:
    if isinstance(example, str):
        listed: list[Any] = [example]
    elif isinstance(example, Sequence) and example:
        is_one = all(isinstance(side, int) for side in example)
        listed = [example] if is_one else list(example)
    else:
        listed = [example]

    texts = []
    for shape in listed:
        text = shape if isinstance(shape, str) else _text_of(shape)
        if text is None or not _SHAPE.fullmatch(text):
            raise SettingsError(
                "a model needs an example: the shape of an input without the batch, as "
                f"[3, 32, 32], or '128:int64', got {brief(example)}"
            )

        texts.append(text)

    return tuple(texts)


def _text_of(shape: Any) -> str | None:
    if not isinstance(shape, Sequence):
        return None

    for side in shape:
        if not isinstance(side, int) or isinstance(side, bool) or side < 1:
            return None

    return "x".join(map(str, shape)) or "scalar"
