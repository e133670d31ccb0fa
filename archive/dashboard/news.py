"""News of an archive: one thread that reads what changed, for all browsers together.

    archive <── look() once a second ── feeds <── message(topics, since) ── any number of browsers

The load on the database is one reader, however many browsers are open, and none when there
is no browser. A version counts the changes of all feeds; a browser names the last one that it has
seen. The name of a version begins with the name of this process, so that a browser that returns to a
restarted dashboard loads everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from archive import runtime
from archive.dashboard.feeds.base import Feed
from archive.dashboard.feeds.studies import StudiesFeed, WorkersFeed
from archive.dashboard.feeds.study import StudyFeed
from archive.dashboard.wire import dumps, json_response
from archive.errors import ArchiveError, UnknownNameError
from archive.values import whole_number

if TYPE_CHECKING:
    from archive.api import Archive


log = logging.getLogger("archive.dashboard")

KEPT = 12
"""Number of feeds that are kept without a browser, for the next one."""
STEP = 0.1
"""Seconds between two checks for a due feed."""
SILENT = 5.0
"""Seconds without an answer after which browsers are told that the archive does not answer."""


@dataclass(frozen=True)
class Subscription:
    """Interest of one browser in some topics; `wake` is set when one of them has news."""

    topics: tuple[str, ...]
    loop: asyncio.AbstractEventLoop
    wake: asyncio.Event


class News:
    """Reader of the feeds. Threads may share it.

    Args:
        archive: The archive to read.
    """

    def __init__(self, archive: Archive) -> None:
        """Start without a feed, and without a thread."""
        self._archive = archive
        self._process = secrets.token_hex(4)
        self._version = 1
        self._lock = threading.RLock()
        self._feeds: OrderedDict[str, Feed] = OrderedDict()
        self._subscriptions: set[Subscription] = set()
        self._texts: OrderedDict[tuple[tuple[tuple[str, int], ...], int], str] = OrderedDict()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def version(self) -> str:
        """Name of the current version."""
        return self.name(self._version)

    def name(self, version: int) -> str:
        """Return the name of a version."""
        return f"{self._process}-{version}"

    @property
    def closed(self) -> bool:
        """Whether the server is ending."""
        return self._closing.is_set()

    @contextmanager
    def study(self, name: str) -> Iterator[StudyFeed]:
        """Hold the feed of a study, as of now: nothing changes it within the block.

        Raises:
            ArchiveError: There is no such study, or the archive does not answer.
        """
        feed = self._feed(f"study:{name}")
        assert isinstance(feed, StudyFeed)
        with feed.reading:
            if time.monotonic() >= feed.due or feed.trouble is not None:
                self._look(feed)

            yield feed

    def fresh(self, topic: str) -> Feed:
        """Return a feed with entries that are at most as old as its interval between two looks.

        Raises:
            ArchiveError: There is no such topic, or the archive does not answer.
        """
        feed = self._feed(topic)
        with feed.reading:
            if time.monotonic() >= feed.due or feed.trouble is not None:
                self._look(feed)

        return feed

    def seen(self, version: str | None) -> int:
        """Return the number of a version of this process; 0 for another process."""
        process, _, number = (version or "").partition("-")
        return (whole_number(number) or 0) if process == self._process else 0

    def message(self, seen: Mapping[str, int]) -> tuple[int, str]:
        """Return the number of the current version, and what changed, as JSON.

        A topic of which the caller has seen nothing, or something outdated, comes as a whole, or
        with `reset`: the caller loads it by another request.

        Args:
            seen: Number of the version that the caller has seen last, by topic.

        Returns:
            The version, and the text; an empty text where nothing changed.
        """
        with self._lock:
            key = (tuple(seen.items()), self._version)
            if key not in self._texts:
                self._texts[key] = self._text(seen)
                while len(self._texts) > 4 * KEPT:
                    self._texts.popitem(last=False)

            return self._version, self._texts[key]

    def troubles(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the topics whose last look failed or still has no answer, with the reasons."""
        with self._lock:
            feeds = [self._feeds[topic] for topic in topics if topic in self._feeds]
            reasons = {feed.topic: self._reason(feed) for feed in feeds}

        return {topic: reason for topic, reason in reasons.items() if reason is not None}

    def prepare(self, topics: Iterable[str]) -> None:
        """Read topics that were never read, so that a first message has all of them.

        Raises:
            UnknownNameError: There is no such topic.
        """
        for topic in topics:
            feed = self._feed(topic)
            with feed.reading, suppress(ArchiveError):
                if not feed.due:
                    self._look(feed)

    def subscribe(self, topics: Sequence[str], loop: asyncio.AbstractEventLoop) -> Subscription:
        """Keep topics up to date until `unsubscribe`, and wake the loop when there is news."""
        subscription = Subscription(tuple(topics), loop, asyncio.Event())
        with self._lock:
            self._subscriptions.add(subscription)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="archive-dashboard-news", daemon=True
                )
                self._thread.start()

        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription."""
        with self._lock:
            self._subscriptions.discard(subscription)

    def hurry(self, topic: str) -> None:
        """Look at a topic at once: this server has just changed it."""
        with self._lock:
            for feed in self._feeds.values():
                if feed.topic in (topic, "studies", "workers"):
                    feed.due = 0.0

    def close(self) -> None:
        """End the thread and all subscriptions."""
        self._closing.set()
        self._wake(lambda _: True)
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _feed(self, topic: str) -> Feed:
        with self._lock:
            feed = self._feeds.get(topic)
            if feed is None:
                feed = self._made(topic)
                feed.began = self._version
                self._evict()
                self._feeds[topic] = feed

            self._feeds.move_to_end(topic)
            return feed

    def _made(self, topic: str) -> Feed:
        kind, _, name = topic.partition(":")
        if kind == "study" and name:
            return StudyFeed(self._archive.connection, name)

        if topic == "studies":
            return StudiesFeed(self._archive.connection)

        if topic == "workers":
            return WorkersFeed(self._archive.connection)

        raise UnknownNameError("topic", topic, ("studies", "study:NAME", "workers"))

    def _evict(self) -> None:
        """Make room for one more feed; those with a browser stay."""
        used: Counter[str] = Counter()
        for subscription in self._subscriptions:
            used.update(subscription.topics)

        for topic in list(self._feeds):
            if len(self._feeds) < KEPT:
                break

            if not used[topic]:
                del self._feeds[topic]

    def _text(self, seen: Mapping[str, int]) -> str:
        document: dict[str, Any] = {}
        for topic, version in seen.items():
            feed = self._feeds.get(topic)
            if feed is None or (version < feed.began and feed.bulky):
                document[topic] = {"reset": True}
            elif version < feed.began:
                document[topic] = {"whole": True, **feed.message(feed.since(0))}
            elif changed := feed.since(version):
                document[topic] = feed.message(changed)

        return dumps(document) if document else ""

    def _run(self) -> None:
        while not self._closing.wait(STEP):
            with self._lock:
                topics: set[str] = set()
                for subscription in self._subscriptions:
                    topics.update(subscription.topics)

            for topic in sorted(topics):
                try:
                    feed = self._feed(topic)
                    if time.monotonic() >= feed.due and feed.reading.acquire(blocking=False):
                        try:
                            self._look(feed)
                        finally:
                            feed.reading.release()
                except ArchiveError:
                    continue  # the browsers are told by `trouble`
                except Exception:
                    log.exception("the news of %s", topic)

    def _reason(self, feed: Feed) -> str | None:
        # A read waits for a server that starts again, so that an outage is no error for a while.
        asked = feed.asked
        silent = asked is not None and time.monotonic() - asked > SILENT
        return feed.trouble or ("The archive does not answer. Trying again." if silent else None)

    @runtime.pause_gc()
    def _look(self, feed: Feed) -> None:
        """Read a feed. The caller holds the lock `reading` of the feed."""
        begin = time.monotonic()
        failed = True
        feed.asked = begin
        try:
            entries = feed.look()
            if entries is None:
                with self._lock:
                    self._version += 1
                    feed.restart(self._version)

                entries = feed.look() or {}

            failed = False
        except ArchiveError as error:
            self._trouble(feed, error)
            raise
        finally:
            feed.asked = None
            feed.postpone(begin, failed=failed)

        with self._lock:
            changed = feed.take(entries, self._version + 1)
            recovered = feed.trouble is not None or time.monotonic() - begin > SILENT
            feed.trouble = None
            if changed or recovered:
                self._version += 1

        if changed or recovered:
            self._wake(lambda subscription: feed.topic in subscription.topics)

    def _trouble(self, feed: Feed, error: ArchiveError) -> None:
        if isinstance(error, UnknownNameError):
            with self._lock:
                self._version += 1
                feed.restart(self._version)

        if feed.trouble != str(error):
            feed.trouble = str(error)
            self._wake(lambda subscription: feed.topic in subscription.topics)

    def _wake(self, wants: Callable[[Subscription], bool]) -> None:
        with self._lock:
            waking = [subscription for subscription in self._subscriptions if wants(subscription)]

        for client in waking:
            try:
                client.loop.call_soon_threadsafe(client.wake.set)
            except RuntimeError:
                self.unsubscribe(client)  # its loop has ended


BEAT_SECONDS = 10.0
MOST_TOPICS = 20
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


async def events(request: Request) -> Response:
    """Answer with a stream that lasts until the browser leaves."""
    news: News = request.app.state.news
    asked = request.query_params.getlist("topic")
    if not asked or len(asked) > MOST_TOPICS:
        return json_response(
            {"error": f"a stream has 1 to {MOST_TOPICS} topics, got {len(asked)}"}, 400
        )

    last = request.headers.get("last-event-id")
    seen: dict[str, int] = {}
    for text in asked:
        topic, separator, version = text.rpartition("@")
        topic, version = (topic, version) if separator and topic else (text, "")
        # After a reconnection all topics are as new as the last message.
        seen[topic] = news.seen(last or version)

    await run_in_threadpool(news.prepare, seen)
    return StreamingResponse(_messages(news, seen), headers=HEADERS, media_type="text/event-stream")


async def _messages(news: News, seen: dict[str, int]) -> AsyncIterator[str]:
    subscription = news.subscribe(list(seen), asyncio.get_running_loop())
    reported: dict[str, str] = {}
    try:
        yield "retry: 1000\n\n"
        while not news.closed:
            # Cleared before the read: what comes meanwhile wakes the next round.
            subscription.wake.clear()
            version, text = await run_in_threadpool(news.message, seen)
            if text:
                seen = dict.fromkeys(seen, version)
                yield f"id: {news.name(version)}\nevent: news\ndata: {text}\n\n"

            troubles = news.troubles(seen)
            if troubles != reported:
                reported = troubles
                yield f"event: trouble\ndata: {dumps(troubles)}\n\n"

            if not await _wake_client(subscription.wake):
                yield "event: beat\ndata: {}\n\n"
    finally:
        news.unsubscribe(subscription)


async def _wake_client(wake: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(wake.wait(), BEAT_SECONDS)

    return wake.is_set()
