"""Tools about several networks: nearest ones, differences, effects of edits, ancestors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from archive import kernels
from archive.agents.nearest import default_kernel, similar
from archive.api import Archive
from archive.architecture.graph import Architecture
from archive.effects.effects import EditEffect, EditPair
from archive.effects.effects import effects as read_effects
from archive.errors import InvalidArchitectureError
from archive.kernels.differences import difference
from archive.kernels.differences.base import words
from archive.mcp.arguments import NetworkArgument, network_of
from archive.mcp.limits import largest, take_first
from archive.queries.relatives import Relative, relatives
from archive.queries.results_of import MeanValue, means
from archive.store.lineage import Descent

MOST_STEPS = 100
KERNELS = ", ".join(kernels.names())
"""Names of all kernels, for descriptions."""

TaskFilter = Annotated[
    str | None, Field(description="Name of a task, to leave out values of others.")
]


@dataclass(frozen=True)
class NearNetwork:
    """A network near another one, with the mean of its results under each protocol.

    A published network has its comparable and best results, and its measured speeds, in place of
    `values`.
    """

    architecture: str
    distance: float
    layers: int
    edges: int
    values: list[MeanValue]
    published: Relative | None = None


@dataclass(frozen=True)
class NearNetworks:
    """The nearest networks, nearest first.

    `certain` of them are proven nearest among `among` networks.
    """

    kernel: str
    networks: list[NearNetwork]
    certain: int
    among: int
    truncated: bool = False


@dataclass(frozen=True)
class KernelDistance:
    """Distance of two networks by a kernel, the mean of its components; null where it is not
    defined.

    `normalised` is in [0, 1], for kernels that have such components.
    """

    kernel: str
    distance: float | None
    normalised: float | None
    reason: str | None = None


@dataclass(frozen=True)
class NetworkChange:
    """One change on the way from the first network to the second, with its share of the edit
    distance.

    `subject` is a layer, or a skip with its two ends; `first` and `second` are those of each
    network.
    """

    subject: str
    change: str
    first: str
    second: str
    cost: float
    reason: str


@dataclass(frozen=True)
class NetworkComparison:
    """Two networks: distances, the changes that the edit distance counts, and their results.

    `compared` has the keys of the networks that are compared: of two configurations of parameters,
    the networks that their model builds. `changes` is null where the edit distance is not defined,
    as for networks of two spaces.
    """

    first: str
    second: str
    compared: list[str]
    same: bool
    same_function: bool
    distances: list[KernelDistance]
    changes: list[NetworkChange] | None
    first_values: list[MeanValue]
    second_values: list[MeanValue]
    truncated: bool


@dataclass(frozen=True)
class LineageStep:
    """One step of a lineage, with the operations that make the child of the parent."""

    parent: str
    child: str
    operations: list[str]


@dataclass(frozen=True)
class LineageReport:
    """Ancestors of a network, the last step first, its children, and all values.

    `builds` has the network that a model builds of each configuration of parameters among them.
    """

    architecture: str
    steps: list[LineageStep]
    children: list[str]
    values: dict[str, list[MeanValue]]
    truncated: bool
    builds: dict[str, str]


@dataclass(frozen=True)
class EffectAnswer:
    """Effects of edits, those with an estimate first, and the pairs of one change.

    An effect without a number has too few pairs.
    """

    effects: list[EditEffect]
    pairs: list[EditPair]
    truncated: bool = False


def nearest(
    archive: Archive,
    network: NetworkArgument,
    k: Annotated[int, Field(ge=1, le=50, description="Number of neighbours.")] = 10,
    kernel: Annotated[
        str | None,
        Field(
            description=f"Distance: {KERNELS}. By default weisfeiler-lehman for models, else otmann."
        ),
    ] = None,
    study: Annotated[
        str | None, Field(description="Search only networks that this study evaluated.")
    ] = None,
    task: TaskFilter = None,
) -> NearNetworks:
    """Find the networks of the archive that are nearest to one, with their results, from which to
    guess its own.

    The network need not be in the archive. All studies and imports of its space are searched,
    without itself.
    """
    candidate = network_of(archive, network)
    similarity = similar(archive, candidate, k, kernel, study=study)
    keys = [neighbour.key for neighbour in similarity.neighbours]
    published = {relative.key: relative for relative in relatives(archive.connection, keys, task)}
    values = means(archive.connection, [key for key in keys if key not in published], task)
    networks = []
    for neighbour in similarity.neighbours:
        networks.append(
            NearNetwork(
                neighbour.key,
                neighbour.distance,
                neighbour.layers,
                neighbour.edges,
                values.get(neighbour.key, []),
                published.get(neighbour.key),
            )
        )

    used = kernel or default_kernel(candidate.space)

    def first(count: int) -> NearNetworks:
        certain = min(count, similarity.certain)
        return NearNetworks(
            used, networks[:count], certain, similarity.among, count < len(networks)
        )

    return largest(first, len(networks))


def compare(
    archive: Archive,
    first: NetworkArgument,
    second: NetworkArgument,
    names: Annotated[
        list[str] | None,
        Field(
            description=f"Kernels whose distances to return, otmann and edit by default: {KERNELS}."
        ),
    ] = None,
) -> NetworkComparison:
    """Compare two networks: distances between them, what turns the first into the second, and the
    results of both. Of two configurations of parameters, the networks that their model builds are
    compared.
    """
    pair = network_of(archive, first).canonical, network_of(archive, second).canonical
    values = means(archive.connection, [network.key for network in pair])
    built = archive.builds.networks_of(pair)
    changes = _changes(built[0], built[1])
    distances = []
    for name in dict.fromkeys(names or ("otmann", "edit")):
        distances.append(_distance(name, built[0], built[1]))

    listed: list[Sequence[Any]] = [
        values[pair[0].key],
        values[pair[1].key],
        (changes or [])[:MOST_STEPS],
    ]
    items = sum(map(len, listed))

    def first_parts(count: int) -> NetworkComparison:
        first_values, second_values, parts = take_first(count, *listed)
        return NetworkComparison(
            first=pair[0].key,
            second=pair[1].key,
            compared=[network.key for network in built],
            same=pair[0].key == pair[1].key,
            same_function=pair[0].functional_key == pair[1].functional_key,
            distances=distances,
            changes=None if changes is None else parts,
            first_values=first_values,
            second_values=second_values,
            truncated=count < items or len(changes or []) > MOST_STEPS,
        )

    return largest(first_parts, items)


def effects(
    archive: Archive,
    change: Annotated[
        str | None,
        Field(
            description="An edit such as 'squeeze-excitation added', or the property that it changes, "
            "such as 'kernel'; its pairs are listed."
        ),
    ] = None,
    task: TaskFilter = None,
    space: Annotated[
        str | None, Field(description="Name of a space, to leave out networks of others.")
    ] = None,
    metric: Annotated[
        str | None, Field(description="Metric to compare instead of the value of the tasks.")
    ] = None,
) -> EffectAnswer:
    """Return what each kind of edit brings: the mean difference of the results of networks that one
    change turns into each other, under one recipe, pretraining and input size, or of trainings of
    one network with one change of the recipe.

    Parameters, multiply-adds and speeds are ratios. `low` and `high` bound a 95 % interval that
    allows for the dependence of pairs of one family. Fewer than eight pairs give no estimate.
    """
    report = read_effects(archive, change, task=task, space=space, metric=metric)
    items = len(report.effects) + len(report.pairs)
    incomplete = len(report.pairs) < report.comparisons

    def first(count: int) -> EffectAnswer:
        listed, pairs = take_first(count, report.effects, report.pairs)
        return EffectAnswer(listed, pairs, truncated=incomplete or count < items)

    return largest(first, items)


def lineage(
    archive: Archive,
    network: NetworkArgument,
    generations: Annotated[
        int, Field(ge=1, le=40, description="Number of generations to go back.")
    ] = 6,
    task: TaskFilter = None,
) -> LineageReport:
    """Show how a network came about: its ancestors with the operations of each step, its children,
    and all values.
    """
    key = network_of(archive, network).key
    steps = archive.lineage.of(key, generations)
    children = archive.architectures.details(key)["children"]
    shown = steps[:MOST_STEPS]
    listed = children[:MOST_STEPS]
    keys = _keys(key, shown, listed)
    values = means(archive.connection, keys, task)
    networks = {name: build.network for name, build in archive.builds.of(keys).items()}
    items = len(shown) + len(listed)
    more = len(steps) + len(children)

    def first(count: int) -> LineageReport:
        made, born = take_first(count, shown, listed)
        named = _keys(key, made, born)
        return LineageReport(
            key,
            [LineageStep(step.parent, step.child, list(step.operations)) for step in made],
            born,
            {name: values[name] for name in named},
            count < more,
            {name: networks[name] for name in named if name in networks},
        )

    return largest(first, items)


def _keys(key: str, steps: Sequence[Descent], children: Sequence[str]) -> list[str]:
    """Return the keys of a network, of both ends of steps, and of children, each once."""
    keys = [key]
    for step in steps:
        keys += [step.parent, step.child]

    return list(dict.fromkeys([*keys, *children]))


def _distance(name: str, first: Architecture, second: Architecture) -> KernelDistance:
    try:
        components = kernels.get(name).distances([first], [second])
    except InvalidArchitectureError as error:
        return KernelDistance(name, None, None, str(error))

    normalised = float(components.normalised.mean()) if components.normalised.size else None
    return KernelDistance(name, float(components.unnormalised.mean()), normalised)


def _changes(first: Architecture, second: Architecture) -> list[NetworkChange] | None:
    try:
        parts = difference(first, second).parts
    except InvalidArchitectureError:
        return None

    changes = []
    for part in parts:
        if part.change != "matched":
            before = _end(first, part.first)
            after = _end(second, part.second)
            change = NetworkChange(part.subject, part.change, before, after, part.cost, part.reason)
            changes.append(change)

    return changes


def _end(network: Architecture, positions: Sequence[int]) -> str:
    """Return layers of a network in words, with their positions in canonical order."""
    return " to ".join(f"{position} {words(network.layers[position])}" for position in positions)
