"""The process of a recorded program, from its start to its end.

The program has the terminal's input, its own environment with `ARCHIVE_RUN`, and two pipes. What it
writes is passed on at once, goes into the log with secrets masked, and is searched for metrics.

Ctrl-C reaches program and recorder alike; the recorder waits for the program's own end. SIGTERM,
SIGHUP, SIGUSR1 and SIGUSR2 are passed on. A program whose recorder is killed is told to end.
Processes that the program leaves behind do not hold the recorder.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

import psutil

from archive.errors import UsageError
from archive.runs.measurements import MOST_LINE, Measurements
from archive.runs.run_log import RunLog
from archive.runs.secrets import Secrets

RUN_VARIABLE = "ARCHIVE_RUN"
"""Variable with the folder of the run, for `archive.record` within the program."""

GRACE_SECONDS = 10.0
"""Time between SIGTERM, which is passed on, and SIGKILL."""

OUTPUT = 1
ERRORS = 2
"""Descriptors of stdout and stderr, whatever stands in their place in this process."""

_READ_BYTES = 1 << 16
_LOOK_SECONDS = 0.2
_WATCH_SECONDS = 2.0
"""Longest time between two looks at the processes of a program."""

_MOST_PROCESSES = 10_000
_ENDED_SECONDS = 1.0
"""Time in which the output of a program is taken that its own processes go on to write to."""

_PARENT_DEATH = 1


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended.

    Attributes:
        status: Exit status; negative for a signal.
        seconds: Its time.
        cpu_seconds: Processor time of it and its children.
        peak_memory_bytes: Largest memory of one of its processes.
        processes: Ids of the processes that were seen; None where the system does not tell them.
    """

    status: int
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    processes: frozenset[int] | None = None


@dataclass
class OutputReader:
    """What becomes of the output of a program.

    Attributes:
        log: Where it is kept.
        secrets: What is masked before.
        measurements: What is searched for.
    """

    log: RunLog
    secrets: Secrets
    measurements: Measurements

    def read(self, source: LineSource, content: bytes) -> None:
        """Take a part of the output."""
        kept = []
        for line in source.lines(content):
            text = line.decode(errors="replace")
            kept.append(self.secrets.mask(text))
            self.measurements.read_line(text)

        if kept:
            self.log.write("".join(kept).encode(errors="replace"))


class LineSource:
    """Lines of one stream, which comes in parts.

    Args:
        target: Descriptor to which the stream is passed on.
    """

    def __init__(self, target: int) -> None:
        """Begin with no line."""
        self._target: int | None = target
        self._waiting = b""

    def pass_on(self, content: bytes) -> None:
        """Write a part where the program would have written it."""
        if self._target is None:
            return

        try:
            while content:
                content = content[_write(self._target, content) :]
        except OSError:
            # `archive record … | head` has seen enough; the run goes on.
            self._target = None

    def lines(self, content: bytes) -> Iterator[bytes]:
        """Yield the lines that are whole with this part, with their ends."""
        *whole, rest = (self._waiting + content).split(b"\n")
        for line in whole:
            yield line + b"\n"

        # A progress bar and binary output have no ends of lines.
        while len(rest) > MOST_LINE:
            # Between two words: a secret that is cut would not be masked.
            cut = max(rest.rfind(blank, 0, MOST_LINE) for blank in (b" ", b"\r", b"\t")) + 1
            yield rest[: cut or MOST_LINE]
            rest = rest[cut or MOST_LINE :]

        self._waiting = rest

    def last(self) -> Iterator[bytes]:
        """Yield what has no end of line."""
        if self._waiting:
            yield self._waiting

        self._waiting = b""


def run_program(
    command: Sequence[str],
    environment: Mapping[str, str],
    reader: OutputReader,
    *,
    limit: float | None = None,
    output: int = OUTPUT,
    keep_processes: Callable[[Collection[int]], None] | None = None,
) -> ProgramEnd:
    """Run a program to its end.

    Args:
        command: Program and arguments.
        environment: Its environment variables.
        reader: Takes its output.
        limit: Seconds after which it is ended; None for no limit.
        output: Descriptor to which its output is passed on; its errors go to stderr.
        keep_processes: Called with the ids of its processes, at its start and when there are more.

    Raises:
        UsageError: It cannot be started.
    """
    begin = time.perf_counter()
    # Found before the fork: the loader's lock may be held by another thread then.
    control = getattr(ctypes.CDLL(None), "prctl", None)

    def end_with_recorder() -> None:
        """Let the kernel end the program with its recorder, where it can (Linux)."""
        if control is not None:
            control(_PARENT_DEATH, signal.SIGTERM)

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=end_with_recorder,
        )
    except OSError as error:
        raise UsageError(f"{command[0]!r} cannot be started: {error.strerror}") from error

    with process, _signals_passed_on(process):
        deadline = _Deadline(process, None if limit is None else begin + limit)
        watch = _ProcessWatch(process.pid, keep_processes)
        _read_output(process, reader, output, deadline, watch)
        # A program may have closed its output: `exec > log`.
        while process.poll() is None:
            deadline.check()
            watch.look()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_SECONDS)

        status = process.returncode

    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ProgramEnd(
        status,
        time.perf_counter() - begin,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        after.ru_maxrss * 1024,
        watch.processes(),
    )


def _read_output(
    process: subprocess.Popen[bytes],
    reader: OutputReader,
    output: int,
    deadline: _Deadline,
    watch: _ProcessWatch,
) -> None:
    """Read both pipes until the program has ended, or has closed them."""
    assert process.stdout is not None
    assert process.stderr is not None
    sources = {
        process.stdout.fileno(): LineSource(output),
        process.stderr.fileno(): LineSource(ERRORS),
    }
    with selectors.DefaultSelector() as selector:
        for descriptor in sources:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)

        last_look = None
        while selector.get_map():
            deadline.check()
            watch.look()
            ended = process.poll() is not None
            ready = selector.select(_LOOK_SECONDS)
            # A process that the program has left behind holds the pipe, and may write to it.
            if ended and (not ready or (last_look is not None and time.monotonic() > last_look)):
                break

            if ended and last_look is None:
                last_look = time.monotonic() + _ENDED_SECONDS

            for key, _ in ready:
                content = os.read(key.fd, _READ_BYTES)
                if not content:
                    selector.unregister(key.fd)
                    continue

                source = sources[key.fd]
                source.pass_on(content)
                reader.read(source, content)

    for source in sources.values():
        for line in source.last():
            text = line.decode(errors="replace")
            reader.log.write(reader.secrets.mask(text).encode(errors="replace"))
            reader.measurements.read_line(text)


def _write(target: int, content: bytes) -> int:
    """Write to a descriptor, which whoever has it as well may have set to not wait."""
    try:
        return os.write(target, content)
    except BlockingIOError:
        select.select((), (target,), ())
        return 0


@contextmanager
def _signals_passed_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave Ctrl-C to the program, and pass other signals on to it."""

    def ignore(number: int, frame: FrameType | None) -> None:
        """Wait for the program, which got the signal from the terminal as well."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            process.send_signal(number)

    handlers = {signal.SIGINT: ignore, signal.SIGQUIT: ignore}
    # Job schedulers send SIGUSR1 and SIGUSR2 to ask for a checkpoint.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        handlers[number] = pass_on

    replaced = {}
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            replaced[number] = signal.signal(number, handler)

    try:
        yield
    finally:
        for number, earlier in replaced.items():
            signal.signal(number, earlier)


class _Deadline:
    """Ends a program and the processes that it has started: SIGTERM first, SIGKILL later.

    Args:
        process: The program.
        moment: When it is ended, of `time.perf_counter`; None for never.
    """

    def __init__(self, process: subprocess.Popen[bytes], moment: float | None) -> None:
        """Wait for the moment."""
        self._process = process
        self._moment = moment
        self._signal = signal.SIGTERM

    def check(self) -> None:
        """Send the next signal if it is time."""
        if self._moment is None or time.perf_counter() < self._moment:
            return

        for running in _with_children(self._process.pid):
            with suppress(psutil.Error):
                running.send_signal(self._signal)

        self._moment = None
        if self._signal == signal.SIGTERM:
            self._moment = time.perf_counter() + GRACE_SECONDS
            self._signal = signal.SIGKILL


class _ProcessWatch:
    """Processes of a program, which are looked for now and then while it runs.

    Args:
        pid: Id of the program.
        keep: Called with all ids, at first and when there are more; None for no call.
    """

    def __init__(self, pid: int, keep: Callable[[Collection[int]], None] | None = None) -> None:
        """Begin with the program itself."""
        self._pid = pid
        self._seen = {pid}
        self._begin = time.monotonic()
        self._next = self._begin
        # Linux tells the children of a thread in a file, which costs microseconds.
        self._is_told = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
        self._keep = keep if self._is_told else None
        if self._keep is not None:
            self._keep(self._seen)

    def look(self) -> None:
        """Add the processes that run now, if it is time to look."""
        now = time.monotonic()
        if now < self._next or not self._is_told:
            return

        self._next = now + min(_WATCH_SECONDS, max(_LOOK_SECONDS, (now - self._begin) / 10))
        number = len(self._seen)
        waiting = [self._pid]
        while waiting and len(self._seen) < _MOST_PROCESSES:
            for child in _children_of(waiting.pop()):
                self._seen.add(child)
                waiting.append(child)

        if self._keep is not None and len(self._seen) > number:
            self._keep(self._seen)

    def processes(self) -> frozenset[int] | None:
        """Return the ids that were seen; None where the system does not tell them."""
        return frozenset(self._seen) if self._is_told else None


def _children_of(pid: int) -> list[int]:
    """Return the ids of the processes that a process has started; none if it has ended."""
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                children += map(int, file.read().split())

    return children


def _with_children(pid: int) -> list[psutil.Process]:
    """Return a process with all that it has started, directly or not; none if it has ended."""
    with suppress(psutil.Error):
        program = psutil.Process(pid)
        return [program, *program.children(recursive=True)]

    return []
