"""The keyboard in a real browser: the focus stays where it is while news arrive, and Enter opens a
row."""

import pytest

from archive.store.records import Objective, Result
from tests.support.chromium import SHORT_WAITS, needs_chromium
from tests.support.stores import cells, evaluate, propose

pytestmark = [pytest.mark.lasts(20), needs_chromium]

MARK = "window.marked = document.activeElement"
IS_MARKED = "window.marked === document.activeElement"
FOCUSED = "document.activeElement.textContent"
ROW = "document.activeElement.dataset.link"


class Trainer:
    """Results of a study, one after another, and the curve of a trial that runs."""

    def __init__(self, archive):
        self.queue = archive.proposals
        self.loss = [1.0]
        self.value = 0.5
        self.running = self.queue.claim("trainer", study="study")

    def report(self):
        self.loss.append(self.loss[-1] + 1)
        curve = {"accuracy": [0.5] * len(self.loss), "train_loss": self.loss}
        self.queue.report(self.running.id, self.running.token, curve)
        return f"train_loss {self.loss[-1]:g}"

    def complete(self):
        claim = self.queue.claim("trainer", study="study")
        self.value = self.value + 0.0625
        metrics = {"accuracy": self.value, "params": 10.0, "loss": 1.0, "size": 2.0}
        self.queue.complete(claim.id, claim.token, Result(self.value, metrics))
        return f"{self.value:.4g}"


def test_a_choice_stays_open_while_results_arrive(visit, archive):
    further = (Objective("loss", "minimise"), Objective("size", "minimise"))
    propose(archive, cells(7), objective="accuracy", further=further)
    trainer = Trainer(archive)
    trainer.report()
    trainer.complete()
    page = visit("/study?study=study", script=SHORT_WAITS)
    controls = [
        ("Curves", "select >> nth=0"),
        ("Value against cost", "select"),
        ("Value against cost", "input"),
        ("Pareto set", "select"),
    ]
    for heading, control in controls:
        card = page.locator("section").filter(
            has=page.get_by_role("heading", name=heading, exact=True)
        )
        card.locator(control).focus()
        page.evaluate(MARK)
        page.get_by_text(trainer.report()).wait_for()
        page.locator("#best", has_text=trainer.complete()).wait_for()
        # The parts in sight are drawn again one after another, those of several objectives last.
        page.wait_for_timeout(2000 if heading == "Pareto set" else 500)
        assert page.evaluate(IS_MARKED), heading

    # A choice changes the plot without a new control.
    page.get_by_label("metric", exact=True).select_option("train_loss")
    page.get_by_label("logarithmic").uncheck()
    assert "metric=train_loss" in page.url and "log=no" in page.url
    page.get_by_label("logarithmic").check()
    assert "log=" not in page.url
    assert page.get_by_label("metric", exact=True).input_value() == "train_loss"


@pytest.mark.whole
def test_a_button_of_a_row_keeps_the_focus_while_its_row_changes(visit, archive):
    propose(archive, cells(3))
    trainer = Trainer(archive)
    trainer.report()
    page = visit("/study?study=study")
    running = page.locator("section").filter(
        has=page.get_by_role("heading", name="Running", exact=True)
    )
    running.get_by_role("button", name="#0").focus()
    page.get_by_text(trainer.report()).wait_for()
    assert page.evaluate(FOCUSED) == "#0"
    # Another trial runs, above or below, and the button of the header shows the best.
    trainer.complete()
    page.locator("dd").get_by_role("button", name="#1").focus()
    second = archive.proposals.claim("trainer", study="study")
    running.get_by_role("button", name="#2").wait_for()
    assert page.evaluate(FOCUSED) == "#1"
    # The row of a trial that has ended is gone: its neighbour has the focus, but none of its
    # buttons.
    running.get_by_role("button", name="#2").focus()
    archive.proposals.complete(second.id, second.token, Result(0.25, {}))
    running.get_by_role("button", name="#2").wait_for(state="detached")
    assert page.evaluate("document.activeElement.tagName") == "TR"
    assert page.evaluate(FOCUSED).startswith("#0")


def test_a_row_keeps_the_focus_while_rows_are_added(visit, archive, server):
    evaluate(archive, [0.5], "first")
    page = visit("/")
    page.locator("tbody tr").filter(has_text="first").focus()
    evaluate(archive, [0.5], "second")
    server.application.state.news.hurry("studies")
    # The latest study comes first.
    page.locator("tbody tr").filter(has_text="second").wait_for()
    assert page.locator("tbody tr").first.get_attribute("data-link") == "/study?study=second"
    assert page.evaluate(ROW) == "/study?study=first"
    page.locator("tbody tr").filter(has_text="first").get_by_role("link").focus()
    evaluate(archive, [0.5], "third")
    page.locator("tbody tr").filter(has_text="third").wait_for()
    assert page.evaluate(FOCUSED) == "first"


def test_enter_opens_the_proposal_of_a_row(visit, archive):
    evaluate(archive, [0.25, 0.5])
    page = visit("/study?study=study")
    row = page.get_by_role("row").filter(has_text="0.25").last
    row.focus()
    row.press("Enter")
    page.get_by_role("dialog").get_by_role("heading").first.wait_for()
    assert "proposal=0" in page.url
