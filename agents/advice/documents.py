"""Records of advice: values in the unit of the task, for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class ValuePrediction:
    """Prediction of a network's noise-free value of one objective.

    Attributes:
        mean: Its mean.
        std: Its standard deviation; 0 for a cost that is known without a training.
        low: Lower end of its interval of 95 %.
        high: Upper end.
    """

    mean: float
    std: float
    low: float
    high: float


@dataclass(frozen=True)
class AdvisedNetwork:
    """A network with its prediction.

    Attributes:
        architecture: Key of the network.
        text: Its NAS-Bench-201 string or genotype; null without one.
        network: Its JSON; null for a configuration of parameters.
        configuration: Values of its named decisions, and of the parameters beside it.
        prediction: Prediction of the objective; null without a model.
        further: Predictions of the other objectives, by name.
        values: Its values in the study, and in studies that this one starts from: one for each
            evaluation.
    """

    architecture: str
    text: str | None
    network: Mapping[str, Any] | None
    configuration: Mapping[str, Any]
    prediction: ValuePrediction | None
    further: Mapping[str, ValuePrediction]
    values: list[float]


@dataclass(frozen=True)
class AdvisedProposal:
    """A proposal that the agent of a study would make now.

    Attributes:
        network: The network with its prediction.
        parent: Key of the network that it is a change of; null for none.
        operations: The changes of its parent, in order.
        hyperparameters: Training hyperparameters, where the agent chooses them.
        repeat: Whether it is another evaluation of a network that has a result.
        acquisition: Value of the acquisition function of the agent; null where none chose it.
    """

    network: AdvisedNetwork
    parent: str | None
    operations: list[str]
    hyperparameters: Mapping[str, Any]
    repeat: bool
    acquisition: float | None


@dataclass(frozen=True)
class SuggestReport:
    """Proposals that an agent would make in a study now; the archive does not keep them.

    Attributes:
        study: Name of the study.
        agent: Name of the agent.
        objective: The objective.
        direction: Whether larger or smaller values are better.
        model: The model behind the predictions, in words; null without one.
        reason: Why there are no predictions; null with them.
        suggestions: The proposals, in the order of the agent; fewer than requested where the space
            is exhausted.
    """

    study: str
    agent: str
    objective: str
    direction: Literal["maximise", "minimise"]
    model: str | None
    reason: str | None
    suggestions: list[AdvisedProposal]


@dataclass(frozen=True)
class PredictedCandidate:
    """A caller's candidate.

    Attributes:
        member: Whether it is in the space of the study and meets its constraints on known costs.
        reason: Why not; null for a member.
        network: The network with its prediction; null where it is no network.
    """

    member: bool
    reason: str | None
    network: AdvisedNetwork | None


@dataclass(frozen=True)
class CandidateReport:
    """Predictions for a caller's candidates.

    Attributes:
        study: Name of the study.
        objective: The objective.
        direction: Whether larger or smaller values are better.
        model: The model behind the predictions, in words; null without one.
        reason: Why there are no predictions; null with them.
        candidates: The candidates, in the order of the call.
    """

    study: str
    objective: str
    direction: Literal["maximise", "minimise"]
    model: str | None
    reason: str | None
    candidates: list[PredictedCandidate]


@dataclass(frozen=True)
class DecisionEffect:
    """What a value of a decision brings in the mean, other decisions being equal.

    Attributes:
        decision: Name of the decision.
        value: The value, or the range of values, in words.
        effect: Change of the objective against the usual value of this decision.
        low: Lower end of its interval of 95 %.
        high: Upper end.
        better: Whether the change improves the objective.
        certain: Whether the interval leaves 0 out.
        results: Number of evaluated networks with this value.
    """

    decision: str
    value: str
    effect: float
    low: float
    high: float
    better: bool
    certain: bool
    results: int


@dataclass(frozen=True)
class UncertainRegion:
    """Networks about which the model knows less than usual.

    Attributes:
        decision: Name of the decision that they share.
        value: Its value, or the range of values, in words.
        std: Mean standard deviation of the predictions there.
        usual: Mean standard deviation over the whole space.
        results: Number of evaluated networks there.
    """

    decision: str
    value: str
    std: float
    usual: float
    results: int


@dataclass(frozen=True)
class SurrogateQuality:
    """How well the model predicts each result from all others.

    Its hyperparameters are fitted to all results, also to the predicted one: on new networks, the
    model is a little worse.

    Attributes:
        networks: Number of different networks.
        rank_correlation: Spearman correlation of predictions and results; null where all results
            are equal.
        median_error: Median of the absolute errors.
        coverage: Share of the results inside of their interval of 95 %.
    """

    networks: int
    rank_correlation: float | None
    median_error: float
    coverage: float


@dataclass(frozen=True)
class ObjectiveKnowledge:
    """What is known about one objective.

    Attributes:
        objective: Its name.
        direction: Whether larger or smaller values are better.
        model: The model, in words; null without one.
        reason: Why there is no model; null with one.
        noise: Estimated standard deviation of the noise of an evaluation; 0 without noise, null
            without a model.
        quality: How well the model predicts; null without one.
        effects: Effects of values of decisions, those that certainly differ from 0 first.
        uncertain: Regions that the model knows little about, the most uncertain first.
        candidates: Number of random networks that effects and regions are means over.
    """

    objective: str
    direction: Literal["maximise", "minimise"]
    model: str | None
    reason: str | None
    noise: float | None
    quality: SurrogateQuality | None
    effects: list[DecisionEffect]
    uncertain: list[UncertainRegion]
    candidates: int


@dataclass(frozen=True)
class RecommendedResult:
    """A network of a study with the estimate of its noise-free value.

    Attributes:
        architecture: Key of the network.
        text: Its NAS-Bench-201 string or genotype; null without one.
        configuration: Values of its named decisions, and of the parameters beside it.
        value: The estimate; the value itself without noise.
        low: Lower end of its interval of 95 %; null where no model could be fitted.
        high: Upper end.
        evaluations: Number of its evaluations.
        further: Values of the other objectives, by name.
    """

    architecture: str
    text: str | None
    configuration: Mapping[str, Any]
    value: float
    low: float | None
    high: float | None
    evaluations: int
    further: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PossibleGain:
    """Largest gain of further evaluations, if the model is right.

    Attributes:
        mean: Expected gain in the objective, at least 0 in either direction.
        low: Lower end of its interval of 95 %.
        high: Upper end.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class StudyKnowledge:
    """What is known about a study: its results, and what the model has learnt from them.

    Attributes:
        study: Name of the study.
        agent: Name of its agent.
        results: Number of results that the model learns from, also of studies that it starts from.
        failed: Number of failed proposals.
        waiting: Number of proposals that wait or are in training.
        left: Number of proposals that its budget still has; null without a limit.
        best: The recommended network; null without a result that meets the constraints, and for
            several objectives.
        gain: Largest gain of further evaluations; null without an estimate.
        front: The Pareto set of several objectives, the best in the first one first.
        objectives: What is known about each objective that is learnt from results.
    """

    study: str
    agent: str
    results: int
    failed: int
    waiting: int
    left: int | None
    best: RecommendedResult | None
    gain: PossibleGain | None
    front: list[RecommendedResult]
    objectives: list[ObjectiveKnowledge]


@dataclass(frozen=True)
class OverrideReport:
    """Whether a caller's candidate should be evaluated in place of the agent's suggestion.

    Attributes:
        study: Name of the study.
        accepted: Whether it should; null without a model, which cannot judge.
        advice: The verdict in words.
        candidate: The candidate with its prediction; its network is null outside of the space.
        suggestion: The proposal that the agent would make; null where it has none.
        advantage: Mean of what the caller's earlier candidates had beyond their predictions, in
            predicted standard deviations; null without a model.
        uncertainty: Standard deviation of it.
        results: Number of the caller's earlier candidates with a prediction and a result.
    """

    study: str
    accepted: bool | None
    advice: str
    candidate: PredictedCandidate
    suggestion: AdvisedProposal | None
    advantage: float | None
    uncertainty: float | None
    results: int
