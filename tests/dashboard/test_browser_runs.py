"""Recorded runs in a real browser: from the best run to the tree, the table, one run, and back."""

from __future__ import annotations

import pytest

from archive.store.studies.builds import Build
from tests.dashboard.recorded_runs import StoredRun, store_runs
from tests.dashboard.test_browser import AXE, VIOLATIONS
from tests.support.chromium import needs_chromium
from tests.support.stores import cells

pytestmark = [pytest.mark.lasts(20), needs_chromium]

EVIL = "<img src=x onerror=document.title=1>"
DIFF = f"--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-relu\n+{EVIL}\x1b[31m{'x' * 3000}\n"
CURVE = {"epoch": [1.0, 2.0, 3.0], "loss": [3.0, 2.0, 1.0]}
RUNS = [
    StoredRun({"lr": 0.1}, 3.0, why="the first one", seed=0, curve=CURVE),
    StoredRun({"lr": 0.1}, 3.5, why="the first one", seed=1, curve=CURVE),
    StoredRun({"lr": 0.2, EVIL: 8}, 2.0, 0, f"wider {EVIL}", curve=CURVE),
    StoredRun({"lr": 0.4}, f"ended with status 1: {EVIL}", 0, "a larger step"),
    StoredRun(
        {"lr": 0.2, EVIL: 8, "act": EVIL},
        1.0,
        2,
        EVIL,
        curve=CURVE,
        properties={
            "diff": DIFF,
            "changed": [f"{EVIL} +1 -1"],
            "log_end": f"\x1b[31m{EVIL}\x00\x1b[0m\n{'y' * 5000}",
            "command": ["python", "train.py", f"--act={EVIL}"],
            "kept": [f"/runs/kept/{EVIL}"],
            "folder": EVIL,
            "code_commit": EVIL,
        },
    ),
]


def test_a_study_of_runs_leads_from_its_best_run_to_what_it_changed(visit, archive):
    graphs = store_runs(archive, RUNS, objective="loss")
    first, second = cells(2)
    archive.builds.add(
        [
            Build(graphs[2], first, "m", None, None, None),
            Build(graphs[4], second, "m", None, None, None),
        ]
    )
    page = visit("/study?study=study")
    # What was best, and what it changed, comes first.
    page.get_by_text("★ Best run").wait_for()
    assert page.locator("#best").text_content() == "1"
    page.locator(".change .added", has_text=EVIL).wait_for()
    # The tree: arrow keys open what was beside the way to the best run.
    item = page.get_by_role("treeitem").first
    item.focus()
    page.keyboard.press("ArrowRight")
    failed = page.get_by_role("treeitem").nth(1)
    failed.get_by_text("a larger step").wait_for()
    page.keyboard.press("ArrowDown")
    assert failed.evaluate("element => element === document.activeElement")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    failed.get_by_text("a larger step").wait_for(state="hidden")
    _assert_accessible(page)
    # The table: the server finds words, and the choice of columns stays in this browser.
    table = page.locator("section").filter(has=page.get_by_role("heading", name="Runs", exact=True))
    table.get_by_text("Columns: ").click()
    table.get_by_label("doubled (metric)").check()
    table.get_by_role("button", name="doubled").wait_for()
    table.get_by_label("Find runs").fill("larger")
    table.get_by_text("1 run", exact=True).wait_for()
    assert table.locator("tbody tr").count() == 1
    page.goto(page.url.partition("?")[0] + "?study=study")
    table.get_by_role("button", name="doubled").wait_for()
    table.get_by_text("Columns: ").click()
    table.get_by_role("button", name="Usual columns").click()
    table.get_by_role("button", name="doubled").wait_for(state="hidden")
    # From the search of any page to one run.
    page.keyboard.press("Control+k")
    page.get_by_label("Search the archive").wait_for()
    page.keyboard.type("onerror")
    page.get_by_role("option", name="run study #4").wait_for()
    page.keyboard.type(" relu")
    page.get_by_role("option", name="run study #2").wait_for(state="hidden")
    page.get_by_role("option", name="run study #4").get_by_role("link").click()
    page.get_by_role("heading", name="study #4").wait_for()
    page.get_by_role("heading", name="What changed in the network").wait_for()
    page.locator(".output", has_text=f"{EVIL}\\x00").wait_for()
    page.get_by_role("link", name="Compare the networks").wait_for()
    assert page.locator("main img").count() == 0
    _assert_accessible(page)
    # Its parent, and the study again.
    page.locator("ol.steps").get_by_role("link", name="#0").click()
    page.get_by_role("heading", name="study #0").wait_for()
    page.get_by_text("The 2 runs of this configuration have a mean of 3").wait_for()
    page.get_by_role("heading", name="Its repeats").wait_for()
    page.locator("h1 a").click()
    page.get_by_text("★ Best run").wait_for()
    # The plots lead to the page of a run, and back.
    picture = page.get_by_label("Value of each evaluation, with the best so far")
    picture.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="The way to it").or_(
        page.get_by_role("heading", name="What came of it")
    ).first.wait_for()


def _assert_accessible(page):
    """Check the page as wide as a phone, in light and dark, and leave it as wide as it was."""
    size = page.viewport_size
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400, page.url
    page.evaluate(AXE)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(VIOLATIONS) == [], (page.url, scheme)

    page.set_viewport_size(size)
