"""What one block brings: one replacement at a time in a trained decoder, scored and stored.

    report = study_blocks(archive, "pydoc-topics-1#00004", steps=60)

Each score is a proposal with its evaluation in a study of its own, and an edge from the parent with
the replacement. It is stored when it is measured, in one transaction, so that a run that was ended
goes on where it was, and runs at the same time store each score once.

The values of a study belong to one parent and one distillation, which the name of its protocol has:
`pydoc-topics/d816f8d22e0c+recipe:blocks@1a2b3c4d5e6f/60`. No trainer has a recipe of this name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from time import perf_counter
from typing import TYPE_CHECKING, Any

from archive import __version__
from archive.agents.study_setup import open_study
from archive.architecture.decoders import vocabulary
from archive.errors import TrainingError, UsageError
from archive.spaces import stored_spaces
from archive.spaces.decoder.space import Decoder
from archive.store.protocol_names import ProtocolName
from archive.store.records import Result, Study
from archive.store.studies.studies import UNBOUNDED
from archive.values import require_at_least

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.store.records import Evaluation
    from archive.trainer.blocks.distillation import BlockScore
    from archive.trainer.blocks.replacements import PartName, PartReplacement
    from archive.trainer.export.trained import TrainedNetwork
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.tasks.base import Task

KIND = "block-study"
"""Kind of agent on record for replaced blocks."""
STEPS = 60
"""Steps of a distillation."""
COSTS = ("params", "flops_per_token", "kv_cache_bytes")
DIVERGENCE = "divergence"
ERROR = "distillation_error"


@dataclass(frozen=True)
class ReplacementScore:
    """The score of one replacement.

    Attributes:
        block: Number of the block, from 1.
        part: `mixer` or `feed-forward`.
        before: The parent's part in words.
        after: The new part in words.
        architecture: Key of the network.
        evaluations: Ids of its evaluations, one for each seed.
        value: Mean objective.
        change: Mean objective minus the parent's: larger is worse.
        deviation: Standard deviation over the seeds; null with one.
        divergence: Mean divergence from the parent of a token, in nats.
        error: Mean error of the last step of the distillation; null where nothing was trained.
        params: Change of the number of parameters.
        flops_per_token: Change of the multiply-adds of a token.
        kv_cache_bytes: Change of the cache.
    """

    block: int
    part: str
    before: str
    after: str
    architecture: str
    evaluations: list[str]
    value: float
    change: float
    deviation: float | None
    divergence: float
    error: float | None
    params: float
    flops_per_token: float
    kv_cache_bytes: float


@dataclass(frozen=True)
class BlockReport:
    """The scores of the replacements in a trained network.

    Attributes:
        study: Study of the scores.
        parent: Id of the parent's evaluation.
        architecture: Key of the parent.
        objective: Name of the value, to be minimised.
        value: The parent's value, measured as the replacements are.
        steps: Steps of each distillation.
        left: Replacements without a score: beyond a limit, of an ended run, or of a distillation
            that diverged.
        replacements: By block and part, the least change first.
    """

    study: str
    parent: str
    architecture: str
    objective: str
    value: float
    steps: int
    left: int
    replacements: list[ReplacementScore]


@dataclass(frozen=True)
class _ScoredNetwork:
    """A network with a score, as admission takes it."""

    architecture: Architecture
    motivation: str
    parent: Architecture | None = None
    operations: tuple[str, ...] = ()
    repeat: bool = False


def study_blocks(
    archive: Archive,
    parent: str,
    *,
    name: str | None = None,
    steps: int = STEPS,
    seeds: int = 1,
    parts: Sequence[PartName] = ("mixer", "feed-forward"),
    blocks: Collection[int] = (),
    kinds: Collection[str] = (),
    limit: int | None = None,
    device: str = "auto",
    weights_from: Sequence[str | Path] = (),
    notify: Callable[[str], None] | None = None,
) -> BlockReport:
    """Replace one part of one block at a time in a trained decoder, and store what it changes.

    Args:
        archive: The archive.
        parent: Evaluation with stored weights, `STUDY#NUMBER`, or a study for its best one.
        name: Study of the scores; None for `STUDY-blocks-NUMBER`.
        steps: Steps of a distillation; 0 trains nothing.
        seeds: Distillations of each replacement.
        parts: Parts to replace.
        blocks: Numbers of blocks, from 1; empty for all.
        kinds: Kinds of new parts, such as `gated_delta` or `none`; empty for all.
        limit: Most replacements, the first ones, which are of all blocks; None for all.
        device: Device in torch's notation, or `auto`.
        weights_from: Folders and fsspec URLs whose weights may be read, beside the archive's own.
        notify: Called with a line for each score.

    Raises:
        UnknownNameError: There is no such evaluation or study.
        UsageError: The parent is no decoder or has no weights, or an argument is out of range.
        StudyConflictError: The study exists for another parent or distillation.
        SettingsError: The device or the weights cannot be used.
    """
    require_at_least(0, steps=steps)
    require_at_least(1, seeds=seeds, limit=limit)
    session = _Session.open(archive, _evaluation(archive, parent), name, steps, weights_from)
    replacements = session.library(parts, blocks, kinds)
    if not replacements:
        raise UsageError(
            f"no replacement in {parent}: its space has no other part of these kinds and blocks"
        )

    measure = _Measurement(session, device)
    # After the checks, so that a mistake leaves no empty study.
    open_study(archive, session.study, budget=UNBOUNDED)
    limited = replacements[:limit]
    for seed in range(seeds):
        for replacement in limited:
            if session.has(replacement.architecture, seed):
                continue

            measure.prepare()
            try:
                score = measure.replacement(replacement, seed)
                message = f"{replacement}: {session.objective} {score:.4f}"
            except TrainingError as error:
                # The same seed diverges again: the others would never have a score.
                message = str(error)

            if notify is not None:
                notify(message)

    return session.report(replacements)


def _evaluation(archive: Archive, parent: str) -> str:
    """Return the id of an evaluation, the best one of a study.

    Raises:
        UsageError: The study has no result.
    """
    if "#" in parent:
        return parent

    incumbent = archive.studies.snapshot(parent).incumbent
    if incumbent is None:
        raise UsageError(f"the study {parent!r} has no result yet, so there is no parent")

    return incumbent.id


@dataclass
class _Session:
    """A parent, and the study of its replacements."""

    archive: Archive
    study: Study
    trained: TrainedNetwork
    task: Task
    protocol: TrainingProtocol
    space: Decoder
    steps: int
    sha256: str
    _stored: set[tuple[str, int | None]] = field(default_factory=set)

    @classmethod
    def open(
        cls,
        archive: Archive,
        evaluation: str,
        name: str | None,
        steps: int,
        weights_from: Sequence[str | Path],
    ) -> _Session:
        """Read the parent; the study is not opened yet."""
        from archive.trainer.export import trained
        from archive.trainer.tasks import registry
        from archive.trainer.tasks.base import Task
        from archive.trainer.tasks.file_access import FileAccess

        record = archive.studies.evaluation(evaluation)
        if record.architecture.space != vocabulary.NAME or record.study is None:
            raise UsageError(
                f"blocks are replaced in networks of the space {vocabulary.NAME} that a study "
                f"trained, got {evaluation} of the space {record.architecture.space}"
            )

        saved = trained.weights(archive, evaluation, weights_from).file
        network = trained.network(archive, evaluation, weights_from)
        source = archive.studies.get(record.study)
        home = archive.connection.settings.home
        space = stored_spaces.of_record(source.space, source.space_config, home)
        task = registry.of_study(source, FileAccess.of(home))
        assert isinstance(space, Decoder) and isinstance(task, Task)
        base = ProtocolName.parse(source.protocol).base
        recipe = f"blocks@{saved.sha256[:12]}/{steps}"
        requested = Study(
            name=name or f"{record.study}-blocks-{record.number}",
            task=source.task,
            protocol=str(ProtocolName(base, recipe=recipe)),
            space=source.space,
            objective=task.objective,
            direction=task.direction,
            space_config=source.space_config,
            config={"agent": "block-additive", "parent": evaluation, "steps": steps},
        )
        protocol = task.protocol(base)
        return cls(archive, requested, network, task, protocol, space, steps, saved.sha256)

    @property
    def objective(self) -> str:
        """Name of the value."""
        return self.study.objective

    @property
    def parent(self) -> Architecture:
        """The parent."""
        return self.trained.evaluation.architecture

    def library(
        self, parts: Sequence[PartName], blocks: Collection[int], kinds: Collection[str]
    ) -> list[PartReplacement]:
        """Return the replacements."""
        from archive.trainer.blocks.replacements import library

        parent = self.parent.canonical
        return library(parent, self.space, parts=parts, blocks=blocks, kinds=kinds)

    def has(self, network: Architecture, seed: int) -> bool:
        """Return whether a network has a score with a seed, of this run or of another one."""
        pair = (network.functional_key, seed)
        if pair not in self._stored:
            for key, scores in self._scores().items():
                self._stored.update((key, score.seed) for score in scores)

        return pair in self._stored

    def store(self, scored: _ScoredNetwork, result: Result) -> None:
        """Store a score; nothing where another run has stored it meanwhile."""
        config = {"parent": self.trained.evaluation.id, "weights": self.sha256[:12]}
        agent = self.archive.proposals.register_agent(KIND, config, __version__)
        token = f"blocks {self.study.name} {scored.architecture.functional_key} {result.seed}"
        self.archive.proposals.create(
            self.study.name, agent, [scored], outcomes=[result], token=token
        )

    def costs(self, network: Architecture) -> dict[str, float]:
        """Return the costs of a network that need no training."""
        from archive.trainer.nn import builders

        form = self.task.form(self.protocol)
        counted = builders.costs(network, form)
        costs = {"params": float(counted.params), "flops": float(counted.flops)}
        return costs | builders.further_costs(network, form)

    def report(self, replacements: Sequence[PartReplacement]) -> BlockReport:
        """Return the scores of replacements."""
        scores = self._scores()
        first = scores[self.parent.functional_key][0]
        rows = []
        for replacement in replacements:
            of_network = scores.get(replacement.architecture.functional_key)
            if of_network:
                rows.append(_row(replacement, of_network, first))

        rows.sort(key=lambda row: (row.block, row.part == "feed-forward", row.change))
        return BlockReport(
            study=self.study.name,
            parent=self.trained.evaluation.id,
            architecture=self.parent.key,
            objective=self.objective,
            value=first.value,
            steps=self.steps,
            left=len(replacements) - len(rows),
            replacements=rows,
        )

    def _scores(self) -> dict[str, list[Evaluation]]:
        scores: dict[str, list[Evaluation]] = {}
        for evaluation in self.archive.studies.evaluations(self.study.name, curves=False):
            scores.setdefault(evaluation.architecture.functional_key, []).append(evaluation)

        return scores


class _Measurement:
    """Distillations of one session; the data are loaded at the first one.

    Args:
        session: The session.
        device: Device in torch's notation, or `auto`.

    Raises:
        SettingsError: There is no such device.
    """

    def __init__(self, session: _Session, device: str) -> None:
        from archive.trainer.trial import devices

        self._session = session
        self._device = devices.find(device)[0].label
        self._distiller: Any = None

    def replacement(self, replacement: PartReplacement, seed: int) -> float:
        """Measure and store a replacement, and return its value; `prepare` comes first.

        Raises:
            TrainingError: The distillation diverged.
        """
        session = self._session
        begin = perf_counter()
        score = self._distiller.score(replacement, seed)
        is_repeat = any(session.has(replacement.architecture, other) for other in range(seed))
        scored = _ScoredNetwork(
            replacement.architecture,
            motivation=f"{replacement}, after {session.steps} steps of distillation",
            parent=session.parent,
            operations=(f"replace {replacement.part}",),
            repeat=is_repeat,
        )
        result = self._result(replacement.architecture, score, seed, perf_counter() - begin)
        session.store(scored, result)
        return result.value

    def prepare(self) -> None:
        """Load the data, and measure and store the parent, unless that is done."""
        if self._distiller is not None:
            return

        import torch

        from archive.trainer.blocks.distillation import BlockDistiller

        session = self._session
        self._distiller = BlockDistiller(
            session.trained.module,  # type: ignore[arg-type]
            session.task,
            session.protocol,
            steps=session.steps,
            device=torch.device(self._device),
        )
        if not session.has(session.parent, 0):
            score = self._distiller.measure_parent()
            scored = _ScoredNetwork(session.parent, motivation="the parent of the replacements")
            session.store(scored, self._result(session.parent, score, 0, None))

    def _result(
        self, network: Architecture, score: BlockScore, seed: int, seconds: float | None
    ) -> Result:
        session = self._session
        metrics = {"valid_loss": score.loss, DIVERGENCE: score.divergence}
        metrics |= session.costs(network)
        if score.errors:
            metrics[ERROR] = score.errors[-1]

        value = score.bits if session.task.metric == "bits_per_byte" else score.loss
        return Result(
            value=value,
            metrics=metrics,
            seconds=seconds,
            seed=seed,
            device=self._device,
            environment={"parent": session.trained.evaluation.id, "steps": session.steps},
        )


def _row(
    replacement: PartReplacement, scores: Sequence[Evaluation], parent: Evaluation
) -> ReplacementScore:
    values = [score.value for score in scores]
    errors = [score.metrics[ERROR] for score in scores if ERROR in score.metrics]
    changes = {}
    for cost in COSTS:
        changes[cost] = scores[0].metrics[cost] - parent.metrics[cost]

    return ReplacementScore(
        block=replacement.index + 1,
        part=replacement.part,
        before=replacement.before,
        after=replacement.after,
        architecture=replacement.architecture.key,
        evaluations=[score.id for score in scores],
        value=fmean(values),
        change=fmean(values) - parent.value,
        deviation=stdev(values) if len(values) > 1 else None,
        divergence=fmean(score.metrics[DIVERGENCE] for score in scores),
        error=fmean(errors) if errors else None,
        **changes,
    )
