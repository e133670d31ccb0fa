"""Speed of the page that shows a study with many evaluations, in a temporary archive.

    fill ─> first request, later ones, looks of the news ─> the same in a browser, where there is
    one

The evaluations are those of a search on a table: cells of NAS-Bench-201 with synthetic values,
stored through the queue. The browser is Chromium, driven by Playwright; without either, only the
requests are measured.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np

from archive import settings, spaces
from archive.api import Archive
from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.dashboard.server import DashboardServer
from archive.database.connection import Connection
from archive.server.temporary import temporary_archive
from archive.store import schema
from archive.store.records import Result, Study

EVALUATIONS = 100_000
BATCH = 1000
STUDY = "many"
LIVE = 60
"""Number of results that are added while a page is open, one a second."""
CHROMIUM = (
    "/usr/lib/chromium/chromium",
    "/usr/bin/chromium",
    "/usr/bin/google-chrome",
    "/usr/lib/chromium/chromium-headless-shell",
)
OPTIONS = ("--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info")
"""Options of the browser."""

VIEWS = {
    "study": (f"/study?study={STUDY}", "[aria-label^='Value of each']", "tbody tr td:visible"),
    "studies": ("/", "tbody a", "progress"),
    "comparison": (f"/compare?study={STUDY}", ".u-legend", ".u-legend"),
    "question": (
        "/ask?cypher=MATCH (e:Evaluation) RETURN e LIMIT 100",
        "text=rows in",
        "text=rows in",
    ),
    "workers": ("/workers", "text=nothing waits", "text=nothing waits"),
}
"""Address of each view, and selectors of elements that are visible once it has been drawn."""


@dataclass(frozen=True)
class SyntheticSuggestion:
    """A network to evaluate, with a prediction."""

    architecture: Architecture
    mean: float
    std: float


def measure(count: int = EVALUATIONS) -> Iterator[Figure]:
    """Measure the page over a new archive.

    Args:
        count: Number of evaluations of the study.
    """
    with temporary_archive() as own:
        yield from _measure(own, count)


def fill(archive: Archive, count: int, study: str = STUDY) -> None:
    """Store a study with evaluations of cells of NAS-Bench-201, with synthetic values and costs.

    Args:
        archive: The archive.
        count: Number of evaluations; cells repeat after 15,625.
        study: Name of the study.
    """
    cells = spaces.get("nasbench201").members() or ()
    rng = np.random.default_rng(0)
    archive.studies.create(Study(study, "synthetic", "synthetic/1", "nasbench201", budget=count))
    agents = [
        archive.proposals.register_agent(kind, {}, "1") for kind in ("random", "bananas", "nasbot")
    ]
    for begin in range(0, count, BATCH):
        numbers = range(begin, min(begin + BATCH, count))
        chosen = [cells[number % len(cells)] for number in numbers]
        values = 0.9 - 0.5 * np.exp(
            -np.arange(begin, begin + len(chosen)) / (count / 4)
        ) * rng.random(len(chosen))
        suggestions = [
            SyntheticSuggestion(cell, float(value + rng.normal(0, 0.02)), 0.02)
            for cell, value in zip(chosen, values, strict=True)
        ]
        outcomes = [_result(float(value), rng) for value in values]
        agent = agents[begin // BATCH % len(agents)]
        archive.proposals.create(study, agent, suggestions, outcomes=outcomes, unique=False)


@contextmanager
def serving(archive: Archive) -> Iterator[DashboardServer]:
    """Serve the page in a thread of this process, during a block."""
    server = DashboardServer(archive, port=0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)

    try:
        yield server
    finally:
        server.stop()
        thread.join()


def _result(value: float, rng: np.random.Generator) -> Result:
    params = float(np.exp(rng.uniform(math.log(1e4), math.log(2e6))))
    costs = {"params": params, "flops": 90 * params, "latency_ms": float(rng.uniform(1, 20))}
    return Result(
        value, {"accuracy": value, **costs}, epochs=12, seconds=float(rng.uniform(60, 600))
    )


def _measure(own: settings.Settings, count: int) -> Iterator[Figure]:
    with Connection.open(own) as connection:
        schema.migrate(connection)
        archive = Archive(connection)
        begin = time.perf_counter()
        fill(archive, count)
        yield Figure(f"{count:,} evaluations stored", time.perf_counter() - begin, "s")
        with serving(archive) as server:
            yield from _requests(server)
            yield from _looks(server, archive)
            if chromium := find_chromium():
                yield from _browser(server, archive, chromium)


def _requests(server: DashboardServer) -> Iterator[Figure]:
    points = f"/api/study/points?study={STUDY}"
    seconds, size = timed(lambda: get(server, points))
    yield Figure("points of the study, first request of the server", seconds, "s", "<= 2")
    seconds, size = timed(lambda: get(server, points))
    yield Figure("points of the study, later requests", seconds, "s", "<= 0.5")
    yield Figure("size of the points", size / 2**20, "MiB")
    seconds, _ = timed(
        lambda: get(server, f"/api/study/proposals?study={STUDY}&sort=value&order=desc")
    )
    yield Figure("first page of the table, by value", seconds, "s", "<= 0.5")
    seconds, _ = timed(lambda: get(server, "/api/studies"))
    yield Figure("list of studies, first request of the server", seconds, "s", "<= 2")


def _looks(server: DashboardServer, archive: Archive) -> Iterator[Figure]:
    news = server.application.state.news
    begin = time.perf_counter()
    for _ in range(10):
        news.hurry(f"study:{STUDY}")
        news.fresh(f"study:{STUDY}")

    yield Figure(
        "one look of the news at the study", (time.perf_counter() - begin) / 10, "s", "<= 0.05"
    )


def _browser(server: DashboardServer, archive: Archive, chromium: str) -> Iterator[Figure]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.goto(server.address_with_token)
        yield from measure_views(page, server, VIEWS)
        page.goto(server.address.rstrip("/") + VIEWS["study"][0])
        page.locator("#live", has_text="live").wait_for()
        page.locator(VIEWS["study"][2]).first.wait_for()
        yield from _live(page, archive)
        yield Figure(
            "memory of the tab",
            float(page.evaluate("performance.memory.usedJSHeapSize")) / 2**20,
            "MiB",
        )
        browser.close()


def measure_views(
    page: Any, server: DashboardServer, views: Mapping[str, tuple[str, str, str]]
) -> Iterator[Figure]:
    """Measure how long each view takes until it is drawn, and until something is painted.

    Args:
        page: Page of a browser that is signed in.
        server: The server of the page.
        views: Address of each view, and selectors of elements that are visible once it is drawn.
    """
    for name, (path, first, last) in views.items():
        begin = time.perf_counter()
        page.goto(server.address.rstrip("/") + path, wait_until="commit")
        page.locator(first).first.wait_for()
        page.locator(last).first.wait_for()
        page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        yield Figure(f"view in a browser: {name}", time.perf_counter() - begin, "s", "<= 2")
        paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
        yield Figure(f"first paint: {name}", float(page.evaluate(paint)) / 1000, "s", "<= 1")


def _live(page: Any, archive: Archive) -> Iterator[Figure]:
    """Add a result a second, and measure how late the page shows it, and its frames."""
    page.evaluate(FRAMES)
    study = archive.studies.get(STUDY)
    archive.studies.set_budget(STUDY, study.budget + LIVE)
    agent = archive.proposals.register_agent("random", {}, "1")
    cells = spaces.get("nasbench201").members() or ()
    done = sum(archive.studies.counts(STUDY).values())
    late = []
    for number in range(LIVE):
        suggestion = SyntheticSuggestion(cells[number], 0.5, 0.1)
        result = Result(0.5, {"accuracy": 0.5}, epochs=1, seconds=1.0)
        archive.proposals.create(STUDY, agent, [suggestion], outcomes=[result], unique=False)
        begin = time.perf_counter()
        page.locator("#done", has_text=str(done + number + 1)).wait_for()
        late.append(time.perf_counter() - begin)
        time.sleep(max(0.0, 1.0 - late[-1]))

    yield Figure(
        "delay of a result until the page shows it, median", float(np.median(late)), "s", "<= 2"
    )
    yield Figure("delay of a result until the page shows it, longest", max(late), "s", "<= 2")
    yield from measured_frames(page)


def measured_frames(page: Any) -> Iterator[Figure]:
    """Return how long the frames took since `FRAMES` was evaluated."""
    frames = page.evaluate("window.frames_ms")
    yield Figure(
        "frames longer than 50 ms, of all", sum(each > 50 for each in frames) / len(frames), ""
    )
    yield Figure("longest frame", max(frames), "ms")


FRAMES = """
() => {
  window.frames_ms = [];
  let last = performance.now();
  const tick = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
}
"""


def get(server: DashboardServer, path: str) -> int:
    """Request a path of the page, and return the number of bytes of the answer."""
    url = f"http://127.0.0.1:{server.access.port}{path}"
    request = Request(url, headers={"authorization": f"Bearer {server.access.token}"})
    with urlopen(request, timeout=600) as answer:
        return len(answer.read())


def timed(work: Callable[[], int]) -> tuple[float, int]:
    """Return the seconds of a request, and the number of its bytes."""
    begin = time.perf_counter()
    size = work()
    return time.perf_counter() - begin, size


def find_chromium() -> str | None:
    """Return the program of a browser; None without one, or without Playwright."""
    if find_spec("playwright") is None:
        return None

    return next((path for path in CHROMIUM if Path(path).exists()), None)
