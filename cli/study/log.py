"""`archive study log`: the events of each proposal, and the log of its trial."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
from archive.trainer.storage import file_names
from archive.values import moment, timestamp, whole_number

if TYPE_CHECKING:
    from archive.queue.event_log import Entry

PAUSE = 1.0
"""Seconds between two polls of --follow."""
TAIL = 12
"""Number of lines of a failed trial's log; with --proposal, the whole log is shown."""
OVERLAP = 1024
"""Number of bytes at the end of a log that mark the place after the log was cut."""
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


@dataclass(frozen=True)
class LogItem:
    """One thing that happened to a proposal; what an event has nothing to say of is null.

    Attributes:
        time: When, by the server's clock (ISO 8601, UTC).
        proposal: Id of the proposal.
        number: Its number in the study.
        event: Kind of the event.
        who: The agent that proposed, or the worker of all other events.
        attempt: Which attempt was claimed, or ended.
        reason: Why it failed, was lost, was returned or was cancelled.
        cause: Kind of that reason.
        log: The end of the trial's own log, of a failure that left one.
        architecture: Key of the architecture, of a proposal.
        acquisition: The agent's acquisition value, of a proposal.
        mean: The score that the surrogate expects, of a proposal.
        std: The surrogate's standard deviation of it.
        fidelity: Fraction of the full training, of a proposal that asks for less.
        hyperparameters: Training settings that belong to the proposal.
        based_on: Evaluations and proposals that the agent knew.
        value: The objective, of a result.
        epochs: Epochs of the result.
        seconds: Wall-clock time of the training.
        device: Where it ran.
        answered_from: Id of the evaluation that the result repeats without a training.
        rung: The rung that was finished, or that the proposal is promoted to, from 1.
    """

    time: str | None
    proposal: str
    number: int
    event: Literal[
        "proposed",
        "claimed",
        "failed",
        "lost",
        "returned",
        "complete",
        "pruned",
        "promoted",
        "cancelled",
        "retried",
    ]
    who: str | None
    attempt: int | None
    reason: str | None
    cause: str | None
    log: str | None
    architecture: str | None
    acquisition: float | None
    mean: float | None
    std: float | None
    fidelity: float | None
    hyperparameters: dict[str, Any] | None
    based_on: dict[str, Any] | None
    value: float | None
    epochs: int | None
    seconds: float | None
    device: str | None
    answered_from: str | None
    rung: int | None


@dataclass(frozen=True)
class StudyLog:
    """Events of a study, or of one of its proposals.

    Attributes:
        study: Name of the study.
        entries: The oldest first.
    """

    study: str
    entries: list[LogItem]


@dataclass(frozen=True)
class LogLine(LogItem):
    """A line of `--follow`: one event."""


@dataclass(frozen=True)
class TrialLogLine:
    """A line of `--follow` with `--proposal`: one line of the trial's own log.

    Attributes:
        proposal: Id of the proposal.
        event: Always `log`.
        line: The line.
    """

    proposal: str
    event: Literal["log"]
    line: str


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
        id_ = None if proposal is None else whole_id(name, proposal)
        if as_json and not follow:
            entries = event_log.read(archive.connection, name, id_)
            print_json(StudyLog(name, log_items(entries)))
            return

        writer = LogWriter(archive.connection.settings.home, id_, as_json)
        follower = event_log.EventFollower(archive.connection, name, id_)
        entries = follower.look()
        writer.write(entries, ended=follower.done or not follow)
        while follow and not follower.done:
            time.sleep(PAUSE)
            entries = follower.look()
            writer.write(entries, ended=follower.done)


def whole_id(study: str, proposal: str) -> str:
    """Return the id of a proposal from its number, or from its name `STUDY#NUMBER`."""
    from archive.store import properties

    number = whole_number(proposal.removeprefix("#"))
    if number is None:
        return properties.whole_id(proposal)

    return properties.proposal_id(study, number)


class LogWriter:
    """Writes entries, and the growing log of one trial.

    Args:
        home: Folder of the archive on this machine.
        proposal: Show the trial's log of this proposal; None shows only the ends of the logs of
            failed trials.
        as_json: Whether to write one JSON object a line instead of text.
    """

    def __init__(self, home: Path, proposal: str | None, as_json: bool) -> None:
        self.as_json = as_json
        self.proposal = proposal
        self.path = None if proposal is None else file_names.trial_log_path(home, proposal)
        self._shown = 0
        self._last = b""

    def write(self, entries: Sequence[Entry], *, ended: bool = True) -> None:
        """Write entries, then the new part of the trial's log: whole lines unless it has ended."""
        # The whole log below would repeat the end.
        with_log = self.path is not None and self.path.exists()
        tail = TAIL if self.proposal is None else None
        for entry in entries:
            if self.as_json:
                print_json_line(LogLine(**vars(log_item(entry))))
            else:
                print_entry(entry, lines=0 if with_log else tail)

        if self.path is not None and self.proposal is not None and self.path.exists():
            self._write_log(self.path, self.proposal, ended)

    def _write_log(self, path: Path, proposal: str, ended: bool) -> None:
        content = path.read_bytes()
        if not ended:
            # Progress bars end their lines with a carriage return.
            content = content[: 1 + max(content.rfind(b"\n"), content.rfind(b"\r"))]

        if not self._shown and content and not self.as_json:
            print_message(f"log of the trial, {path}:")

        text = self._news(content).decode(errors="replace")
        if self.as_json:
            for line in text.splitlines():
                print_json_line(TrialLogLine(proposal, "log", line))
        elif text:
            # Progress bars return to the beginning of their line.
            print_block(text.replace("\r\n", "\n").replace("\r", "\n"))

    def _news(self, content: bytes) -> bytes:
        """Return the part of a log that was not yet shown."""
        begin = self._shown
        if len(content) < begin:
            # A log that has grown too long was cut at its beginning.
            last = content.rfind(self._last)
            begin = 0 if last < 0 else last + len(self._last)

        self._shown = len(content)
        self._last = content[-OVERLAP:]
        return content[begin:]


def print_entry(entry: Entry, lines: int | None = TAIL) -> None:
    """Write an event in a line, and below it the end of a failed trial's log, if there is one.

    Args:
        entry: The event.
        lines: Most lines of the log, the last ones; None for all.
    """
    time = moment(entry.at)
    when = "–" * 19 if time is None else f"{time.astimezone():%Y-%m-%d %H:%M:%S}"
    colour = COLOURS.get(entry.event, "default")
    print_line(
        f"{when}  #{entry.number:<4} ", (f"{entry.event:<9}", colour), f"  {_sentence(entry)}"
    )
    log_lines = (entry.log or "").splitlines()
    if lines is not None:
        log_lines = log_lines[len(log_lines) - min(lines, len(log_lines)) :]

    for line in log_lines:
        print_line((f"    | {line}", "dim"))


def log_items(entries: Sequence[Entry]) -> list[LogItem]:
    """Return events as items of the JSON output."""
    return list(map(log_item, entries))


def log_item(entry: Entry) -> LogItem:
    """Return an event as an item of the JSON output."""
    details = entry.details
    return LogItem(
        time=timestamp(entry.at),
        proposal=entry.proposal,
        number=entry.number,
        event=entry.event,
        who=entry.who,
        attempt=details.get("attempt"),
        reason=details.get("reason"),
        cause=details.get("cause"),
        log=entry.log,
        architecture=details.get("architecture"),
        acquisition=details.get("acquisition"),
        mean=details.get("mean"),
        std=details.get("std"),
        fidelity=details.get("fidelity"),
        hyperparameters=details.get("hyperparameters"),
        based_on=details.get("based_on"),
        value=details.get("value"),
        epochs=details.get("epochs"),
        seconds=details.get("seconds"),
        device=details.get("device"),
        answered_from=details.get("answered_from"),
        rung=details.get("rung"),
    )


def _sentence(entry: Entry) -> str:
    """Return an event in words."""
    details = entry.details
    by = "" if entry.who is None else f"by {entry.who}"
    match entry.event:
        case "proposed":
            return ", ".join([f"{details['architecture'][:8]} {by}", *_basis(details)])
        case "claimed":
            return f"{by}, attempt {details['attempt']}"
        case "complete" | "pruned":
            value = f"value {show(details.get('value'))} {by}".strip()
            return ", ".join([value, *_costs(details)])
        case "promoted":
            return f"continues to rung {details['rung']}"

    cause = f"({details['cause']})" if "cause" in details else ""
    return ": ".join(filter(None, [f"{by} {cause}".strip(), details.get("reason")]))


def _costs(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield the costs of a result, or the result that it repeats."""
    if "answered_from" in details:
        yield f"answered from {details['answered_from']}"
        return

    if "epochs" in details:
        yield f"{show(details['epochs'])} epochs"

    if "seconds" in details:
        yield f"{show(details['seconds'])} s"

    if "rung" in details:
        yield f"at rung {details['rung']}"


def _basis(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield the basis of an agent's suggestion."""
    for name in ("acquisition", "mean", "std", "fidelity", "hyperparameters"):
        if name in details:
            yield f"{name} {show(details[name])}"

    observations = details.get("based_on", {}).get("observations")
    if isinstance(observations, dict) and observations:
        counts = [f"{study} {numbers}" for study, numbers in observations.items()]
        yield f"knowing {', '.join(counts)}"
