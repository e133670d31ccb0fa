"""The process of `archive.trainer.dispatch.srun_executor` on a node of a Slurm job: it runs a trial.

    stdin     one line with the trial; then `interrupt` or `abandon`; its end kills the trial
    stdout    lines `NODE PART`: parts of the frames of messages, in base64

srun broadcasts its standard input to all nodes. It passes on each of their lines as a whole, as long
as the line is short.
"""

from __future__ import annotations

import base64
import os
import pickle
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from archive.queue.causes import Cause
from archive.trainer.dispatch.node import TrialNode
from archive.trainer.storage.file_names import node_log_path
from archive.trainer.trial import failures
from archive.trainer.trial.messages import EpochReport, Heartbeat, Message, encode
from archive.trainer.trial.spec import TrialSpec

PART_BYTES = 600
"""Bytes of a frame in one line: srun breaks lines of more than 1,024 characters."""

INTERRUPT = b"interrupt\n"
ABANDON = b"abandon\n"

Send = Callable[[Message | Heartbeat], None]


def lines_of(node: int, message: Message | Heartbeat) -> Iterator[bytes]:
    """Yield the lines of a message."""
    frame = encode(message)
    for index in range(0, len(frame), PART_BYTES):
        yield b"%d %s\n" % (node, base64.b64encode(frame[index : index + PART_BYTES]))


def part_of(line: bytes) -> tuple[int, bytes]:
    """Return the node and the bytes of a line.

    Raises:
        ValueError: It is no such line.
    """
    node, _, content = line.partition(b" ")
    return int(node), base64.b64decode(content, validate=True)


def first_line(spec: TrialSpec, scratch: str | None) -> bytes:
    """Return the first line of the input of all nodes.

    Args:
        spec: The trial.
        scratch: Folder of temporary files on the nodes; None stands for their system's.
    """
    return base64.b64encode(pickle.dumps((spec, scratch))) + b"\n"


def main() -> None:
    """Run a trial on this node, and send its messages."""
    # Slurm signals all processes of a job; the daemon decides how its trials end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)

    # What else the process prints goes to its standard error.
    output = os.dup(1)
    os.dup2(2, 1)
    node = int(os.environ["SLURM_PROCID"])

    def send(message: Message | Heartbeat) -> None:
        for line in lines_of(node, message):
            os.write(output, line)

    spec, scratch = pickle.loads(base64.b64decode(sys.stdin.buffer.readline()))
    log = None if spec.log is None else node_log_path(spec.log, node)
    spec = replace(spec, ranks=replace(spec.ranks, node=node), log=log)
    trials = TrialNode(scratch)
    try:
        trials.start(spec)
    except Exception as error:
        send(failures.refusal_of(error))
        return

    commands: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True, name="listener").start()
    _run(trials, node, commands, send)
    trials.kill()


def _listen(commands: queue.SimpleQueue[bytes]) -> None:
    """Hand on the lines of the standard input; an empty one is its end."""
    while line := sys.stdin.buffer.readline():
        commands.put(line)

    commands.put(b"")


def _run(trials: TrialNode, node: int, commands: queue.SimpleQueue[bytes], send: Send) -> None:
    """Send the messages of a trial and its signs of life until its end."""
    seen = 0.0
    while True:
        if not commands.empty():
            command = commands.get()
            if command == INTERRUPT and node == 0:
                trials.interrupt()
            elif command == ABANDON:
                trials.abandon("abandoned", Cause.LIMIT)
                return
            elif not command:
                return

        news = trials.poll()
        for message in news.messages:
            send(message)
            if not isinstance(message, EpochReport):
                return

        last_seen = time.monotonic() - news.silent_seconds
        if last_seen - seen > 0.1:
            seen = last_seen
            send(Heartbeat())


if __name__ == "__main__":
    main()
