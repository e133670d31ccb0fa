"""Published results as a source of a warm start: predictions for networks of the study's space.

    results of imagenet-1k ──agents.prediction──> a model of top-1 under one recipe
    random networks of the space ──sketches──> features ──the model──> predictions
    predictions ──> a study of the task imagenet-1k-predicted, from which the search starts warm

The study is a source of another task as every other one: agents judge it by its evidence
(`archive.agents.transfer.evidence`), and a resumed search reads what the first one read, also after
more results are published. Nothing else reads predictions as results
(`archive.queries.results_by_task`).

Networks are built as for ImageNet, whatever the task of the study. Configurations of a model of the
user's are imported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from archive import __version__
from archive.agents.base import Suggestion
from archive.agents.prediction.features import Features, features
from archive.agents.prediction.predicting import (
    LEAST_NETWORKS,
    ResultPredictor,
    fit_predictor,
    results_of,
)
from archive.agents.prediction.protocol_features import read_protocol
from archive.agents.study_setup import ZOO
from archive.architecture.aten.vocabulary import NAME as TORCH
from archive.errors import ArchiveError, UnknownNameError, UsageError
from archive.queries.results_by_task import PREDICTION, TaskResult
from archive.spaces import stored_spaces
from archive.spaces.base import distinct_sample
from archive.spaces.parameters import Parameters
from archive.store.properties import to_json
from archive.store.records import Result, Study
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from archive.values import counted

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space

TASK = "imagenet-1k"
PREDICTED = f"{TASK}-predicted"
OBJECTIVE = "top1"
FORM = NetworkForm((3, 224, 224), 1000, "classification")

MOST = 100
"""Networks of the space whose results are predicted, at most; each is built in a tenth of a second
to a second."""

MOST_IMPORTED = 40
"""The same for configurations of a model, each of which is imported in seconds."""


_WAY_OUT = f"leave the source {ZOO!r} out, or name a study of the same space"


@dataclass(frozen=True)
class ZooPredictions:
    """Networks of a space with the features from which their results are predicted.

    Attributes:
        networks: The networks, n.
        features: Their features, by key.
        predictor: The model.
    """

    networks: Sequence[Architecture]
    features: dict[str, Features]
    predictor: ResultPredictor

    def values(self) -> list[float]:
        """Return the predicted results, in the order of the networks."""
        keys = [network.key for network in self.networks]
        means, _, _ = self.predictor.predict(keys, self.features)
        values: list[float] = means.tolist()
        return values


def zoo_source(
    archive: Archive,
    study: Study,
    agent: Agent | None = None,
    space: Space | None = None,
    notify: Callable[[str], None] | None = None,
) -> str:
    """Return the name of the study that holds the predictions, stored if there is none.

    A study that has such a source keeps it.

    Args:
        archive: The archive of the study.
        study: The study that starts warm; it need not be stored yet.
        agent: The agent of the search; None before it is selected.
        space: The space as the caller has it; None for the space of the agent, or else of the
            record.
        notify: Called with a message before a slow step.

    Raises:
        UsageError: The archive has no published results, nothing can be predicted for networks of
            the space, or the agent does not learn from other tasks.
    """
    for name in archive.studies.sources(study.name):
        if archive.studies.get(name).task == PREDICTED:
            return name

    if agent is not None and not agent.transfers:
        raise UsageError(
            f"published networks are a source of another task, and the agent {agent.kind} learns "
            "from its own task alone; archive agents NAME says whether an agent learns from others"
        )

    if space is None and agent is not None:
        space = agent.space
    elif space is None:
        home = archive.connection.settings.home
        space = stored_spaces.of_record(study.space, study.space_config, home)

    space = space.whole
    _check_space(space)
    published = published_results(archive)
    protocol = common_protocol(published)
    identity = f"{to_json(study.space_config)} {protocol} {sorted(published)}"
    digest = blake2b(identity.encode(), digest_size=4).hexdigest()
    name = f"{ZOO}-{space.name}-{digest}"
    if archive.studies.find(name) is None or not archive.studies.counts(name):
        predictions = predict_space(archive, space, published, protocol, notify)
        source = Study(
            name=name,
            task=PREDICTED,
            protocol=protocol,
            space=space.name,
            objective=OBJECTIVE,
            budget=len(predictions.networks),
            space_config=study.space_config,
        )
        store_predictions(archive, source, predictions.networks, predictions.values())

    return name


def published_results(archive: Archive) -> list[TaskResult]:
    """Return the published results of ImageNet.

    Raises:
        UsageError: There are too few.
    """
    results: list[TaskResult] = []
    try:
        for result in results_of(archive, TASK, TASK):
            if result.space == TORCH:
                results.append(result)
    except UnknownNameError:
        # The archive has no results of the task.
        pass

    networks = len({result.architecture for result in results})
    if networks < LEAST_NETWORKS:
        raise UsageError(
            f"a start from published networks needs {LEAST_NETWORKS} with results on {TASK}, and "
            f"the archive has {networks}: archive import zoo timm"
        )

    return results


def common_protocol(results: Sequence[TaskResult]) -> str:
    """Return the protocol of most networks without further data, without the side of the images."""
    networks: dict[str, set[str]] = defaultdict(set)
    for result in results:
        recipe = read_protocol(result.protocol, result.pretraining or "")
        if recipe.data <= 0.0:
            networks[recipe.stem].add(result.architecture)

    if not networks:
        return read_protocol(results[0].protocol).stem

    return max(sorted(networks), key=lambda stem: len(networks[stem]))


def predict_space(
    archive: Archive,
    space: Space,
    published: Sequence[TaskResult],
    protocol: str,
    notify: Callable[[str], None] | None = None,
) -> ZooPredictions:
    """Return random networks of a space with the model of published results.

    Raises:
        UsageError: Too few networks can be built, or they have linear layers alone.
    """
    if notify is not None:
        notify(f"predicting {OBJECTIVE} of {TASK} for networks of {space.name}, once")

    most = MOST_IMPORTED if isinstance(space, Parameters) else MOST
    sample = distinct_sample(space, most, np.random.default_rng(0))
    networks: list[Architecture] = []
    described: dict[str, Features] = {}
    for network, network_features in _features(archive, space, sample):
        networks.append(network)
        described[network.key] = network_features
        if len(networks) == LEAST_NETWORKS:
            _check_work(space, described)

    if len(networks) < LEAST_NETWORKS:
        raise UsageError(
            f"a start from published networks needs {LEAST_NETWORKS} networks of images, and of "
            f"{counted(len(sample), 'network')} of the space {space.name} {len(networks)} could be "
            f"built: {_WAY_OUT}"
        )

    predictor = fit_predictor(archive, TORCH, protocol, published, notify)
    return ZooPredictions(networks, described, predictor)


def store_predictions(
    archive: Archive, source: Study, networks: Sequence[Architecture], values: Sequence[float]
) -> None:
    """Store predictions as the results of a study."""
    archive.studies.create(source)
    agent = archive.proposals.register_agent(PREDICTION, {}, __version__)
    results = []
    for value in values:
        results.append(Result(value, {OBJECTIVE: value}, provenance={"source": PREDICTION}))

    suggestions = list(map(Suggestion, networks))
    archive.proposals.create(source.name, agent, suggestions, outcomes=results, after=0)


def _check_space(space: Space) -> None:
    """Refuse a space whose networks are not known to be networks of images, before any work.

    Raises:
        UsageError: It is one.
    """
    if isinstance(space, Parameters):
        if space.parameters.model is None:
            raise UsageError(
                f"a space of parameters without a model has no networks that published ones could "
                f"be relatives of: give it a model (archive.space.Space), or {_WAY_OUT}"
            )

        return

    if space.name not in builders.names():
        raise UsageError(
            f"networks of the space {space.name} cannot be built, so that published networks are "
            f"not comparable with them: {_WAY_OUT}"
        )

    builders.get(space.name).accept(FORM)


def _check_work(space: Space, described: Mapping[str, Features]) -> None:
    """Refuse networks without windows and attention.

    Raises:
        UsageError: All are such networks.
    """
    if all(network["work: linear"] == 1.0 for network in described.values()):
        raise UsageError(
            f"networks of the space {space.name} have linear layers alone, and no published "
            f"network of {TASK} is a relative of theirs: {_WAY_OUT}"
        )


def _features(
    archive: Archive, space: Space, sample: Sequence[Architecture]
) -> Iterator[tuple[Architecture, Features]]:
    """Yield the networks that can be built, with their features."""
    if isinstance(space, Parameters):
        from archive.trainer.recipes import model_process

        home = archive.connection.settings.home
        process = model_process.process_of(space.parameters, home)
        if process is None:
            return

        with closing(process):
            for configuration in sample:
                (build,) = process.builds([configuration])
                if build is not None:
                    yield configuration, features(build.network)

        return

    from archive.trainer.intake.weightless import without_weights
    from archive.trainer.zoo.sketching import sketch_of

    for network in sample:
        try:
            with without_weights():
                module = builders.build(network.network, FORM)

            sketch = sketch_of(module, FORM.input_shape)
        except (ArchiveError, RuntimeError):
            # The network does not suit images of this size.
            continue

        yield network, features(*sketch)
