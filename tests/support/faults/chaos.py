"""Kill trainers and the database server again and again while they work, and count the results.

    python tests/support/faults/chaos.py --server embedded|neo4j [--workers 8 --tabular 200 --real
    40 --every 2]

Every worker is a separate process: some answer from a table in scaled time, some train real
networks of the tasks digits and diabetes. One process after the other is killed with -9: a trainer
with all its trials, or one trial. Killed trainers are started again. The server is killed and
restarted in between. Each real network is proposed in two studies of the same seed: both must have
the same value, even if a training was interrupted and resumed several times.

Prints a summary, and exits with 1 if a proposal was lost, doubled, left unfinished or has a wrong
value.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from archive import connect, settings
from archive.api import Archive
from archive.database.connection import Connection
from archive.settings import Settings, environment
from archive.store import schema
from archive.store.records import State

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    # For a file, Python searches modules beside it, not in the repository.
    sys.path.insert(0, str(ROOT))

from tests.support.faults.servers import STORES, Store  # noqa: E402
from tests.support.faults.work import propose  # noqa: E402

REAL = ("diabetes", "digits")
ENDED = (State.COMPLETE, State.FAILED)


@dataclass(frozen=True)
class Plan:
    """What is done to whom.

    Attributes:
        workers: Processes that train.
        tabular: Proposals that a table answers.
        real: Proposals that are trained, half of them in either of two studies of a task.
        every: Seconds between two kills.
        kills: Most kills; None goes on to the end.
        restarts: How often the server is killed.
        seconds: Time after which nobody is killed any more.
        lease: Seconds that a lease lasts.
        tasks: Names of the real tasks.
        seed: Of networks and victims.
    """

    workers: int = 8
    tabular: int = 200
    real: int = 40
    every: float = 2.0
    kills: int | None = None
    restarts: int = 3
    seconds: float = 900.0
    lease: float = 6.0
    tasks: tuple[str, ...] = REAL
    seed: int = 0


@dataclass
class Outcome:
    """What was done, and what came out."""

    killed: collections.Counter[str] = field(default_factory=collections.Counter)
    counts: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class Workers:
    """Trainers in separate processes, each with its part of the work, started again when they
    end."""

    def __init__(self, plan: Plan, own: Settings, rng: random.Random) -> None:
        self.plan = plan
        self.own = own
        self.rng = rng
        # Real trials need their workers most of the time; a table's answers need theirs only until
        # they are due.
        tabular = max(1, round(0.6 * plan.workers))
        self.studies = ["tabular"] * tabular + [None] * (plan.workers - tabular)
        self.processes: list[subprocess.Popen[bytes]] = [
            self._start(study) for study in self.studies
        ]

    def kill_one(self) -> str | None:
        """Kill a worker that has begun to work or, now and then, what one of them runs;

        None where there is none.
        """
        # On a busy machine, those that still load torch would be killed for ever, and nobody do any
        # work.
        ready = [
            at for at, process in enumerate(self.processes) if self._ready(process.pid).exists()
        ]
        if not ready:
            return None

        place = self.rng.choice(ready)
        victim = self.processes[place]
        role = "trainer of tables" if self.studies[place] else "trainer"
        if self.rng.random() < 0.2:
            with contextlib.suppress(psutil.NoSuchProcess, IndexError):
                trial = psutil.Process(victim.pid).children(recursive=True)[2]
                trial.kill()
                return "trial"

        victim.kill()
        victim.wait()
        self.keep_alive()
        return role

    def keep_alive(self) -> None:
        """Start again what has ended."""
        for place, process in enumerate(self.processes):
            if process.poll() is not None:
                self.processes[place] = self._start(self.studies[place])

    def stop(self) -> list[int]:
        """Ask all to leave, and return their exit codes."""
        for process in self.processes:
            process.terminate()

        try:
            codes = [process.wait(60) for process in self.processes]
            # Who was started again at the very end may not have got as far as to hear the request.
            return [
                0 if code == -signal.SIGTERM and not self._ready(process.pid).exists() else code
                for code, process in zip(codes, self.processes, strict=True)
            ]
        finally:
            for process in self.processes:
                process.kill()

    def _ready(self, pid: int) -> Path:
        return self.own.home / f"{pid}.ready"

    def _start(self, study: str | None) -> subprocess.Popen[bytes]:
        options = {
            "study": study,
            "slots": 2 if study else 1,
            "device": "cpu",
            "threads": 1,
            "scale": 0.01,
        }
        options |= {"lease_seconds": self.plan.lease, "checkpoint_seconds": 0.5}
        command = [
            sys.executable,
            "-m",
            "tests.support.faults.chaos",
            "--worker",
            json.dumps(options),
        ]
        with open(self.own.home / "workers.log", "ab") as log:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **environment(self.own)},
                stdout=log,
                stderr=log,
            )


def run(plan: Plan, store: Store) -> Outcome:
    """Work through the plan, and count."""
    rng = random.Random(plan.seed)
    outcome = Outcome()
    with Connection.open(store.settings) as connection:
        schema.migrate(connection)
        archive = Archive(connection)
        expected = propose(
            archive, plan.tabular, plan.real, plan.tasks, store.settings.home, plan.seed
        )
        workers = Workers(plan, store.settings, rng)
        try:
            torment(archive, plan, store, workers, outcome)
        finally:
            codes = workers.stop()

        if any(codes):
            outcome.wrong.append(f"workers left with {codes}")

        judge(archive, plan, expected, outcome)

    left = len(list((store.settings.home / "outbox").glob("*.json")))
    outcome.counts["results left in the outbox"] = left
    return outcome


def torment(archive: Archive, plan: Plan, store: Store, workers: Workers, outcome: Outcome) -> None:
    """Kill until everything has ended."""
    began = next_kill = time.monotonic()
    restarts = 0
    while True:
        time.sleep(0.2)
        workers.keep_alive()
        done, total = progress(archive)
        now = time.monotonic()
        if done == total:
            return

        if now - began > 3 * plan.seconds:
            outcome.wrong.append(f"no end after {now - began:.0f} s: {done} of {total}")
            return

        if restarts < plan.restarts and done >= total * (restarts + 1) / (plan.restarts + 1.5):
            store.kill()
            restarts += 1
            outcome.killed["server"] += 1
        elif now > next_kill and now - began < plan.seconds and _more(plan, outcome):
            next_kill = now + plan.every
            if role := workers.kill_one():
                outcome.killed[role] += 1


def progress(archive: Archive) -> tuple[int, int]:
    """Return how many proposals have ended, and how many there are."""
    rows = archive.query("MATCH (p:Proposal) RETURN p.state, count(*)").rows
    return sum(count for state, count in rows if state in ENDED), sum(count for _, count in rows)


def judge(archive: Archive, plan: Plan, expected: dict[str, float], outcome: Outcome) -> None:
    """Count what must hold, and note what does not."""
    rows = archive.query(
        "MATCH (p:Proposal) OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation) "
        "RETURN p.id, p.state, p.reason, p.attempts, count(e), max(e.value), max(e.environment), "
        "max(e.epochs), max(size(e.curve_epoch)), max(p.architecture), max(p.study) LIMIT 100000"
    ).rows
    values: dict[tuple[str, str], set[float]] = collections.defaultdict(set)
    counts: collections.Counter[str] = collections.Counter()
    for (
        id_,
        state,
        reason,
        attempts,
        evaluations,
        value,
        about,
        epochs,
        curve,
        architecture,
        study,
    ) in rows:
        counts[state] += 1
        counts[f"lost {attempts} times"] += attempts > 0
        counts["resumed"] += bool(about and json.loads(about).get("resumed"))
        if evaluations != (state == State.COMPLETE):
            outcome.wrong.append(f"{id_} is {state} and has {evaluations} evaluations")

        if state == State.FAILED and not reason:
            outcome.wrong.append(f"{id_} FAILED without a reason")

        if state not in ENDED:
            outcome.wrong.append(f"{id_} is {state}")

        if state == State.COMPLETE and id_ in expected and value != expected[id_]:
            outcome.wrong.append(f"{id_} has the value {value}, the table {expected[id_]}")

        if state == State.COMPLETE and id_ not in expected:
            values[study[:-2], architecture].add(value)
            if epochs != curve:
                outcome.wrong.append(f"{id_} has {epochs} epochs and a curve of {curve}")

    outcome.wrong += [
        f"{task} {key[:8]} has the values {found}"
        for (task, key), found in values.items()
        if len(found) > 1
    ]
    pairs = 2 * len(plan.tasks) * (plan.real // (2 * len(plan.tasks)))
    if len(rows) != plan.tabular + pairs:
        outcome.wrong.append(f"there are {len(rows)} proposals, {plan.tabular + pairs} were made")

    claims = archive.query(
        "MATCH (p:Proposal)<-[c:CLAIMED]-() RETURN count(c), sum(CASE WHEN c.ended IS NULL "
        "THEN "
        "1 ELSE 0 END)"
    ).rows[0]
    outcome.counts = {
        **dict(sorted(counts.items())),
        "claims": claims[0],
        "claims with a result": claims[1],
    }


def _more(plan: Plan, outcome: Outcome) -> bool:
    return plan.kills is None or outcome.killed.total() - outcome.killed["server"] < plan.kills


def _work(options: dict[str, Any]) -> None:
    """Be one of the workers."""
    from archive.trainer.daemon import events
    from archive.trainer.daemon.options import TrainerOptions
    from archive.trainer.daemon.trainer import Trainer

    logging.basicConfig(
        format="%(asctime)s %(process)d %(levelname)s %(message)s", level=logging.INFO
    )
    logging.getLogger("neo4j").setLevel(logging.ERROR)
    own = settings.load(patience=5.0)

    def on_event(event: events.Event) -> None:
        if isinstance(event, events.ProposalClaimed):
            (own.home / f"{os.getpid()}.ready").touch()

    with connect(own) as archive:
        Trainer(archive, TrainerOptions(**options), observers=[on_event]).run()


def main() -> int:
    """Run the chaos and print the outcome."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", choices=sorted(STORES), default="embedded")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    for name in ("workers", "tabular", "real", "restarts", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Plan, name))

    for name in ("every", "seconds", "lease"):
        parser.add_argument(f"--{name}", type=float, default=getattr(Plan, name))

    given = vars(parser.parse_args())
    name = given.pop("server")
    worker = given.pop("worker")
    if worker:
        _work(json.loads(worker))
        return 0

    with tempfile.TemporaryDirectory() as folder, STORES[name](Path(folder)) as store:
        began = time.monotonic()
        outcome = run(Plan(**given), store)
        seconds = time.monotonic() - began

    killed = ", ".join(f"{role} {count}" for role, count in sorted(outcome.killed.items()))
    print(f"server {name}, {seconds:.0f} s; killed with -9: {killed}")
    for what, count in outcome.counts.items():
        print(f"{what:26} {count}")

    for problem in outcome.wrong:
        print(f"WRONG {problem}")

    print(
        "nothing lost, nothing doubled"
        if not outcome.wrong
        else (f"{len(outcome.wrong)} things are wrong")
    )
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
