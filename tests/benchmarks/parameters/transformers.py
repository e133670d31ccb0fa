"""Transformers of HW-GPT-Bench: perplexity and memory by its surrogates, and their front.

| symbol | meaning                                                                     | shape  |
|--------|-----------------------------------------------------------------------------|--------|
| Y      | scores: perplexity and memory in half precision (MB), with a minus sign     | (n, 2) |
| r      | reference point: the worst of each among `SAMPLES` random transformers      | (2,)   |

Both surrogates are perceptrons. The one of perplexity has the choices as one-hot codes, and zeros
where a layer does not exist; the one of memory has numbers on [0, 1], and zeros there.

The spaces have 1e9 and more members: the front is of several long NSGA-II that begin with different
random transformers, and of one that begins with their last populations.

R. S. Sukthanker et al., HW-GPT-Bench: Hardware-Aware Architecture Benchmark for Language Models,
2024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from archive import space
from archive.agents.baselines.nsga2 import order_by_crowding
from archive.agents.surrogates.base import Array
from archive.objectives import pareto
from archive.parameters.parameter_space import ParameterSpace

SAMPLES = 10_000
"""Random transformers of the reference point."""
POPULATION = 200
GENERATIONS = 400
RESTARTS = 3


@dataclass(frozen=True)
class TransformerScale:
    """One space of HW-GPT-Bench.

    Attributes:
        embeddings: Widths of the embedding.
        layers: Numbers of layers.
        heads: Numbers of heads of a layer.
        ratios: Widths of a feed-forward part, as multiples of the embedding.
    """

    embeddings: tuple[int, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    ratios: tuple[int, ...] = (2, 3, 4)


SCALES = {
    "s": TransformerScale((192, 384, 768), (10, 11, 12), (4, 8, 12)),
    "m": TransformerScale((256, 512, 1024), (22, 23, 24), (8, 12, 16)),
}


class Transformers:
    """Transformers of one space with their perplexity and memory.

    Args:
        name: Name of the space: s or m.
        folder: Folder of the tables, with `hw_gpt` in it.

    Attributes:
        space: The space.
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Read the surrogates."""
        self.scale = SCALES[name]
        self.space = _space(self.scale)
        self._perplexity = _read_perceptron(folder / "hw_gpt" / f"perplexity_{name}.pt")
        self._memory = _read_perceptron(folder / "hw_gpt" / f"float16_memory_{name}.pth")

    def scores(self, configurations: Sequence[Mapping[str, Any]]) -> Array:
        """Return Y of configurations: (n, 2) float64."""
        return self._scores(self._indices(configurations))

    @cached_property
    def reference(self) -> Array:
        """r: (2,) float64."""
        sampled = self._sample(SAMPLES, np.random.default_rng(0))
        worst: Array = self._scores(sampled).min(axis=0)
        return worst

    @cached_property
    def front(self) -> Array:
        """Y of the best front that a long search finds: (k, 2) float64."""
        rng = np.random.default_rng(0)
        populations = [self._evolve(self._sample(POPULATION, rng), rng) for _ in range(RESTARTS)]
        rows = np.vstack(populations)
        rows = np.vstack([rows, self._evolve(rows, rng)])
        scores = self._scores(rows)
        best: Array = scores[pareto.nondominated(scores)]
        return best

    @cached_property
    def volume(self) -> float:
        """Hypervolume of the front."""
        return pareto.hypervolume(self.front, self.reference)

    def shares(self, scores: Array) -> Array:
        """Return the share of the hypervolume after 1, 2, … evaluations: (n,) float64."""
        return pareto.history(scores, self.reference) / self.volume

    @property
    def _depth(self) -> int:
        return max(self.scale.layers)

    @property
    def _counts(self) -> list[int]:
        """Number of options of each decision: embedding, layers, bias, ratios, heads."""
        scale = self.scale
        by_layer = [len(scale.ratios)] * self._depth + [len(scale.heads)] * self._depth
        return [len(scale.embeddings), len(scale.layers), 2, *by_layer]

    def _indices(self, configurations: Sequence[Mapping[str, Any]]) -> Any:
        """Return the options of configurations, 0 of a layer that does not exist: (n, D) int."""
        scale = self.scale
        rows = np.zeros((len(configurations), len(self._counts)), np.int64)
        for row, values in zip(rows, configurations, strict=True):
            row[0] = scale.embeddings.index(values["embed"])
            row[1] = scale.layers.index(values["layers"])
            row[2] = int(values["bias"])
            for layer in range(values["layers"]):
                row[3 + layer] = scale.ratios.index(values[f"ratio_{layer}"])
                row[3 + self._depth + layer] = scale.heads.index(values[f"heads_{layer}"])

        return rows

    def _scores(self, rows: Any) -> Array:
        scale = self.scale
        depths = np.array(scale.layers)[rows[:, 1]]
        exists = np.arange(self._depth) < depths[:, None]
        ratios = rows[:, 3 : 3 + self._depth]
        heads = rows[:, 3 + self._depth :]
        one_hot = [
            np.eye(3)[rows[:, 0]],
            np.eye(3)[rows[:, 1]],
            (np.eye(3)[ratios] * exists[:, :, None]).reshape(len(rows), -1),
            (np.eye(3)[heads] * exists[:, :, None]).reshape(len(rows), -1),
            np.eye(2)[1 - rows[:, 2]],
        ]
        numbers = [
            _on_unit(scale.embeddings)[rows[:, 0], None],
            _on_unit(scale.layers)[rows[:, 1], None],
            _on_unit(scale.ratios)[ratios] * exists,
            _on_unit(scale.heads)[heads] * exists,
            rows[:, 2:3],
        ]
        perplexity = _answer(self._perplexity, np.hstack(one_hot))
        memory = _answer(self._memory, np.hstack(numbers))
        return -np.column_stack([perplexity, memory])

    def _sample(self, count: int, rng: np.random.Generator) -> Any:
        columns = [rng.integers(options, size=count) for options in self._counts]
        return np.column_stack(columns)

    def _evolve(self, population: Any, rng: np.random.Generator) -> Any:
        """Return the last population of one NSGA-II (Deb et al., 2002)."""
        for _ in range(GENERATIONS):
            mothers = population[rng.integers(len(population), size=POPULATION)]
            fathers = population[rng.integers(len(population), size=POPULATION)]
            children = np.where(rng.random(mothers.shape) < 0.5, mothers, fathers)
            # Two mutations in the mean.
            mutated = rng.random(children.shape) < 2.0 / children.shape[1]
            children = np.where(mutated, self._sample(POPULATION, rng), children)
            both = np.unique(np.vstack([population, children]), axis=0)
            order = order_by_crowding(self._scores(both))
            population = both[order[:POPULATION]]

        return population


def _space(scale: TransformerScale) -> ParameterSpace:
    declared: dict[str, Any] = {
        "embed": space.ordinal(list(scale.embeddings)),
        "layers": space.ordinal(list(scale.layers)),
        "bias": space.choice([True, False]),
    }
    for layer in range(max(scale.layers)):
        when = f"layers > {layer}" if layer >= min(scale.layers) else None
        declared[f"ratio_{layer}"] = space.ordinal(list(scale.ratios), when=when)
        declared[f"heads_{layer}"] = space.ordinal(list(scale.heads), when=when)

    return space.Space(declared)


def _read_perceptron(path: Path) -> list[tuple[Array, Array]]:
    import torch

    weights = torch.load(path, weights_only=True, map_location="cpu")
    layers = []
    for number in range(1, 6):
        matrix = weights[f"fc{number}.weight"].double().numpy()
        layers.append((matrix, weights[f"fc{number}.bias"].double().numpy()))

    return layers


def _answer(layers: Sequence[tuple[Array, Array]], inputs: Array) -> Array:
    """Return the outputs of a perceptron: (n,) float64."""
    hidden = inputs
    for matrix, bias in layers[:-1]:
        hidden = np.maximum(hidden @ matrix.T + bias, 0.0)

    matrix, bias = layers[-1]
    return (hidden @ matrix.T + bias)[:, 0]


def _on_unit(options: Sequence[int]) -> Array:
    values = np.array(options, np.float64)
    return (values - values.min()) / np.ptp(values)
