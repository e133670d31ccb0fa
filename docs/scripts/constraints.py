"""Evaluations until the best network of a table that meets constraints, beside other agents.

    python docs/scripts/constraints.py --constraint 'params<=0.3M' --agent portfolio --agent tpe --seeds 5
    python docs/scripts/constraints.py --constraint latency_ms_raspi4@0.5 --measured latency_ms_raspi4 --agent portfolio

`NAME@SHARE` is an upper bound at this share of the networks: 0.5 is the median. The task answers in this process,
without an archive: the agents see the same histories as in `archive search` with one proposal at a time. A quantity is
known, unless `--measured` names it: then agents learn it from the results. A row has the median over the seeds and the
numbers of all searches; a search that does not find the best network counts as the budget, with a +.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from archive import agents
from archive.agents.base import History, Observation
from archive.agents.constraints.penalty import adapted
from archive.agents.constraints.slacks import StudyConstraints
from archive.agents.provenance import generator
from archive.constraints import Constraint, parse
from archive.known_costs import KnownCosts
from archive.spaces.constrained import constrained
from archive.store.records import sign
from archive.trainer.tasks import known_costs, registry
from archive.trainer.tasks.tabular import TabularTask


def bound(text: str, task: TabularTask, costs: KnownCosts) -> Constraint:
    """Return a constraint, of `NAME@SHARE` at a quantile of the table."""
    name, separator, share = text.partition("@")
    if not separator:
        return parse(text)
    values = costs[name](task.search_space().members() or ())
    return Constraint(name, "<=", float(np.nanquantile(values, float(share), method="lower")))


def best_feasible(task: TabularTask, constraints: StudyConstraints, costs: KnownCosts) -> tuple[set[str], int]:
    """Return the functional keys of the best networks that meet the constraints, and the number of all that do."""
    members = constrained(task.search_space(), constraints.constraints, costs).members() or ()
    scores = [sign(task.direction) * task.truth(each.functional_key)[0] for each in members]
    best = max(scores)
    return {each.functional_key for each, score in zip(members, scores, strict=True) if score == best}, len(members)


def search(
    kind: str, task: TabularTask, constraints: StudyConstraints, best: set[str], seed: int, budget: int
) -> tuple[int | None, int]:
    """Return the number of evaluations until one of the best networks, and how many did not meet the constraints."""
    agent = agents.get(kind, constrained(task.search_space(), constraints.constraints, constraints.known))
    objective = task.objective
    seen: list[Observation] = []
    while len(seen) < budget:
        history = History(tuple(seen), constraints=constraints)
        for one in agent.propose(adapted(agent, history), 1, generator(seed, history)):
            result = task.answer(one.architecture)
            metrics = {objective: result.value, **result.metrics}
            measured = tuple(metrics[constraints.constraints[at].name] for at in constraints.measured)
            score = sign(task.direction) * result.value
            seen.append(Observation(one.architecture, score, f"search#{len(seen):05d}", measured=measured))
            if one.architecture.functional_key in best:
                return len(seen), int((~constraints.met(seen)).sum())
    return None, int((~constraints.met(seen)).sum())


def main() -> None:
    """Search, and print one row an agent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="nb201-cifar10")
    parser.add_argument("--constraint", action="append", required=True)
    parser.add_argument("--measured", action="append", default=[])
    parser.add_argument("--agent", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=200)
    options = parser.parse_args()
    task = registry.get(options.task)
    costs = known_costs.of_task(task, task.protocol().name)
    limits = tuple(bound(text, task, costs) for text in options.constraint)
    constraints = StudyConstraints(limits, {k: v for k, v in costs.items() if k not in options.measured})
    best, feasible = best_feasible(task, constraints, costs)
    print(f"{' and '.join(map(str, limits))}: {feasible} of {len(task.search_space().members() or ())} networks")
    for kind in options.agent:
        begin = time.process_time()
        runs = [search(kind, task, constraints, best, seed, options.budget) for seed in range(options.seeds)]
        counts = [options.budget if found is None else found for found, _ in runs]
        shown = ", ".join(f"{options.budget}+" if found is None else str(found) for found, _ in runs)
        seconds = (time.process_time() - begin) / options.seeds
        wasted = statistics.mean(wrong for _, wrong in runs)
        print(f"{kind}: {statistics.median(counts):g} ({shown}); {wasted:.1f} infeasible; {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
