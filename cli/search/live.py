"""What `archive search` shows while it runs: messages, and a view of the study.

The view is a live table on a terminal, and one line per event elsewhere.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TextIO

from rich.live import Live
from rich.text import Text

from archive.cli.render import animation, console, print_line, print_message
from archive.cli.search.screen import (
    ScreenContents,
    error_text,
    is_repeated,
    number_text,
    screen_lines,
    settings_in_parentheses,
)
from archive.searches.call import count_evaluated
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
from archive.searches.pace import pace
from archive.store.records import State, Study
from archive.store.snapshots import ProposalView, Snapshot
from archive.store.studies.studies import UNBOUNDED
from archive.values import counted


class LiveView:
    """Shows a study on stderr, one snapshot after another.

    Args:
        study: The study.
        agent: Name of the agent.
        server: Place of the archive, for the head line.
        epochs: Maximum number of epochs of a training; None where it is unknown.
        warm: Number of observations from other studies.
        since: Time from which the pace counts, in milliseconds since 1970; None means now.
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
        since: int | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self.study = study
        self.agent = agent
        self.server = server
        self.epochs = epochs
        self.warm = warm
        self.since = _now() if since is None else since
        self._snapshot: Snapshot | None = None
        self._print = print_message if stream is None else print_line
        terminal = console(stream)
        self._live: Live | None = None
        if terminal.is_terminal:
            self._live = Live(console=terminal, refresh_per_second=4, get_renderable=self._draw)

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
            self._print(f"{self.study.name}: {self._about()}, {self.server}")

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the live table; its last state stays on the terminal."""
        self._animation.__exit__(kind, error, trace)

    def update(self, snapshot: Snapshot, waits_for: str | None = None) -> None:
        """Show the study as of a snapshot.

        Args:
            snapshot: The snapshot.
            waits_for: What the study waits for, where nothing runs (`archive.searches.waiting`).
        """
        self._snapshot = snapshot
        if self._live is None:
            self._print_events(snapshot)
            if waits_for and waits_for != self._waits_for:
                self._print(waits_for)

        self._waits_for = waits_for

    def _draw(self) -> Text:
        """Return the lines of the terminal, as `Live` asks for them."""
        if self._live is None or self._snapshot is None:
            return Text()

        size = self._live.console.size
        lines = screen_lines(self._contents(self._snapshot), size.width, size.height)
        return Text("\n", no_wrap=True, overflow="crop").join(lines)

    def _contents(self, snapshot: Snapshot) -> ScreenContents:
        now = _end_of(snapshot) or _now()
        return ScreenContents(
            snapshot,
            self._about(),
            self.server,
            self.epochs,
            self.warm,
            max(now - self.since, 0) / 1000,
            pace(snapshot, since=self.since, now=now),
            (self._waits_for,) if self._waits_for else (),
        )

    def _about(self) -> str:
        study = self.study
        return f"{self.agent} on {study.task} ({study.protocol}), space {study.space}"

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
        name = f"#{view.number} {view.architecture_key[:8]}{settings_in_parentheses(view)}"
        if view.state is State.FAILED:
            return (
                f"{name} {view.reason}"
                if view.cancelled
                else (f"{name} failed: {view.reason or '–'}")
            )

        if view.state in (State.COMPLETE, State.PRUNED):
            best = snapshot.incumbent.value if snapshot.incumbent else None
            result = f"{self.study.objective} {number_text(view.value)}{error_text(snapshot, view)}{_cost(view)}"
            shown = f"{name} {view.state.lower()}: {result}; best {number_text(best)}"
            return f"{shown}{_progress(snapshot)}"

        if is_repeated(view):
            awaited = f"attempt {view.attempts + 1}" if view.attempts else "another trial"
            return f"{name} waits for {awaited}: {view.reason}"

        attempt = f", attempt {view.attempts + 1}" if view.attempts else ""
        acquisition = ""
        if view.acquisition is not None:
            acquisition = f", acquisition {number_text(view.acquisition)}"

        return f"{name} {view.state.lower()}{attempt}{acquisition}"


def _progress(snapshot: Snapshot) -> str:
    """Return how much of the budget is spent; empty without a budget."""
    budget = snapshot.study.budget
    return f"; {count_evaluated(snapshot.counts)} of {budget}" if budget < UNBOUNDED else ""


def _cost(view: ProposalView) -> str:
    """Return the cost of a result; a result of a table or of another study has no training."""
    epochs = "" if not view.epochs else "1 epoch" if view.epochs == 1 else f"{view.epochs} epochs"
    seconds = "" if view.seconds is None else f"{view.seconds:.1f} s"
    costs = ", ".join(filter(None, (epochs, seconds)))
    return f" after {costs}" if costs else ""


def _end_of(snapshot: Snapshot) -> int | None:
    """Return the time of the last result of a study whose budget is spent; None before."""
    if snapshot.open or count_evaluated(snapshot.counts) < snapshot.study.budget:
        return None

    return max((view.finished or 0 for view in snapshot.proposals), default=None)


def _now() -> int:
    """Return the time in milliseconds since 1970."""
    return round(time.time() * 1000)


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
