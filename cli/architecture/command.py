"""`archive arch`: architectures, their distances and neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from archive import words
from archive.cli.architecture.argument import (
    architecture_of,
    decoder_of,
    networks_of,
    setting_option,
)
from archive.cli.architecture.diff import diff
from archive.cli.architecture.draw import draw
from archive.cli.architecture.export import export
from archive.cli.architecture.nearest import nearest
from archive.cli.architecture.proxies import proxies
from archive.cli.groups import CommandGroup
from archive.cli.names import KERNEL
from archive.cli.parameters import AliasedOption
from archive.cli.render import (
    json_option,
    open_archive,
    print_fields,
    print_json,
    print_line,
    print_message,
    print_table,
)
from archive.errors import InvalidArchitectureError, UsageError
from archive.values import assignments, settings_text

if TYPE_CHECKING:
    from archive.architecture.decoders.design import Design
    from archive.architecture.graph import Architecture
    from archive.architecture.outline.summary import OutlineRow
    from archive.queries.results_of import EvaluationItem


@dataclass(frozen=True)
class ProxyItem:
    """A zero-cost proxy of an architecture.

    Attributes:
        task: Name of the task whose inputs it was measured with.
        protocol: Protocol of the task.
        source: Definitions of the proxies: `archive/1`, or an imported table.
        proxy: Name of the proxy.
        score: The score; null where the proxy is not defined for the network.
    """

    task: str
    protocol: str
    source: str
    proxy: str
    score: float | None


@dataclass(frozen=True)
class ArchitectureDocument:
    """One architecture.

    Attributes:
        key: Identity of the labelled graph.
        functional_key: The same without layers on no path from input to output.
        space: Name of the space.
        depth: Layers on the longest path.
        layers: Number of layers.
        edges: Number of edges.
        mass: Sum of the layers' masses.
        params: Number of trained parameters, once it is known.
        flops: Multiply-adds of one input, once they are known.
        note: Note of a user.
        tags: Tags of users.
        parents: Keys of the architectures that it was made from.
        children: Keys of those that were made from it.
        text: Its NAS-Bench-201 string or its genotype; null in other spaces.
        configuration: Values of its named decisions, by name, as the oldest study with it names
            them; empty without names.
        network: Key of the network that a model builds of a configuration of parameters; null
            where there is none.
        configurations: Keys of the configurations that build this network.
        outline: Its blocks: stem, stages, head.
        architecture: The graph: `schema`, `space`, `layers`, `edges`, as `archive arch` reads it
            from a file.
        evaluations: Its results in all studies.
        proxies: Its zero-cost proxies on all tasks.
    """

    key: str
    functional_key: str
    space: str
    depth: int
    layers: int
    edges: int
    mass: float
    params: float | None
    flops: float | None
    note: str | None
    tags: list[str]
    parents: list[str]
    children: list[str]
    text: str | None
    configuration: Mapping[str, Any]
    network: str | None
    configurations: list[str]
    outline: list[OutlineRow]
    architecture: dict[str, Any]
    evaluations: list[EvaluationItem]
    proxies: list[ProxyItem]


@dataclass(frozen=True)
class DistanceItem:
    """A distance of two architectures.

    Attributes:
        kernel: Name of the kernel.
        component: Name of its component.
        distance: The distance.
    """

    kernel: str
    component: str
    distance: float | None


@dataclass(frozen=True)
class DistanceList:
    """Distances between two architectures.

    Attributes:
        distances: One row a kernel and component.
    """

    distances: list[DistanceItem]


@click.group(cls=CommandGroup)
def arch() -> None:
    """Show, draw and compare architectures; find neighbours."""


arch.add_command(diff)
arch.add_command(draw)
arch.add_command(export)
arch.add_command(nearest)
arch.add_command(proxies)


@arch.command(short_help="Show an architecture and its evaluations.")
@click.argument("key")
@click.option(
    "--layers", "by_layer", is_flag=True, help="List the layers of an imported model or a decoder."
)
@json_option
@click.pass_context
def show(ctx: click.Context, key: str, by_layer: bool, as_json: bool) -> None:
    """Show an architecture: layers, edges, evaluations, zero-cost proxies, parents and children.

    KEY is the key of the architecture, or a prefix of it. Of an imported model and of a decoder,
    the blocks are shown in place of the layers, equal ones once.
    """
    from archive.architecture import codec, texts
    from archive.architecture.choice_operations import decision_labels
    from archive.database.driver import hide_arrays

    # Only keys go to the database.
    hide_arrays()
    from archive.queries import results_of
    from archive.store.studies.configurations import configuration_of_network

    with open_archive(ctx) as archive:
        full = archive.architectures.find(key)
        architecture = archive.architectures.get(full)
        details = archive.architectures.details(full)
        configuration = configuration_of_network(archive.connection, architecture)
        built = archive.builds.of([full]).get(full)
        network = None if built is None else built.network
        configurations = archive.builds.configurations([full]).get(full, [])
        evaluations = results_of.of_key(archive.connection, full)
        scores = [ProxyItem(**score) for score in archive.proxies.of_architecture(full)]

    details.pop("revision", None)
    text = texts.to_text(architecture)
    if as_json:
        document = ArchitectureDocument(
            **{"params": None, "flops": None, "note": None, "tags": [], **details},
            text=text,
            configuration=configuration,
            network=network,
            configurations=configurations,
            outline=_outline_of(architecture),
            architecture=codec.to_dict(architecture),
            evaluations=evaluations,
            proxies=scores,
        )
        print_json(document)
        return

    # Networks that are not there need no operations of PyTorch.
    from archive.architecture.aten.vocabulary import NAME as TORCH

    named = settings_text(configuration) or None
    labels = decision_labels(architecture, configuration)
    links = {"network": network, "configurations": configurations}
    _print_details({**details, "text": text, "configuration": named, **links})
    design = None if by_layer else decoder_of(architecture)
    if design is not None:
        _print_decoder(design)
    elif architecture.space == TORCH and not by_layer:
        print_outline(_outline_of(architecture))
    else:
        _print_layers(architecture, labels)

    _print_items("evaluations", evaluations)
    _print_items("zero-cost proxies", scores)


def _outline_of(architecture: Architecture) -> list[OutlineRow]:
    from archive.architecture.outline import outline, summary

    design = decoder_of(architecture)
    if design is not None:
        from archive.architecture.decoders.outline import rows

        return rows(design)

    return summary.rows(outline.outline(architecture))


def _print_decoder(design: Design) -> None:
    """Write a decoder, equal blocks once."""
    from archive.architecture.decoders.outline import lines

    for text in lines(design):
        print_line((text, ""))


def print_outline(listed: Sequence[OutlineRow]) -> None:
    """Write the blocks of a network as a table."""
    columns = list(vars(listed[0]))
    if not any(row.source for row in listed):
        columns.remove("source")

    print_table(columns, [[getattr(row, name) for name in columns] for row in listed])


def _print_layers(architecture: Architecture, labels: Mapping[int, str]) -> None:
    from archive.architecture.decoders.labels import details_of
    from archive.architecture.parameter_operations import describe_layer

    rows = []
    for position, layer in enumerate(architecture.layers):
        children = " ".join(map(str, architecture.children[position]))
        operation = describe_layer(layer) or labels.get(position, words.layer(layer.op))
        if details := details_of(layer):
            operation = f"{operation}, {details}"

        rows.append((position, operation, layer.units, layer.stride, children))

    print_table(("layer", "operation", "units", "stride", "feeds"), rows)


def _print_details(details: Mapping[str, Any]) -> None:
    fields = {}
    for name, value in details.items():
        if value not in (None, []):
            # Numbers are shown as they are stored.
            fields[name] = value if isinstance(value, list) else str(value)

    print_fields(fields, 16)


def _print_items(title: str, items: Sequence[EvaluationItem | ProxyItem]) -> None:
    """Write a table with a column for each field, unless it is empty."""
    if items:
        print_table(
            list(vars(items[0])), [list(vars(item).values()) for item in items], title=title
        )


@arch.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--kernel",
    "names",
    cls=AliasedOption,
    aliases=["--kind"],
    type=KERNEL,
    multiple=True,
    show_default="all kernels",
    help="Kernel (archive kernels). May be repeated.",
)
@setting_option
@json_option
@click.pass_context
def distance(
    ctx: click.Context,
    first: str,
    second: str,
    names: tuple[str, ...],
    assigned: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the distance between two architectures.

    A and B are keys of the archive or their prefixes, files, NAS-Bench-201 strings, or genotypes of
    DARTS (Genotype(normal=[...], ...)). A file has the JSON of an architecture, a string or a
    genotype. Of two configurations of parameters, the networks that their model builds are
    compared.
    """
    from archive import kernels

    settings = assignments(assigned, "a setting")
    if settings and len(names) != 1:
        raise UsageError(f"--set needs one --kernel, got {len(names)}")

    selected = [kernels.get(name, **settings) for name in names or kernels.names()]
    pair = [architecture_of(ctx, first), architecture_of(ctx, second)]
    first_network, second_network = networks_of(ctx, pair)
    items: list[DistanceItem] = []
    for kernel in selected:
        items += _distances(kernel, first_network, second_network, named=bool(names))

    if as_json:
        print_json(DistanceList(items))
    else:
        rows = [(item.kernel, item.component, item.distance) for item in items]
        print_table(("kernel", "component", "distance"), rows)


def _distances(
    kernel: Any, first: Architecture, second: Architecture, *, named: bool
) -> list[DistanceItem]:
    """Return the distances of a kernel.

    A kernel that was not named and cannot compare the two is reported, and has no distances.
    """
    try:
        stack = kernel.distances([first], [second]).stack
    except InvalidArchitectureError as error:
        if named or first.space != second.space:
            raise

        print_message((f"{kernel.name} is left out: {error}", "yellow"))
        return []

    return [
        DistanceItem(kernel.name, component, float(value))
        for component, value in zip(kernel.components, stack[:, 0, 0], strict=True)
    ]
