"""A page of a live study through restarts of servers and a sleeping machine: it recovers, and
misses nothing.

`ARCHIVE_TEST_LIVE_MINUTES=60 pytest tests/dashboard/test_live_study.py` keeps the page open for an
hour on each server.
"""

from __future__ import annotations

import csv
import os
import random
import signal
import socket
import time

import pytest

from archive import spaces
from archive.api import Archive
from archive.architecture import codec
from archive.database.connection import Connection
from archive.store.records import State
from tests.support import wait_until
from tests.support.chromium import chromium, needs_chromium
from tests.support.commands import shell
from tests.support.faults.servers import STORES

SECONDS = 60 * float(os.environ.get("ARCHIVE_TEST_LIVE_MINUTES", "1.5"))
PAUSE = min(60.0, SECONDS / 8)
"""Mean time between two faults, in seconds."""
TOKEN = "a token of sixteen"
RECOVERY = 90.0
"""Limit of a wait for the page to have all results: the database may have to start again."""


@pytest.mark.whole
@pytest.mark.lasts(SECONDS + 60)
@needs_chromium
@pytest.mark.parametrize("kind", sorted(STORES))
def test_a_page_of_a_live_study_recovers_and_misses_nothing(kind, tmp_path):
    with (
        STORES[kind](tmp_path / "server") as store,
        shell(store.settings, tmp_path) as user,
        chromium() as browser,
    ):
        user.environment["ARCHIVE_DASHBOARD_TOKEN"] = TOKEN
        port = str(_free_port())
        search = (
            "search",
            "--agent",
            "random",
            "--task",
            _table(tmp_path),
            "--study",
            "live",
            "--budget",
            "15000",
        )
        workers = [user.starts(*search, "--batch", "8", "--trainers", "0")]
        wait_until(lambda: _count(store.settings) is not None, RECOVERY, "the study")
        workers += [user.starts("trainer", "--study", "live", "--scale", "0.02") for _ in range(2)]
        served = user.starts("dashboard", "--port", port)
        wait_until(lambda: _listens(port), RECOVERY, "the page")
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}/study?study=live&token={TOKEN}")
        page.locator("#live", has_text="live").wait_for()

        faults = []
        delays = []
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            page.wait_for_timeout(1000 * random.uniform(0.5, 1.5) * PAUSE)
            faults.append(fault := ("page", "database", "sleep")[len(faults) % 3])
            if fault == "page":
                served.terminate()
                served.wait()
                page.wait_for_timeout(2000)
                served = user.starts("dashboard", "--port", port)
                wait_until(lambda: _listens(port), RECOVERY, "the page")
            elif fault == "database":
                store.kill()
            else:
                page.context.set_offline(True)
                # The stream that is open already is cut as well.
                page.evaluate("dispatchEvent(new Event('pagehide'))")
                page.wait_for_timeout(1000 * PAUSE / 2)
                page.context.set_offline(False)

            finished = _count(store.settings)
            begin = time.monotonic()
            _until_shown(page, finished)
            delays.append(time.monotonic() - begin)

        for process in workers:
            process.send_signal(signal.SIGINT)

        for process in workers:
            process.wait()

        finished = _count(store.settings)
        _until_shown(page, finished)
        print(
            f"{kind}: {finished} results, {len(faults)} faults, longest wait for the page "
            f"{max(delays):.1f} s"
        )
        assert int(page.locator("#done").text_content()) == finished
        assert not errors
        assert len(faults) >= 3


def _until_shown(page, finished: int) -> None:
    # The page's policy permits no code from a text, so that the condition is asked from outside.
    wait_until(
        lambda: int(page.locator("#done").text_content() or 0) >= finished,
        RECOVERY,
        "the results on the page",
    )


def _count(settings) -> int | None:
    """Return the number of results of the study; None before the study is there."""
    with Connection.open(settings) as connection:
        studies = Archive(connection).studies
        return studies.counts("live")[State.COMPLETE] if studies.list() else None


def _table(folder) -> str:
    """Write a table of all cells, each of which took a minute to train, and return the name of its
    task."""
    rng = random.Random(0)
    with (folder / "cells.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["arch_str", "accuracy", "train_seconds"])
        writer.writerows(
            [codec.to_nasbench201(cell), rng.random(), 60]
            for cell in spaces.get("nasbench201").members()
        )

    return f"table:{folder}/cells.csv#accuracy"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return opened.getsockname()[1]


def _listens(port: str) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", int(port))) == 0
