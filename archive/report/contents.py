"""Contents of a report: everything that a page about one study shows, read from the archive."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.agents.initial_design import Gain, gain
from archive.agents.recommendation import Recommendation, of_study
from archive.objectives import COST_METRICS
from archive.plots.data.curves import evenly, rank_rows
from archive.plots.data.results import RecordedResults, read
from archive.queries.pareto import ParetoSet, pareto_set
from archive.queries.proposals import REASONS_OF_STUDY
from archive.rungs import Rungs
from archive.store.properties import METRIC, proposal_id
from archive.store.protocol_names import ProtocolName
from archive.store.records import Evaluation, State
from archive.store.studies.configurations import read_configurations

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.store.records import Study

COSTS = ("params", "flops", "latency_ms", "peak_memory_bytes")
"""Costs that the table and the charts show where results have them."""
COLUMNS = (
    "architecture",
    "agent",
    "epochs",
    "seconds",
    "mean",
    "std",
    "answered_from",
    "environment",
    "device",
    "hardware",
    "seed",
    *(METRIC + name for name in COSTS),
    "network_params",
    "network_flops",
)
UNSHOWN = ("host", "ended", "resumed", "inherited", "latency", "hyperparameters", "weights")
"""Entries of an environment that name a machine of the reader's colleagues, or differ with each
training."""
MOST_VALUES = 4
"""Values of an entry of the environment that are listed."""


@dataclass(frozen=True, eq=False)
class StudyReport:
    """Contents of the report of one study.

    Attributes:
        study: The study.
        counts: Proposals in each state.
        sources: Names of the studies that it started warm from.
        results: Its results, with `COLUMNS` and its further objectives.
        best: The best evaluations, the best first.
        chosen: The evaluation that the report shows as its answer: the luckiest one of the
            recommended network, else the best one; None before the first result.
        pareto: The Pareto set of a study with several objectives; None with one, or before the
            first result.
        recommended: The network with the best estimate of its noise-free value; None where results
            have no noise.
        runner_up: The network with the second-best estimate; None where there is none.
        noise: Standard deviation of an evaluation's noise; None where it is unknown, or 0.
        gain: What the search gained over its initial design; None where that is undefined.
        networks: Networks that a model builds of the best configurations, by configuration's key.
        configurations: Values of named decisions by name, of each proposal by its number; empty for
            a space without such names.
        shown: Positions of the results in the table, by number: all, or the best and others in even
            steps.
        environment: Name to values of what the results may depend on, the most frequent first, with
            their counts.
        failures: Reasons of failed proposals with their counts.
        commands: Commands that repeat the search, copy it and train with its best networks, with
            their purpose.
    """

    study: Study
    counts: Mapping[State, int]
    sources: tuple[str, ...]
    results: RecordedResults
    best: tuple[Evaluation, ...]
    chosen: Evaluation | None
    pareto: ParetoSet | None
    recommended: Recommendation | None
    runner_up: Recommendation | None
    noise: float | None
    gain: Gain | None
    networks: Mapping[str, Architecture]
    configurations: Mapping[int, Mapping[str, Any]]
    shown: tuple[int, ...]
    environment: Mapping[str, tuple[tuple[str, int], ...]]
    failures: tuple[tuple[str, int], ...]
    commands: tuple[tuple[str, str], ...]


def contents(archive: Archive, name: str, *, top: int, rows: int) -> StudyReport:
    """Read the contents of a report.

    Args:
        archive: The archive.
        name: Name of the study.
        top: Number of the best evaluations.
        rows: Most results in the table.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    further = archive.studies.get(name).further
    measured = [METRIC + objective.name for objective in further]
    (results,) = read(archive, name, [*COLUMNS, *measured])
    ranking = rank_rows(results)
    best = tuple(
        archive.studies.evaluation(proposal_id(name, int(results.number[row])))
        for row in ranking[:top]
    )
    failures = archive.connection.read(lambda tx: tx.run(REASONS_OF_STUDY, study=name).data())
    saved = None
    for evaluation in best:
        if archive.weights.of_evaluation(evaluation.id) is not None:
            saved = evaluation
            break

    snapshot = archive.studies.snapshot(name)
    front = pareto_set(snapshot) if further else None
    estimates = None if further else of_study(archive, results.study)
    recommended = None
    runner_up = None
    noise = None
    chosen = best[0] if best else None
    if estimates is not None and estimates.ranked:
        recommended = estimates.ranked[0]
        runner_up = estimates.ranked[1] if len(estimates.ranked) > 1 else None
        noise = estimates.noise or None
        chosen = archive.studies.evaluation(recommended.luckiest.id)

    pictured = best if chosen is None else (chosen, *best)
    return StudyReport(
        study=results.study,
        counts=archive.studies.counts(name),
        sources=tuple(archive.studies.sources(name)),
        results=results,
        best=best,
        chosen=chosen,
        pareto=front,
        recommended=recommended,
        runner_up=runner_up,
        noise=noise,
        gain=gain(archive, snapshot),
        networks=_networks(archive, pictured),
        configurations=read_configurations(archive.connection, results.study),
        shown=tuple(_choose_rows(results, ranking.tolist(), rows)),
        environment=environment(results),
        failures=tuple(map(itemgetter("reason", "count"), failures)),
        commands=tuple(commands(results.study, archive.studies.sources(name), best, saved)),
    )


def _networks(archive: Archive, best: Sequence[Evaluation]) -> dict[str, Architecture]:
    """Return the networks that a model builds of configurations, by the configuration's key."""
    networks = {}
    for evaluation in best:
        network = archive.builds.network_of(evaluation.architecture)
        if network is not evaluation.architecture:
            networks[evaluation.architecture.key] = network

    return networks


def environment(results: RecordedResults) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return what results may depend on: name to values with counts, most frequent first."""
    counted: dict[str, Counter[str]] = {}
    for text, count in Counter(results.columns["environment"]).items():
        for name, value in _entries(text):
            counted.setdefault(name, Counter())[value] += count

    for name in ("device", "hardware", "seed"):
        column = [str(value) for value in results.columns[name] if value is not None]
        if column:
            counted[name] = Counter(column)

    return {name: tuple(counted[name].most_common()) for name in sorted(counted)}


def commands(
    study: Study, sources: Sequence[str], best: Sequence[Evaluation], saved: Evaluation | None
) -> Iterator[tuple[str, str]]:
    """Yield commands about a study with their purpose.

    Args:
        study: The study.
        sources: Studies that it started warm from.
        best: Its best evaluations.
        saved: The best one of these with stored weights.
    """
    agent = study.config.get("agent")
    if isinstance(agent, str):
        yield "repeat the search in another archive", _search(study, agent, sources)

    quoted = shlex.quote(study.name)
    yield "copy the study with all its results", f"archive dump study.archive --study {quoted}"
    yield "read the copy into another archive", "archive load study.archive"
    yield "the evaluations as a table", f"archive study export {quoted} -o results.csv"
    if saved is not None:
        yield (
            "the best trained network",
            (f"archive weights export {shlex.quote(saved.id)} --to best.pt2"),
        )
    elif best:
        yield "the best network", f"archive arch show {best[0].architecture.key} --json"


def _search(study: Study, agent: str, sources: Sequence[str]) -> str:
    named = ProtocolName.parse(study.protocol)
    rungs = Rungs.of(study.config)
    options: dict[str, Any] = {
        "agent": agent,
        "task": study.task,
        "protocol": named.base,
        "space": study.space,
        "recipe": None if named.recipe == "default" else named.recipe,
        "objective": None if study.further else named.objective,
        "direction": study.direction if named.objective and not study.further else None,
        "rungs": None if rungs is None else ",".join(map(str, rungs.epochs)),
        "reduction": None if rungs is None else rungs.reduction,
        "warm-start": ",".join(sources) or None,
        "study": study.name,
        "budget": study.budget,
        "seed": study.seed,
    }
    flags = []
    for name, value in options.items():
        if value is not None:
            flags.append(f"--{name} {shlex.quote(str(value))}")

    for objective in study.objectives if study.further else ():
        flags.append(f"--objective {shlex.quote(str(objective))}")

    for constraint in study.constraints:
        flags.append(f"--constraint {shlex.quote(str(constraint))}")

    return " ".join(["archive search", *flags])


def costs_on_record(results: RecordedResults) -> list[str]:
    """Return the names of the costs that a result has, of `COSTS`."""
    names = []
    for name in COSTS:
        if any(map(has_values, columns_of(name, results))):
            names.append(name)

    return names


def has_values(column: Sequence[Any]) -> bool:
    """Return whether a column has an entry."""
    return any(value is not None for value in column)


def describe_reference(front: ParetoSet) -> str:
    """Return the reference point of a hypervolume, with six digits a coordinate."""
    return ", ".join(f"{coordinate:.6g}" for coordinate in front.reference)


def further_objectives(results: RecordedResults) -> list[str]:
    """Return the names of the objectives beside the first that are none of `COSTS`."""
    return [objective.name for objective in results.study.further if objective.name not in COSTS]


def columns_of(cost: str, results: RecordedResults) -> list[list[Any]]:
    """Return the columns that may have a cost, in the order of precedence."""
    names = (f"network_{cost}", METRIC + cost)
    return [results.columns[name] for name in names if name in results.columns]


def final_metrics(evaluation: Evaluation) -> dict[str, float]:
    """Return the metrics of an evaluation that are no costs."""
    return {name: value for name, value in evaluation.metrics.items() if name not in COST_METRICS}


def _choose_rows(results: RecordedResults, ranking: Sequence[int], rows: int) -> list[int]:
    if len(results) <= rows:
        return list(map(int, np.argsort(results.number)))

    top = ranking[: rows // 2]
    rest = np.setdiff1d(np.arange(len(results)), top)
    listed = [*top, *rest[evenly(len(rest), rows - len(top))].tolist()]
    return sorted(listed, key=lambda row: int(results.number[row]))


@lru_cache(maxsize=1024)
def _entries(text: str | None) -> tuple[tuple[str, str], ...]:
    recorded = json.loads(text) if text else {}
    if not isinstance(recorded, dict):
        return ()

    entries = []
    for name, value in recorded.items():
        if name not in UNSHOWN:
            entries.append((name, value if isinstance(value, str) else json.dumps(value)))

    return tuple(entries)
