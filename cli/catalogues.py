"""Commands that list what searches are made of: agents, spaces, kernels."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from archive.cli.names import AGENT
from archive.cli.render import (
    json_option,
    print_fields,
    print_json,
    print_line,
    print_message,
    print_table,
)
from archive.errors import SettingsError, UsageError
from archive.registry import Registry
from archive.values import read_summary

if TYPE_CHECKING:
    from archive.kernels.base import Distance
    from archive.parameters.domains import Domain
    from archive.parameters.leaves import Parameter
    from archive.spaces.base import Space

T = TypeVar("T")

MOST_OPERATIONS = 40
"""Largest number of operations in a cell of the table of spaces."""


@dataclass(frozen=True)
class AgentItem:
    """A search agent; texts are empty where its author gave none.

    Attributes:
        agent: Its name.
        summary: Its method.
        preset: Differences of the published method, `preset=paper`; empty where there is no preset.
        paper: Source of the method.
        cost: Cost of a proposal.
        when: Use case.
        transfers: Whether it learns from studies of other tasks.
        spaces: Names of the only spaces that it searches; empty where it is bound to none.
    """

    agent: str
    summary: str
    preset: str
    paper: str
    cost: str
    when: str
    transfers: bool
    spaces: tuple[str, ...]


@dataclass(frozen=True)
class AgentList:
    """The search agents.

    Attributes:
        agents: By name.
    """

    agents: list[AgentItem]


@dataclass(frozen=True)
class AgentDocument(AgentItem):
    """One search agent.

    Attributes:
        settings: Default of each setting.
    """

    settings: dict[str, Any]


@dataclass(frozen=True)
class SpaceItem:
    """A search space.

    Attributes:
        space: Its name.
        summary: Its networks.
        cells: Whether these are cells.
        operations: Operations of their layers.
        settings: Default of each setting.
    """

    space: str
    summary: str
    cells: bool
    operations: list[str]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class SpaceList:
    """The search spaces.

    Attributes:
        spaces: By name.
    """

    spaces: list[SpaceItem]


@dataclass(frozen=True)
class ParameterItem:
    """A parameter of a space.

    Attributes:
        parameter: Its flat name.
        kind: `integer`, `real`, `choice` or `constant`.
        values: Its values, in words.
        when: Condition without which it does not exist; empty for none.
        default: Its default; null where it has none.
    """

    parameter: str
    kind: str
    values: str
    when: str
    default: Any


@dataclass(frozen=True)
class ParameterList:
    """The parameters of a space in a file.

    Attributes:
        parameters: The parameters, groups flattened.
        constraints: What every configuration meets.
        combinations: Product of the numbers of values, at least the number of configurations;
            null with a real parameter.
    """

    parameters: list[ParameterItem]
    constraints: list[str]
    combinations: int | None


@dataclass(frozen=True)
class KernelItem:
    """A kernel.

    Attributes:
        kernel: Its name.
        summary: The distance that it measures.
        components: Components of the distance.
        settings: Default of each setting.
    """

    kernel: str
    summary: str
    components: list[str]
    settings: dict[str, Any]


@dataclass(frozen=True)
class KernelList:
    """The kernels.

    Attributes:
        kernels: By name.
    """

    kernels: list[KernelItem]


@click.command()
@click.argument("name", type=AGENT, required=False)
@json_option
def agents(name: str | None, as_json: bool) -> None:
    """List the search agents, or show the agent NAME: its paper, its cost, its settings and their
    defaults.
    """
    if name is not None:
        _show_agent(name, as_json)
        return

    from archive.agents.catalogue import infos
    from archive.agents.registry import registry

    report_unused(registry)
    items = [AgentItem(agent=name, **asdict(info)) for name, info in infos().items()]
    if as_json:
        print_json(AgentList(items))
    else:
        rows = [(item.agent, item.summary, item.when) for item in items]
        print_table(("agent", "method", "choose it for"), rows)


def _show_agent(name: str, as_json: bool) -> None:
    from archive import agents as package
    from archive.agents.catalogue import info

    settings = package.settings(name)
    document = AgentDocument(agent=name, **asdict(info(name)), settings=settings)
    if as_json:
        print_json(document)
        return

    fields = {name: value for name, value in vars(document).items() if value not in ("", ())}
    del fields["settings"]
    print_fields(fields, 9)
    if settings:
        print_table(("setting", "default"), list(settings.items()))


@click.command()
@click.argument("file", required=False)
@json_option
def spaces(file: str | None, as_json: bool) -> None:
    """List the search spaces: their networks, whether these are cells, their operations and
    settings. Or check FILE, a space of parameters, and list these: space.toml, space.py:NAME.
    """
    from archive import spaces as registry

    if file is not None:
        _show_parameters(file, as_json)
        return

    report_unused(registry.registry)
    items = [_space_item(space) for space in load_each(registry.names(), registry.get)]
    if as_json:
        print_json(SpaceList(items))
        return

    rows = []
    for item in items:
        operations = ", ".join(item.operations)
        if len(item.operations) > MOST_OPERATIONS:
            operations = f"{len(item.operations)}, listed by --json"

        rows.append((item.space, item.summary, item.cells, operations, _cell(item.settings)))

    print_table(("space", "summary", "cells", "operations", "settings"), rows)


def _show_parameters(file: str, as_json: bool) -> None:
    from archive.parameters import files

    if not files.is_file(file):
        raise UsageError(f"archive spaces takes a file, space.toml or space.py:NAME, got {file!r}")

    space = files.load(file)
    items = list(map(_parameter_item, space.parameters))
    constraints = [constraint.text for constraint in space.constraints]
    combinations = None if math.isinf(space.size) else int(space.size)
    if as_json:
        print_json(ParameterList(items, constraints, combinations))
        return

    rows = []
    for item in items:
        expected = "" if item.default is None else json.dumps(item.default)
        rows.append((item.parameter, item.kind, item.values, item.when, expected))

    print_table(("parameter", "kind", "values", "when", "default"), rows)
    for constraint in constraints:
        print_line(f"constraint      {constraint}")

    number = "unlimited" if combinations is None else f"at most {combinations:,}"
    print_line(f"configurations  {number}")


def _parameter_item(parameter: Parameter) -> ParameterItem:
    from archive.parameters.declaration import NO_DEFAULT

    supplied = parameter.default is not NO_DEFAULT
    return ParameterItem(
        parameter=parameter.name,
        kind=parameter.domain.kind,
        values=_describe(parameter.domain),
        when=" and ".join(condition.text for condition in parameter.conditions),
        default=parameter.default if supplied else None,
    )


def _describe(domain: Domain) -> str:
    """Return the values of a domain in words."""
    from archive.parameters.domains import Choice, Constant

    if isinstance(domain, Constant):
        return json.dumps(domain.value)

    if isinstance(domain, Choice):
        shown = ", ".join(map(json.dumps, domain.options[:MOST_OPERATIONS]))
        more = ", …" if len(domain.options) > MOST_OPERATIONS else ""
        return f"{shown}{more}, in this order" if domain.ordered else f"{shown}{more}"

    steps = ""
    if domain.step is not None and (domain.kind, domain.step) != ("integer", 1):
        steps = f" in steps of {domain.step:g}"

    scale = ", log scale" if domain.log else ""
    return f"{domain.low:g} to {domain.high:g}{steps}{scale}"


def _space_item(space: Space) -> SpaceItem:
    from archive.architecture.operations import INPUT, OUTPUT, vocabulary

    labels = vocabulary(space.name).operations
    return SpaceItem(
        space=space.name,
        summary=read_summary(type(space)),
        cells=space.is_cell,
        operations=[label for label in labels if label not in (INPUT, OUTPUT)],
        settings=space.config,
    )


@click.command()
@json_option
def kernels(as_json: bool) -> None:
    """List the kernels: what each measures, the components of its distance, its settings and their
    defaults.

    `archive arch distance` and `archive arch nearest` use them; --set NAME=VALUE changes a setting.
    """
    from archive import kernels as registry
    from archive.kernels import registry as plug_ins

    report_unused(plug_ins)
    items = [_kernel_item(kernel) for kernel in load_each(registry.names(), registry.get)]
    if as_json:
        print_json(KernelList(items))
    else:
        print_items(("kernel", "summary", "components", "settings"), items)


def _kernel_item(kernel: Distance[Any]) -> KernelItem:
    settings = {}
    for parameter in inspect.signature(type(kernel)).parameters.values():
        if parameter.default is not parameter.empty:
            settings[parameter.name] = parameter.default

    return KernelItem(
        kernel=kernel.name,
        summary=read_summary(type(kernel)),
        components=list(kernel.components),
        settings=settings,
    )


def report_unused(registry: Registry) -> None:
    """Write which entry points of installed packages are not used, since their names are taken."""
    for sentence in registry.unused():
        print_message((sentence, "yellow"))


def load_each(names: Iterable[str], get: Callable[[str], T]) -> Iterator[T]:
    """Yield the registered object of each name; an object that cannot be loaded is reported.

    One broken package must not hide everything that the others have registered.
    """
    for name in names:
        try:
            yield get(name)
        except SettingsError as error:
            print_message((f"{name} is left out: {error}", "yellow"))


def print_items(columns: Sequence[str], items: Iterable[object]) -> None:
    """Write a table with a row for each item; the columns are attributes."""
    print_table(columns, [[_cell(getattr(item, column)) for column in columns] for item in items])


def _cell(value: Any) -> Any:
    """Return a value as a table shows it: lists and settings as text, separated by commas."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={default}" for name, default in value.items())

    return ", ".join(value) if isinstance(value, list) else value
