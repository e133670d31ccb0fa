"""The panel of parameters in a real browser: ranking, slices, and the results in them."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, space
from tests.support.chromium import needs_chromium

pytestmark = [pytest.mark.lasts(20), needs_chromium]

KNOBS = space.Space(
    lr=space.real(1e-5, 1e-1, log=True),
    act=space.choice(["relu", "gelu"]),
    idle=space.constant(3),
    momentum=space.real(0.0, 1.0),
    dropout=space.real(0.0, 0.5, when="act == 'relu'"),
)


COVERED = """(picture) => [...picture.querySelectorAll("circle")].filter((circle) => {
  const { x, y, width, height } = circle.getBoundingClientRect();
  return !(document.elementFromPoint(x + width / 2, y + height / 2) instanceof SVGCircleElement);
}).length"""
"""Counts the results of a picture under which a click reaches something else."""


def value(parameters):
    """Return a value that lr decides most, then dropout where it exists, and momentum never."""
    place = (np.log10(parameters["lr"]) + 5.0) / 4.0
    return float(1.0 - place - 0.8 * parameters.get("dropout", 0.2))


def test_the_panel_of_parameters_ranks_draws_and_opens_results(visit, archive):
    study = agents.study(archive, "knobs", KNOBS)
    rng = np.random.default_rng(0)
    drawn = [KNOBS.sample(rng) for _ in range(40)]
    for parameters in drawn:
        study.tell(parameters, value(parameters))

    page = visit("/study?study=knobs")
    # A part is loaded when it comes into sight.
    page.get_by_role("heading", name="Proposals").scroll_into_view_if_needed()
    heading = page.get_by_role("heading", name="What matters")
    # The first forest of a server imports scikit-learn.
    heading.wait_for(timeout=60_000)
    panel = page.locator("section").filter(has=heading)
    panel.get_by_text("by a forest of 40 results").wait_for()
    names = panel.locator("tbody tr td:first-child")
    assert names.all_text_contents()[0] == "lr"
    # A constant explains nothing, and is no row.
    assert "idle" not in panel.inner_text()

    lr = panel.get_by_role("img", name="value against lr, logarithmic", exact=True)
    lr.wait_for()
    # The marks of the scale are values of the parameter, and no codes.
    marks = [
        float(mark) for mark in lr.locator("text[text-anchor=middle]").all_text_contents()[:-1]
    ]
    assert min(marks) == pytest.approx(1e-5) and max(marks) == pytest.approx(0.1)
    # A conditional parameter has the results in which it exists.
    with_dropout = [parameters for parameters in drawn if "dropout" in parameters]
    row = panel.get_by_role("row").filter(has=page.get_by_text("dropout", exact=True))
    assert row.locator("td").last.inner_text() == str(len(with_dropout))

    # Each result can be clicked, also below the band and the line of the prediction.
    lr.scroll_into_view_if_needed()
    assert lr.evaluate(COVERED) == 0
    dot = lr.locator("circle").last
    number = dot.locator("title").text_content().split()[0].removeprefix("#")
    dot.click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_text("momentum").first.wait_for()
    assert f"proposal={number}" in page.url
