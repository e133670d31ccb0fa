"""Names of protocols with their variants: `digits/1+morph+recipe:resnet-sgd+objective:valid_loss`.

A protocol's name identifies everything that a value depends on besides task, architecture and seed:
values are comparable within one task and one name. A part with its default is left out, so that
each protocol has one name.

    +morph               networks inherit weights (`archive.trainer.protocols.base`)
    +recipe:NAME         they are trained by another recipe than the default one (`archive.trainer.recipes`)
    +objective:METRIC    the value is another metric of the trained network than the task's own
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from archive.errors import UsageError

MORPH = "+morph"
RECIPE = "+recipe:"
OBJECTIVE = "+objective:"

DEFAULT_RECIPE = "default"

_WORD = r"[A-Za-z0-9][A-Za-z0-9_./@-]{0,63}"
_NAME = re.compile(
    rf"(?P<base>.+?)(?P<morph>{re.escape(MORPH)})?(?:{re.escape(RECIPE)}(?P<recipe>{_WORD}))?"
    rf"(?:{re.escape(OBJECTIVE)}(?P<objective>{_WORD}))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ProtocolName:
    """A protocol's name in its parts; `str` puts them together.

    Attributes:
        base: Name of the task's own protocol.
        morph: Whether networks inherit weights.
        recipe: Name of the recipe.
        objective: Metric that is the value; None stands for the task's own.
    """

    base: str
    morph: bool = False
    recipe: str = DEFAULT_RECIPE
    objective: str | None = None

    @classmethod
    def parse(cls, name: str) -> ProtocolName:
        """Return the parts of a name; a name of another form is a base as a whole."""
        match = _NAME.fullmatch(name)
        if match is None:
            return cls(name)

        return cls(
            match["base"],
            match["morph"] is not None,
            match["recipe"] or DEFAULT_RECIPE,
            match["objective"],
        )

    def __str__(self) -> str:
        """Return the name."""
        recipe = "" if self.recipe == DEFAULT_RECIPE else RECIPE + self.recipe
        objective = "" if self.objective is None else OBJECTIVE + self.objective
        morph = MORPH if self.morph else ""
        return f"{self.base}{morph}{recipe}{objective}"


FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "cifar10": "cifar10",
        "diabetes": "diabetes",
        "digits": "digits",
        "fashion-mnist": "fashion-mnist",
        "mnist": "mnist",
        "naval": "naval",
        "nb101": "nb101",
        "nbmacro": "nbmacro",
        "protein": "protein",
        "nb201": "nb201-",
        "transnas": "transnas-",
        "csv": "csv:",
        "images": "images:",
        "npz": "npz:",
        "parquet": "parquet:",
        "pydoc-topics": "pydoc-topics",
        "text": "text:",
        "table": "table:",
    }
)
"""First part of a protocol's name to the beginning of the names of the tasks that have it.

Equal texts stand for a single task. All tasks of this package are here."""


def check_owner(task: str, protocol: str) -> None:
    """Check that a protocol does not belong to another task.

    No trainer would train by such a protocol, and no value would be comparable.

    Args:
        task: Name of a task.
        protocol: Name of a protocol; names that no task of this package has are free.

    Raises:
        UsageError: It belongs to another task.
    """
    base = ProtocolName.parse(protocol).base
    family, slash, _ = base.partition("/")
    prefix = FAMILIES.get(family)
    if not slash or prefix is None or base.startswith(f"{task}/"):
        return

    single_task = prefix == family
    if single_task:
        # Noise is added to a task as TASK~SD.
        matches = task.partition("~")[0] == family
        owner = f"the task {family}"
    else:
        matches = task.startswith(prefix)
        owner = f"tasks {prefix}…"

    if not matches:
        example = f"{task}/own"
        raise UsageError(
            f"the protocol {protocol!r} is of {owner}, not of {task!r}: "
            f"leave it out, or give it a name such as {example!r}"
        )


def check_word(kind: str, name: str) -> str:
    """Return the name of a recipe or a metric, if it can stand in the name of a protocol.

    Raises:
        UsageError: The name has characters or a length that the name of a protocol cannot have.
    """
    if not re.fullmatch(_WORD, name):
        raise UsageError(
            f"the name of a {kind} must be 1 to 64 letters, digits or ._/@-, got {name!r}"
        )

    return name


def without_objective(protocol: str) -> str:
    """Return the name of a protocol without its objective: trainings under both are the same."""
    parts = ProtocolName.parse(protocol)
    if parts.objective is None:
        return protocol

    return protocol.removesuffix(OBJECTIVE + parts.objective)
