"""Server-sent events: the news of some topics, for one browser.

GET /events?topic=workers&topic=study:NAME@VERSION

id: VERSION          the last version that is in the message; the browser returns it as Last-Event-ID
event: news          {topic: what changed}
event: trouble       {topic: why the archive does not answer}, empty after a recovery
event: beat          every few seconds without news, so that a page notices a connection that has died silently
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from archive.dashboard.wire import dumps, json_response

if TYPE_CHECKING:
    from archive.dashboard.news import News

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
        topic, at, version = text.rpartition("@")
        topic, version = (topic, version) if at and topic else (text, "")
        # After a reconnection all topics are as new as the last message.
        seen[topic] = news.seen(last or version)

    await run_in_threadpool(news.prepare, seen)
    return StreamingResponse(_messages(news, seen), headers=HEADERS, media_type="text/event-stream")


async def _messages(news: News, seen: dict[str, int]) -> AsyncIterator[str]:
    subscription = news.subscribe(list(seen), asyncio.get_running_loop())
    told: dict[str, str] = {}
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
            if troubles != told:
                told = troubles
                yield f"event: trouble\ndata: {dumps(troubles)}\n\n"

            if not await _woken(subscription.wake):
                yield "event: beat\ndata: {}\n\n"
    finally:
        news.unsubscribe(subscription)


async def _woken(wake: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(wake.wait(), BEAT_SECONDS)

    return wake.is_set()
