"""What `archive search` shows while it runs: messages, and the live view of the study."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from archive.cli.render import print_message
from archive.cli.search.live import LiveView
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
from archive.values import counted

if TYPE_CHECKING:
    from archive.store.records import Study


class SearchView:
    """Shows the events of one search on stderr; the live view ends with the search, or with the
    block.
    """

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
                if event.exhausted is not None:
                    print_message(event.exhausted)


def _print_opened(event: StudyOpened) -> None:
    """Write the progress of a resumed study, and what the search knows from others."""
    study = event.study
    if event.evaluations:
        verb = "has" if event.evaluations >= study.budget else "resumes at"
        progress = f"{event.evaluations} of {counted(study.budget, 'evaluation')}"
        print_message(f"study {study.name} {verb} {progress} (--budget is the total)")

    if event.warm:
        print_message(
            f"{event.warm} evaluations of other studies are observations: outside of the budget, not retrained"
        )

    for source in event.sources:
        print_message(_source_line(source))


def _source_line(source: WarmSource) -> str:
    """Return how a source study of another task is used, in one line."""
    what = f"{source.evaluations} evaluations of the study {source.study} ({source.task}, {source.space})"
    if source.unused is not None:
        return f"{what} are not used: {source.unused}"

    return f"{what} are weighted by how well they predict this task"


def _print_nothing_to_do(event: NothingToDo) -> None:
    """Write that a study has more evaluations than the budget of the command."""
    study = event.study
    print_message(
        f"study {study.name} has {counted(event.evaluations, 'evaluation')} already, more than the {event.budget} "
        f"asked for: there is nothing to do, and its budget stays {study.budget} (--budget is the total)"
    )
