"""Capabilities of workers: which studies a worker can train, and the memory of its devices.

A worker registers its capabilities at its start, and a claim leaves out what the worker cannot run:

    study       its task, space and recipe are among the worker's             `ClaimFilter`, study by study
    proposal    the worker has the memory, and has not refused it before      query of the claim

A registered task that ends with a colon, such as `csv:`, stands for all tasks on files of users;
whether a trainer may open the file is checked at the start of a trial. A registered table stands
for its tasks with noise, `NAME~SD`, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from archive.store.protocol_names import ProtocolName

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

# Each MATCH starts from a bound node.
STUDIES = """
UNWIND $names AS name
MATCH (s:Study {name: name})
USING INDEX SEEK s:Study(name)
MATCH (s)-[:ON]->(t:Task)
MATCH (s)-[:IN]->(space:Space)
RETURN s.name AS study, t.name AS task, t.protocol AS protocol, space.name AS space
"""

NOISE = "~"
"""Separator of a task's name and the standard deviation of its noise."""
FOREVER = 1 << 62
"""A number of bytes larger than the memory that any proposal needs."""
RECHECK_SECONDS = 60.0
"""Age of a decision about a study after which it is made again: another study may have the same
name by now."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a worker can run; None stands for everything.

    Attributes:
        tasks: Names of the tasks; one that ends with a colon stands for all names that begin with
            it.
        spaces: Names of the spaces.
        recipes: Names of the recipes.
        memory_bytes: Memory of the largest device.
    """

    tasks: tuple[str, ...] | None = None
    spaces: tuple[str, ...] | None = None
    recipes: tuple[str, ...] | None = None
    memory_bytes: int | None = None

    @classmethod
    def of_worker(cls, node: Mapping[str, Any]) -> Capabilities:
        """Return the capabilities in the properties of a worker's node."""
        lists: dict[str, tuple[str, ...]] = {}
        for name in ("tasks", "spaces", "recipes"):
            value = node.get(name)
            if value is not None:
                lists[name] = tuple(value)

        return cls(**lists, memory_bytes=node.get("memory_bytes"))

    def lacks(self, task: str, protocol: str, space: str) -> str | None:
        """Return the capability that a study needs and the worker lacks, in words.

        None if it can run the study.
        """
        recipe = ProtocolName.parse(protocol).recipe
        if self.tasks is not None and not _among(task, self.tasks):
            return f"it has no task {task!r}"

        if self.spaces is not None and space not in self.spaces:
            return f"it has no space {space!r}"

        if self.recipes is not None and recipe not in self.recipes:
            return f"it has no recipe {recipe!r}"

        return None


@dataclass
class ClaimFilter:
    """Restriction of a worker's claims to proposals that it can run.

    Attributes:
        capabilities: Capabilities of the worker.
        memory_bytes: Memory of its largest device that is free; None sets no limit.
        alone_bytes: Memory of its largest device without any trial; None sets no limit, -1 stands
            for no such device.
        lacking: Studies that were left out, each with what the worker lacks.
    """

    capabilities: Capabilities = field(default_factory=Capabilities)
    memory_bytes: int | None = None
    alone_bytes: int | None = None
    lacking: dict[str, str] = field(default_factory=dict, init=False)
    _decided: dict[str, tuple[bool, float]] = field(default_factory=dict, init=False, repr=False)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the query of a claim."""
        excluded = []
        for name, (allowed, moment) in self._decided.items():
            if not allowed and _recent(moment):
                excluded.append(name)

        return {
            "excluded": sorted(excluded),
            "memory": FOREVER if self.memory_bytes is None else self.memory_bytes,
            "alone": FOREVER if self.alone_bytes is None else self.alone_bytes,
        }

    def examine(self, tx: ManagedTransaction, studies: Iterable[str]) -> bool:
        """Decide about the new studies, and return whether one of them is excluded from now on."""
        new = []
        for name in sorted(set(studies)):
            _, decided = self._decided.get(name, (True, 0.0))
            if not _recent(decided):
                new.append(name)

        rows = (
            tx.run(STUDIES, names=new).data() if new and self.capabilities != Capabilities() else []
        )
        excluded = {}
        for row in rows:
            reason = self.capabilities.lacks(row["task"], row["protocol"], row["space"])
            if reason is not None:
                excluded[row["study"]] = reason

        self.lacking |= excluded
        for name in new:
            self._decided[name] = (name not in excluded, time.monotonic())

        return bool(excluded)


def _among(task: str, tasks: tuple[str, ...]) -> bool:
    for name in tasks:
        of_files = name.endswith(":") and task.startswith(name)
        if of_files or task == name or task.startswith(name + NOISE):
            return True

    return False


def _recent(moment: float) -> bool:
    return moment > 0.0 and time.monotonic() - moment < RECHECK_SECONDS
