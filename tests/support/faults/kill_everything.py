"""Kill the processes of one study at random moments, and check that no result is lost, doubled or
partial.

    python tests/support/faults/kill_everything.py --kills 10 --budget 20 --task digits --space cnn

Runs `archive search` as a user does, in a separate folder; after every kill of the search the same
command is run again. Prints each kill with its time, then the counts, and exits with 1 if one of
them is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROLES = {
    "search": ("archive.cli.main", "search"),
    "trainer": ("archive.cli.main", "trainer"),
    "supervisor": ("archive.server.supervisor",),
    "server": ("com.arcadedb.server.ArcadeDBServer",),
}


@dataclass
class Study:
    """One study under fire: where it lives and the command that a user gives."""

    home: Path
    task: str = "digits"
    space: str = "cnn"
    agent: str = "nasbot"
    budget: int = 20
    seed: int = 0
    killed: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process of this study, by which they are found again."""
        return {**os.environ, "ARCHIVE_HOME": str(self.home), "OMP_NUM_THREADS": "1"}

    def archive(self, *arguments: str) -> list[str]:
        """Return the command line of `archive ARGUMENTS`."""
        return [sys.executable, "-m", "archive.cli.main", *arguments]

    def start(self) -> subprocess.Popen[bytes]:
        """Give the search command, as the user does for the first or the tenth time."""
        command = self.archive(
            "search", "--agent", self.agent, "--task", self.task, "--protocol", f"{self.task}/1", "--space", self.space,
            "--study", "under-fire", "--budget", str(self.budget), "--json",
        )  # fmt: skip
        with open(self.home / "search.log", "ab") as log:
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return this study's living processes by role; the trials are the trainers'
        descendants."""
        found: dict[str, list[psutil.Process]] = {role: [] for role in (*ROLES, "trial")}
        for process in psutil.process_iter():
            try:
                if str(self.home) not in (
                    process.environ().get("ARCHIVE_HOME"),
                    *process.cmdline(),
                ) and not any(str(self.home) in argument for argument in process.cmdline()):
                    continue

                words = process.cmdline()
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue

            role = next(
                (role for role, marks in ROLES.items() if all(mark in words for mark in marks)),
                "trial",
            )
            found[role].append(process)

        return found

    def kill_one(self, rng: random.Random) -> str:
        """Kill one process of a random role with SIGKILL and return what it was."""
        alive = {role: found for role, found in self.processes().items() if found}
        if not alive:
            return "nothing"

        role = rng.choice(sorted(alive))
        victim = rng.choice(alive[role])
        try:
            victim.kill()
        except psutil.NoSuchProcess:
            return f"{role} (gone by itself)"

        return role

    def query(self, cypher: str) -> list[dict[str, object]]:
        """Ask this study's archive."""
        command = self.archive("query", cypher, "--json", "--limit", "100000")
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=120
        )
        if done.returncode:
            raise RuntimeError(done.stderr)

        rows: list[dict[str, object]] = json.loads(done.stdout)["rows"]
        return rows

    def stop(self) -> None:
        """End everything that still runs."""
        for _ in range(3):
            for found in self.processes().values():
                for process in found:
                    try:
                        process.kill()
                    except psutil.NoSuchProcess:
                        pass

            time.sleep(0.2)


def run(
    study: Study, kills: int, *, timeout: float, seed: int, pause: tuple[float, float] = (2.0, 12.0)
) -> None:
    """Run the study to its end while killing `kills` of its processes at random moments."""
    rng = random.Random(seed)
    deadline = time.monotonic() + timeout
    search = study.start()
    next_kill = time.monotonic() + rng.uniform(*pause)
    while True:
        if time.monotonic() > deadline:
            search.kill()
            raise TimeoutError(f"no end after {timeout:.0f} s; killed so far: {study.killed}")

        time.sleep(0.1)
        if search.poll() is not None:
            if search.returncode == 0:
                return

            time.sleep(0.5)
            search = study.start()

        if len(study.killed) < kills and time.monotonic() > next_kill:
            study.killed.append(study.kill_one(rng))
            next_kill = time.monotonic() + rng.uniform(*pause)


def verdict(study: Study) -> dict[str, int]:
    """Return the counts that must hold, from the archive."""
    pairs = study.budget * (study.budget - 1) // 2
    ask = study.query
    proposals = ask(
        "MATCH (:Study {name: 'under-fire'})-[:PROPOSED]->(p:Proposal) "
        "OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation) RETURN p.id AS id, p.state AS state, count(e) AS evaluations"
    )
    evaluated = ask(
        "MATCH (:Study {name: 'under-fire'})-[:PROPOSED]->(:Proposal)-[:RESULTED_IN]->(e:Evaluation)"
        "-[:OF]->(a:Architecture) RETURN e.id AS id, a.key AS key, e.epochs AS epochs, size(e.curve_epoch) AS curve"
    )
    keys = {str(row["key"]) for row in evaluated}
    distances = ask(
        "MATCH (a:Architecture)-[d:DISTANCE]->(b:Architecture) RETURN a.key AS a, b.key AS b"
    )
    between = [(row["a"], row["b"]) for row in distances if row["a"] in keys and row["b"] in keys]
    return {
        "complete": sum(row["state"] == "COMPLETE" for row in proposals),
        "unfinished": sum(row["state"] in ("WAITING", "RUNNING") for row in proposals),
        "evaluations": len(evaluated),
        "evaluated twice": sum(int(str(row["evaluations"])) > 1 for row in proposals),
        "architectures": len(keys),
        "curves cut off": sum(row["epochs"] != row["curve"] for row in evaluated),
        "distances missing": pairs - len(set(between)),
        "distances doubled": len(between) - len(set(between)),
    }


def wrong(counts: dict[str, int], budget: int) -> list[str]:
    """Return what the counts say went wrong, nothing if all is well."""
    expected = dict.fromkeys(counts, 0) | dict.fromkeys(
        ("complete", "evaluations", "architectures"), budget
    )
    return [
        f"{name}: {counts[name]}, expected {value}"
        for name, value in expected.items()
        if counts[name] != value
    ]


def main() -> int:
    """Run one study under fire and print the outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--task", default="digits")
    parser.add_argument("--space", default="cnn")
    parser.add_argument("--agent", default="nasbot")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=1800)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        study = Study(Path(folder), options.task, options.space, options.agent, options.budget)
        began = time.monotonic()
        try:
            run(study, options.kills, timeout=options.timeout, seed=options.seed)
            counts = verdict(study)
        finally:
            study.stop()

        print(f"killed: {', '.join(study.killed)} in {time.monotonic() - began:.0f} s")
        for name, count in counts.items():
            print(f"{name:20} {count}")

        problems = wrong(counts, options.budget)
        for problem in problems:
            print(f"WRONG {problem}")

    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
