"""Benchmark of OTMANN's accuracy and speed.

Speeds are for one pair of networks with all components (four nu_str, unnormalised and normalised),
amortised over a Gram matrix of prepared networks. Figures of one core are processor time, so that
other load on the machine does not count. The reference solves the papers' program pair by pair:
numpy assembles the cost matrix of program (6), and POT's `ot.emd2` solves it for each nu_str.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import vocabulary
from archive.benchmarks.measurement import Figure
from archive.errors import UsageError
from archive.kernels.distances.otmann import OTMANN, LayersWithMass, Variant
from archive.kernels.distances.penalties import penalties
from tests.benchmarks.kernels.samples import best_seconds, walk

Floats = NDArray[np.float64]

MICROSECONDS = "<= 45"
RELATIVE_ERROR = "<= 1e-7"
NORMALISED_DECIMALS = 5e-10
"""The golden file has normalised distances with nine decimals, which limits the accuracy of small
ones."""
VARIANTS: tuple[tuple[Variant, str], ...] = (
    ("appendix", "paper_appendix"),
    ("main_text", "main_text"),
    ("code", "code"),
)


def measure(golden: Path | None = None, networks: int = 40, seed: int = 0) -> Iterator[Figure]:
    """Measure errors and speeds.

    Args:
        golden: The golden distances (`otmann.json`); None looks in `golden/` of ARCHIVE_DATA_DIR,
            and leaves out the rows that need them where there are none.
        networks: Networks of each space to time, the initial pool and mutations of it.
        seed: Seed of the mutations.

    Yields:
        The rows, in the order to show them.

    Raises:
        UsageError: The file cannot be read.
    """
    path = golden or _default_golden()
    samples: dict[str, list[Architecture]] = {}
    if path is not None:
        known, distances = read_golden(path)
        yield from _error_rows(known, distances)
        samples["golden cnn"] = [
            known[name] for name in distances["paper_appendix"]["cnn"]["names"]
        ]
        samples["golden mlp"] = [
            known[name] for name in distances["paper_appendix"]["mlp"]["names"]
        ]

    for space in ("cnn", "mlp"):
        samples[space] = walk(space, networks, np.random.default_rng(seed))

    for name, sample in samples.items():
        yield from _speed_rows(name, sample, np.random.default_rng(seed))


def read_golden(path: Path) -> tuple[dict[str, Architecture], dict[str, Any]]:
    """Return the networks of a golden file by name, and its distances as they stand.

    Raises:
        UsageError: The file cannot be read.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = {network["name"]: _architecture(network) for network in content["networks"]}
        for _, title in VARIANTS:
            for space in ("cnn", "mlp"):
                golden = content["distances"][title][space]
                _ = [known[name] for name in golden["names"]], golden["nu_str"]

        return known, content["distances"]
    except OSError as error:
        raise UsageError(
            f"no golden distances can be read from {path}: {error.strerror}"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} holds no golden distances: {type(error).__name__}: {error}"
        ) from error


def _default_golden() -> Path | None:
    folder = os.environ.get("ARCHIVE_DATA_DIR")
    path = Path(folder, "golden", "otmann.json") if folder else None
    return path if path is not None and path.is_file() else None


def _architecture(network: dict[str, Any]) -> Architecture:
    words = vocabulary(network["kind"])
    layers = [
        Layer(
            layer["label"], layer["units"], layer.get("stride") or words[layer["label"]].strides[0]
        )
        for layer in network["layers"]
    ]
    return Architecture(network["kind"], layers, [(tail, head) for tail, head in network["edges"]])


def _error_rows(known: dict[str, Architecture], distances: dict[str, Any]) -> list[Figure]:
    rows = []
    for variant, title in VARIANTS:
        for kind, part in ("unnormalised", 0), ("normalised", 1):
            errors = []
            for space in ("cnn", "mlp"):
                golden = distances[title][space]
                golden_distances = OTMANN(variant, golden["nu_str"]).distances(
                    [known[name] for name in golden["names"]]
                )
                expected = np.array([golden[kind][str(nu)] for nu in golden["nu_str"]])
                slack = NORMALISED_DECIMALS if part else 0.0
                actual = golden_distances.normalised if part else golden_distances.unnormalised
                gap = np.maximum(np.abs(actual - expected) - slack, 0.0)
                errors.append(np.max(gap / np.where(expected > 0, expected, 1.0)))

            beyond = " beyond the nine decimals given" if part else ""
            name = f"otmann {variant}, {kind}: largest relative error{beyond}"
            rows.append(Figure(name, float(max(errors)), "", RELATIVE_ERROR))

    return rows


def _speed_rows(
    name: str, sample: Sequence[Architecture], rng: np.random.Generator
) -> list[Figure]:
    one = OTMANN(threads=1)
    prepared = [one.prepare(architecture) for architecture in sample]
    pairs = len(sample) * (len(sample) - 1) / 2
    single = best_seconds(lambda: one.distances(prepared), time.thread_time)
    several = best_seconds(lambda: OTMANN().distances(prepared))
    preparing = best_seconds(
        lambda: [one.prepare(architecture) for architecture in sample], time.thread_time
    )
    seconds, difference = _naive(one, prepared, rng)
    goal = MICROSECONDS if name.endswith("cnn") else None
    return [
        Figure(
            f"otmann, {name}: a pair, one core", 1e6 * single / pairs, "us", goal, 1e6 * seconds
        ),
        Figure(f"otmann, {name}: a pair, {OTMANN().threads} threads", 1e6 * several / pairs, "us"),
        Figure(f"otmann, {name}: preparing a network", 1e6 * preparing / len(sample), "us"),
        Figure(
            f"otmann, {name}: largest relative difference from the reference",
            difference,
            "",
            RELATIVE_ERROR,
        ),
    ]


def _naive(
    otmann: OTMANN, prepared: Sequence[LayersWithMass], rng: np.random.Generator, count: int = 150
) -> tuple[float, float]:
    """Return the reference's seconds a pair, and the largest relative difference between both."""
    every = list(combinations(range(len(prepared)), 2))
    chosen = [every[at] for at in rng.permutation(len(every))[:count]]
    reference_distance(otmann, prepared[0], prepared[1])
    begin = time.thread_time()
    expected = np.array([reference_distance(otmann, prepared[i], prepared[j]) for i, j in chosen])
    seconds = (time.thread_time() - begin) / len(chosen)
    unnormalised = otmann.distances(prepared).unnormalised
    actual = np.array([unnormalised[:, i, j] for i, j in chosen])
    return seconds, float(np.max(np.abs(actual - expected) / np.where(expected > 0, expected, 1.0)))


def reference_distance(otmann: OTMANN, first: LayersWithMass, second: LayersWithMass) -> Floats:
    """Return the unnormalised distances (k,) of one pair by program (6) of the NASBOT paper, solved
    by POT.
    """
    import ot

    words = vocabulary(first.space)
    table = penalties(
        words, released_code=otmann.variant == "code", groups=otmann.variant != "main_text"
    )
    label = table.matrix[np.ix_(first.labels, second.labels)]
    structure = np.abs(first.places[:, None] - second.places[None]).sum(axis=2)
    total = first.masses.sum() + second.masses.sum()
    if not total:
        return np.zeros(len(otmann.nu_str))

    supply = np.append(first.masses, second.masses.sum()) / total
    demand = np.append(second.masses, first.masses.sum()) / total
    cost = np.ones((len(supply), len(demand)))
    cost[-1, -1] = 0.0
    distances = []
    for nu in otmann.nu_str:
        # Costs of 2 and more never pay: leaving both units unmatched costs 2.
        cost[:-1, :-1] = np.minimum(label + nu * structure, 2.0)
        distances.append(total * float(ot.emd2(supply, demand, cost, numItermax=1_000_000)))

    return np.array(distances)
