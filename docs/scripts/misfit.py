"""Fit of the models of `portfolio` to a table.

The columns are rank correlation, calibration and noise of each member.

    python docs/scripts/misfit.py --task transnas-object --seeds 5 --after 20 40 60

| column | meaning                                                                                        |
|--------|------------------------------------------------------------------------------------------------|
| rho    | Spearman's correlation of posterior mean and value, over all networks that were not evaluated  |
| top    | the same over the best tenth of them                                                           |
| z      | root mean square of (value - mean) / standard deviation of a prediction with noise; 1 is right |
| loo    | the same of the evaluated networks, each left out in turn                                      |
| noise  | fitted standard deviation of the noise, in standard deviations of the transformed values       |
| weight | stacking weight among the members of the row's block                                           |

Histories are those of `portfolio` itself, or of random search with `--agent random`. Last, for a
table with several rows of one network, the standard deviation of their values beside that of all
networks, both above the median.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import defaultdict

import numpy as np
from scipy.linalg import lapack
from scipy.stats import spearmanr

from archive import agents
from archive.agents.base import History, Observation
from archive.agents.bayesopt.portfolio_members import member_model
from archive.agents.provenance import generator
from archive.agents.surrogates.base import Posterior
from archive.agents.surrogates.gp.fitted import FittedGP
from archive.agents.surrogates.stacking import loo_log_densities, stacking_weights
from archive.architecture.codec import from_nasbench201
from archive.errors import ArchiveError
from archive.objectives import sign
from archive.trainer.tasks import registry
from archive.trainer.tasks.tabular import TabularTask

MEMBERS = ("subtrees", "topology", "structure", "ngrams", "paths", "choices", "patterns")
TRANSFORM = "log-regret"


def tabular(parser: argparse.ArgumentParser, name: str) -> TabularTask:
    """Return the tabular task of a name; ends the script if there is none."""
    try:
        task = registry.get(name)
    except ArchiveError as error:
        parser.error(str(error))

    if not isinstance(task, TabularTask):
        parser.error(f"{name} is not a tabular task")

    return task


def search(kind: str, task: TabularTask, seed: int, budget: int) -> list[Observation]:
    """Return the evaluations of a search, in their order."""
    agent = agents.get(kind, task.search_space())
    seen: list[Observation] = []
    while len(seen) < budget:
        history = History(tuple(seen))
        for one in agent.propose(history, 1, generator(seed, history)):
            score = sign(task.direction) * task.answer(one.architecture).value
            seen.append(Observation(one.architecture.canonical, score, f"search#{len(seen):05d}"))

    return seen


def members_fit(task: TabularTask, seen: list[Observation], names: list[str]) -> np.ndarray:
    """Return the columns of the report for each member: (members, 6) float64."""
    space = task.search_space()
    evaluated = {one.architecture.functional_key for one in seen}
    others = [one for one in space.members() or () if one.functional_key not in evaluated]
    truth = sign(task.direction) * np.array([task.truth(one.functional_key)[0] for one in others])
    networks = [one.architecture.functional for one in seen]
    scores = np.array([one.score for one in seen])
    fitted = [
        member_model(name, space)
        .surrogate(TRANSFORM)
        .fit(networks, scores, np.random.default_rng(0))
        for name in names
    ]
    weights = stacking_weights(loo_log_densities(fitted, scores))
    candidates = [one.functional for one in others]
    rows = [_row(one, one.posterior(candidates), truth) for one in fitted]
    return np.column_stack([np.array(rows), weights])


def _row(fitted: FittedGP, posterior: Posterior, truth: np.ndarray) -> list[float]:
    mean = posterior.means[0]
    noise = fitted.noises()[0]
    of_scores = fitted.scale.monotone_map
    z = ((truth if of_scores is None else of_scores(truth)) - mean) / np.sqrt(
        posterior.variances[0] + noise
    )
    top = truth >= np.quantile(truth, 0.9)
    process = fitted.processes[0]
    inverse, _ = lapack.dpotri(process.factor, lower=1)
    left_out = process.weights / np.sqrt(inverse.diagonal())
    return [
        spearmanr(mean, truth)[0],
        spearmanr(mean[top], truth[top])[0],
        np.sqrt(np.mean(z**2)),
        np.sqrt(np.mean(left_out**2)),
        np.sqrt(noise) / fitted.scale.spread,
    ]


def noise_of_rows(task: TabularTask) -> tuple[float, float]:
    """Return the standard deviations of rows of one network and of all networks.

    Only rows above the median of the table count.
    """
    column = task.protocol().column
    origin = task.table.origin
    groups = defaultdict(list)
    with gzip.open(origin, "rt") if origin.endswith(".gz") else open(origin) as file:
        for row in csv.DictReader(file):
            groups[from_nasbench201(row["arch_str"]).functional_key].append(float(row[column]))

    values = task.table.column(column)
    median = float(np.median(values))
    repeated = [
        np.var(rows, ddof=1) for rows in groups.values() if len(rows) > 1 and np.mean(rows) > median
    ]
    return float(np.sqrt(np.mean(repeated))), float(values[values > median].std())


def main() -> None:
    """Search, fit, and print one row per member."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="transnas-object")
    parser.add_argument("--agent", default="portfolio")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--after", type=int, nargs="+", default=[20, 40, 60])
    parser.add_argument("--member", action="append", help="Members; all of them by default.")
    asked = parser.parse_args()
    task = tabular(parser, asked.task)
    names = asked.member or list(MEMBERS)
    histories = [search(asked.agent, task, seed, max(asked.after)) for seed in range(asked.seeds)]
    print(f"{asked.task}, histories of {asked.agent}, mean of {asked.seeds} seeds")
    print("after member       rho   top     z   loo noise weight")
    for after in asked.after:
        mean = np.mean([members_fit(task, seen[:after], names) for seen in histories], axis=0)
        for name, row in zip(names, mean, strict=True):
            print(f"{after:5} {name:10} " + " ".join(f"{value:5.2f}" for value in row))

    if task.table.space == "nasbench201":
        repeated, all_networks = noise_of_rows(task)
        print(
            f"standard deviation above the median: {repeated:.4f} of one network's rows, "
            f"{all_networks:.4f} of all"
        )


if __name__ == "__main__":
    main()
