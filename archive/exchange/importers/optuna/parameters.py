"""The parameters of Optuna's trials as a space (`archive.spaces.parameters`).

| in the trials                             | in the space                                         |
|-------------------------------------------|------------------------------------------------------|
| distributions of one name                 | one parameter with the values of all of them         |
| a name that is no identifier              | the name with `_` for its other signs                |
| a parameter that all finished trials have | exists always                                        |
| one that some trials have, exactly those  | exists under that condition: `optimizer == 'sgd'`,   |
| with some values of another parameter     | `n_layers >= 2`                                      |
| one that some trials have for any other   | exists where the switch `has_NAME` is true, which    |
| reason                                    | says for each trial whether it had the parameter     |

Optuna records no conditions: a condition is read off the trials that are complete. Where several
parameters explain it, the one with the fewest values does. It excludes only values with which some
trial lacks the parameter: what no trial has tried is not excluded. Trials of a later import have
the conditions of the first one.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, SettingsError, UsageError
from archive.exchange.importers.optuna.distributions import (
    json_value,
    merge_distributions,
    value_of,
)
from archive.parameters.declaration import Declaration, Group, choice
from archive.parameters.domains import Choice, Domain, json_text
from archive.parameters.expressions import ExpressionError
from archive.parameters.parameter_space import ParameterSpace
from archive.parameters.parser import parse
from archive.parameters.ranges import Integer
from archive.parameters.tokens import RESERVED
from archive.spaces.parameters import Parameters
from archive.store.studies.creation import PARAMETERS
from archive.values import is_number

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from archive.api import Archive

SPACE = "archive_space"
"""User attribute of a study for the JSON object of its space: a study that the archive exported."""

SWITCH = "has_"
"""Prefix of the switches of parameters whose presence no other parameter explains."""

MOST_LISTED = 16
"""Most values of a whole number in a condition that lists them."""


@dataclass(frozen=True)
class TrialSpace:
    """A space with the names that trials have for its parameters.

    Attributes:
        space: The space.
        names: Names of its parameters by the names in the trials.
        inferred: Whether its conditions were read off the trials.
    """

    space: ParameterSpace
    names: Mapping[str, str]
    inferred: bool = False

    @cached_property
    def switches(self) -> dict[str, str]:
        """Parameters whose presence a switch says, by the name of the switch."""
        switches = {}
        for parameter in self.space.parameters:
            for condition in parameter.conditions:
                if condition.names == (condition.text,):
                    switches[condition.text] = parameter.name

        return switches

    @cached_property
    def renamed(self) -> dict[str, str]:
        """Names in the trials by the names of the parameters, where they differ."""
        return {ours: theirs for theirs, ours in self.names.items() if ours != theirs}

    @cached_property
    def search_space(self) -> Parameters:
        """The space as agents search it."""
        return Parameters(self.space)

    def values(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration of a trial's parameters, by flat name.

        Raises:
            UsageError: It is none of the space.
            UnknownNameError: The space has no such parameter.
        """
        values: dict[str, Any] = {}
        for name, value in parameters.items():
            ours = self.names.get(name, name)
            values[ours] = value_of(self.space[ours].domain, value)

        for switch, name in self.switches.items():
            # Trials of an export have the switches too.
            values.setdefault(switch, name in values)

        checked = self.space.check(self.space.supply(values))
        for name in values:
            if name not in checked:
                when = " and ".join(condition.text for condition in self.space[name].conditions)
                raise UsageError(f"{name} exists only where {when}")

        return checked

    def read(
        self, parameters: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> tuple[Architecture, Mapping[str, Any]]:
        """Return the configuration of a trial as a network; all parameters belong to it.

        Raises:
            UsageError: As for `values`.
        """
        del attributes
        return self.search_space.network_of(self.values(parameters)), {}

    def describe(self) -> Iterator[str]:
        """Yield a line for each kind of thing that the trials did not say themselves."""
        if self.renamed:
            pairs = [f"{theirs!r} is {ours}" for ours, theirs in self.renamed.items()]
            yield f"names of parameters: {', '.join(pairs)}"

        if not self.inferred:
            return

        named = set(self.names.values())
        switched = set(self.switches.values())
        conditions = []
        for parameter in self.space.parameters:
            if parameter.conditions and parameter.name not in switched:
                texts = [condition.text for condition in parameter.conditions]
                conditions.append(f"{parameter.name} where {' and '.join(texts)}")

        if conditions:
            yield f"conditions, read off the trials: {', '.join(conditions)}"

        added = [switch for switch in self.switches if switch not in named]
        if added:
            of_switches = [self.switches[switch] for switch in added]
            yield (
                f"no parameter explains which trials have {', '.join(of_switches)}: "
                f"{', '.join(added)} say it"
            )


def space_of_trials(
    trials: Sequence[FrozenTrial], before: ParameterSpace | None = None
) -> TrialSpace:
    """Return the space of the finished trials of a study.

    Args:
        trials: The trials of the study.
        before: Space of an earlier import of the study, or that a user names for it. It is
            returned if it has all complete trials, else extended.

    Raises:
        UsageError: No trial has parameters, or parameters of one name do not fit together.
    """
    finished = [trial for trial in trials if trial.state.is_finished() and trial.params]
    if not finished:
        raise UsageError("no finished trial has parameters: name the space with --space")

    complete = [trial for trial in finished if trial.state.name == "COMPLETE"] or finished
    names = _identifiers(dict.fromkeys(name for trial in finished for name in trial.params))
    if before is not None:
        earlier = TrialSpace(before, names)
        if all(_fits(earlier, trial) for trial in complete):
            return earlier

        if any(isinstance(entry, Group) for entry in before.declared.values()):
            raise UsageError(_fault(earlier, complete))

    return _TrialReading(finished, complete, names, before).space()


def find_space(
    archive: Archive, source: optuna.Study, name: str, requested: ParameterSpace | None = None
) -> TrialSpace:
    """Return the space of a study of Optuna that is imported with its parameters.

    Args:
        archive: The archive.
        source: The study of Optuna.
        name: Name of the study in the archive. If it is there, its space is extended.
        requested: The space that the caller wants, which must have all complete trials; None for
            the space of the trials.

    Raises:
        UsageError: As for `space_of_trials`, or a trial is none of the requested space.
    """
    trials = source.get_trials(deepcopy=False)
    if requested is None:
        return space_of_trials(trials, _space_before(archive, source, name))

    names = dict.fromkeys(name for trial in trials for name in trial.params)
    space = TrialSpace(requested, _identifiers(names))
    complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
    if not all(_fits(space, trial) for trial in complete):
        raise UsageError(_fault(space, complete))

    return space


def _space_before(archive: Archive, source: optuna.Study, name: str) -> ParameterSpace | None:
    """Return the space of an earlier import, or that an export recorded."""
    if name in archive.studies.names():
        stored = archive.studies.get(name)
        if stored.space == PARAMETERS and stored.config.get("optuna") == source.study_name:
            return ParameterSpace.from_json(stored.space_config)

    return recorded_space(source.user_attrs)


def recorded_space(attributes: Mapping[str, Any]) -> ParameterSpace | None:
    """Return the space in the attributes of a study that the archive exported; None for others."""
    document = attributes.get(SPACE)
    if not isinstance(document, Mapping):
        return None

    try:
        return ParameterSpace.from_json(document)
    except SettingsError:
        return None


class _TrialReading:
    """What the trials of a study say about its parameters."""

    def __init__(
        self,
        finished: Sequence[FrozenTrial],
        complete: Sequence[FrozenTrial],
        names: Mapping[str, str],
        before: ParameterSpace | None,
    ) -> None:
        self.names = names
        self.before = before
        self.declared: dict[str, Declaration] = {}
        if before is not None:
            for name, entry in before.declared.items():
                if isinstance(entry, Declaration):
                    self.declared[name] = entry

        self.domains = {ours: self._domain(theirs, finished) for theirs, ours in names.items()}
        self.rows: list[dict[str, Any]] = []
        self.presence: dict[str, set[int]] = {name: set() for name in self.domains}
        for row, trial in enumerate(complete):
            values = {names[name]: json_value(value) for name, value in trial.params.items()}
            self.rows.append(values)
            for name in values:
                self.presence[name].add(row)

    def space(self) -> TrialSpace:
        """Return the space."""
        declared = dict(self.declared)
        switches: dict[str, Declaration] = {}
        for name, domain in self.domains.items():
            if name in self.declared:
                declared[name] = replace(self.declared[name], domain=domain)
                continue

            condition = None
            if len(self.presence[name]) < len(self.rows):
                condition = self._condition(name)
                if condition is None:
                    condition = _unused(f"{SWITCH}{name}", {*self.domains, *declared, *switches})
                    switches[condition] = self._switch()

            declared[name] = Declaration(domain, condition)

        constraints = () if self.before is None else self.before.constraints
        space = ParameterSpace(
            {**declared, **switches},
            constraints=[constraint.text for constraint in constraints],
            model=None if self.before is None else self.before.model,
        )
        return TrialSpace(space, self.names, inferred=True)

    def _switch(self) -> Declaration:
        """Return a switch; results of an earlier import do not have its parameter."""
        if self.before is None:
            return choice([True, False])

        return choice([True, False], default=False)

    def _domain(self, theirs: str, finished: Sequence[FrozenTrial]) -> Domain:
        """Return the values of a parameter.

        Raises:
            UsageError: They do not fit together; the message names the parameter.
        """
        distributions = {}
        values = []
        for trial in finished:
            if theirs in trial.params:
                distribution = trial.distributions[theirs]
                distributions[repr(distribution)] = distribution
                values.append(trial.params[theirs])

        ours = self.names[theirs]
        earlier = self.declared[ours].domain if ours in self.declared else None
        try:
            return merge_distributions(distributions.values(), values, earlier)
        except (UsageError, SettingsError) as error:
            raise UsageError(f"the parameter {theirs!r} {error}") from None

    def _condition(self, name: str) -> str | None:
        """Return the condition on one other parameter that explains which trials have a parameter."""
        having = self.presence[name]
        best: tuple[float, str] = (math.inf, "")
        for other, domain in self.domains.items():
            # Another parameter of the same trials explains nothing, and would form a cycle.
            if not having < self.presence[other] or domain.size >= best[0]:
                continue

            text = self._text(other, domain, having)
            if text is not None:
                best = (domain.size, text)

        return best[1] or None

    def _text(self, other: str, domain: Domain, having: set[int]) -> str | None:
        """Return a condition on another parameter that tells the trials apart; None for none."""
        if not isinstance(domain, Choice | Integer):
            return None

        with_name: dict[str, Any] = {}
        without: dict[str, Any] = {}
        for row in self.presence[other]:
            value = self.rows[row][other]
            (with_name if row in having else without)[json_text(value)] = value

        if with_name.keys() & without.keys():
            return None

        text = _comparison(other, domain, list(with_name.values()), list(without.values()))
        if text is None:
            return None

        try:
            parse(text)
        except ExpressionError:
            return None

        return text


def _comparison(
    name: str, domain: Choice | Integer, having: Sequence[Any], lacking: Sequence[Any]
) -> str | None:
    """Return the condition that excludes some values of a parameter, and as few others as it can.

    Args:
        name: Name of the parameter.
        domain: Its values.
        having: Values that the condition must allow.
        lacking: Values that it must exclude, at least one.
    """
    numbers = isinstance(domain, Integer) or all(map(is_number, domain.options))
    if numbers and min(having) > max(lacking):
        return f"{name} >= {min(value for value in _values(domain) if value > max(lacking))!r}"

    if numbers and max(having) < min(lacking):
        return f"{name} <= {max(value for value in _values(domain) if value < min(lacking))!r}"

    if domain.size > MOST_LISTED and isinstance(domain, Integer):
        return None

    excluded = {json_text(value) for value in lacking}
    allowed = [value for value in _values(domain) if json_text(value) not in excluded]
    if len(allowed) == 1:
        return f"{name} == {_literal(allowed[0])}"

    if len(lacking) == 1:
        return f"{name} != {_literal(lacking[0])}"

    return f"{name} in [{', '.join(map(_literal, allowed))}]"


def _values(domain: Choice | Integer) -> Iterable[Any]:
    return domain.values()


def _literal(value: Any) -> str:
    """Return a value as conditions write it; a text that no condition can have is refused later."""
    if isinstance(value, str):
        return f'"{value}"' if "'" in value else f"'{value}'"

    return json_text(value)


def _identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return a name of the archive for each name of Optuna."""
    identifiers: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        # Names that can stay do, before others take them.
        if _is_identifier(name):
            identifiers[name] = name
            taken.add(name)

    ordered = {}
    for name in names:
        if name not in identifiers:
            identifiers[name] = _unused(_identifier(name), taken)
            taken.add(identifiers[name])

        ordered[name] = identifiers[name]

    return ordered


def _identifier(name: str) -> str:
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "parameter"
    if plain[0].isdigit():
        plain = f"p_{plain}"

    return plain if _is_identifier(plain) else f"{plain}_"


def _is_identifier(name: str) -> bool:
    reserved = name in RESERVED or keyword.iskeyword(name)
    return name.isidentifier() and name.isascii() and not reserved


def _unused(name: str, taken: Iterable[str]) -> str:
    unused = name
    number = 2
    while unused in taken:
        unused = f"{name}_{number}"
        number += 1

    return unused


def _fits(space: TrialSpace, trial: FrozenTrial) -> bool:
    try:
        space.values(trial.params)
    except ArchiveError:
        return False

    return True


def _fault(space: TrialSpace, trials: Sequence[FrozenTrial]) -> str:
    """Return why a trial is none of a space."""
    for trial in trials:
        try:
            space.values(trial.params)
        except ArchiveError as error:
            return f"trial {trial.number} does not fit the space of the study: {error}"

    raise AssertionError("all trials fit")
