"""Mean effects of edits over all pairs of networks, and of trainings, that differ in one edit.

A pair counts under a protocol where both networks have results with the same pretraining. Values
are compared by difference; parameters, multiply-adds and speeds by ratio, through logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from archive.effects.columns import COSTS, columns_of, families_of, is_ratio
from archive.effects.comparison import Comparisons, compare
from archive.effects.edits import Edit
from archive.effects.estimate import LEAST_FAMILIES, LEAST_PAIRS, Floats, estimate
from archive.effects.networks import NetworkEdits, edits_of
from archive.effects.pairs import Integers
from archive.errors import UnknownNameError
from archive.queries.results_by_task import (
    ComparedNetwork,
    TaskResults,
    models_of,
    name_of_value,
    networks_by_space,
    results_by_task,
)

if TYPE_CHECKING:
    from archive.api import Archive

MOST_PAIRS = 1000
"""Most pairs in a report."""


@dataclass(frozen=True)
class EditEffect:
    """Effect of one kind of edit on one metric.

    Attributes:
        change: The edit in words.
        space: Name of the networks' space; of runs, `values` or `files` where these are edited.
        task: Name of the task.
        under: Device of a speed, or objective that is not the task's own; empty for none.
        metric: Name of the metric.
        scale: `difference` (after minus before) or `ratio` (after by before).
        effect: Mean effect; null with fewer than eight pairs.
        low: Lower end of its interval of 95 %; null where it has no bound.
        high: Upper end of the interval.
        pairs: Number of pairs of networks; of networks, for a change of the training.
        results: Number of comparisons: a pair may have results under several protocols.
        larger: Number of comparisons with a larger value after the edit.
        clusters: Number of families, or of networks, with comparisons.
        over: Clusters of the interval: `families`, or `networks` with fewer than three families; of
            runs, `parents`.
        is_alone: Whether the pairs differ in this edit alone. False for pairs of runs that differ in
            other edits, too: they have no estimate.
    """

    change: str
    space: str
    task: str
    under: str
    metric: str
    scale: str
    effect: float | None
    low: float | None
    high: float | None
    pairs: int
    results: int
    larger: int
    clusters: int
    over: str
    is_alone: bool = True


@dataclass(frozen=True)
class EditPair:
    """One comparison.

    Attributes:
        change: The edit in words.
        task: Name of the task.
        metric: Name of the metric.
        before: Model, or key, of the network before the edit; of runs, the id of one.
        after: Model, or key, of the network after it, or the id of a run.
        protocol: Protocol of the result before it.
        protocol_after: Protocol of the result after it.
        where: Part of the network that differs; empty for a change of the training. Of runs, all
            values and source files that differ.
        effect: Effect, by the scale of the metric.
    """

    change: str
    task: str
    metric: str
    before: str
    after: str
    protocol: str
    protocol_after: str
    where: str
    effect: float


@dataclass(frozen=True)
class EffectReport:
    """Effects of edits.

    Attributes:
        effects: By task, those with an estimate first, the edits of most pairs first.
        pairs: The comparisons, where one change was asked for: a thousand at most.
        comparisons: Number of all comparisons of this change.
    """

    effects: list[EditEffect]
    pairs: list[EditPair]
    comparisons: int


@dataclass(frozen=True, eq=False)
class SpaceComparison:
    """Networks of one space with their comparisons.

    Attributes:
        space: Name of the space.
        networks: The n networks.
        families: (n,) number of the family of each network; a network without one is a family.
        has_families: Whether any network has a family.
        costs: For each cost, the (n,) logarithms; NaN where a cost is not known.
        comparisons: The comparisons, by position.
    """

    space: str
    networks: Sequence[ComparedNetwork]
    families: Integers
    has_families: bool
    costs: Mapping[str, Floats]
    comparisons: list[Comparisons]


def effects(
    archive: Archive,
    change: str | None = None,
    *,
    task: str | None = None,
    space: str | None = None,
    metric: str | None = None,
    notify: Callable[[str], None] | None = None,
) -> EffectReport:
    """Return the effects of edits of networks and of trainings.

    Networks of two spaces are never compared.

    Args:
        archive: The archive.
        change: An edit (`squeeze-excitation added`), or the property that it changes (`kernel`);
            None for all. The report then has the pairs.
        task: Restricts the comparison to one task.
        space: Restricts it to networks of one space.
        metric: Metric to compare instead of the value of the tasks.
        notify: Called with a message before a slow step.

    Raises:
        UnknownNameError: There is no such task, space, metric or change.
    """
    connection = archive.connection
    results = results_by_task(connection, task, metric)
    spaces = networks_by_space(connection)
    if space is not None and space not in spaces:
        raise UnknownNameError("space", space, spaces, "the archive has no network yet")

    metrics = {}
    for name in {of_task.task for of_task in results}:
        metrics[name] = metric or name_of_value(connection, name)

    rows: list[EditEffect] = []
    pairs: list[EditPair] = []
    comparisons = 0
    edits: set[Edit] = set()
    for name in spaces if space is None else [space]:
        compared = _compare(archive, name, spaces[name], results, metrics, notify)
        for edit, group in _groups(compared.comparisons):
            edits.add(edit)
            if change in (None, edit.name, str(edit)):
                rows += _effects(compared, edit, group)

            if change == str(edit) or (change == edit.name and not edit.is_whole):
                pairs += islice(_pairs(compared, group), MOST_PAIRS - len(pairs))
                comparisons += sum(len(part.differences) for part in group)

    if change is not None and not rows:
        raise UnknownNameError(
            "change", change, sorted(map(str, edits)), "no two results differ in one"
        )

    rows.sort(key=order_of)
    return EffectReport(rows, _with_models(archive, pairs), comparisons)


def order_of(effect: EditEffect) -> tuple[str, bool, int, str, str, str]:
    """Return the sorting key of effects: by task, those with an estimate and of most pairs first."""
    few = effect.effect is None
    return (effect.task, few, -effect.pairs, effect.change, effect.under, effect.metric)


def _compare(
    archive: Archive,
    space: str,
    stored: Iterable[ComparedNetwork],
    results: Sequence[TaskResults],
    metrics: Mapping[str, str],
    notify: Callable[[str], None] | None,
) -> SpaceComparison:
    measured: set[str] = set()
    for of_task in results:
        measured.update(row.architecture for row in of_task.rows)

    networks = [network for network in stored if network.key in measured]
    places = {network.key: index for index, network in enumerate(networks)}
    names = families_of(results, places)
    has_families = any(names)
    for index, network in enumerate(networks):
        names[index] = names[index] or network.key

    _, families = np.unique(names, return_inverse=True)
    costs = {}
    for cost in COSTS:
        values = [getattr(network, cost) or np.nan for network in networks]
        costs[cost] = np.log(np.array(values, np.float64))

    edits = _without_same_function(edits_of(archive, space, list(places), notify), networks)
    comparisons = compare(edits, columns_of(results, metrics, places))
    return SpaceComparison(space, networks, families, has_families, costs, comparisons)


def _without_same_function(
    edits: NetworkEdits, networks: Sequence[ComparedNetwork]
) -> NetworkEdits:
    """Return the edits without those between networks that compute the same."""
    functions = np.array([network.functional_key for network in networks])
    return edits.select(functions[edits.before] != functions[edits.after])


def _groups(comparisons: Iterable[Comparisons]) -> list[tuple[Edit, list[Comparisons]]]:
    """Return the comparisons by edit, task, and what their values are of.

    An edit by a factor is in the group of its factor, and in the group of all factors.
    """
    groups: dict[tuple[Edit, str, str], list[Comparisons]] = {}
    for part in comparisons:
        for edit in {part.edit, part.edit.whole}:
            groups.setdefault((edit, part.before.task, part.before.under), []).append(part)

    return [(edit, group) for (edit, _, _), group in groups.items()]


def _effects(
    compared: SpaceComparison, edit: Edit, group: Sequence[Comparisons]
) -> list[EditEffect]:
    """Return the effect of an edit on the value, and on the costs of the networks."""
    count = len(compared.networks)
    first = np.concatenate([part.first for part in group])
    second = np.concatenate([part.second for part in group])
    differences = np.concatenate([part.differences for part in group])
    column = group[0].before
    rows = [_effect(compared, edit, group, column.metric, (first, second), differences)]
    if column.under:
        return rows

    pairs = np.unique(first * count + second)
    ends = (pairs // count, pairs % count)
    for name, values in compared.costs.items():
        ratios = values[ends[1]] - values[ends[0]]
        usable = np.isfinite(ratios) & (ends[0] != ends[1])
        if usable.any():
            networks = (ends[0][usable], ends[1][usable])
            rows.append(_effect(compared, edit, group, name, networks, ratios[usable]))

    return rows


def _effect(
    compared: SpaceComparison,
    edit: Edit,
    group: Sequence[Comparisons],
    metric: str,
    networks: tuple[Integers, Integers],
    differences: Floats,
) -> EditEffect:
    pairs = len(np.unique(networks[0] * len(compared.networks) + networks[1]))
    ends = (compared.families[networks[0]], compared.families[networks[1]])
    clusters = len(np.unique(np.concatenate(ends)))
    over = "families"
    if clusters < LEAST_FAMILIES or not compared.has_families:
        ends = networks
        clusters = len(np.unique(np.concatenate(ends)))
        over = "networks"

    ratio = is_ratio(metric)
    mean = estimate(differences, *ends) if pairs >= LEAST_PAIRS else None
    return EditEffect(
        change=str(edit),
        space=compared.space,
        task=group[0].before.task,
        under=group[0].before.under,
        metric=metric,
        scale="ratio" if ratio else "difference",
        effect=None if mean is None else _plain(mean.mean, ratio),
        low=None if mean is None else _plain(mean.low, ratio),
        high=None if mean is None else _plain(mean.high, ratio),
        pairs=pairs,
        results=len(differences),
        larger=int((differences > 0).sum()),
        clusters=clusters,
        over=over,
    )


def _plain(value: float, ratio: bool) -> float | None:
    """Return a value in its own scale; None where it has no bound."""
    if not math.isfinite(value):
        return None

    return math.exp(value) if ratio else value


def _pairs(compared: SpaceComparison, group: Iterable[Comparisons]) -> Iterator[EditPair]:
    """Yield the comparisons of an edit, with the keys of the networks."""
    for part in group:
        ratio = is_ratio(part.before.metric)
        rows = zip(part.first, part.second, part.differences, strict=True)
        for row, (first, second, difference) in enumerate(rows):
            yield EditPair(
                str(part.edit),
                part.before.task,
                part.before.metric,
                compared.networks[first].key,
                compared.networks[second].key,
                part.before.protocol,
                part.after.protocol,
                part.where[row] if part.where else "",
                math.exp(difference) if ratio else float(difference),
            )


def _with_models(archive: Archive, pairs: Sequence[EditPair]) -> list[EditPair]:
    """Return pairs with the names of models in place of the keys of their networks."""
    keys = {pair.before for pair in pairs} | {pair.after for pair in pairs}
    models = models_of(archive.connection, sorted(keys))
    renamed = []
    for pair in pairs:
        before = models.get(pair.before, pair.before)
        after = models.get(pair.after, pair.after)
        renamed.append(replace(pair, before=before, after=after))

    return renamed
