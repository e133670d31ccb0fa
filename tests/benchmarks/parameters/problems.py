"""Problems of configurations: two tables of real trainings, and synthetic conditional spaces.

| problem          | space                                     | one evaluation                         |
|------------------|-------------------------------------------|----------------------------------------|
| `fcnet:TASK`     | nine parameters of FCNet, 62,208 settings | mean + spread of four seeds x normal,  |
|                  |                                           | drawn again while it is not positive   |
| `accel`          | 28 decisions of Accel-NASBench            | boosted trees fitted to its 5,138      |
|                  |                                           | trainings, plus normal noise of .3     |
| `branin:NUMBER`  | copies of Branin's function, one active   | the value, with `+noise` plus normal   |
|                  | by a choice, and parameters that do little| noise of 5 % of the spread of values   |
| `tree:NUMBER`    | a tree of choices with numbers at leaves  | the same                               |
| `…+right`        | a synthetic space with priors of medium   | the same                               |
|                  | confidence at the optimum                 |                                        |
| `…+near`         | with priors of numbers beside it          | the same                               |
| `…+wrong`        | with priors far from it                   | the same                               |

Scores are maximised; a regret is the best true score minus the true score of the recommendation.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from archive import space
from archive.parameters.batches import CodeBatches
from archive.parameters.declaration import Prior
from archive.parameters.domains import Choice, Domain
from archive.parameters.parameter_space import ParameterSpace

NOISE = 0.05
"""Noise of a synthetic problem, as a share of the standard deviation of random values."""
NEAR = 0.15
"""Distance of a prior near the optimum from it, as a share of the scale."""
RESTARTS = 12
"""Local searches for the best value of `accel`.

Half of them end at it, and no change of two decisions is better."""


@dataclass(frozen=True)
class Problem:
    """A function of configurations.

    Attributes:
        name: Its name.
        space: The configurations.
        truth: The true score of a configuration.
        draw: The score of one evaluation.
        best: The best true score.
        noisy: Whether evaluations have noise.
        optimum: The best configuration of a synthetic problem.
    """

    name: str
    space: ParameterSpace
    truth: Callable[[Mapping[str, Any]], float]
    draw: Callable[[Mapping[str, Any], np.random.Generator], float]
    best: float
    noisy: bool
    optimum: Mapping[str, Any] = field(default_factory=dict)


@cache
def problem(name: str, folder: Path) -> Problem:
    """Return a problem by its name."""
    kind, _, rest = name.partition(":")
    if kind == "fcnet":
        return _fcnet(rest, folder)

    if kind == "accel":
        return _accel(folder)

    number, *forms = rest.split("+")
    synthetic = _synthetic(name, kind, int(number), noisy="noise" in forms)
    for form in ("right", "near", "wrong"):
        if form in forms:
            return replace(synthetic, space=_with_priors(synthetic, form))

    return synthetic


def _fcnet(task: str, folder: Path) -> Problem:
    with gzip.open(folder / "fcnet.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))

    columns = [name for name in rows[0] if name.startswith("set:")]
    declared: dict[str, Any] = {}
    for column in columns:
        texts = sorted({row[column] for row in rows})
        name = column.removeprefix("set:")
        if "activation" in name or "schedule" in name:
            declared[name] = space.choice(texts)
        else:
            declared[name] = space.ordinal(sorted(map(float, texts)))

    table = {}
    for row in rows:
        key = []
        for column in columns:
            is_text = "activation" in column or "schedule" in column
            key.append(row[column] if is_text else float(row[column]))

        table[tuple(key)] = (float(row[f"valid_mse_{task}"]), float(row[f"sd4_{task}"]))

    names = [column.removeprefix("set:") for column in columns]

    def find(configuration: Mapping[str, Any]) -> tuple[float, float]:
        return table[tuple(configuration[name] for name in names)]

    def draw(configuration: Mapping[str, Any], rng: np.random.Generator) -> float:
        mean, spread = find(configuration)
        loss = -1.0
        while loss <= 0.0:
            loss = mean + spread * rng.standard_normal()

        return -loss

    best = -min(mean for mean, _ in table.values())
    parameters = space.Space(declared)
    return Problem(
        f"fcnet:{task}", parameters, lambda values: -find(values)[0], draw, best, noisy=True
    )


def _accel(folder: Path) -> Problem:
    from sklearn.ensemble import GradientBoostingRegressor

    with gzip.open(folder / "accel_nasbench.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))

    columns = [name for name in rows[0] if name.startswith("set:")]
    declared: dict[str, Any] = {}
    for column in columns:
        values = sorted({row[column] for row in rows})
        name = column.removeprefix("set:")
        if name.endswith("_se"):
            declared[name] = space.choice([False, True])
        else:
            declared[name] = space.ordinal(sorted(map(int, values)))

    parameters = space.Space(declared)
    batches = CodeBatches(parameters)
    configurations = []
    for row in rows:
        values = {}
        for column in columns:
            text = row[column]
            values[column.removeprefix("set:")] = (
                text == "True" if column.endswith("_se") else int(text)
            )

        configurations.append(values)

    codes = parameters.encode(configurations)
    trees = GradientBoostingRegressor(
        n_estimators=400, max_depth=4, learning_rate=0.08, subsample=0.7, random_state=0
    )
    trees.fit(codes, [float(row["val_top1"]) for row in rows])

    def truth(values: Mapping[str, Any]) -> float:
        return float(trees.predict(parameters.encode([values]))[0])

    def rank(many: Any) -> Any:
        return trees.predict(many)

    bests = [_maximise(batches, rank, seed, least=0.01)[1] for seed in range(RESTARTS)]
    return Problem(
        "accel",
        parameters,
        truth,
        lambda values, rng: truth(values) + 0.3 * float(rng.standard_normal()),
        max(bests),
        noisy=True,
    )


def _synthetic(name: str, kind: str, number: int, *, noisy: bool) -> Problem:
    rng = np.random.default_rng([number, len(kind)])
    make = {"branin": _branins, "tree": _tree}[kind]
    parameters, truth = make(number, rng)
    batches = CodeBatches(parameters)
    codes = batches.sample(500, np.random.default_rng(0))
    spread = float(np.std([truth(values) for values in batches.configurations(codes)]))

    def rank(many: Any) -> Any:
        return np.array([truth(values) for values in batches.configurations(many)])

    optimum, best = _maximise(batches, rank)

    def draw(values: Mapping[str, Any], generator: np.random.Generator) -> float:
        noise = NOISE * spread * float(generator.standard_normal()) if noisy else 0.0
        return truth(values) + noise

    return Problem(name, parameters, truth, draw, best, noisy, parameters.decode(optimum))


def _with_priors(task: Problem, form: str) -> ParameterSpace:
    """Return the space of a problem with priors at its optimum, near it, or far from it."""
    declared: dict[str, Any] = {}
    for parameter in task.space.parameters:
        prior = None
        if parameter.name in task.optimum:
            value = task.optimum[parameter.name]
            prior = Prior(value if form == "right" else _away(parameter.domain, value, form))

        declared[parameter.name] = replace(task.space.declared[parameter.name], prior=prior)

    return space.Space(declared)


def _away(domain: Domain, value: Any, form: str) -> Any:
    """Return a value beside another one, or far from it."""
    if isinstance(domain, Choice):
        others = (option for option in domain.options if option != value)
        return value if form == "near" else next(others)

    code = float(domain.encode(value))
    if form == "near":
        return domain.decode(code + NEAR if code < 0.5 else code - NEAR)

    # The end of the range that is further away.
    return domain.decode(float(code < 0.5))


def _branin(x: float, y: float) -> float:
    """Branin's function on the unit square; its least value is .397887."""
    a = 15.0 * x - 5.0
    b = 15.0 * y
    square = (b - 5.1 / (4.0 * np.pi**2) * a * a + 5.0 / np.pi * a - 6.0) ** 2
    return float(square + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(a) + 10.0)


Truth = Callable[[Mapping[str, Any]], float]


def _branins(number: int, rng: np.random.Generator) -> tuple[ParameterSpace, Truth]:
    """Return two to five functions of Branin's form, chosen by a parameter, and weak parameters."""
    count = 2 + number % 4
    weak = 3 * (number % 5)
    offsets = np.sort(rng.uniform(0.0, 12.0, count))
    shifts = rng.uniform(-0.15, 0.15, (count, 2))
    targets = rng.random(weak)
    declared: dict[str, Any] = {"form": space.choice([f"f{index}" for index in range(count)])}
    for index in range(count):
        when = f"form == 'f{index}'"
        declared[f"x{index}"] = space.real(0.0, 1.0, when=when)
        declared[f"y{index}"] = space.real(1e-4, 1.0, log=True, when=when)

    for index in range(weak):
        if index % 3 == 2:
            declared[f"w{index}"] = space.choice(["a", "b", "c"])
        else:
            declared[f"w{index}"] = space.integer(1, 20) if index % 3 else space.real(0.0, 1.0)

    def truth(values: Mapping[str, Any]) -> float:
        index = int(values["form"][1:])
        place = 1.0 + np.log10(values[f"y{index}"]) / 4.0
        loss = offsets[index] + _branin(
            float(np.clip(values[f"x{index}"] + shifts[index, 0], 0.0, 1.0)),
            float(np.clip(place + shifts[index, 1], 0.0, 1.0)),
        )
        for position in range(weak):
            value = values[f"w{position}"]
            if position % 3 == 2:
                loss += 2.0 * (value != "abc"[int(3 * targets[position])])
            elif position % 3:
                loss += 8.0 * (value / 20.0 - targets[position]) ** 2
            else:
                loss += 8.0 * (value - targets[position]) ** 2

        return -float(loss)

    return space.Space(declared), truth


def _tree(number: int, rng: np.random.Generator) -> tuple[ParameterSpace, Truth]:
    """Return a tree of choices: each node has numbers, and the numbers of its choice."""
    depth = 2 + number % 2
    declared: dict[str, Any] = {}
    terms: dict[str, tuple[float, float]] = {}
    values_of: dict[str, Any] = {}

    def grow(node: str, level: int, when: str | None) -> None:
        options = ["l", "m", "r"] if level == 0 else ["l", "r"]
        declared[node] = space.choice(options, when=when)
        values_of[node] = dict(zip(options, rng.uniform(0.0, 2.0, len(options)), strict=True))
        for option in options:
            # A condition on a parameter that does not exist does not hold.
            below = f"{node} == '{option}'"
            child = f"{node}_{option}"
            declared[f"{child}_a"] = space.real(0.0, 1.0, when=below)
            terms[f"{child}_a"] = (float(rng.random()), float(rng.uniform(1.0, 4.0)))
            if level + 1 < depth:
                grow(child, level + 1, below)

    grow("t", 0, None)
    for index in range(number % 6):
        declared[f"s{index}"] = space.integer(1, 64, log=True)
        terms[f"s{index}"] = (float(rng.random()), float(rng.uniform(0.5, 2.0)))

    def truth(values: Mapping[str, Any]) -> float:
        loss = 0.0
        for name, value in values.items():
            if name in values_of:
                loss += values_of[name][value]
            else:
                target, weight = terms[name]
                place = np.log(value) / np.log(64) if name.startswith("s") else value
                loss += weight * (place - target) ** 2

        return -float(loss)

    return space.Space(declared), truth


def _maximise(
    batches: CodeBatches, rank: Callable[[Any], Any], seed: int = 1, least: float = 1e-4
) -> tuple[Any, float]:
    """Return the codes with the greatest score that a long local search finds, and the score.

    Args:
        batches: The configurations.
        rank: Returns the scores of codes.
        seed: Seed of the search.
        least: Standard deviation of its last steps, as a share of the scale.
    """
    rng = np.random.default_rng(seed)
    pool = batches.sample(3000, rng)
    ranks = rank(pool)
    for scale in np.geomspace(0.3, least, 60):
        order = np.argsort(-ranks, kind="stable")[:25]
        varied = batches.vary(np.repeat(pool[order], 12, axis=0), rng, scale=float(scale))
        pool = np.vstack([pool[order], varied])
        ranks = np.concatenate([ranks[order], rank(varied)])

    best = int(np.argmax(ranks))
    return pool[best], float(ranks[best])
