"""The page and the report in a real browser: one server and one browser, Debian's Chromium without
a download."""

from __future__ import annotations

import time
from importlib.resources import files
from itertools import pairwise

import pytest

from archive import report
from archive.architecture.graph import Architecture, Layer
from archive.store.records import Objective, Result
from tests.dashboard.conftest import TOKEN
from tests.support import wait_until, whole
from tests.support.chromium import SHORT_WAITS, needs_chromium
from tests.support.stores import Suggestion, cells, evaluate, propose, study

EVIL = "<img src=x onerror=document.title=1>"

pytestmark = [pytest.mark.lasts(20), needs_chromium]


def test_the_token_is_asked_for_and_leads_to_what_was_wanted(visit, archive):
    evaluate(archive, [0.5], EVIL)
    page = visit(f"/study?study={EVIL}", token=False)
    page.get_by_label("Token").fill("not the token at all")
    page.get_by_role("button", name="Open").click()
    page.get_by_text("This is not the token.").wait_for()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Open").click()
    # The name of another user's study is text, wherever it stands.
    page.get_by_role("heading", name=EVIL).wait_for()
    assert page.title() == f"{EVIL} · Architecture Archive"
    # Keys lead to the other views, and from a row of a table to its study.
    page.keyboard.press("?")
    page.locator("dialog").get_by_text("light or dark").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("h")
    page.locator("table").get_by_role("link", name=EVIL).wait_for()
    page.locator("tbody tr").first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=EVIL).wait_for()


TEXTS = """() => {
  window.texts = new Set();
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    if (this.canvas.closest("section")?.textContent.includes("Progress")) window.texts.add(text);
    fillText.call(this, text, ...rest);
  };
}"""
"""Collects the texts of the progress, such as the titles of axes."""


def test_several_objectives_are_shown_and_grow(visit, archive):
    def tell(value, loss):
        claim = archive.proposals.claim("trainer", study="study")
        archive.proposals.complete(
            claim.id, claim.token, Result(value, {"accuracy": value, "loss": loss})
        )

    propose(archive, cells(4), objective="accuracy", further=(Objective("loss", "minimise"),))
    for value, loss in ((0.5, 3.0), (0.25, 4.0)):
        tell(value, loss)

    page = visit("/study?study=study", script=SHORT_WAITS)
    page.locator("#hypervolume", has_text="0.25").wait_for()
    page.get_by_text("loss (minimise)").first.wait_for()
    page.get_by_role("img", name="Results in two objectives, with the Pareto set").wait_for()
    tell(0.25, 2.0)
    page.get_by_text("2 of 3 results are in the Pareto set").wait_for()
    # The best so far in any objective, as results arrive.
    progress = page.locator("section").filter(has=page.get_by_role("heading", name="Progress"))
    page.evaluate(TEXTS)
    progress.get_by_label("objective").select_option("loss")
    titles = "[...window.texts].join().includes('loss:') && window.texts.has('evaluations')"
    wait_until(lambda: page.evaluate(titles), what="the titles of the axes")
    # They are counted from one, as on the other pages, and not named by the number of the proposal.
    assert not page.evaluate("window.texts.has('0')")
    assert "progress=loss" in page.url
    tell(0.125, 1.0)
    page.get_by_text("3 of 4 results are in the Pareto set").wait_for()
    picture = page.get_by_role("img", name="Value of each evaluation, with the best so far")
    picture.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")

    page.locator(".points .tip:visible", has_text="loss 1").wait_for()
    page.reload()
    assert progress.get_by_label("objective").input_value() == "loss"
    # The comparison begins with the chosen objective.
    page.get_by_role("link", name="Compare with other studies").click()
    compared = page.locator("section").filter(has=page.get_by_role("heading", name="Best so far"))
    assert compared.get_by_label("objective").input_value() == "loss"
    best = page.get_by_role("row").filter(has_text="study").last.locator("b")
    assert best.text_content() == "1"
    compared.get_by_label("objective").select_option("accuracy")
    page.wait_for_url("**objective=accuracy")
    page.get_by_text("0.5", exact=True).wait_for()


def test_the_page_suggests_a_trainer_only_to_what_waits(visit, archive):
    (waiting,) = propose(archive, cells(1))
    page = visit("/study?study=study")
    page.get_by_text("No trainer serves this study. Start one with: archive trainer").wait_for()
    archive.proposals.cancel(waiting.id)
    # Where nothing waits, nothing is missing.
    page.get_by_role("heading", name="Running").wait_for(state="hidden")
    page.get_by_text("archive search --study study").wait_for()
    assert page.get_by_text("trainer").filter(visible=True).count() == 0


def test_a_map_without_a_search_asks_for_one(visit, archive):
    evaluate(archive, [0.25, 0.5, 0.75])
    page = visit("/map?space=nasbench201")
    page.get_by_text("Choose a search below to see its path.").wait_for()
    assert not page.get_by_text("not evaluated there").count()
    page.get_by_label("study").last.check()
    page.get_by_text("A line leads from best to best of a search.").wait_for()
    page.get_by_text("3 of 3, best accuracy 0.75 by #2").wait_for()
    # An entry of the legend chooses its networks, without a pointer.
    page.get_by_role("button", name="study (3)").press("Enter")
    page.get_by_role("heading", name="3 chosen networks").wait_for()
    page.get_by_role("button", name="Add to comparison", exact=True).click()
    page.get_by_text("Comparison: 3").wait_for()
    page.get_by_label("Results so far").press("Home")
    page.get_by_text("0 of 3, no value yet").wait_for()
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    step = page.get_by_role("button", name="Next gain")
    step.click()
    page.get_by_text("1 of 3, best accuracy 0.25 by #0").wait_for()
    step.click()
    page.get_by_text("2 of 3, best accuracy 0.5 by #1").wait_for()
    # A line around all points encloses all.
    page.get_by_label("choose", exact=True).check()
    box = page.locator("canvas").bounding_box()
    corners = [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99), (0.01, 0.02)]
    x, y = corners[0]
    page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    page.mouse.down()
    for x, y in corners[1:]:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])

    page.mouse.up()
    page.get_by_role("heading", name="3 chosen networks").wait_for()


def test_all_columns_of_the_evaluations_of_a_network_are_in_sight(visit, archive):
    evaluate(archive, [0.25], name="a-study-with-a-name-of-usual-length")
    page = visit(f"/network?key={cells(1)[0].key}")
    page.set_viewport_size({"width": 1200, "height": 800})
    table = (
        page.locator("section")
        .filter(has=page.get_by_role("heading", name="Evaluations"))
        .locator(".table")
    )
    table.get_by_role("row").nth(1).wait_for()
    assert table.evaluate("element => element.scrollWidth <= element.clientWidth")
    # A click on a repeat draws that one in full, and Enter draws it once again.
    layers = [Layer("ip"), *[Layer("relu", 8)] * 9, Layer("linear"), Layer("op")]
    chain = Architecture("mlp", layers, list(pairwise(range(12))))
    archive.architectures.add([chain])
    page.goto(page.url.replace(cells(1)[0].key, chain.key))
    boxes = page.locator(".viewed .aa-node")
    repeat = page.get_by_role("button", name="× 9: draw all")
    repeat.click()
    page.get_by_role("button", name="× 9: draw once").wait_for()
    assert boxes.count() == 12
    page.keyboard.press("Enter")
    repeat.wait_for()
    assert boxes.count() == 4


def test_the_home_page_begins_with_what_is_best_and_searches_everything(visit, archive):
    page = visit("/")
    page.get_by_text("archive search --agent nasbot").wait_for()
    evaluate(archive, [0.25, 0.5], name="first")
    winner = page.locator(".winner", has_text="0.5")
    winner.get_by_role("link", name="first", exact=True).wait_for()
    page.get_by_text("1 study, 2 evaluations", exact=True).wait_for()
    assert not page.get_by_text("archive search --agent nasbot").is_visible()
    page.get_by_text("2 networks of nasbench201").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_label("Search the archive").wait_for()
    page.keyboard.type("fir")
    page.get_by_role("option", name="study first").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="first").wait_for()
    key = cells(1)[0].key
    page.keyboard.press("/")
    page.get_by_label("Search the archive").wait_for()
    page.keyboard.type(key[:8])
    page.get_by_role("option", name=f"network {key[:10]}").wait_for()


FIRST_TASKS = {
    "which network is best, and how sure": (
        [("link", "study")],
        "Exact: another training of the network gives the same value.",
    ),
    "what the search changed last that helped": (
        [("link", "study")],
        "The last change that helped: change an operation, +0.25",
    ),
    "which of two networks is better, and why": (
        [("link", "study"), ("link", "Compare")],
        "Properties",
    ),
    "networks like this one": (
        [("link", "study"), ("link", "Similar networks")],
        "compared in full",
    ),
    "stop this study and train its best longer": (
        [
            ("link", "study"),
            ("button", "Stop the study"),
            ("button", "Stop, and train its best longer"),
        ],
        "study-longer",
    ),
}
"""Clicks from the home page to the answer of a question, and the answer."""


def test_first_tasks_take_at_most_three_clicks(visit, archive, server):
    evaluate(archive, [0.5, 0.75, 0.25], protocol="digits/small")
    parent, child = cells(2)
    archive.architectures.record_morph(parent, child, ["swap_label"])
    page = visit("/")
    for question, (clicks, answer) in FIRST_TASKS.items():
        assert len(clicks) <= 3
        page.goto(server.address)
        for role, name in clicks:
            page.locator("main, dialog").get_by_role(role, name=name, exact=True).first.click()

        page.get_by_text(answer).first.wait_for()
        assert page.get_by_role("alert").filter(visible=True).count() == 0, question

    page.get_by_role("heading", name="study-longer", exact=True).wait_for()
    assert archive.studies.get("study").budget == 3
    # The longest protocol leads no further, and the page says so.
    evaluate(archive, [0.5], "long", protocol="digits/long")
    page.goto(f"{server.address.rstrip('/')}/study?study=long")
    page.get_by_role("button", name="Train it longer").click()
    page.locator("dialog").get_by_text("Digits/long is the longest protocol").wait_for()


SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      // Its numbers are of different lengths.
      const moved = entry.sources.map((source) => source.node?.parentElement?.closest(".head")).filter(Boolean);
      if (!entry.hadRecentInput && moved.length) window.shifts.push(entry.value);
    }
  }).observe({ type: "layout-shift" });
}"""
"""Collects movements of the head of a study."""


def test_a_study_grows_while_its_page_is_open(visit, archive):
    evaluate(archive, [0.25, 0.5])
    page = visit("/study?study=study")
    page.locator("#best", has_text="0.5").wait_for()
    page.locator("#live", has_text="live").wait_for()
    propose(archive, cells(4))
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.report(
        claim.id, claim.token, {"train_loss": [2.0, 1.5], "accuracy": [0.5, 0.625]}
    )
    page.get_by_text("train_loss 1.5").wait_for()
    page.locator(".viewed .aa-node").first.wait_for()
    # What is in sight keeps its place while results arrive.
    page.evaluate(SHIFTS)
    begin = time.monotonic()
    archive.proposals.complete(claim.id, claim.token, Result(0.875, {"accuracy": 0.875}))
    page.locator("#best", has_text="0.875").wait_for()
    # A second is the pause between two looks; the limit leaves room for a busy machine.
    assert time.monotonic() - begin < 10
    assert page.locator("#done").text_content() == "3"
    page.get_by_role("row").filter(has_text="0.875").first.wait_for()
    page.get_by_text("better than the second best").wait_for()
    assert page.evaluate("window.shifts") == []
    # The picture is moved and enlarged by keys.
    picture = page.locator(".answer .viewed svg").first
    before = picture.get_attribute("viewBox")
    page.locator(".answer .viewed").first.focus()
    page.keyboard.press("+")
    assert picture.get_attribute("viewBox") != before


def test_a_page_that_was_cut_off_misses_nothing(visit, archive, server):
    evaluate(archive, [0.25])
    page = visit("/study?study=study")
    page.locator("#live", has_text="live").wait_for()
    page.context.set_offline(True)
    # The stream that is open already is cut as well, as by a laptop that sleeps.
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    for value in (0.5, 0.75):
        propose(archive, cells(4))
        claim = archive.proposals.claim("trainer", study="study")
        archive.proposals.complete(claim.id, claim.token, Result(value, {"accuracy": value}))

    page.context.set_offline(False)
    page.locator("#best", has_text="0.75").wait_for()
    assert page.locator("#done").text_content() == "3"


@pytest.mark.whole
def test_a_page_whose_study_cannot_be_loaded_again_recovers(visit, archive, server):
    evaluate(archive, [0.25])
    page = visit("/study?study=study")
    page.locator("#live", has_text="live").wait_for()
    page.route("**/api/study/points?*", lambda route: route.fulfill(body=b""))
    page.route("**/api/study/proposals?*", lambda route: route.fulfill(body=b""), times=1)
    with page.expect_response("**/api/study/points?*"):
        archive.studies.delete("study")
        evaluate(archive, [0.5])
        server.application.state.news.hurry("study:study")

    # What it has stays in sight meanwhile.
    page.locator("#best", has_text="0.25").wait_for()
    page.unroute("**/api/study/points?*")
    page.locator("#best", has_text="0.5").wait_for()
    page.get_by_role("row").filter(has_text="0.5").first.wait_for()
    propose(archive, cells(2))
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.complete(claim.id, claim.token, Result(0.75, {"accuracy": 0.75}))
    page.locator("#best", has_text="0.75").wait_for()


def test_a_failed_proposal_is_retried_from_the_page(visit, archive):
    propose(archive, cells(1))
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.fail(claim.id, claim.token, "out of memory", log=f"Traceback {EVIL}")
    page = visit("/study?study=study&proposal=0")
    page.get_by_text(f"Traceback {EVIL}").wait_for()
    page.locator("[data-action=retry]").click()
    page.locator("dialog").get_by_text("retried").wait_for()
    assert archive.proposals.get(claim.id).state.value == "WAITING"


def test_two_networks_are_compared_by_their_trainings(visit, archive):
    evaluate(archive, [0.25, 0.75])
    archive.studies.create(study("other"))
    agent = archive.proposals.register_agent("random", {}, "1")
    reused = Result(0.25, {"accuracy": 0.25}, answered_from="study#00000")
    archive.proposals.create("other", agent, [Suggestion(cells(1)[0])], outcomes=[reused])
    page = visit("/")
    # Three clicks from the home page: the best network, another one, and the comparison.
    page.locator(".winner", has_text="0.75").get_by_role(
        "button", name="+ Add to comparison"
    ).click()
    page.get_by_text("Comparison: 1").wait_for()
    other = cells(2)[0].key
    page.goto(page.url.split("?")[0] + f"network?key={other}")
    page.get_by_role("button", name="+ Add to comparison").click()
    page.reload()
    page.get_by_role("button", name="✓ In the comparison").wait_for()
    page.get_by_role("link", name="Compare 2 networks").click()
    best = cells(2)[1].key[:10]
    page.get_by_text(f"{best} is better on digits").wait_for()
    assert page.url.count("network=") == 2
    row = page.locator("tr", has_text="accuracy").first
    row.wait_for()
    assert "0.25" in row.inner_text() and "(2)" not in row.inner_text()
    page.get_by_text("changed").first.wait_for()
    page.get_by_role("button", name=f"Take {best} out of the comparison").click()
    page.get_by_text("Comparison: 1").wait_for()
    # By keys, from the search over everything.
    page.keyboard.press("Control+k")
    page.get_by_label("Search the archive").wait_for()
    page.keyboard.type("other")
    page.get_by_role("option", name="study other").wait_for()
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Compare this study with").click()
    page.get_by_role("button", name="+ study").click()
    page.get_by_text("2 repeats of one search by random").wait_for()


def test_a_note_of_another_user_appears_and_is_not_overwritten(visit, archive):
    evaluate(archive, [0.25])
    second = visit("/study?study=study")
    # Chromium reports the refusal of its request.
    first = visit("/study?study=study", token=False)
    for page, text in ((first, "mine"), (second, "yours")):
        page.locator("#live", has_text="live").wait_for()
        page.get_by_role("button", name="Add a note or tags").click()
        page.get_by_label("Note").fill(text)

    second.get_by_role("button", name="Save").click()
    second.locator(".note .text", has_text="yours").wait_for()
    first.get_by_role("button", name="Save").click()
    first.get_by_text("another user has changed the note meanwhile, to 'yours'").wait_for()
    first.get_by_role("button", name="Cancel").click()
    first.locator(".note .text", has_text="yours").wait_for()
    first.get_by_role("button", name="Edit the note").click()
    first.get_by_label("Note").fill("yours, mine")
    first.get_by_role("button", name="Save").click()
    second.locator(".note .text", has_text="yours, mine").wait_for()


@pytest.mark.parametrize("name", [whole(".."), "50 % ? & + a/b größer@home"])
def test_a_study_of_any_name_is_shown_live(visit, archive, server, name):
    evaluate(archive, [0.25], name)
    server.application.state.news.hurry(f"study:{name}")
    page = visit()
    page.locator("table").get_by_role("link", name=name, exact=True).click()
    page.get_by_role("heading", name=name, exact=True).wait_for()
    page.locator("#live", has_text="live").wait_for()
    page.get_by_role("button", name="#0", exact=True).last.click()
    page.locator("dialog").get_by_text("accuracy 0.25").wait_for()
    propose(archive, cells(2), name)
    claim = archive.proposals.claim("trainer", study=name)
    archive.proposals.complete(claim.id, claim.token, Result(0.75, {"accuracy": 0.75}))
    page.locator("#best", has_text="0.75").wait_for()


def test_plots_carry_their_view_and_answer_to_keys(visit, archive):
    agent = archive.proposals.register_agent("nasbot", {}, "1")
    archive.studies.create(study())
    made = [
        Suggestion(
            cell,
            hyperparameters={"rate": 0.1 * at},
            parent=cells(4)[at - 1] if at else None,
            operations=("swap_label",),
        )
        for at, cell in enumerate(cells(4))
    ]
    archive.proposals.create("study", agent, made)
    for value in (0.25, 0.75, 0.5):
        claim = archive.proposals.claim("trainer", study="study")
        archive.proposals.complete(claim.id, claim.token, Result(value, {"accuracy": value}))

    archive.proposals.claim("trainer", study="study")
    page = visit("/study?study=study&axis=edges&axis=rate&range=0.600:1.000:rate")
    parallel = page.get_by_role("img", name="beside the value, one line a result")
    # A part is loaded when it comes into sight.
    page.get_by_role("heading", name="Proposals").scroll_into_view_if_needed()
    page.get_by_role("heading", name="Sizes of networks and hyperparameters").wait_for()
    parallel.locator("path").nth(2).wait_for(state="attached")
    assert parallel.locator(".name").all_text_contents() == [
        "edgesedges",
        "raterate",
        "accuracyaccuracy",
    ]
    # The range leaves out the results whose rate is lower.
    assert parallel.locator("path.out").count() == 2
    parallel.focus()
    page.keyboard.press("ArrowUp")
    page.get_by_text("#2 accuracy 0.5").wait_for()
    page.keyboard.press("Escape")
    assert (
        parallel.locator("path.out").count() == 0
        and "range=" not in page.url
        and "axis=edges" in page.url
    )
    page.get_by_role("heading", name="Gains of operations").scroll_into_view_if_needed()
    gains = page.get_by_role("row").filter(has_text="change an operation")
    gains.get_by_text("50 %").wait_for()
    title = gains.get_by_text("change an operation").get_attribute("title")
    assert title == "swap_label: NASBOT: another operation in a layer"
    page.get_by_role("heading", name="Workers over time").scroll_into_view_if_needed()
    page.get_by_text("4 trials.").wait_for()
    page.get_by_role("img", name="Trials of each worker over time").focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("running, ").wait_for()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.locator("dialog").get_by_text("accuracy 0.5").wait_for()
    assert "proposal=2" in page.url


AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
VIOLATIONS = """async () => {
  const levels = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const rules = { "target-size": { enabled: true }, "label-content-name-mismatch": { enabled: true } };
  const found = await axe.run(document, { runOnly: levels, rules, resultTypes: ["violations"] });
  return found.violations.flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.html}`));
}"""
"""Parts of the page that level A or AA of WCAG 2.2 forbids, as axe-core finds them."""


def test_a_report_opens_from_disk(browser, archive, tmp_path):
    evaluate(archive, [0.25, 0.75, 0.5])
    file = tmp_path / "study.html"
    file.write_text(report.html(archive, "study"), encoding="utf-8")
    faults: list[str] = []
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.on(
        "request",
        lambda request: faults.append(request.url) if request.url != file.as_uri() else None,
    )
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.goto(file.as_uri())
    page.locator("#evaluations").get_by_role("button", name="accuracy").first.click()
    # The script sorts, so the policy knows it.
    assert "0.75" in page.locator("#evaluations tbody tr").first.text_content()
    _assert_accessible(page, width=400)
    context.close()
    assert not faults


def test_every_view_fits_a_narrow_screen_in_light_and_dark(visit, archive, server):
    evaluate(archive, [0.25, 0.5, 0.75])
    evaluate(archive, [0.5], name="other")
    parent, child = cells(2)
    archive.architectures.record_morph(parent, child, ["swap"])
    width = 400
    page = visit("/")
    page.set_viewport_size({"width": width, "height": 800})
    page.get_by_role("button", name="Add to comparison").first.click()
    paths = {
        "/": "study",
        "/study?study=study": "better than the second best",
        f"/network?key={child.key}": "Copy JSON",
        "/compare?study=study": "Best so far",
        f"/compare?network={parent.key}&network={child.key}": "No difference is certain",
        f"/compare?{'&'.join(f'network={cell.key}' for cell in cells(3))}": "best on",
        "/map?study=study": "networks of nasbench201",
        "/ask?query=lineage&study=study": "rows in",
        "/ask?cypher=MATCH w = (:Study)--(:Proposal) RETURN w": "rows in",
        "/workers": "nothing waits",
    }
    for at, (path, words) in enumerate(paths.items()):
        page.emulate_media(color_scheme="dark" if at % 2 else "light")
        page.goto(server.address.rstrip("/") + path)
        page.get_by_text(words).first.wait_for()
        _assert_accessible(page, width)
        # A desktop's screen at 200 %.
        page.set_viewport_size({"width": 720, "height": 450})
        assert page.evaluate("document.documentElement.scrollWidth") <= 720, path
        page.set_viewport_size({"width": width, "height": 800})


def _assert_accessible(page, width):
    """Check a page of this width in light and dark."""
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
    page.evaluate(AXE)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(VIOLATIONS) == [], (page.url, scheme)
