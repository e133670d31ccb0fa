"""Optuna's samplers as agents, for comparison.

`tpe` is the tree-structured Parzen estimator (Bergstra et al., 2011; Watanabe, 2023), which models
the decisions of good and of other networks by two densities and proposes where their ratio is
largest. `gp-optuna` is Optuna's Gaussian process with log-EI. Optuna is an extra: `pip install
nas-archive[bench]`.

On a listed space, `gp-optuna` maximises its acquisition over the list. GPSampler itself searches
all combinations of its parameters, of which many are no networks of the space: on 20,001 cells of
NAS-Bench-101 most steps reject thirty draws and end with a random network.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from archive.agents.acquisition.listing import members_of, not_listed
from archive.agents.base import Agent, AgentInfo, History, Observation, Suggestion, check_count
from archive.agents.baselines.optuna_distributions import NativeDistributions
from archive.agents.baselines.random_search import samples
from archive.agents.encodings import ABSENT, Decision, Vector, decisions_of
from archive.agents.objectives.goals import points
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import configuration_of, join
from archive.errors import SettingsError, UnknownNameError
from archive.spaces.base import Space
from archive.spaces.joint import JointSpace, joint_space_of
from archive.spaces.parameters import Parameters
from archive.values import require_at_least

if TYPE_CHECKING:
    import optuna


Violations = Callable[["optuna.trial.FrozenTrial"], Sequence[float]]

_CONSTRAINTS = "constraints"
"""Attribute of a trial in which Optuna's samplers record the values of its constraints: at most 0
where they are met."""
_MISSES = 30
"""Rejected draws, known networks or no members of the space, after which the rest of a batch is
drawn at random. A draw of TPE takes milliseconds, one of GPSampler tenths of a second."""


class OptunaAgent(Agent):
    """An Optuna study in memory, filled with the whole history at every call.

    Every decision is a categorical parameter; parameters of the space `parameters` have Optuna's own
    distributions (`optuna_distributions`). Pending proposals are running trials. A draw that
    is not a member of the space, or is known, is rejected and repeated. Networks without decisions
    (branched ones of `cnn` and `mlp`) are left out. The sampler gets all objectives and all
    constraints, those on known quantities included.

    Args:
        space: The search space: cells, or `mlp` and `cnn`, of which it finds chains only.
        startup: Evaluations before the first use of the model; before that the sampler draws at
            random.

    Raises:
        UsageError: A setting is out of range, or the space is not made of decisions.
        SettingsError: Optuna is not installed.
    """

    several_objectives = True
    uses_constraints = True

    def __init__(self, space: Space, startup: int = 10) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        require_at_least(1, startup=startup)
        self.startup = startup
        self._native: NativeDistributions | None = None
        self._joint: JointSpace | None = None
        if isinstance(space, Parameters):
            self._optuna = _optuna(self.kind)
            self._native = NativeDistributions(space, self._optuna)
            self._distributions = self._native.distributions
            return

        self._joint = joint_space_of(space)
        networks = space if self._joint is None else self._joint.networks
        self._decisions = decisions_of(networks, self.kind)
        self._optuna = _optuna(self.kind)
        self._distributions = {}
        for decision in self._decisions.decisions:
            distribution = self._optuna.distributions.CategoricalDistribution(decision.choices)
            self._distributions[self._name_of(decision)] = distribution

        if self._joint is not None:
            self._beside = NativeDistributions(Parameters(self._joint.parameters), self._optuna)
            self._distributions |= self._beside.distributions

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        with _quiet(self._optuna):
            networks = self._draws(self._study(history, int(rng.integers(2**31))), history, n)

        taken = {*history.known, *networks}
        suggestions = [Suggestion(architecture) for architecture in networks.values()]
        return [*suggestions, *samples(self.space, n - len(networks), taken, rng)]

    @abstractmethod
    def _sampler(self, seed: int, history: History) -> optuna.samplers.BaseSampler:
        """Return the sampler for a history."""

    def _study(self, history: History, seed: int) -> optuna.Study:
        """Return a study in memory with the history as its trials."""
        observations, scores = points(history)
        directions = ["maximize"] * scores.shape[1]
        sampler = self._sampler(seed, history)
        study: optuna.Study = self._optuna.create_study(directions=directions, sampler=sampler)
        state = self._optuna.trial.TrialState
        for observation, values, attributes in zip(
            observations, scores.tolist(), _attributes(history, observations), strict=True
        ):
            if attributes is not None:
                self._add_trial(
                    study,
                    observation.architecture,
                    state=state.COMPLETE,
                    values=values,
                    system_attrs=attributes,
                )

        for pending in history.pending:
            self._add_trial(study, pending.architecture, state=state.RUNNING)

        return study

    def _add_trial(self, study: optuna.Study, architecture: Architecture, **result: Any) -> None:
        params = self._params_of(architecture)
        if params is None:
            return

        distributions = {name: self._distributions[name] for name in params}
        study.add_trial(
            self._optuna.trial.create_trial(params=params, distributions=distributions, **result)
        )

    def _params_of(self, architecture: Architecture) -> dict[str, Any] | None:
        """Return the parameters of a network as a trial has them; None outside the domain."""
        if self._native is not None:
            return self._native.params(architecture)

        vector = self._decisions.encode(architecture.network)
        if vector is None:
            return None

        params = self._params(vector)
        if self._joint is None:
            return params

        if not self._joint.contains(architecture):
            return None

        return {**params, **self._beside.params_of_values(architecture.configuration)}

    def _name_of(self, decision: Decision) -> str:
        """Return the name of a decision of networks among the distributions."""
        # A parameter beside the networks may have the name of a decision.
        return decision.name if self._joint is None else f"network {decision.name}"

    def _params(self, vector: Vector) -> dict[str, Any]:
        # Choices of a cell without effect are set to the first one, so that all trials have all
        # parameters: Optuna's Gaussian process uses only parameters that every trial has.
        full = vector if self._decisions.roots else [max(choice, 0) for choice in vector]
        pairs = zip(self._decisions.decisions, full, strict=True)
        named: dict[str, Any] = {}
        for decision, number in pairs:
            if number != ABSENT:
                named[self._name_of(decision)] = decision.choices[number]

        return named

    def _draws(self, study: optuna.Study, history: History, n: int) -> dict[str, Architecture]:
        """Return up to n new networks that the sampler draws, by functional key."""
        networks: dict[str, Architecture] = {}
        misses = 0
        while len(networks) < n and misses < _MISSES:
            trial = study.ask()
            drawn = self._drawn(trial)
            if (
                drawn is None
                or drawn.functional_key in history.known
                or drawn.functional_key in networks
            ):
                # A rejected draw stays a running trial, which counts as a bad one: the densities of
                # a few decisions have so sharp a maximum that the sampler would otherwise repeat
                # the draw.
                misses += 1
                continue

            networks[drawn.functional_key] = drawn

        return networks

    def _drawn(self, trial: optuna.Trial) -> Architecture | None:
        """Return the network that a trial suggests; None if it is no member of the space."""
        if self._native is not None:
            return self._native.draw(trial)

        network = self._decisions.decode(self._draw(trial))
        if network is None or self._joint is None:
            return network

        configuration = self._beside.draw(trial)
        if configuration is None:
            return None

        member = join(network, configuration_of(configuration))
        return member if self.space.contains(member) else None

    def _draw(self, trial: optuna.Trial) -> Vector:
        vector: list[int] = []
        for decision in self._decisions.decisions:
            if self._decisions.needed(vector) or not self._decisions.roots:
                name = self._name_of(decision)
                suggested = trial.suggest_categorical(name, decision.choices)
                vector.append(decision.choices.index(suggested))
            else:
                vector.append(ABSENT)

        return tuple(vector)


@final
class Tpe(OptunaAgent):
    """Optuna's TPESampler; pending proposals count as bad ones (`constant_liar`).

    Args:
        space: The search space: cells, or `mlp` and `cnn`, of which it finds chains only.
        startup: Evaluations before the first use of the model.
        multivariate: Whether decisions are modelled jointly. Optuna's default, one by one, almost
            always draws the same network of a cell, and spends its time on known draws.
        candidates: Draws from the density of good networks, among which the largest ratio is
            selected.
    """

    kind = "tpe"
    info = AgentInfo(
        summary="Optuna's tree-structured Parzen estimator over categorical decisions",
        paper="Bergstra et al., 2011",
        cost="O(n) a decision",
        when="comparison with an installable package; conditional decisions",
    )
    joint = True

    def __init__(
        self, space: Space, startup: int = 10, multivariate: bool = True, candidates: int = 24
    ) -> None:
        """Check and keep the settings."""
        super().__init__(space, startup)
        require_at_least(1, candidates=candidates)
        self.multivariate = multivariate
        self.candidates = candidates

    def _sampler(self, seed: int, history: History) -> optuna.samplers.BaseSampler:
        sampler: optuna.samplers.BaseSampler = self._optuna.samplers.TPESampler(
            n_startup_trials=self.startup,
            n_ei_candidates=self.candidates,
            multivariate=self.multivariate,
            group=self.multivariate,
            constant_liar=True,
            constraints_func=_violations(history),
            seed=seed,
        )
        return sampler


@final
class GpOptuna(OptunaAgent):
    """Optuna's GPSampler, for comparison.

    It uses only the decisions that all networks have: in `cnn` and `mlp` the depth, while
    operations and units are drawn at random.

    Args:
        space: The search space: cells, or `mlp` and `cnn`, of which it finds chains only.
        startup: Evaluations before the first use of the model.
        deterministic: Whether scores have no noise.
        candidates: "decisions", where Optuna maximises the acquisition over all combinations of the
            decisions, most of which may not be networks of the space, or "members", the networks
            that our agents rank.

    Raises:
        UsageError: As for every agent; or `candidates` is unknown, or "members" of a space that
            cannot be listed.
    """

    kind = "gp-optuna"
    info = AgentInfo(
        summary="Optuna's GPSampler: one Gaussian process over categorical decisions, log-EI",
        paper="Optuna 4",
        cost="O(n^3); half a second at 100 observations",
        when="comparison with an installable package; cells",
    )

    def __init__(
        self,
        space: Space,
        startup: int = 10,
        deterministic: bool = False,
        candidates: str = "decisions",
    ) -> None:
        """Check and keep the settings."""
        super().__init__(space, startup)
        if candidates not in ("decisions", "members"):
            raise UnknownNameError("candidates", candidates, ["decisions", "members"])

        if candidates == "members" and (self._native is not None or members_of(space) is None):
            raise not_listed(space)

        self.deterministic = deterministic
        self.candidates = candidates

    def _sampler(self, seed: int, history: History) -> optuna.samplers.BaseSampler:
        settings = {
            "n_startup_trials": self.startup,
            "deterministic_objective": self.deterministic,
            "constraints_func": _violations(history),
            "seed": seed,
        }
        if self.candidates == "decisions":
            drawing: optuna.samplers.BaseSampler = self._optuna.samplers.GPSampler(**settings)
            return drawing

        # The module imports Optuna, which is an extra.

        keys, rows = self._listed
        taken = [row for row, key in enumerate(keys) if key in history.known]
        # The module imports Optuna, which is an extra.
        from archive.agents.baselines.listed_gp_sampler import ListedGpSampler

        return ListedGpSampler(
            [decision.name for decision in self._decisions.decisions], rows, taken, **settings
        )

    @cached_property
    def _listed(self) -> tuple[list[str], NDArray[np.float64]]:
        """Functional keys of all networks that have decisions, and their choices, (M, D)."""
        keys: list[str] = []
        vectors: list[Vector] = []
        for member in members_of(self.space) or ():
            vector = self._decisions.encode(member)
            if vector is not None:
                keys.append(member.functional_key)
                vectors.append(vector)

        return keys, np.maximum(vectors, 0).astype(np.float64)


def _violations(history: History) -> Violations | None:
    """Return the samplers' argument `constraints_func`; None without constraints."""
    return None if history.constraints is None else _read_constraints


def _read_constraints(trial: optuna.trial.FrozenTrial) -> Sequence[float]:
    """Return the recorded violations of a trial.

    Optuna calls this function for the trials that its samplers add.
    """
    violations: Sequence[float] = trial.system_attrs[_CONSTRAINTS]
    return violations


def _attributes(
    history: History, observations: Sequence[Observation]
) -> list[dict[str, Any] | None]:
    """Return the attributes of trials in which Optuna's samplers read constraints.

    None where one is unknown.
    """
    constraints = history.constraints
    if constraints is None:
        return [{} for _ in observations]

    # In units of the bounds, because TPE sums the violations of different constraints.
    units = [abs(constraint.bound) or 1.0 for constraint in constraints.constraints]
    rows = -constraints.slacks(observations) / np.array(units)
    attributes: list[dict[str, Any] | None] = []
    for row in rows.tolist():
        attributes.append({_CONSTRAINTS: row} if np.isfinite(row).all() else None)

    return attributes


def _optuna(agent: str) -> Any:
    try:
        import optuna
    except ImportError:
        raise SettingsError(
            f"agent {agent} needs Optuna: pip install 'nas-archive[bench]'"
        ) from None

    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Silence Optuna's log of every study and its warnings of experimental settings."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
