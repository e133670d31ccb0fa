"""Evidence for a source of a warm start, by the outcome transforms of the scores.

    python docs/scripts/evidence.py --source transnas-scene --target transnas-object --seeds 20
    --after 5 10 20

| column     | meaning                                                                                  |
|------------|------------------------------------------------------------------------------------------|
| nats       | Bayes factor of a correlation of the tasks (`agents.transfer.evidence`), median          |
| takes part | share of the searches in which a source with as many nats takes part                     |
| loo        | gain of the source's models in leave-one-out log density of the stacked models, in nats, |
|            | median                                                                                   |

The evaluations are those of `portfolio` on the target without a source. Sources are searches by
regularized evolution, as of `python -m tests.benchmarks transfer --matrix`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from misfit import search, tabular
from scipy.special import logsumexp

from archive.agents.base import Observation, SourceStudy
from archive.agents.bayesopt.portfolio_members import defaults, member_model
from archive.agents.surrogates.gp.coregionalised import CoregionalisedGP
from archive.agents.surrogates.stacking import FittedMember, loo_log_densities, stacking_weights
from archive.agents.transfer.coordinator import SourceModels, Transfer
from archive.agents.transfer.evidence import Evidence
from archive.agents.transfer.source_model import group_sources
from archive.trainer.tasks.tabular import TabularTask

TRANSFORMS = ("standardise", "compress-below-median", "log-regret")
"""Transforms that are compared; `portfolio` has the first one."""


def row(
    models: SourceModels, seen: list[Observation], task: TabularTask, transform: str
) -> list[float]:
    """Return the columns of the report: nats, whether the source takes part, loo."""
    verdict = Evidence(transform).verdict(models, seen)
    space = task.search_space()
    networks = [one.architecture.functional for one in seen]
    scores = np.array([one.score for one in seen])
    rng = np.random.default_rng(0)
    own = [
        member_model(name, space).surrogate(transform).fit(networks, scores, rng)
        for name in defaults(space)
    ]
    coupled = [CoregionalisedGP(model, transform).fit(networks, scores, rng) for model in models]
    gain = log_density([*own, *coupled], scores) - log_density(own, scores)
    return [verdict.nats, float(verdict.suffices), gain]


def log_density(fitted: Sequence[FittedMember], scores: np.ndarray) -> float:
    """Return the leave-one-out log density of stacked members, in nats."""
    densities = loo_log_densities(fitted, scores)
    return float(logsumexp(densities, axis=1, b=stacking_weights(densities)).sum())


def main() -> None:
    """Search, compare, and print one row for a transform and number of evaluations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", default="transnas-scene")
    parser.add_argument("--target", default="transnas-object")
    parser.add_argument("--evaluations", type=int, default=200, help="Evaluations of the source.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--after", type=int, nargs="+", default=[5, 10, 20])
    asked = parser.parse_args()
    source = tabular(parser, asked.source)
    target = tabular(parser, asked.target)
    transfer = Transfer(target.search_space(), rule="evidence")
    rows: dict[tuple[str, int], list[list[float]]] = {}
    for seed in range(asked.seeds):
        # The source has other initial networks than the target.
        known = search("regularized-evolution", source, 1000 + seed, asked.evaluations)
        study = SourceStudy(
            "source", source.name, source.protocol().name, source.search_space().name, tuple(known)
        )
        models = transfer.models_of(group_sources((study,))[0])
        if not models:
            parser.error(
                f"a model of the source needs more than {asked.evaluations} "
                "evaluations: --evaluations"
            )

        seen = search("portfolio", target, seed, max(asked.after))
        for transform in TRANSFORMS:
            for after in asked.after:
                rows.setdefault((transform, after), []).append(
                    row(models, seen[:after], target, transform)
                )

    print(
        f"{asked.source} to {asked.target}, {asked.evaluations} evaluations of the source, "
        f"{asked.seeds} seeds"
    )
    print("transform                 after  nats  takes part   loo")
    for (transform, after), found in rows.items():
        nats, parts, gains = np.array(found).T
        print(
            f"{transform:25} {after:5} {np.median(nats):5.1f} {parts.mean():11.2f} "
            f"{np.median(gains):5.1f}"
        )


if __name__ == "__main__":
    main()
