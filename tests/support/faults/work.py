"""Studies for workers, with known results."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archive import spaces
from archive.api import Archive
from archive.architecture import codec
from archive.architecture.graph import Architecture, Layer
from archive.store.records import Study


def propose(
    archive: Archive, tabular: int, real: int, tasks: Sequence[str], home: Path, seed: int
) -> dict[str, float]:
    """Make the studies, and return the values that the table must have given, by proposal."""
    from archive.trainer.tasks.registry import get, name_file

    rng = random.Random(seed)
    agent = archive.proposals.register_agent("chaos", {}, "1")
    cells = list(spaces.get("nasbench201").members()[:tabular])
    table = home / "table.csv"
    lines = [
        f"{codec.to_nasbench201(cell)},{at / 1000},{30 + at % 70}" for at, cell in enumerate(cells)
    ]
    table.write_text("\n".join(["arch_str,accuracy,train_time_s", *lines]))
    _study(archive, "tabular", f"table:{table}#accuracy", "nasbench201", seed)
    name_file(get(f"table:{table}#accuracy"), home)
    made = archive.proposals.create("tabular", agent, [Suggestion(cell) for cell in cells])
    for task in tasks:
        pairs = real // (2 * len(tasks))
        networks = [_network(rng) for _ in range(pairs)]
        for twin in ("a", "b"):
            _study(archive, f"{task}-{twin}", task, "mlp", seed)
            archive.proposals.create(
                f"{task}-{twin}", agent, [Suggestion(each) for each in networks], unique=False
            )

    return {proposal.id: at / 1000 for at, proposal in enumerate(made)}


@dataclass(frozen=True)
class Suggestion:
    """A network to evaluate."""

    architecture: Architecture


def _study(archive: Archive, name: str, task: str, space: str, seed: int) -> None:
    from archive.trainer.tasks import registry

    known = registry.get(task)
    # Trials that last: under the default protocol of digits they take a second, in which few kills
    # would fall.
    protocol = known.protocol(None if task.startswith("table:") else f"{task}/1").name
    archive.studies.create(
        Study(
            name, task, protocol, space, known.objective, known.direction, budget=10_000, seed=seed
        )
    )


def _network(rng: random.Random) -> Architecture:
    widths = [rng.randrange(8, 33) for _ in range(rng.randrange(1, 3))]
    layers = [
        Layer("ip"),
        *(Layer("relu", width) for width in widths),
        Layer("linear"),
        Layer("op"),
    ]
    return Architecture("mlp", layers, [(at, at + 1) for at in range(len(layers) - 1)])
