"""Long and strange names and reasons in a real browser: they leave the rest of the page in
sight."""

import pytest

from archive.store.studies.studies import UNBOUNDED
from tests.support.chromium import needs_chromium
from tests.support.stores import cells, evaluate, propose

pytestmark = [pytest.mark.lasts(10), needs_chromium]

LONG = "x" * 180


def test_a_long_name_leaves_the_other_columns_in_sight(visit, archive):
    evaluate(archive, [0.25], LONG, task="csv:/" + "folder/" * 20 + "data.csv#target")
    evaluate(archive, [0.75], "short")
    page = visit()
    for width in (1280, 1000, 400):
        page.set_viewport_size({"width": width, "height": 700})
        box = page.get_by_role("row").filter(has_text="0.75").locator("td").nth(1).bounding_box()
        assert box["x"] + box["width"] <= width, width


def test_a_long_reason_is_three_lines_of_a_table_and_whole_in_the_dialog(visit, archive):
    propose(archive, cells(1))
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.fail(claim.id, claim.token, "no memory " * 90 + "at the end")
    page = visit("/study?study=study")
    row = page.get_by_role("row").filter(has_text="no memory").last
    row.scroll_into_view_if_needed()
    assert row.bounding_box()["height"] < 150
    row.get_by_role("button", name="#0").click()
    page.locator("dialog dd").get_by_text("at the end").wait_for()


def test_marks_of_direction_are_named(visit, archive):
    evaluate(archive, [0.25], "left\u202eright\u2028below")
    page = visit()
    listed = page.locator("table")
    listed.get_by_role("link", name=r"left\u202eright\u2028below", exact=True).click()
    page.get_by_role("heading", name=r"left\u202eright\u2028below", exact=True).wait_for()


@pytest.mark.whole
def test_more_studies_than_a_comparison_has_are_refused_in_words(visit, archive):
    for at in range(22):
        evaluate(archive, [0.01 * at], f"study {at}")

    page = visit("/compare?" + "&".join(f"study=study {at}" for at in range(20)))
    page.get_by_role("button", name="+ study 20").click()
    page.wait_for_url("**study+20")
    page.get_by_role("button", name="+ study 21").click()
    page.get_by_text("At most 21 are compared: take one out.").wait_for()
    page.get_by_text("21 repeats of one search by random").wait_for()


def test_an_address_with_an_unknown_axis_or_a_study_twice_is_shown(visit, archive):
    evaluate(archive, [0.25], "first")
    page = visit("/compare?study=first&study=first&x=nothing")
    page.get_by_role("heading", name="Best so far").wait_for()
    assert page.get_by_label("against").input_value() == "number"
    assert page.get_by_role("row").filter(has_text="0.25").count() == 1


def test_a_study_without_a_limit_has_no_number_for_it(visit, archive):
    evaluate(archive, [0.25], budget=UNBOUNDED)
    page = visit()
    page.get_by_role("row").filter(has_text="0.25").get_by_text("1, no limit").wait_for()
    page = visit("/study?study=study")
    page.get_by_text("1 evaluated, no limit").wait_for()


def test_a_failure_that_speaks_of_cancelling_has_the_mark_of_a_failure(visit, archive):
    propose(archive, cells(2))
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.fail(claim.id, claim.token, "cancelled_tensor is not defined")
    archive.proposals.cancel("study#00001")
    page = visit("/study?study=study")
    failed = page.get_by_role("row").filter(has_text="cancelled_tensor").last
    assert failed.locator(".badge").text_content() == "failed"
    failed.get_by_role("button", name="#0").click()
    assert page.locator("dialog .badge").first.text_content() == "failed"
    page.locator("td .badge.cancelled").wait_for()
