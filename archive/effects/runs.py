"""Effects of one's own edits: of values, source files and networks, over runs and those they change.

A pair is a configuration of a study and one that is a change of it (`archive.queries.tried.pairs`).
Where nothing else differs, its difference is the effect of the one edit. Where several things differ at
once, it is the effect of none of them; such pairs are reported apart.

    lr 0.1 -> 0.3       lr about x3, lr larger, and lr doubled: the difference for each doubling
    dropout 0 -> 0.1    dropout 0 -> 0.1, and dropout larger
    act relu -> gelu    act relu -> gelu
    train.py +3 -1      train.py changed
    two networks        network width about x2, by the names of their differences

Intervals allow for dependence between all pairs of one parent: its luck is in each of them. A parent
that was chosen as the best of many has been lucky, so that its changes look worse than they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from archive.effects.edits import Edit, edit_of, edits_of_value
from archive.effects.effects import MOST_PAIRS, EditEffect, EditPair, EffectReport, order_of
from archive.effects.estimate import LEAST_PAIRS, estimate
from archive.effects.networks import EditStore
from archive.effects.pairs import NetworkPairs
from archive.effects.traits import OUTLINED
from archive.errors import UnknownNameError
from archive.queries.results_by_task import metric_names
from archive.queries.tried.pairs import ConfigurationPair, configuration_pairs
from archive.runtime import pause_gc
from archive.store.properties import METRIC

if TYPE_CHECKING:
    from archive.api import Archive

VALUES = "values"
FILES = "files"


@dataclass(frozen=True)
class _OneEdit:
    """An edit of a pair.

    Attributes:
        edit: The edit.
        kind: What is edited: `values`, `files`, or the space of the networks.
        factor: Factor of the pair's difference in the edit's effect.
        is_alone: Whether the pair differs in nothing else.
    """

    edit: Edit
    kind: str
    factor: float
    is_alone: bool


@pause_gc()
def effects_of_runs(
    archive: Archive, study: str, change: str | None = None, *, metric: str | None = None
) -> EffectReport:
    """Return the effects of the edits of a study's runs.

    Args:
        archive: The archive.
        study: Name of the study.
        change: An edit (`lr larger`), or the name of what it changes (`lr`); None for all. The
            report then has the pairs.
        metric: Metric to compare instead of the objective.

    Raises:
        UnknownNameError: There is no such study, change or metric.
    """
    settings = archive.studies.get(study)
    name = settings.objective if metric is None else metric
    is_objective = metric in (None, settings.objective)
    pairs = configuration_pairs(
        archive.connection, study, "value" if is_objective else METRIC + name
    )
    if not pairs and not is_objective:
        names = metric_names(archive.connection, settings.task)
        if name not in names:
            raise UnknownNameError("metric", name, names, owner=f"the task {settings.task}")

    groups: dict[tuple[Edit, str, bool], list[tuple[ConfigurationPair, float]]] = defaultdict(list)
    edits_by_pair = _edits_of_pairs(archive, pairs)
    for pair, edits in zip(pairs, edits_by_pair, strict=True):
        for part in dict.fromkeys(edits):
            effect = pair.difference * part.factor
            groups[part.edit, part.kind, part.is_alone].append((pair, effect))

    rows = []
    listed = []
    comparisons = 0
    for (edit, kind, is_alone), members in groups.items():
        if change not in (None, edit.name, str(edit)):
            continue

        rows.append(_effect(settings.task, name, edit, kind, is_alone, members))
        # One line for each pair, in the words of its own edit.
        is_own = change == str(edit) or (change == edit.name and not edit.is_derived)
        if change is not None and is_own:
            comparisons += len(members)
            for pair, effect in members:
                listed.append(_pair(settings.task, settings.protocol, name, edit, pair, effect))

    if change is not None and not rows:
        names = sorted({str(edit) for edit, _, _ in groups})
        hint = "no run with a result is a change of another one"
        raise UnknownNameError("change", change, names, hint)

    rows.sort(key=lambda row: (not row.is_alone, *order_of(row)))
    return EffectReport(rows, listed[:MOST_PAIRS], comparisons)


def _edits_of_pairs(archive: Archive, pairs: Sequence[ConfigurationPair]) -> list[list[_OneEdit]]:
    """Return the edits of each pair."""
    changes = _network_edits(archive, pairs)
    edits_by_pair = []
    for pair in pairs:
        causes = len(pair.values) + len(pair.files)
        is_alone = causes == 1
        edits = []
        for value in pair.values:
            for edit, factor in edits_of_value(value.name, value.first, value.second):
                edits.append(_OneEdit(edit, VALUES, factor, is_alone))

        for file in pair.files:
            edits.append(_OneEdit(Edit(file, "", "changed"), FILES, 1.0, is_alone))

        kind, of_network = changes.get(pair.second, ("", []))
        for edit, reverse in of_network:
            # One value or file is how a network was changed, two are more than the network.
            is_only = len(of_network) == 1 and causes <= 1
            edits.append(_OneEdit(edit, kind, -1.0 if reverse else 1.0, is_only))

        edits_by_pair.append(edits)

    return edits_by_pair


def _network_edits(
    archive: Archive, pairs: Iterable[ConfigurationPair]
) -> Mapping[str, tuple[str, list[tuple[Edit, bool]]]]:
    """Return space and edits of the networks of pairs, by the id of the second run."""
    ends = {}
    for pair in pairs:
        first, second = pair.first_network, pair.second_network
        if first is not None and second is not None and first != second:
            ends[pair.second] = (first, second)

    if not ends:
        return {}

    keys = sorted({key for pair in ends.values() for key in pair})
    networks = archive.architectures.get_many(keys)
    outlined = {}
    edits = {}
    for run, (first, second) in ends.items():
        before, after = networks[first], networks[second]
        if before.functional_key == after.functional_key:
            continue

        if before.space == after.space == OUTLINED:
            outlined[run] = (first, second)
        else:
            counts = Counter(layer.op for layer in before.functional.layers)
            later = Counter(layer.op for layer in after.functional.layers)
            edits[run] = (after.space, _layer_edits(counts, later))

    store = EditStore(archive, OUTLINED)
    positions = {key: position for position, key in enumerate(keys)}
    firsts = np.array([positions[first] for first, _ in outlined.values()], np.int64)
    seconds = np.array([positions[second] for _, second in outlined.values()], np.int64)
    changes = store.changes(keys, NetworkPairs(firsts, seconds)) if outlined else []
    for run, rows in zip(outlined, changes, strict=True):
        named = []
        for name, _, before_value, after_value in rows:
            named.append(edit_of(f"network {name}", before_value, after_value))

        edits[run] = (OUTLINED, named)

    return edits


def _layer_edits(before: Mapping[str, int], after: Mapping[str, int]) -> list[tuple[Edit, bool]]:
    """Return the edits of the numbers of layers of each operation."""
    edits = []
    for op in sorted({*before, *after}):
        first = before.get(op, 0)
        second = after.get(op, 0)
        if first != second:
            edits.append((Edit(f"network {op}", "", "more"), second < first))

    return edits or [(Edit("network connections", "", "changed"), False)]


def _effect(
    task: str,
    metric: str,
    edit: Edit,
    kind: str,
    is_alone: bool,
    members: Sequence[tuple[ConfigurationPair, float]],
) -> EditEffect:
    effects = [effect for _, effect in members]
    parents = [pair.first_architecture for pair, _ in members]
    mean = None
    # A difference of several things at once is no effect of one of them.
    if is_alone and len(members) >= LEAST_PAIRS:
        _, clusters = np.unique(parents, return_inverse=True)
        mean = estimate(np.array(effects, np.float64), clusters, clusters)

    return EditEffect(
        change=str(edit),
        space=kind,
        task=task,
        under="",
        metric=metric,
        scale="difference",
        effect=None if mean is None else mean.mean,
        low=None if mean is None or not np.isfinite(mean.low) else mean.low,
        high=None if mean is None or not np.isfinite(mean.high) else mean.high,
        pairs=len(members),
        results=len(members),
        larger=sum(effect > 0 for effect in effects),
        clusters=len(set(parents)),
        over="parents",
        is_alone=is_alone,
    )


def _pair(
    task: str, protocol: str, metric: str, edit: Edit, pair: ConfigurationPair, effect: float
) -> EditPair:
    details = [str(value) for value in pair.values]
    details += pair.files
    return EditPair(
        change=str(edit),
        task=task,
        metric=metric,
        before=pair.first,
        after=pair.second,
        protocol=protocol,
        protocol_after=protocol,
        where=", ".join(details),
        effect=effect,
    )
