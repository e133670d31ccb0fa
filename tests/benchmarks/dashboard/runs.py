"""A study of recorded runs with many of them, for the page: parents, reasons, differences, curves.

The runs are synthetic and enter as imported ones do. Most are a change of one of the best runs
before them, as those of a person or a language model are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from archive.api import Archive
from archive.architecture.parameter_operations import PROGRAM_NAME, graph_of_values
from archive.benchmarks.measurement import Figure
from archive.dashboard.server import DashboardServer
from archive.database.connection import Connection
from archive.server.temporary import temporary_archive
from archive.store import schema
from archive.store.properties import proposal_id
from archive.store.records import Result, Study
from archive.store.studies.studies import UNBOUNDED
from tests.benchmarks.dashboard.page import (
    EVALUATIONS,
    FRAMES,
    LIVE,
    OPTIONS,
    find_chromium,
    get,
    measure_views,
    measured_frames,
    serving,
    timed,
)
from tests.dashboard.recorded_runs import RunSuggestion

RUNS = "runs"
"""Name of the study."""

STEPS = 100
BATCH = 500
BEST_OF = 20
"""Runs that are parents come from so many of the best ones."""

REASONS = ("muon", "warmup", "wider", "deeper", "a smaller step", "no bias", "squared relu")
LINES = 30
"""Lines of a difference and of the end of a log."""


VIEWS = {
    "runs, complete": (f"/study?study={RUNS}", "[role=treeitem]", "tbody tr td:visible"),
    "one run": (f"/run?study={RUNS}&number=7", "pre.lines", "text=The way to it"),
}
"""Address of each view, and selectors of elements that are visible once it has been drawn."""

TABLE = f"/api/study/runs?study={RUNS}&limit=50"
REQUESTS = {
    "points of the study": f"/api/study/points?study={RUNS}",
    "names of the columns": f"/api/study/run_columns?study={RUNS}",
    "table, by value": f"{TABLE}&sort=value",
    "table, by gain": f"{TABLE}&sort=gain&order=desc",
    "table, by a value that was given": f"{TABLE}&sort=parameter_lr",
    "table, by a metric": f"{TABLE}&sort=metric_train_loss",
    "table, with a word": f"{TABLE}&sort=value&find=muon",
    "tree": f"/api/study/run_tree?study={RUNS}",
    "one run": f"/api/run?study={RUNS}&number=best",
    "runs of all studies with a word": "/api/runs?find=muon",
}
"""Requests of the page, each of which is made twice."""


def measure(count: int = EVALUATIONS) -> Iterator[Figure]:
    """Measure the page over a new archive of recorded runs.

    Args:
        count: Number of runs.
    """
    with temporary_archive() as own, Connection.open(own) as connection:
        schema.migrate(connection)
        begin = time.perf_counter()
        fill_runs(Archive(connection), count)
        yield Figure(f"{count:,} runs stored", time.perf_counter() - begin, "s")
        yield from measure_filled(connection)


def measure_filled(connection: Connection) -> Iterator[Figure]:
    """Measure the page over an archive that `fill_runs` has filled."""
    archive = Archive(connection)
    with serving(archive) as server:
        for name, path in REQUESTS.items():
            seconds, size = timed(partial(get, server, path))
            yield Figure(f"{name}, first request", seconds, "s")
            seconds, size = timed(partial(get, server, path))
            yield Figure(f"{name}, later", seconds, "s", "<= 0.5")
            yield Figure(f"{name}, size", size / 1024, "KiB")

        if chromium := find_chromium():
            yield from _browser(server, archive, chromium)


def _browser(server: DashboardServer, archive: Archive, chromium: str) -> Iterator[Figure]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.goto(server.address_with_token)
        yield from measure_views(page, server, VIEWS)
        page.goto(server.address.rstrip("/") + VIEWS["runs, complete"][0])
        page.locator("#live", has_text="live").wait_for()
        page.locator("[role=treeitem]").first.wait_for()
        page.evaluate(FRAMES)
        late = list(_record_live(page, archive))
        yield Figure("delay of a run until the page shows it, median", float(np.median(late)), "s")
        yield Figure("delay of a run until the page shows it, longest", max(late), "s")
        yield from measured_frames(page)
        browser.close()


def _record_live(page: Any, archive: Archive) -> Iterator[float]:
    """Add a run a second while the page is used, and yield how late the page shows each."""
    rng = np.random.default_rng(1)
    agent = archive.proposals.register_agent("record", {}, "1")
    done = int(page.locator("#done").text_content())
    for turn in range(LIVE):
        run = _run(RUNS, 10**6 + turn, 0, _change(None, rng), rng)
        result = _result(9.0, STEPS, rng)
        archive.proposals.create(RUNS, agent, [run], outcomes=[result], unique=False)
        begin = time.perf_counter()
        page.locator("#done", has_text=str(done + turn + 1)).wait_for()
        yield time.perf_counter() - begin
        if turn % 10 == 0:
            page.locator("[role=treeitem][aria-expanded]").nth(turn // 10 % 3).press("ArrowRight")
        elif turn % 10 == 5:
            page.get_by_role("button", name="lr").first.click()

        time.sleep(max(0.0, 1.0 - (time.perf_counter() - begin)))


def fill_runs(archive: Archive, count: int, study: str = RUNS, steps: int = STEPS) -> None:
    """Store a study of recorded runs.

    Args:
        archive: The archive.
        count: Number of runs; one in twenty fails.
        study: Name of the study.
        steps: Steps of each curve.
    """
    rng = np.random.default_rng(0)
    archive.studies.create(
        Study(
            study,
            study,
            f"{study}/recorded",
            PROGRAM_NAME,
            "val_loss",
            "minimise",
            budget=UNBOUNDED,
        )
    )
    agent = archive.proposals.register_agent("record", {}, "1")
    best: list[tuple[float, int]] = []
    settings: list[dict[str, Any]] = []
    for begin in range(0, count, BATCH):
        suggestions = []
        outcomes: list[Result | str | None] = []
        for number in range(begin, min(begin + BATCH, count)):
            parent = best[int(rng.integers(len(best)))][1] if best else None
            values = _change(settings[parent] if parent is not None else None, rng)
            settings.append(values)
            loss = _loss(values) * float(np.exp(rng.normal(0, 0.01)))
            suggestions.append(_run(study, number, parent, values, rng))
            if rng.random() < 0.05:
                outcomes.append("ended with status 1: FloatingPointError: loss is nan")
                continue

            outcomes.append(_result(loss, steps, rng))
            best = sorted([*best, (loss, number)])[:BEST_OF]

        archive.proposals.create(study, agent, suggestions, outcomes=outcomes, unique=False)


def _change(before: dict[str, Any] | None, rng: np.random.Generator) -> dict[str, Any]:
    """Return the values of a run: its parent's, with one of them changed."""
    if before is None:
        return {"lr": 0.1, "width": 64, "depth": 2, "momentum": 0.0, "dropout": 0.5, "batch": 256}

    values = dict(before)
    name = sorted(values)[int(rng.integers(len(values)))]
    if name in ("width", "depth", "batch"):
        values[name] = max(1, round(values[name] * float(np.exp(rng.normal(0, 0.4)))))
    elif name == "lr":
        values[name] = float(f"{values[name] * np.exp(rng.normal(0, 0.4)):.3g}")
    else:
        values[name] = round(float(np.clip(values[name] + rng.normal(0, 0.1), 0, 0.99)), 3)

    return values


def _loss(values: Mapping[str, Any]) -> float:
    """Return the loss of a configuration without noise: a bowl around one of them."""
    distance = np.log(values["lr"] / 0.01) ** 2 + np.log(values["width"] / 512) ** 2
    distance += np.log(values["depth"] / 12) ** 2 + 4 * (values["momentum"] - 0.95) ** 2
    return float(2.8 + 0.1 * distance + 0.2 * values["dropout"])


def _run(
    study: str, number: int, parent: int | None, values: dict[str, Any], rng: np.random.Generator
) -> RunSuggestion:
    reason = REASONS[int(rng.integers(len(REASONS)))]
    diff = [f"--- a/train_{number % 7}.py", f"+++ b/train_{number % 7}.py", "@@ -1,30 +1,30 @@"]
    log = []
    for line in range(LINES):
        diff.append(f"{'+- '[line % 3]}    hidden = block_{line}(hidden)  # {reason} {number}")
        log.append(f"step {line} val_loss: {3 + 1 / (line + 1):.5f} tokens/s 123456 on cuda:0")

    properties: dict[str, Any] = {
        "program": "train.py",
        "command": ["python", "train.py", *(f"--{name}={values[name]}" for name in values)],
        "diff": "\n".join(diff),
        "log_end": "\n".join(log),
        "changed": [f"train_{number % 7}.py +10 -10"],
        "code_commit": f"{number // 50:040x}",
        "code_branch": "main",
    }
    if parent is not None:
        properties["derived_from"] = proposal_id(study, parent)

    graph = graph_of_values(
        {"program": "train.py", "code": f"{number // 3:016x}", **values}, name=PROGRAM_NAME
    )
    return RunSuggestion(graph, f"{reason}, attempt {number}", properties=properties)


def _result(loss: float, steps: int, rng: np.random.Generator) -> Result:
    epochs = np.arange(1, steps + 1)
    descent = loss * (1 + 1 / epochs)
    descent[-1] = loss
    curve = {
        "epoch": epochs.astype(float).tolist(),
        "val_loss": descent.tolist(),
        "train_loss": (0.98 * descent).tolist(),
    }
    metrics = {"val_loss": loss, "train_loss": 0.98 * loss, "tokens_per_second": 123456.0}
    return Result(
        loss, metrics, curve=curve, seconds=float(rng.uniform(60, 600)), seed=int(rng.integers(3))
    )
