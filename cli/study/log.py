"""`archive study log`: the events of each proposal, and the log of its trial."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archive.cli.names import STUDY
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
from archive.cli.study.items import moment, timestamp
from archive.trainer.storage import file_names
from archive.values import whole_number

if TYPE_CHECKING:
    from archive.queue.event_log import Entry

PAUSE = 1.0
"""Seconds between two polls of --follow."""
TAIL = 12
"""Number of lines of a failed trial's log; with --proposal, the whole log is shown."""
OVERLAP = 1024
"""Number of bytes at the end of a log that mark the place after the log was cut."""
DETAILS = (
    *(
        "attempt",
        "reason",
        "cause",
        "architecture",
        "acquisition",
        "mean",
        "std",
        "fidelity",
        "hyperparameters",
        "based_on",
    ),
    *("value", "epochs", "seconds", "device", "answered_from", "rung"),
)
"""Keys that only some events have a value for."""
COLOURS = {
    "complete": "green",
    "pruned": "yellow",
    "failed": "red",
    "lost": "yellow",
    "returned": "yellow",
    "promoted": "cyan",
    "cancelled": "yellow",
    "retried": "cyan",
}


@click.command("log")
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option(
    "--proposal",
    metavar="ID",
    help="Show only this proposal, by its id or number, with the log of its trial; in JSON with "
    "--follow only.",
)
@click.option(
    "--follow", is_flag=True, help="Show new events until the study, or the proposal, has ended."
)
@json_option
@click.pass_context
def log(ctx: click.Context, name: str, proposal: str | None, follow: bool, as_json: bool) -> None:
    """Show the events of a study, oldest first.

    Every proposal with its agent and basis, every claim with its trainer, and the outcome of every
    attempt: the value, or the reason of the failure and the end of the trial's log. With --follow,
    JSON is one object a line.
    """
    from archive.queue import event_log

    with open_archive(ctx) as archive:
        one = None if proposal is None else whole_id(name, proposal)
        if as_json and not follow:
            entries = event_log.read(archive.connection, name, one)
            print_json({"study": name, "entries": [entry_item(entry) for entry in entries]})
            return

        writer = LogWriter(archive.connection.settings.home, one, as_json)
        follower = event_log.EventFollower(archive.connection, name, one)
        entries = follower.look()
        writer.write(entries, ended=follower.done or not follow)
        while follow and not follower.done:
            time.sleep(PAUSE)
            entries = follower.look()
            writer.write(entries, ended=follower.done)


def whole_id(study: str, proposal: str) -> str:
    """Return the id of a proposal that is named by its number, or as `archive proposal` names
    it.
    """
    from archive.store import properties

    number = whole_number(proposal.removeprefix("#"))
    return (
        properties.whole_id(proposal) if number is None else properties.proposal_id(study, number)
    )


class LogWriter:
    """Writes entries, and the growing log of one trial.

    Args:
        home: Folder of the archive on this machine.
        proposal: Proposal whose trial's log is shown; None shows only the ends of the logs of
            failed trials.
        as_json: Whether to write one JSON object a line instead of text.
    """

    def __init__(self, home: Path, proposal: str | None, as_json: bool) -> None:

        self.as_json = as_json
        self.proposal = proposal
        self.path = None if proposal is None else file_names.trial_log_path(home, proposal)
        self._shown = 0
        self._last = b""

    def write(self, entries: list[Entry], *, ended: bool = True) -> None:
        """Write entries, then the new part of the trial's log: whole lines unless it has ended."""
        for entry in entries:
            if self.as_json:
                print_json_line(entry_item(entry))
            else:
                self._print(entry)

        self._write_own_log(ended)

    def _print(self, entry: Entry) -> None:
        # The whole log below would repeat the end.
        whole = self.path is not None and self.path.exists()
        print_entry(entry, lines=0 if whole else None if self.proposal else TAIL)

    def _write_own_log(self, ended: bool) -> None:
        if self.path is None or not self.path.exists():
            return

        content = self.path.read_bytes()
        if not ended:
            # Progress bars end their lines with a carriage return.
            content = content[: 1 + max(content.rfind(b"\n"), content.rfind(b"\r"))]

        if not self._shown and content and not self.as_json:
            print_message(f"log of the trial, {self.path}:")

        text = self._news(content).decode(errors="replace")
        if self.as_json:
            for line in text.splitlines():
                print_json_line({"proposal": self.proposal, "event": "log", "line": line})
        elif text:
            # Progress bars return to the beginning of their line.
            print_block(text.replace("\r\n", "\n").replace("\r", "\n"))

    def _news(self, content: bytes) -> bytes:
        """Return the part of a log that was not yet shown."""
        at = self._shown
        if len(content) < at:
            # A log that has grown too long was cut at its beginning.
            last = content.rfind(self._last)
            at = 0 if last < 0 else last + len(self._last)

        self._shown = len(content)
        self._last = content[-OVERLAP:]
        return content[at:]


def print_entry(entry: Entry, lines: int | None = TAIL) -> None:
    """Write what happened in a line, and below it the end of the trial's own log, where a failure
    left one.

    Args:
        entry: What happened.
        lines: Most lines of the log, the last ones; None for all.
    """
    at = moment(entry.at)
    when = "–" * 19 if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
    colour = COLOURS.get(entry.event, "default")
    print_line(
        f"{when}  #{entry.number:<4} ", (f"{entry.event:<9}", colour), f"  {_sentence(entry)}"
    )
    kept = (entry.log or "").splitlines()
    for line in kept if lines is None else kept[len(kept) - min(lines, len(kept)) :]:
        print_line((f"    | {line}", "dim"))


def entry_item(entry: Entry) -> dict[str, Any]:
    """Return an entry as `archive.cli.documents.log.LogItem` lists its keys."""
    about = {name: getattr(entry, name) for name in ("proposal", "number", "event", "who")}
    details = {name: entry.details.get(name) for name in DETAILS}
    return {"time": timestamp(entry.at), **about, **details, "log": entry.log}


def _sentence(entry: Entry) -> str:
    """Return an event in words."""
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
        return f"continues to rung {details['rung']}"

    cause = f"({details['cause']})" if "cause" in details else ""
    return ": ".join(filter(None, [f"{who} {cause}".strip(), details.get("reason")]))


def _basis(details: Any) -> Iterator[str]:
    """Yield the basis of an agent's suggestion."""
    for name in ("acquisition", "mean", "std", "fidelity", "hyperparameters"):
        if name in details:
            yield f"{name} {show(details[name])}"

    seen = details.get("based_on", {}).get("observations")
    if isinstance(seen, dict) and seen:
        yield "knowing " + ", ".join(f"{study} {numbers}" for study, numbers in seen.items())
