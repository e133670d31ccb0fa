"""Search spaces: `spaces.get("cnn")`, `spaces.names()`.

A plug-in package registers a space through an entry point of the group `archive.spaces`: a name,
and a subclass of `Space` with the space's settings as keyword arguments. Its module defines the
vocabulary of that name (`archive.architecture.operations.define`). Spaces of cells, with layers
without units, derive from `archive.spaces.cell.CellSpace`, which provides an initial pool of random
cells, and decisions for the agents that need them. `docs/extending.md` has an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError, UsageError
from archive.registry import Registry
from archive.spaces.base import Mutation, Space
from archive.values import brief

if TYPE_CHECKING:
    from archive.parameters.parameter_space import ParameterSpace

__all__ = ["Mutation", "Space", "beside", "get", "names", "of"]

registry = Registry(
    "space",
    "archive.spaces",
    {
        "choices": "archive.spaces.choices:Choices",
        "cnn": "archive.spaces.cnn:Cnn",
        "darts": "archive.spaces.darts.spaces:Darts",
        "decoder": "archive.spaces.decoder.space:Decoder",
        "graph": "archive.spaces.graph:OperationGraphs",
        "mlp": "archive.spaces.mlp:Mlp",
        "nasbench101": "archive.spaces.nasbench101:NasBench101",
        "nasbench201": "archive.spaces.nasbench201:NasBench201",
        "nasnet": "archive.spaces.darts.spaces:NasNet",
        "parameters": "archive.spaces.parameters:Parameters",
        "program": "archive.spaces.program:RecordedPrograms",
        "torch": "archive.spaces.aten:Torch",
    },
)


def names() -> tuple[str, ...]:
    """Return the names of all spaces, plug-ins included."""
    return registry.names()


def get(name: str, **config: Any) -> Space:
    """Return a space.

    Args:
        name: Its name.
        **config: Its settings by name, default: the space's. `table`, the name or path of a table
            of such networks, restricts the space to the networks of the table. `beside`, parameters
            or their JSON object, puts them beside the networks (`beside`).

    Raises:
        UnknownNameError: No space, or no setting of the space, has this name.
        SettingsError: A setting has an invalid value, or a plug-in space cannot be loaded or made.
    """
    parameters = config.pop("beside", None)
    if parameters is not None:
        return beside(get(name, **config), parameters)

    table = config.pop("table", None)
    if table is not None and not config:
        config = _settings_of(table)

    space = registry.make(name, Space, **config)  # type: ignore[type-abstract]
    return space if table is None else _within(space, table)


def beside(
    space: Space | str, parameters: ParameterSpace | Mapping[str, Any] | str | PathLike[str]
) -> Space:
    """Return the networks of a space with parameters beside them, searched together.

    Args:
        space: A space of networks, or its name.
        parameters: The parameters (`archive.space.Space`), their JSON object, or a file of them,
            `knobs.toml` or `knobs.py:NAME`.

    Raises:
        SettingsError: The file describes no parameters, or they do not fit the space.
        UnknownNameError: There is no such space.
    """
    from archive.parameters import files
    from archive.parameters.parameter_space import ParameterSpace
    from archive.spaces.joint import JointSpace

    networks = of(space)
    if isinstance(parameters, str | PathLike):
        parameters = files.load(fspath(parameters))
    elif isinstance(parameters, Mapping):
        parameters = ParameterSpace.from_json(parameters)

    if not isinstance(parameters, ParameterSpace):
        raise SettingsError(
            "parameters beside a space are space.Space(...) or a file of them, got "
            f"{brief(parameters)}"
        )

    return JointSpace(networks, parameters)


def of(space: Space | ParameterSpace | str | PathLike[str]) -> Space:
    """Return the space that a user names or has made.

    Args:
        space: A space; parameters (`archive.space.Space`); the name of a space; or a file of
            parameters, `space.toml` or `space.py:NAME`.

    Raises:
        UnknownNameError: No space has this name.
        SettingsError: The file describes no space.
        UsageError: It is none of these.
    """
    from archive.parameters import files
    from archive.parameters.parameter_space import ParameterSpace

    if isinstance(space, Space):
        return space

    if isinstance(space, str) and not files.is_file(space):
        return get(space)

    if isinstance(space, PathLike):
        space = fspath(space)

    parameters = files.load(space) if isinstance(space, str) else space
    if not isinstance(parameters, ParameterSpace):
        raise UsageError(
            "a space is space.Space(...), the name of one (archive spaces) or a file, space.toml "
            f"or space.py, got {brief(space)}"
        )

    return get("parameters", parameters=parameters)


def _settings_of(table: Any) -> dict[str, Any]:
    """Return the settings of the space that a table describes.

    None for a space that its name determines.
    """
    from archive.spaces.tables.reader import Table

    return dict(Table.open(table).space_config) if isinstance(table, str) else {}


def _within(space: Space, table: Any) -> Space:
    """Return the subspace of the networks of a table."""
    from archive.spaces.tables.space import TableSpace

    return TableSpace(space, table)
