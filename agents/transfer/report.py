"""A report of the contribution of each source to a warm-started study.

| column      | meaning                                                                                   |
|-------------|-------------------------------------------------------------------------------------------|
| same_task   | whether its evaluations are observations of the study, rather than of a source task       |
| evaluations | its evaluations of finite value; for another task, of whole trainings alone               |
| proposals   | the study's proposals that were based on it: those before there is enough evidence for a  |
|             | source of another task, and those after evidence against it, are not                      |
| coupling    | correlation of the study's task with it, in [-1, 1], as last estimated by the agent; None |
|             | for the same task, and before the first estimate                                          |
| couplings   | all of these estimates: number of a proposal to the correlation that it is based on       |
| best_rank   | rank of its best network among the study's own evaluations, 1 is best; None where the     |
|             | study has not evaluated it                                                                |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from archive.agents.observations import is_score
from archive.agents.transfer.source_tasks import of_one_task, same_task, split, too_little

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Evaluation, Proposal, Study


class Contribution(NamedTuple):
    """One row of the table at the head of this module."""

    study: str
    task: str
    space: str
    same_task: bool
    evaluations: int
    proposals: int
    coupling: float | None
    couplings: Mapping[int, float]
    best_rank: int | None


def read_contributions(archive: Archive, name: str) -> list[Contribution]:
    """Return one row for each source of a warm-started study, by name.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    study = archive.studies.get(name)
    sources = archive.studies.sources(name)
    if not sources:
        return []

    by_study: dict[str, list[Evaluation]] = {study: [] for study in (name, *sources)}
    recorded = archive.studies.evaluations([name, *sources], curves=False)
    for evaluation in recorded:
        usable_length = not evaluation.partial or _same_task(study, evaluation)
        if is_score(evaluation.score) and usable_length:
            by_study[str(evaluation.study)].append(evaluation)

    of_sources = [evaluation for evaluation in recorded if evaluation.study != name]
    _, others = split(of_sources, study)
    usable: set[str] = set()
    for source_study in others:
        if not too_little(*of_one_task(source_study, others)):
            usable.add(source_study.study)

    proposals = sorted(archive.proposals.list(name), key=lambda proposal: proposal.number)
    rows = []
    for source in sources:
        other = archive.studies.get(source)
        separate = any(part.study == source and part.observations for part in others)
        same = not separate and same_task(study, other.task, other.protocol, other.space)
        based = 0
        if same or source in usable:
            based = sum(map(partial(_is_based, source), proposals))

        couplings = _couplings(proposals, source)
        rows.append(
            Contribution(
                study=source,
                task=other.task,
                space=other.space,
                same_task=same,
                evaluations=len(by_study[source]),
                proposals=based,
                coupling=next(reversed(couplings.values()), None),
                couplings=couplings,
                best_rank=_rank(by_study[source], by_study[name]),
            )
        )

    return rows


def _same_task(study: Study, evaluation: Evaluation) -> bool:
    return same_task(study, evaluation.task, evaluation.protocol, evaluation.architecture.space)


def _is_based(source: str, proposal: Proposal) -> bool:
    """Whether a proposal read a source, and no estimate of its correlation is 0."""
    read = proposal.based_on.get("observations", ())
    couplings = proposal.based_on.get("coupling", {})
    return source in read and couplings.get(source) != 0


def _couplings(proposals: Sequence[Proposal], source: str) -> dict[int, float]:
    couplings: dict[int, float] = {}
    for proposal in proposals:
        estimates = proposal.based_on.get("coupling", {})
        if source in estimates:
            couplings[proposal.number] = estimates[source]

    return couplings


def _rank(of_source: Sequence[Evaluation], of_study: Sequence[Evaluation]) -> int | None:
    if not of_source:
        return None

    best = max(of_source, key=lambda evaluation: evaluation.score).architecture.functional_key
    scores = []
    for evaluation in of_study:
        if evaluation.architecture.functional_key == best:
            scores.append(evaluation.score)

    if not scores:
        return None

    best_score = max(scores)
    return 1 + sum(evaluation.score > best_score for evaluation in of_study)
