"""Contract of a feed, and the record of what changed when.

    look() ──> changed entries ──> stamped with the version of the news ──> since(version)

A feed has entries by key. It keeps the current value of each, and the version at which it changed
last. A browser that was away asks for everything since the last version that it has seen: it gets
each changed entry once, in its current form. Nothing is missed, however long it was away, and no
queue grows meanwhile.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from threading import Lock
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

Entries = Mapping[Any, Any]
"""Values by key: a name or a number."""

REMEMBERED = 64
"""Largest number of computations that a feed remembers."""


class Feed(ABC):
    """Entries of one topic.

    Attributes:
        topic: Name of the topic, as browsers ask for it.
        began: Version before its first entries; a browser that has seen less must load everything
            again.
        trouble: Why the last look failed; None after a success.
        due: Time of `time.monotonic` of the next look.
        reading: Lock that the reading thread holds.
        memo: Results of computations over the entries, by name; empty after a change. Protected by
            `reading`.
        kept: Objects of the endpoints that last as long as the feed, by name. Protected by `reading`.
        asked: Time of `time.monotonic` at which the present look began; None between two looks.
    """

    pause: float = 1.0
    """Seconds between two looks."""
    bulky: bool = False
    """Whether a browser loads the entries by a separate request, and receives only the changes from
    the news."""

    def __init__(self, topic: str) -> None:
        """Start without entries."""
        self.topic: Final = topic
        self.began = 0
        self.trouble: str | None = None
        self.due = 0.0
        self.reading = Lock()
        self.memo: dict[Any, Any] = {}
        self.kept: dict[str, Any] = {}
        self.asked: float | None = None
        self._took = 0.0
        self._entries: OrderedDict[Any, tuple[int, Any]] = OrderedDict()

    @abstractmethod
    def look(self) -> Entries | None:
        """Read the archive, and return entries that may have changed; None removes an entry.

        One thread at a time calls this. The first call returns all entries.

        Returns:
            The entries; None if all earlier entries are void: the next call then returns all
            entries.

        Raises:
            ArchiveError: The archive does not answer, or has no such entry any more.
        """

    @abstractmethod
    def message(self, entries: Entries) -> dict[str, Any]:
        """Return changed entries as the JSON that the page's modules expect."""

    def take(self, entries: Entries, version: int) -> bool:
        """Store changed entries under the number of the version; return whether there are any."""
        changed = False
        for key, value in entries.items():
            if (key in self._entries or value is not None) and self._entries.get(key, (0, None))[
                1
            ] != value:
                self._entries[key] = (version, value)
                self._entries.move_to_end(key)
                changed = True

        if changed:
            self.memo.clear()

        return changed

    def remembered(self, name: Hashable, compute: Callable[[], T]) -> T:
        """Return the result of `compute`, which is called once between two changes.

        The caller holds `reading`.
        """
        if name not in self.memo:
            if len(self.memo) >= REMEMBERED:
                self.memo.clear()

            self.memo[name] = compute()

        return cast(T, self.memo[name])

    def since(self, version: int) -> dict[Any, Any]:
        """Return the entries that changed after a version, the latest change last."""
        changed: list[tuple[Any, Any]] = []
        for key, (number, value) in reversed(self._entries.items()):
            if number <= version:
                break

            changed.append((key, value))

        return dict(reversed(changed))

    @property
    def version(self) -> int:
        """Version of the last change; that before the first entries without any."""
        return next(reversed(self._entries.values()))[0] if self._entries else self.began

    def entry(self, key: Hashable) -> Any:
        """Return the current value of an entry that the feed has."""
        return self._entries[key][1]

    def restart(self, version: int) -> None:
        """Forget all entries: browsers load everything again."""
        self.memo.clear()
        self._entries.clear()
        self.began = version

    def postpone(self, begin: float, *, failed: bool = False) -> None:
        """Set the time of the next look: looks take a tenth of the time at most.

        The shorter of the last two looks counts. One look alone may have waited for a server that
        was starting again, or have read everything for the first time; a failed one has only
        waited.
        """
        now = time.monotonic()
        took = 0.0 if failed else now - begin
        self.due = now + max(self.pause, 10 * min(took, self._took))
        self._took = took
