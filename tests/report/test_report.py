"""The report of a study: complete, self-contained, small, and safe to open."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser

import click
import numpy as np
import pytest

from archive import report
from archive.agents.base import Observation
from archive.agents.recommendation import Recommendation
from archive.cli.main import archive as root
from archive.cli.study.export import ReportFile
from archive.constraints import parse
from archive.queries.pareto import pareto_set
from archive.report.contents import commands, contents
from archive.report.page.charts import AxisScale, Chart, round_step, short
from archive.report.page.plots import plots
from archive.report.page.rendering import render
from archive.store.records import Objective, Result, Weights
from tests.support.commands import shell
from tests.support.json_documents import faults
from tests.support.stores import Suggestion, cells, study, suggest

ODD = 'x</script><img src=x onerror=alert(1)>"\x1b'


class Page(HTMLParser):
    """Tags with their attributes, and the texts of some of them."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.texts = {}
        self._open = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)


@pytest.fixture
def filled(archive):
    """A study with an odd name, of sixty results with costs, curves, predictions and parents."""
    archive.studies.create(
        study(ODD, objective="accuracy", direction="minimise", seed=3, config={"agent": "nasbot"})
    )
    agent = archive.proposals.register_agent("nasbot", {}, "1")
    rng = np.random.default_rng(0)
    networks = cells(60)
    environment = {"host": "secret-host", "torch": "2.8.0", "python": ODD, "ended": "converged"}
    suggestions = []
    outcomes = []
    for at, network in enumerate(networks):
        value = math.nan if at == 4 else float(rng.random())
        parent = networks[at - 1] if at else None
        suggestions.append(
            Suggestion(
                network, mean=-0.5, std=0.3, parent=parent, operations=("swap",) if at else ()
            )
        )
        metrics = {"params": float(at + 1), "accuracy": value, ODD: 1.0}
        outcomes.append(
            Result(value, metrics, {"accuracy": [0.5, value]}, 2, 1.5, 7, "cpu", environment)
        )

    archive.proposals.create(ODD, agent, suggestions, outcomes=outcomes)
    return archive


def test_a_report_is_one_file_that_loads_nothing(filled):
    text = report.html(filled, ODD)
    page = Page(text)
    assert not [
        attrs
        for _, attrs in page.tags
        if attrs.keys() & {"src", "href", "style", "srcset", "data", "action"}
    ]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/)", text)
    assert "secret-host" not in text and "\x1b" not in text

    # Names are text: one script, and no image.
    tags = [tag for tag, _ in page.tags]
    assert (tags.count("script"), tags.count("img"), tags.count("style")) == (1, 0, 1)
    assert page.texts["h1"] == [ODD.replace("\x1b", "?")]

    # The policy names style and script by what they are.
    (policy,) = (
        attrs["content"]
        for tag, attrs in page.tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    for name in ("style", "script"):
        digest = base64.b64encode(
            hashlib.sha256("".join(page.texts[name]).encode()).digest()
        ).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy

    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy

    values = filled.studies.result_arrays([ODD]).values
    best = int(np.nanargmin(values))
    assert tags.count("tr") == 61 and tags.count("figure") == 5 + 7
    assert "--seed 3" in text and "archive search --agent nasbot" in text
    headings = [
        attrs["aria-label"]
        for tag, attrs in page.tags
        if tag == "svg" and "aria-label" in attrs and "chart" in attrs.get("class", "")
    ]
    assert headings[:3] == [
        "best accuracy so far",
        "best accuracy so far",
        "accuracy and parameters",
    ]

    # A thousand evaluations are small enough to mail.
    read = contents(filled, ODD, top=5, rows=2000)
    network = read.best[0].architecture
    twice = tuple(Observation(network, score, str(score)) for score in (-0.25, -0.75))
    guessed = Page(
        render(replace(read, recommended=Recommendation(network, -0.5, -0.625, -0.375, twice)), [])
    )
    assert guessed.texts["strong"] == ["0.50"]
    assert "accuracy, 95 % interval 0.38 to 0.62" in guessed.texts["span"]
    sentences = " ".join(guessed.texts["p"])
    assert f"{network.key[:8]} is recommended" in sentences and "from 2 evaluations" in sentences
    certain = replace(read, chosen=read.best[0], recommended=None, runner_up=None, noise=None)
    exact = Page(render(certain, []))
    assert exact.texts["strong"] == [f"{values[best]:.4g}"]
    assert f"#{best} has the best accuracy: {values[best]:.4g}." in exact.texts["p"]
    assert "recommended" not in " ".join(exact.texts["p"])
    # Each plot has a sentence, made from the data, that says what it shows.
    drawn = [plot for plot in plots(filled, read) if plot.chart]
    assert len(drawn) == 7 and all(plot.finding.endswith(".") for plot in drawn)
    assert f"at evaluation {best + 1} of 60" in drawn[0].finding
    assert len(next(plot for plot in drawn if plot.key).key) == 5
    many = replace(
        read, results=read.results.at(np.resize(np.arange(60), 1000)), shown=tuple(range(1000))
    )
    whole = render(many, list(plots(filled, many)))
    assert whole.count("<tr>") == 1001
    assert len(whole.encode()) < 1_500_000

    short_one = Page(report.html(filled, ODD, top=1, rows=10))
    numbers = [
        attrs["data-n"] for tag, attrs in short_one.tags if tag == "td" and "data-n" in attrs
    ]
    assert str(best) in numbers and [tag for tag, _ in short_one.tags].count("tr") == 11


def test_several_objectives_have_a_best_each_a_front_and_a_hypervolume(archive):
    further = (Objective("loss", "minimise"), Objective("params", "minimise"))
    archive.studies.create(study(objective="accuracy", further=further, config={"agent": "parego"}))
    agent = archive.proposals.register_agent("parego", {}, "1")
    rows = [(0.5, 3.0, 1.0), (0.6, 2.0, 2.0), (0.4, 1.0, 3.0), (0.3, 4.0, 4.0)]
    outcomes = [
        Result(value, {"accuracy": value, "loss": loss, "params": params}, epochs=1)
        for value, loss, params in rows
    ]
    archive.proposals.create("study", agent, suggest(cells(4)), outcomes=outcomes)
    text = report.html(archive, "study")
    page = Page(text)
    facts = dict(zip(page.texts["dt"], page.texts["dd"], strict=True))
    assert facts["objectives"] == "accuracy, maximise; loss, minimise; params, minimise"
    sentences = " ".join(page.texts["p"])
    assert "3 of 4 results are the Pareto set" in sentences
    for best in ("accuracy in it is 0.6 (#1)", "loss in it is 1 (#2)", "params in it is 1 (#0)"):
        assert f"The best {best}." in sentences

    volume = pareto_set(archive.studies.snapshot("study")).hypervolume
    assert facts["hypervolume"] == f"{volume:.4g}, from 0.3, 4, 4"
    charts = [
        attrs["aria-label"]
        for tag, attrs in page.tags
        if tag == "svg" and "aria-label" in attrs and "chart" in attrs.get("class", "")
    ]
    fronts = ["Pareto set of accuracy and loss", "Pareto set of accuracy and params", "hypervolume"]
    assert charts[1:4] == fronts and "accuracy and parameters" not in charts
    assert page.texts["th"][:4] == ["number", "accuracy", "loss", "epochs"]
    command = "--objective accuracy:maximise --objective loss:minimise --objective params:minimise"
    assert command in text and "--direction" not in text


def test_what_a_study_lacks_is_said(archive, store_settings, tmp_path, monkeypatch):
    archive.studies.create(study())
    text = report.html(archive, "study")
    assert "no evaluation has a value yet" in text and "has no learning curve" in text
    monkeypatch.chdir(tmp_path)
    with shell(store_settings, tmp_path) as user:
        about = json.loads(user.types("report", "study", "--json").stdout)
        assert faults(about, ReportFile) == []
        assert about["bytes"] == (tmp_path / "study.html").stat().st_size
        assert "exists: choose another name" in user.types("report", "study", code=2).stderr
        refused = user.types("report", "study", "-o", "study.pdf", code=2).stderr
        assert "a report is a file ending in .html or .htm, got 'study.pdf'" in refused
        assert (
            "unknown study 'stud': did you mean study"
            in user.types("report", "stud", code=2).stderr
        )


def test_a_study_without_a_feasible_result_has_a_map(archive):
    archive.studies.create(study(objective="accuracy", constraints=(parse("latency_ms<5"),)))
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = [
        Result(value, {"accuracy": value, "latency_ms": 9.0}, epochs=1) for value in (0.25, 0.75)
    ]
    archive.proposals.create("study", agent, suggest(cells(2)), outcomes=outcomes)
    charts = {
        one.heading: one.chart for one in plots(archive, contents(archive, "study", top=5, rows=5))
    }
    assert "map of the networks" in charts["Map of the networks"]
    assert "the best network" not in charts["Map of the networks"]
    text = report.html(archive, "study")
    assert text.count("no result of &#39;study&#39; meets latency_ms&lt;5") >= 2
    assert "has a value yet" not in text and "has a prediction" not in text
    assert text.count("violates a constraint") == 2


def test_an_objective_may_have_the_name_of_another_column(archive):
    names = ("std", "seconds", "predicted")
    archive.studies.create(
        study(objective="accuracy", further=tuple(Objective(name, "minimise") for name in names))
    )
    agent = archive.proposals.register_agent("parego", {}, "1")
    metrics = {"accuracy": 0.5, "std": 1001.0, "seconds": 1002.0, "predicted": 1003.0}
    outcomes = [Result(0.5, metrics, epochs=3, seconds=12.5)]
    archive.proposals.create(
        "study", agent, [Suggestion(cells(1)[0], mean=0.25, std=0.125)], outcomes=outcomes
    )
    page = Page(report.html(archive, "study"))
    entries = [
        float(attrs["data-n"]) for tag, attrs in page.tags if tag == "td" and attrs.get("data-n")
    ]
    found = dict(
        zip([name.strip() for name in page.texts["th"] if name.strip()], entries, strict=False)
    )
    others = {"epochs": 3, "training seconds": 12.5, "predicted mean": 0.25, "predicted std": 0.125}
    assert found == {"number": 0, **metrics, **others}


@pytest.mark.parametrize("rungs", [(3, 16), (2, 5, 16)])
def test_every_command_of_a_report_can_be_typed(archive, rungs):
    """The command line parses each of them, and the search has the study's own rungs."""
    stored = study(
        "my study", config={"agent": "random", "rungs": {"epochs": list(rungs), "reduction": 3}}
    )
    archive.studies.create(stored)
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = [Result(0.5, weights=Weights("file:///weights", "0" * 64, 1))]
    archive.proposals.create("my study", agent, suggest(cells(1)), outcomes=outcomes)
    (saved,) = archive.studies.evaluations("my study")
    for best in (saved, None):
        for _, text in commands(stored, ["source"], [saved], best):
            name, *arguments = shlex.split(text)
            assert name == "archive"
            found = root
            # Commands keep the names of --help that their first context has.
            context = click.Context(root, **root.context_settings)
            while isinstance(found, click.Group):
                found = found.get_command(context, arguments.pop(0))

            assert found.make_context(text, arguments, parent=context) is not None

    (search,) = (text for purpose, text in commands(stored, [], [], None) if "repeat" in purpose)
    assert f"--rungs {','.join(map(str, rungs))} --reduction 3" in search


def test_ticks_are_round_numbers_on_the_axis():
    assert AxisScale(0.0, 1.0).ticks() == [
        (0.0, "0"),
        (0.2, "0.2"),
        (0.4, "0.4"),
        (0.6, "0.6"),
        (0.8, "0.8"),
        (1.0, "1"),
    ]
    assert [label for _, label in AxisScale(-3e6, 7e6).ticks()] == [
        "-2 M",
        "0",
        "2 M",
        "4 M",
        "6 M",
    ]
    assert [number for number, _ in AxisScale(30.0, 3000.0, True).ticks()] == [
        50,
        100,
        200,
        500,
        1000,
        2000,
    ]
    assert (round_step(0.17), round_step(0.2), round_step(300)) == (
        pytest.approx(0.2),
        pytest.approx(0.2),
        500,
    )
    assert (short(9999), short(12_345), short(1.5e6), short(0.12345)) == (
        "9999",
        "12.35 k",
        "1.5 M",
        "0.1235",
    )
    flat = AxisScale.around(np.array([2.0, np.nan]))
    assert flat.low < 2 < flat.high
    np.testing.assert_allclose(
        AxisScale(1.0, 100.0, True).places(np.array([1.0, 10.0, 100.0])), [0, 0.5, 1]
    )


def test_marks_outside_the_axes_are_counted_and_gaps_stay_gaps():
    chart = Chart(AxisScale(0, 1), AxisScale(0, 1), ("<x>", "y"), "t")
    x = np.array([0.0, 0.5, 0.5, np.nan])
    assert chart.marks(x, np.array([0.0, 2.0, 0.5, 0.5]), "m0", ["<a>", "b", "c", "d"]) == 1
    chart.line(np.array([0.0, 0.5, 1.0]), np.array([0.0, np.nan, 1.0]), "s0")
    chart.line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "s1", steps=True)
    text = chart.svg()
    assert text.count("<circle") == 2 and "&lt;a&gt;" in text and "&lt;x&gt;" in text
    assert 'class="line s0" d="M70.0 286.0M626.0 10.0"' in text
    assert 'class="line s1" d="M70.0 286.0H626.0V10.0"' in text


def test_parameters_that_matter_have_a_chart_and_slices(archive):
    archive.studies.create(study(objective="accuracy"))
    agent = archive.proposals.register_agent("random", {}, "1")
    suggestions = [
        Suggestion(network, hyperparameters={"rate": 10.0 ** -(at % 5), "act": "ab<"[at % 3]})
        for at, network in enumerate(cells(30))
    ]
    outcomes = [Result(0.1 * (at % 5)) for at in range(30)]
    archive.proposals.create("study", agent, suggestions, outcomes=outcomes)
    text = report.html(archive, "study")
    assert "What matters" in text
    assert "rate, logarithmic" in text
    assert "accuracy and rate" in text
