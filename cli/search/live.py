"""What `archive search` shows while it runs: messages, and a view of the study.

The view is a live table on a terminal, and one line per event elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from types import TracebackType
from typing import Literal, TextIO

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from archive.cli.render import animation, console, print_line, print_message, text
from archive.searches.events import (
    NothingToDo,
    Notice,
    SearchEnded,
    SearchEvent,
    SearchProgress,
    Stopping,
    StudyOpened,
    WarmSource,
)
from archive.store.metric_names import own_unit_metric
from archive.store.records import State, Study
from archive.store.snapshots import ProposalView, Snapshot
from archive.store.studies.studies import UNBOUNDED
from archive.values import MOST_SETTINGS, counted, short_settings

ROWS = 14
"""Number of the latest proposals in the table: a terminal of 24 lines holds them with head and
foot."""

WIDE = 160
NARROW_SETTINGS = 3
WIDTH_OF_CUT = 40
"""Settings of long configurations, and their width, in a terminal of less than `WIDE` columns."""

COLOURS = {
    State.WAITING: "dim",
    State.RUNNING: "cyan",
    State.COMPLETE: "green",
    State.PRUNED: "yellow",
    State.FAILED: "red",
}


class LiveView:
    """Shows a study on stderr, one snapshot after another.

    Args:
        study: The study.
        agent: Name of the agent.
        server: Place of the archive, for the head line.
        epochs: Maximum number of epochs of a training; None where it is unknown.
        warm: Number of observations from other studies.
        stream: Stream to show it on; None means stderr.
    """

    def __init__(
        self,
        study: Study,
        agent: str,
        server: str,
        epochs: int | None,
        warm: int,
        *,
        stream: TextIO | None = None,
    ) -> None:
        self.study = study
        self.agent = agent
        self.server = server
        self.epochs = epochs
        self.warm = warm
        self._print = print_message if stream is None else print_line
        terminal = console(stream)
        self._live = Live(console=terminal, refresh_per_second=4) if terminal.is_terminal else None
        self._animation: AbstractContextManager[None] = nullcontext()
        if self._live is not None:
            self._animation = animation(self._live, terminal)

        self._seen: dict[str, tuple[State, int, str | None]] = {}
        self._told: dict[tuple[str, str], int] = {}
        self._explained: set[tuple[str, int]] = set()
        self._waits_for: str | None = None
        self._begun = False

    def __enter__(self) -> LiveView:
        """Start the live table, or print a line on the search."""
        self._animation.__enter__()
        if self._live is None:
            self._print(f"{self.study.name}:{self._about()}")

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the live table; its last state stays on the terminal."""
        self._animation.__exit__(kind, error, trace)

    @cached_property
    def _own_unit(self) -> str | None:
        return own_unit_metric(self.study)

    def update(self, snapshot: Snapshot, waits_for: str | None = None) -> None:
        """Show the study as of a snapshot.

        Args:
            snapshot: The snapshot.
            waits_for: What the study waits for, where nothing runs (`archive.searches.waiting`).
        """
        if self._live:
            foot = [text((waits_for, "yellow"))] if waits_for else []
            self._live.update(
                Group(self._head(snapshot), self._table(snapshot), self._foot(snapshot), *foot)
            )
            return

        self._print_events(snapshot)
        if waits_for and waits_for != self._waits_for:
            self._print(waits_for)

        self._waits_for = waits_for

    def _head(self, snapshot: Snapshot) -> Text:
        counts = snapshot.counts
        warm = f" · {counted(self.warm, 'observation')} from other studies" if self.warm else ""
        failed = f" · {counts[State.FAILED]} failed" if counts[State.FAILED] else ""
        pruned = f" · {counts[State.PRUNED]} of them pruned" if counts[State.PRUNED] else ""
        evaluated = counts[State.COMPLETE] + counts[State.PRUNED]
        budget = snapshot.study.budget
        limited = budget < UNBOUNDED
        progress = (
            f"{evaluated} of {counted(budget, 'evaluation')}"
            if limited
            else counted(evaluated, "evaluation")
        )
        shown = text(f"{progress}{pruned}{failed}{warm}")
        return Text("\n").join([text((self.study.name, "bold"), " ", self._about()), shown])

    def _about(self) -> str:
        study = self.study
        return (
            f" {self.agent} on {study.task} ({study.protocol}), space {study.space}, {self.server}"
        )

    def _table(self, snapshot: Snapshot) -> Table:
        table = Table(show_edge=False, pad_edge=False, header_style="bold")
        views = snapshot.proposals[-ROWS:]
        named = any(view.configuration for view in views)
        cuts = self._cuts(views)
        figures = self._figures(cuts=cuts)
        left = ["#", "state", "architecture", *(["configuration"] if named else [])]
        for column in (*left, *figures):
            is_text = column in ("state", "architecture", "configuration")
            justify: Literal["left", "right"] = "left" if is_text else "right"
            # A row of a long configuration would take several lines of the terminal.
            width = WIDTH_OF_CUT if cuts and column == "configuration" else None
            table.add_column(text(column), justify=justify, no_wrap=cuts, max_width=width)

        configurations = self._short_configurations(views) if named else []
        for index, view in enumerate(views):
            row = self._row(view, figures, configurations[index] if named else None)
            table.add_row(*row, style="bold" if view == snapshot.incumbent else None)

        return table

    def _figures(self, *, cuts: bool) -> list[str]:
        """Return the columns of numbers; next to long configurations only results."""
        own_unit = [] if self._own_unit is None else [self._own_unit]
        if cuts:
            return ["epoch", self._metric, *own_unit, "seconds"]

        return ["acquisition", "epoch", self._metric, "value", *own_unit, "seconds"]

    def _short_configurations(self, views: Sequence[ProposalView]) -> list[str]:
        """Return the configurations of rows; long ones are cut to what a terminal holds."""
        settings = [view.configuration for view in views]
        return short_settings(settings, NARROW_SETTINGS if self._cuts(views) else MOST_SETTINGS)

    def _cuts(self, views: Sequence[ProposalView]) -> bool:
        """Return whether rows have long configurations, and the terminal is narrow."""
        narrow = self._live is not None and self._live.console.width < WIDE
        return narrow and any(len(view.configuration) > MOST_SETTINGS for view in views)

    def _row(
        self, view: ProposalView, figures: Sequence[str], configuration: str | None
    ) -> list[Text]:
        state = text(
            ("cancelled", "dim") if view.cancelled else (view.state.lower(), COLOURS[view.state])
        )
        cells = [text(str(view.number)), state, text(view.architecture_key[:8])]
        if configuration is not None:
            cells.append(text(configuration))

        if view.state is State.FAILED or _is_repeated(view):
            return [*cells, text((view.reason or "", "dim" if view.cancelled else "red"))]

        # An objective of this name comes before the column of the table.
        numbers = {
            "acquisition": _number(view.acquisition),
            "value": _number(view.value),
            self._metric: _number(view.latest.get(self._metric)),
            "epoch": self._epochs(view),
            "seconds": _number(view.seconds, ".1f"),
        }
        if self._own_unit is not None:
            numbers[self._own_unit] = _number(view.metrics.get(self._own_unit))

        return [*cells, *[text(numbers[figure]) for figure in figures]]

    def _epochs(self, view: ProposalView) -> str:
        if not view.epochs:
            return "–"

        return str(view.epochs) if self.epochs is None else f"{view.epochs}/{self.epochs}"

    def _foot(self, snapshot: Snapshot) -> Text:
        best = snapshot.incumbent
        if best is None:
            waiting = (
                "no result meets the constraints yet"
                if self.study.constraints
                else "no evaluation yet"
            )
            return text((waiting, "dim"))

        return text(
            f"best: #{best.number} {best.architecture_key[:8]}, {self.study.objective} "
            f"{_number(best.value)}{self._error(best)}{_settings(best)}"
        )

    @property
    def _metric(self) -> str:
        return self.study.objective

    def _error(self, view: ProposalView) -> str:
        """Return the objective in the target's own unit; empty where it has none."""
        value = None if self._own_unit is None else view.metrics.get(self._own_unit)
        return "" if value is None else f", {self._own_unit} {_number(value)}"

    def _print_events(self, snapshot: Snapshot) -> None:
        for view in snapshot.news:
            # A trial that could not begin costs no attempt, and leaves its reason with the waiting
            # proposal.
            seen = view.state, view.attempts, view.reason if view.state is State.WAITING else None
            if self._seen.get(view.id) == seen:
                continue

            event = self._event(view, snapshot)
            # A trial that no trainer can begin is claimed and returned again and again.
            returned = view.state is State.RUNNING and view.reason is not None
            trained = view.epochs or 0
            if returned and trained <= self._told.get((view.id, event), -1):
                continue

            self._seen[view.id] = seen
            self._told[view.id, event] = trained
            # Results from before this search are no events.
            if self._begun or view.finished is None:
                self._print(event + self._lost(view))

        self._begun = True

    def _lost(self, view: ProposalView) -> str:
        """Return why the last attempt was lost, unless its event was shown."""
        attempt = view.id, view.attempts
        if not view.attempts or view.reason is None or attempt in self._explained:
            return ""

        self._explained.add(attempt)
        return f"; the last one was lost: {view.reason}" if view.state is State.RUNNING else ""

    def _event(self, view: ProposalView, snapshot: Snapshot) -> str:
        name = f"#{view.number} {view.architecture_key[:8]}{_settings(view)}"
        if view.state is State.FAILED:
            return (
                f"{name} {view.reason}"
                if view.cancelled
                else (f"{name} failed: {view.reason or '–'}")
            )

        if view.state in (State.COMPLETE, State.PRUNED):
            best = snapshot.incumbent.value if snapshot.incumbent else None
            result = f"{self._metric} {_number(view.value)}{self._error(view)}{_cost(view)}"
            return f"{name} {view.state.lower()}: {result}; best {_number(best)}"

        if _is_repeated(view):
            awaited = f"attempt {view.attempts + 1}" if view.attempts else "another trial"
            return f"{name} waits for {awaited}: {view.reason}"

        attempt = f", attempt {view.attempts + 1}" if view.attempts else ""
        acquisition = ""
        if view.acquisition is not None:
            acquisition = f", acquisition {_number(view.acquisition)}"

        return f"{name} {view.state.lower()}{attempt}{acquisition}"


def _is_repeated(view: ProposalView) -> bool:
    """Return whether a proposal waits after a lost attempt, or a trial that did not begin."""
    return view.state is State.WAITING and view.reason is not None


def _settings(view: ProposalView) -> str:
    """Return the configuration of a proposal in parentheses; empty without named values."""
    return f" ({short_settings([view.configuration])[0]})" if view.configuration else ""


def _cost(view: ProposalView) -> str:
    """Return the cost of a result; a result of a table or of another study has no training."""
    epochs = "" if not view.epochs else "1 epoch" if view.epochs == 1 else f"{view.epochs} epochs"
    seconds = "" if view.seconds is None else f"{view.seconds:.1f} s"
    costs = ", ".join(filter(None, (epochs, seconds)))
    return f" after {costs}" if costs else ""


def _number(value: float | None, form: str = ".4g") -> str:
    return "–" if value is None else format(value, form)


class SearchView:
    """View of one search on stderr; ends with the search, or with the block."""

    def __init__(self) -> None:
        self._study: Study | None = None
        self._live: LiveView | None = None

    @property
    def study(self) -> Study:
        """The study of the search, as soon as it is opened."""
        assert self._study is not None, "the study is not opened yet"
        return self._study

    def __enter__(self) -> SearchView:
        """Return the view, which shows nothing yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the live view; its last state stays on the terminal."""
        if self._live is not None:
            self._live.__exit__(kind, error, trace)
            self._live = None

    def show(self, event: SearchEvent) -> None:
        """Show an event."""
        match event:
            case StudyOpened():
                self._study = event.study
                _print_opened(event)
                view = LiveView(event.study, event.agent, event.place, event.epochs, event.warm)
                self._live = view.__enter__()
            case NothingToDo():
                self._study = event.study
                _print_nothing_to_do(event)
            case Notice():
                print_message(event.text)
            case SearchProgress():
                if self._live is not None:
                    self._live.update(event.snapshot, event.waits_for)
            case Stopping():
                print_message("stopping: trainers return unfinished proposals …")
            case SearchEnded():
                self.__exit__(None, None, None)
                for reason in (event.stopped, event.exhausted):
                    if reason is not None:
                        print_message(reason)


def _print_opened(event: StudyOpened) -> None:
    """Write the progress of a resumed study, and what the search knows from others."""
    study = event.study
    if event.evaluations:
        verb = "has" if event.evaluations >= study.budget else "resumes at"
        progress = f"{event.evaluations} of {counted(study.budget, 'evaluation')}"
        print_message(f"study {study.name} {verb} {progress} (--budget is the total)")

    if event.warm:
        print_message(
            f"{event.warm} evaluations of other studies are observations: outside of the budget, "
            "not retrained"
        )

    for source in event.sources:
        print_message(_source_line(source))


def _source_line(source: WarmSource) -> str:
    """Return how a source study of another task is used, in one line."""
    study = f"the study {source.study} ({source.task}, {source.space})"
    if source.unused is not None:
        return f"{source.evaluations} evaluations of {study} are not used: {source.unused}"

    return (
        f"{source.evaluations} evaluations of {study} are weighted by how well they predict this "
        "task"
    )


def _print_nothing_to_do(event: NothingToDo) -> None:
    """Write that a study has more evaluations than the budget of the command."""
    study = event.study
    print_message(
        f"study {study.name} has {counted(event.evaluations, 'evaluation')} already, more than the "
        f"{event.budget} asked for: there is nothing to do, and its budget stays {study.budget} "
        "(--budget is the total)"
    )
