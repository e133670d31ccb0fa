"""`archive study log`: what happened to each proposal, and what its trial wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archive.cli.render import (
    json_option,
    open_archive,
    print_block,
    print_json,
    print_json_line,
    print_line,
    print_message,
    show,
)

if TYPE_CHECKING:
    from archive.queue.event_log import Entry

PAUSE = 1.0
"""Seconds between two looks of --follow."""
TAIL = 12
"""Lines of a failed trial's log that are shown; with --proposal, all that is kept."""
OVERLAP = 1024
"""Bytes of a log by which its end is found again after it was cut."""
LATEST = 253_402_214_400_000
"""Milliseconds from 1970 to the last day but one of the year 9999, which every time zone can say."""
COLOURS = {
    "complete": "green",
    "pruned": "yellow",
    "failed": "red",
    "lost": "yellow",
    "returned": "yellow",
    "promoted": "cyan",
}


@click.command("log")
@click.argument("name", metavar="STUDY")
@click.option("--proposal", metavar="ID", help="Only this one, by its id or number, with its trial's own log.")
@click.option("--follow", is_flag=True, help="Go on with what happens, until the study, or the proposal, is done.")
@json_option
@click.pass_context
def log(ctx: click.Context, name: str, proposal: str | None, follow: bool, as_json: bool) -> None:
    """Show what happened to each proposal of a study, the oldest first.

    Who proposed it and on what basis, who claimed it, what came of each attempt: the value, or the reason with the
    end of the trial's log. With --follow, JSON is one object a line.
    """
    from archive.queue import event_log

    with open_archive(ctx) as archive:
        one = _id(name, proposal)
        if as_json and not follow:
            print_json([_as_json(entry) for entry in event_log.read(archive.connection, name, one)])
            return
        writer = Writer(archive.connection.settings.home, one, as_json)
        follower = event_log.Follower(archive.connection, name, one)
        writer.write(follower.look())
        while follow and not follower.done:
            time.sleep(PAUSE)
            writer.write(follower.look())


def _id(study: str, proposal: str | None) -> str | None:
    """Return the whole id of a proposal that is named by its number."""
    from archive.store.properties import proposal_id

    number = (proposal or "").removeprefix("#")
    return proposal_id(study, int(number)) if number.isdecimal() else proposal


class Writer:
    """Writes entries, and the log of the one trial that was asked for as far as it has grown.

    Args:
        home: Folder of the archive on this machine.
        proposal: Whose log to show; None shows none but what failures have left.
        as_json: One object a line instead of text.
    """

    def __init__(self, home: Path, proposal: str | None, as_json: bool) -> None:
        from archive.trainer.trial import log as triallog

        self.as_json, self.proposal = as_json, proposal
        self.path = None if proposal is None else triallog.path_of(home, proposal)
        self._shown, self._last = 0, b""

    def write(self, entries: list[Entry]) -> None:
        """Write entries, then what is new in the trial's own log."""
        for entry in entries:
            if self.as_json:
                print_json_line(_as_json(entry))
            else:
                self._print(entry)
        self._write_own_log()

    def _print(self, entry: Entry) -> None:
        colour = COLOURS.get(entry.event, "default")
        at = _time(entry.at)
        when = "–" * 19 if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
        print_line(f"{when}  #{entry.number:<4} ", (f"{entry.event:<8}", colour), f"  {_sentence(entry)}")
        # With the whole log below, its end would be there twice.
        if entry.log and not (self.path and self.path.exists()):
            lines = entry.log.splitlines()
            for line in lines if self.proposal else lines[-TAIL:]:
                print_line((f"    | {line}", "dim"))

    def _write_own_log(self) -> None:
        if self.path is None or not self.path.exists():
            return
        if not self._shown and not self.as_json:
            print_message(f"log of the trial, {self.path}:")
        text = self._news(self.path.read_bytes()).decode(errors="replace")
        if self.as_json:
            for line in text.splitlines():
                print_json_line({"proposal": self.proposal, "event": "log", "line": line})
        elif text:
            # A bar of progress returns to the beginning of its line.
            print_block(text.replace("\r\n", "\n").replace("\r", "\n"))

    def _news(self, content: bytes) -> bytes:
        """Return what a log has beyond what was shown of it."""
        at = self._shown
        if len(content) < at:
            # A log that grew too long has lost its beginning.
            found = content.rfind(self._last)
            at = 0 if found < 0 else found + len(self._last)
        self._shown, self._last = len(content), content[-OVERLAP:]
        return content[at:]


def _as_json(entry: Entry) -> dict[str, Any]:
    given = asdict(entry)
    at, details = given.pop("at"), given.pop("details")
    then = _time(at)
    when = None if then is None else then.isoformat(timespec="milliseconds")[:-6] + "Z"
    return {"time": when, **{name: value for name, value in given.items() if value is not None}, **details}


def _time(milliseconds: int | None) -> datetime | None:
    """Return when something happened; None where that is unknown, or a loaded file says what no calendar has."""
    if milliseconds is None or not 0 <= milliseconds < LATEST:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _sentence(entry: Entry) -> str:
    """Return what happened, in words."""
    details = entry.details
    who = "" if entry.who is None else f"by {entry.who}"
    if entry.event == "proposed":
        return ", ".join(filter(None, [f"{details['architecture'][:8]} {who}", *_basis(details)]))
    if entry.event == "claimed":
        return f"{who}, attempt {details['attempt']}"
    if entry.event in ("complete", "pruned"):
        cost = [
            f"{show(details[name])} {unit}"
            for name, unit in (("epochs", "epochs"), ("seconds", "s"))
            if name in details
        ]
        if "rung" in details:
            cost.append(f"at rung {details['rung']}")
        if "answered_from" in details:
            cost = [f"answered from {details['answered_from']}"]
        return ", ".join([f"value {show(details.get('value'))} {who}".strip(), *cost])
    if entry.event == "promoted":
        return f"goes on to rung {details['rung']}"
    return f"{who}: {details['reason']}" if "reason" in details else who


def _basis(details: Any) -> Iterator[str]:
    """Yield what an agent's suggestion rests on."""
    for name in ("acquisition", "mean", "std", "fidelity", "hyperparameters"):
        if name in details:
            yield f"{name} {show(details[name])}"
    seen = details.get("based_on", {}).get("observations")
    if isinstance(seen, dict) and seen:
        yield "knowing " + ", ".join(f"{study} {numbers}" for study, numbers in seen.items())
