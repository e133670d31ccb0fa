"""Shared settings of the agents with a surrogate, as one argument of their constructors.

    class Mine(ModelBased):
        def __init__(self, space: Space, options: BatchOptions = BATCH, alpha: float = 1.0) -> None:
        ...

    agents.get("mine", space, kappa=2.0, alpha=0.5)        the same as Mine(space, BatchOptions(kappa=2.0), alpha=0.5)
    agents.settings("mine")                                {"preset": "default", …, "kappa": None, …, "alpha": 1.0}

An argument of an agent whose default is a dataclass is expanded to its fields
(`archive.agents.constructor_arguments`): the names of the fields are the names of the settings on
the command line, in `agents.get` and in the record of a study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from archive.errors import UnknownNameError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Preset = TypeVar("Preset", bound=DataclassInstance)


@dataclass(frozen=True, kw_only=True)
class BayesOptOptions:
    """Settings of a search with a surrogate; None means the preset's value.

    Attributes:
        preset: `default` or `paper`; the agent's module defines both.
        n_initial: Number of evaluations of the space's initial pool before the first of the model.
        acquisition: `ei`, `pi`, `ucb`, `its`; or `ts`: joint samples among the best by UCB.
        kappa: Weight of the uncertainty in UCB.
        transform: A name of `archive.agents.surrogates.outcome_transforms`.
        candidates: A name of `archive.agents.acquisition.candidate_generators`.
    """

    preset: str = "default"
    n_initial: int = 10
    acquisition: str | None = None
    kappa: float | None = None
    transform: str | None = None
    candidates: str | None = None


@dataclass(frozen=True, kw_only=True)
class BatchOptions(BayesOptOptions):
    """Settings of a search with a surrogate and a choice of the batch rule.

    Attributes:
        batch_rule: A name of `archive.agents.acquisition.batch`.
    """

    batch_rule: str | None = None


SEQUENTIAL = BayesOptOptions()
BATCH = BatchOptions()
"""Defaults of constructors."""


def choose(presets: Mapping[str, Preset], options: BayesOptOptions, **others: Any) -> Preset:
    """Return the preset of the options, with its values replaced by the settings that are not None.

    Args:
        presets: Presets by name; their fields have the names of the settings.
        options: The shared settings.
        **others: Further settings of the agent.

    Raises:
        UnknownNameError: No preset has this name.
    """
    own = {**asdict(options), **others}
    preset = own.pop("preset")
    own.pop("n_initial")
    if preset not in presets:
        raise UnknownNameError("preset", preset, presets)

    return replace(
        presets[preset], **{name: value for name, value in own.items() if value is not None}
    )
