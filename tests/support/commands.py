"""Shared parts of the tests of the trainer's commands: a table that answers, and commands as
processes."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import click
import pytest

from archive import spaces
from archive.architecture import codec
from archive.cli.main import archive as root
from archive.cli.main import main
from archive.settings import Settings, environment
from archive.store.records import Study
from archive.trainer.daemon.executors import TrialExecutor
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.tasks import registry
from tests.support.stores import suggest

CELLS = spaces.get("nasbench201").members()[:10]


def table(folder: Path) -> str:
    """Write a table of ten cells that each took a minute to train, and return the name of its
    task."""
    path = folder / "table.csv"
    rows = [f"{codec.to_nasbench201(cell)},{at},60" for at, cell in enumerate(CELLS)]
    path.write_text("\n".join(["arch_str,accuracy,train_seconds", *rows]))
    return f"table:{path}#accuracy"


def propose(archive, task: str, count: int, name: str = "study") -> list:
    """Propose cells in a study on a table."""
    protocol = registry.get(task).protocol().name
    archive.studies.create(Study(name, task, protocol, "nasbench201", "accuracy", budget=100))
    agent = archive.proposals.register_agent("random", {}, "1")
    return archive.proposals.create(name, agent, suggest(CELLS[:count]))


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


class Shell:
    """Types `archive …` with the settings of one server.

    Args:
        settings: Of the server.
        folder: Where what processes write is kept.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.environment = {**os.environ, **environment(settings), "OMP_NUM_THREADS": "1"}
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def types(
        self, *arguments: str, code: int | None = 0, terminal: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in this process, which spares the start of another one.

        Args:
            arguments: What follows `archive`.
            code: The exit code that is expected; None stands for any but 0.
            terminal: Whether both streams say that they are a terminal.
        """
        kind = Screen if terminal else io.StringIO
        streams = kind(), kind()
        with mock.patch.dict(os.environ, self.environment), pytest.raises(SystemExit) as end:
            with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
                main(list(arguments))

        done = subprocess.CompletedProcess(
            arguments, end.value.code, *(stream.getvalue() for stream in streams)
        )
        expected = done.returncode == code or (code is None and done.returncode)
        assert expected, done.stderr or done.stdout
        return done

    def runs(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a separate process until it ends."""
        return subprocess.run(
            self._command(arguments),
            capture_output=True,
            text=True,
            env=self.environment | variables,
            timeout=120,
        )

    def starts(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command; what it says on stderr goes to `said`."""
        with open(self.folder / "stderr", "ab") as log:
            command = self._command(arguments)
            streams: dict[str, Any] = {"stdout": log, "stderr": log}
            # A shell's background job ignores Ctrl-C, and hands that down to all that it starts.
            before = signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                self.started.append(subprocess.Popen(command, env=self.environment, **streams))
            finally:
                signal.signal(signal.SIGINT, before)

        return self.started[-1]

    @property
    def said(self) -> str:
        """All that started commands have said."""
        return (self.folder / "stderr").read_text("utf-8")

    @staticmethod
    def _command(arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "archive.cli.main", *arguments]


@contextmanager
def shell(settings: Settings, folder: Path) -> Iterator[Shell]:
    """Give a shell whose processes end with the block."""
    opened = Shell(settings, folder)
    try:
        yield opened
    finally:
        for process in opened.started:
            process.kill()
            process.wait()


@contextmanager
def serving(
    archive, home: Path | None = None, executor: TrialExecutor | None = None, **options: Any
) -> Iterator[Trainer]:
    """Train what is proposed meanwhile, in a thread of this process.

    Spares what the trainer of a search costs: the start of a process, and of a second one that
    imports torch.
    """
    given = {"device": "cpu", "threads": 1, "poll_seconds": 0.05, **options}
    trainer = Trainer(archive, TrainerOptions(**given), home=home, executor=executor)
    thread = threading.Thread(target=trainer.run)
    thread.start()
    try:
        yield trainer
    finally:
        trainer.stop()
        thread.join()


def completed(user: Shell, line: str) -> list[str]:
    """Return what bash is offered at the end of a line; an error would stand on the user's
    terminal."""
    asked = {
        "_ARCHIVE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    # Click writes bytes, as a shell's newlines are the same everywhere.
    out = io.TextIOWrapper(io.BytesIO())
    err = io.StringIO()
    with mock.patch.dict(os.environ, user.environment | asked), pytest.raises(SystemExit) as end:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([])

    assert (end.value.code, err.getvalue()) == (0, "")
    out.flush()
    return [offered.removeprefix("plain,") for offered in out.buffer.getvalue().decode().split()]


def parsed(*words: str) -> dict[str, Any]:
    """Return the values of a command that is parsed and not run: `parsed("trainer", "start",
    "--slots", "2")`.

    Raises:
        click.UsageError: An option or a value is refused.
    """
    # Click keeps the option for help of a command as its first context has it.
    context = click.Context(root, info_name="archive", **root.context_settings)
    command: click.Command = root
    rest = list(words)
    while isinstance(command, click.Group):
        name = rest.pop(0)
        found = command.get_command(context, name)
        assert found is not None, name
        command = found
        if isinstance(command, click.Group):
            context = click.Context(command, parent=context, info_name=name)

    return command.make_context(name, rest, parent=context).params
