"""Kinds of plots by name: which function draws each, how many studies it takes, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive import plots
from archive.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from archive.api import Archive


@dataclass(frozen=True)
class PlotKind:
    """A kind of plot.

    Attributes:
        summary: Its contents, in one line.
        options: Names of the arguments that its function has beside archive and studies.
        several: Whether it takes several studies.
    """

    summary: str
    options: tuple[str, ...] = ()
    several: bool = True


KINDS: Mapping[str, PlotKind] = MappingProxyType(
    {
        "best-so-far": PlotKind(
            "best value against evaluations, seconds or epochs", ("against", "by")
        ),
        "value-and-cost": PlotKind("value against a cost, with the Pareto front", ("cost",)),
        "learning-curves": PlotKind(
            "curves of the best, other and running trainings", ("metric",), several=False
        ),
        "parallel-coordinates": PlotKind(
            "hyperparameters, decisions or sizes beside the value", ("axes",), several=False
        ),
        "predictions": PlotKind("predicted against observed values, and coverage"),
        "operation-gains": PlotKind("what each operation of the agents gained", several=False),
        "worker-timeline": PlotKind("which worker ran which trial, when", ("hours",)),
        "network-map": PlotKind(
            "all networks on a plane, searches as paths", ("distance", "whole")
        ),
        "importance": PlotKind("importance of parameters and decisions", several=False),
        "slice": PlotKind("value against single parameters or decisions", ("axes",), several=False),
        "contour": PlotKind("mean prediction over two of them", ("axes",), several=False),
        "rank": PlotKind("rank of the results over two of them", ("axes",), several=False),
        "edf": PlotKind("empirical distribution of the values"),
    }
)


def check(kind: str, studies: Sequence[str], options: Mapping[str, Any]) -> None:
    """Check a request before an archive is opened.

    Args:
        kind: Name of the kind.
        studies: Names of studies.
        options: Arguments of the kind's function; None for those left out.

    Raises:
        UnknownNameError: There is no such kind.
        UsageError: The kind takes one study, or does not have one of the options.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of plot", kind, KINDS)

    if len(studies) > 1 and not KINDS[kind].several:
        raise UsageError(f"{kind} plots one study at a time, got {len(studies)}")

    for name, value in options.items():
        if value is not None and name not in KINDS[kind].options:
            owners = ", ".join(owner for owner, about in KINDS.items() if name in about.options)
            raise UsageError(f"{name} is an option of {owners}, not of {kind}")


def draw(archive: Archive, kind: str, studies: Sequence[str], **options: Any) -> Figure:
    """Draw studies; for arguments and errors, see `check` and the function of the kind."""
    check(kind, studies, options)
    function = getattr(plots, kind.replace("-", "_"))
    named = list(studies) if KINDS[kind].several else studies[0]
    figure: Figure = function(
        archive, named, **{name: value for name, value in options.items() if value is not None}
    )
    return figure
