"""Numbers without a range to plot, in a real browser: equal except for the last bit, and
infinite."""

import math

import pytest

from archive.constraints import Constraint
from archive.plots.data.progress import best_so_far
from archive.store.records import Result
from tests.support.chromium import needs_chromium
from tests.support.stores import Suggestion, answer, cells, evaluate, propose

pytestmark = [pytest.mark.lasts(10), needs_chromium]

SECONDS = 10
AXES = """
import { linearTicks, logTicks, padded, regretScale } from "./axes.js";
const just = 0.1 + 0.2;
postMessage({
  equal: [padded(0.3, just), linearTicks(...padded(0.3, just), 6)],
  narrow: linearTicks(0.3, just, 6),
  infinite: [linearTicks(0, Infinity, 6), logTicks(1, Infinity, 6), linearTicks(...padded(-1e308, 1e308), 6)],
  regret: [regretScale(0.95, [0.5, 0.9, 0.95], 0.15, 1), regretScale(1, [3, 1], 9, -1)].map((scale) => [...[0.5, 0.9, 0.95].map(scale.place), scale.ticks]),
  flat: regretScale(1, [1], 1, 1),
  usual: [linearTicks(-0.1, 1.1, 7), logTicks(1, 100, 10), padded(0, 1), padded(2, 2)],
});
"""
IN_A_WORKER = """([path, seconds]) => new Promise((resolve, reject) => {
  const worker = new Worker(path, { type: "module" });
  setTimeout(() => { worker.terminate(); reject(new Error("no end")); }, 1000 * seconds);
  worker.onmessage = (event) => resolve(event.data);
})"""


def test_ticks_come_to_an_end_for_any_range(visit):
    page = visit()
    path = "/static/parts/trial.js"
    # A worker of the test can be stopped; an endless loop of a page cannot.
    page.route(f"**{path}", lambda route: route.fulfill(body=AXES, content_type="text/javascript"))
    found = page.evaluate(IN_A_WORKER, [path, SECONDS])
    (low, high), ticks = found["equal"]
    assert low < 0.3 < high and 1 < len(ticks) < 8 and 0.3 in ticks
    assert found["narrow"] == [0.3]
    # Equal ratios of the distance to the best are equal steps, and the better value is nearer to its end.
    low, late, best, ticks = found["regret"][0]
    assert low < late < best and late - low == pytest.approx(math.log10(0.45 / 0.05))
    assert [text for _, text in ticks] == ["0.95", "\u22120.1", "\u22120.8"]
    assert found["regret"][1][0] == found["regret"][1][1] and found["flat"] is None
    assert [len(each) for each in found["infinite"]] == [1, 1, 1]
    assert found["usual"] == [
        [0, 0.2, 0.4, 0.6, 0.8, 1],
        [1, 2, 5, 10, 20, 50, 100],
        [-0.05, 1.05],
        [pytest.approx(1.9), pytest.approx(2.1)],
    ]


def store_seconds(archive, evaluation, seconds):
    """Store the seconds of an evaluation, as earlier releases did: infinite ones too."""
    change = "MATCH (e:Evaluation {id: $id}) SET e.seconds = $seconds"
    archive.query(change, {"id": evaluation, "seconds": seconds}, write=True)


def test_a_study_of_equal_values_and_infinite_costs_is_drawn(visit, archive):
    propose(archive, cells(4))
    # The third cost is too large for a number of the columns.
    for value, cost in zip(
        (0.3, 0.1 + 0.2, 0.3, 0.3), (1.0, float("inf"), 1e300, 3.0), strict=True
    ):
        claim = archive.proposals.claim("trainer", study="study")
        metrics = {"accuracy": value, "latency_ms": cost}
        archive.proposals.complete(
            claim.id, claim.token, Result(value, metrics, {"accuracy": [0.3, 0.1 + 0.2]}, 2)
        )
        store_seconds(archive, claim.id, cost)

    page = visit("/study?study=study&cost=latency_ms&x=spent")
    page.locator("#best", has_text="0.3").wait_for()
    front = page.get_by_role("img", name="Value against cost, with the front")
    front.scroll_into_view_if_needed()
    # It is drawn when it is in sight.
    page.locator("canvas[width][aria-label='Value against cost, with the front']").wait_for()
    # The keys go to the points that have a place.
    shown = []
    front.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        shown.append(page.locator(".points .tip:visible b").text_content())

    assert [text.split()[0] for text in shown] == ["#0", "#3", "#0"]


def test_infinite_costs_end_no_comparison(visit, archive):
    evaluate(archive, [0.25], "one")
    propose(archive, cells(2), "two")
    for value, cost in ((0.5, float("inf")), (0.75, 2.0)):
        claim = archive.proposals.claim("trainer", study="two")
        archive.proposals.complete(claim.id, claim.token, Result(value, {"accuracy": value}))
        store_seconds(archive, claim.id, cost)

    page = visit("/compare?study=one&study=two&x=seconds")
    page.get_by_role("row").filter(has_text="0.75").get_by_text("2 s").wait_for()
    page.get_by_text("2 repeats of one search").wait_for()


def test_numbers_that_are_not_finite_are_shown_as_unknown(visit):
    page = visit()
    asked = """async () => {
      const { number, seconds } = await import("/static/parts/page.js");
      return [NaN, Infinity, -Infinity, null].flatMap((each) => [number(each), seconds(each)]);
    }"""
    assert page.evaluate(asked) == ["–"] * 8


SPENT = """async (study) => {
  const { Points } = await import("/static/parts/points.js");
  const points = await Points.load(study);
  return Object.fromEntries([["evaluations", null], ["seconds", "seconds"], ["epochs", "epochs"]].map(
    ([name, cost]) => [name, [...points.spent(cost)]]));
}"""


def test_what_a_study_has_spent_counts_all_of_its_trainings(visit, archive):
    source, *_ = evaluate(archive, [0.5], "source")
    reused = Result(
        0.5, {"accuracy": 0.5, "size": 1.0}, epochs=7, seconds=0.0, answered_from=source.id
    )
    proposals = propose(archive, cells(5)[1:], constraints=(Constraint("size", "<=", 9.0),))
    answer(archive, "study", proposals[0].agent, [(Suggestion(cells(1)[0]), reused)])
    # The second one ends first, violates the constraint, and has a value; the third is pruned.
    claims = [archive.proposals.claim("trainer", study="study") for _ in range(3)]
    ended = [
        (claims[1], 0.9, 10.0, False),
        (claims[0], 0.75, 1.0, False),
        (claims[2], 0.25, 1.0, True),
    ]
    for claim, value, size, pruned in ended:
        metrics = {"accuracy": value, "size": size}
        result = Result(value, metrics, epochs=3, seconds=2.0, partial=pruned)
        archive.proposals.complete(claim.id, claim.token, result, pruned=pruned)

    page = visit("/compare?study=study&x=epochs")
    spent = page.evaluate(SPENT, "study")
    for against, sums in spent.items():
        (plotted,) = best_so_far(archive, "study", against)
        by_number = dict(zip(plotted.number.tolist(), plotted.x.tolist(), strict=True))
        assert [sums[number] for number in sorted(by_number)] == [
            by_number[number] for number in sorted(by_number)
        ]
        assert sum(each == each for each in sums if each is not None) == 4, against

    assert max(each for each in spent["epochs"] if each == each) == 9
    assert min(each for each in spent["evaluations"] if each == each) == 1
    page.get_by_role("row").filter(has_text="study").get_by_text("6 s").wait_for()


def test_values_of_different_objectives_have_no_common_mean(visit, archive):
    evaluate(archive, [0.25, 0.5])
    evaluate(archive, [1000.0, 3000.0], "sizes", objective="params", direction="minimise")
    propose(archive, cells(1), "rungs")
    claim = archive.proposals.claim("trainer", study="rungs")
    archive.proposals.complete(
        claim.id, claim.token, Result(0.125, {"accuracy": 0.125}, partial=True), pruned=True
    )
    first, second = cells(2)
    page = visit(f"/compare?network={first.key}&network={second.key}")
    rows = (
        page.locator("section")
        .filter(has=page.get_by_role("heading", name="Values on each task"))
        .locator("tbody tr")
    )
    rows.first.wait_for()
    assert [row.replace(",", "").split()[1:] for row in rows.all_inner_texts()] == [
        ["accuracy", "digits/1", "0.25", "0.5", "+0.25"],
        ["parameters", "digits/1", "1000", "3000", "+2000"],
    ]


def test_an_answer_shows_integers_whole_and_the_digits_of_other_numbers(visit, archive):
    page = visit("/ask?cypher=RETURN 1795666673120 AS at, 0.123456789 AS value")
    page.get_by_role("row").filter(has_text="1795666673120").get_by_title("0.123456789").wait_for()


def test_a_relative_has_a_range_for_each_objective(visit, archive):
    evaluate(archive, [0.25])
    evaluate(archive, [0.5], "second")
    evaluate(archive, [1000.0], "sizes", objective="params", direction="minimise")
    parent, child = cells(2)
    archive.architectures.record_morph(parent, child, ["swap"])
    page = visit(f"/network?key={child.key}")
    row = page.get_by_role("row").filter(has_text="swap")
    row.get_by_text("1000 params").wait_for()
    row.get_by_text("0.25 … 0.5 accuracy").wait_for()


def test_a_saved_page_of_an_answer_says_what_it_leaves_out(visit):
    page = visit("/ask?cypher=UNWIND range(1, 1500) AS n RETURN n")
    page.get_by_text("of rows 1 to 1000 only, of more than 1000", exact=True).wait_for()
    page.get_by_role("button", name="next page").click()
    page.get_by_text("of rows 1001 to 1500 only, of 1500", exact=True).wait_for()
    page = visit("/ask?cypher=UNWIND range(1, 1000) AS n RETURN n")
    page.get_by_role("link", name="Save as CSV").wait_for()
    assert not page.get_by_text("of rows").count()
