"""`archive study best|export|watch`, as they are typed."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive import agents, frames
from archive.agents.base import Suggestion
from archive.cli.exit_codes import ExitCode
from archive.cli.search import live
from archive.cli.search.screen import ScreenContents, screen_lines
from archive.cli.study import command
from archive.constraints import parse
from archive.dashboard.feeds.studies import StudiesFeed
from archive.dashboard.feeds.study import StudyFeed
from archive.exchange import study_rows
from archive.queue.updates import Completion
from archive.rungs import Rungs
from archive.store.records import Result, Weights
from archive.store.studies.studies import UNBOUNDED
from tests.support import wait_until
from tests.support.commands import shell
from tests.support.stores import cells, evaluate, propose, study, suggest

LONG = 600.0


@pytest.fixture
def user(archive, store_settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with shell(store_settings, tmp_path) as opened:
        yield opened


def complete(archive, value, **settings):
    held = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.complete(held.id, held.token, Result(value, **settings))
    return held


def best(user, *arguments):
    return json.loads(user.types("study", "best", "study", *arguments, "--json").stdout)[
        "proposals"
    ]


def test_the_best_of_a_study_are_ranked_by_its_direction(archive, user):
    evaluate(archive, [0.5, 0.25, float("nan"), 0.5, 0.75], direction="minimise")
    assert [row["number"] for row in best(user, "--top", "3")] == [1, 0, 3]
    assert [row["value"] for row in best(user)] == [0.25]
    assert len(best(user, "--top", "9")) == 4


def test_results_of_whole_trainings_come_alone_and_with_their_weights(archive, user):
    propose(archive, cells(3))
    held = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.complete(held.id, held.token, Result(0.9), pruned=True)
    assert [row["state"] for row in best(user)] == ["pruned"]
    table = user.types("study", "list").stdout.splitlines()
    head = table[0].replace("┃", " ").split()
    row = table[2].replace("│", " ").split()
    assert head == [
        "study",
        "task",
        "space",
        "objective",
        "complete",
        "pruned",
        "failed",
        "budget",
        "best",
    ]
    assert row[4:8] == ["0", "1", "0", "1000"]
    complete(
        archive, 0.5, metrics={"test_accuracy": 0.25}, weights=Weights("file:///kept", "0" * 64, 1)
    )
    (row,) = best(user, "--top", "5")
    assert (row["number"], row["weights"]) == (1, "file:///kept")
    told = user.types("study", "best", "study").stdout
    assert "test_accuracy" in told and "0.25" in told and "file:///kept" in told


def test_the_best_are_shown_with_the_quantities_of_the_constraints(archive, user):
    bounds = ("memory<=3", "score>0", "test_accuracy>0.1", "params<=9")
    propose(archive, cells(1), objective="score", constraints=tuple(map(parse, bounds)))
    complete(
        archive,
        0.5,
        metrics={"score": 0.5, "test_accuracy": 0.25, "memory": 2.75, "params": 7.0, "other": 1.0},
    )
    head = user.types("study", "best", "study").stdout.splitlines()[0].replace("┃", " ").split()
    assert head == [
        "number",
        "architecture",
        "score",
        "test_accuracy",
        "params",
        "memory",
        "epochs",
        "seconds",
    ]


def test_noisy_results_are_ranked_by_their_estimates_beside_the_luckiest(archive, user):
    archive.studies.create(study(budget=40, direction="minimise"))
    agent = archive.proposals.register_agent("random", {}, "1")
    networks = cells(3)
    repeated = [Suggestion(network, repeat=at > 0) for network in networks for at in range(3)]
    archive.proposals.create("study", agent, repeated)
    # The second network is the best but for one lucky evaluation of the first one.
    for seed, value in enumerate([0.1, 0.8, 0.9, 0.5, 0.4, 0.3, 0.7, 0.7, 0.7]):
        complete(archive, value, seed=seed)

    document = json.loads(user.types("study", "best", "study", "--top", "2", "--json").stdout)
    first, second = document["proposals"]
    assert (first["number"], first["value"], second["number"], second["value"]) == (5, 0.3, 0, 0.1)
    assert first["expected"] == {
        "mean": pytest.approx(0.4),
        "low": None,
        "high": None,
        "evaluations": 3,
    }
    assert (document["luckiest"], document["noise"]) == (second["proposal"], None)
    told = user.types("study", "best", "study").stdout
    assert "expected" in told and "luckiest value: 0.1" in told
    # An estimate needs the space, whose table another machine has.
    archive.query(
        "MATCH (s:Space) SET s.config = $config",
        {"config": '{"table": "/elsewhere/t.csv"}'},
        write=True,
    )
    done = user.types("study", "best", "study")
    assert "0.1" in done.stdout and "expected" not in done.stdout
    words = (
        "the results have noise, and are shown as measured, without estimates: the table "
        "/elsewhere/t.csv"
    )
    assert words in " ".join(done.stderr.split())


def test_a_study_without_a_value_has_no_best(archive, user):
    propose(archive, cells(1))
    done = user.types("study", "best", "study", code=ExitCode.NOTHING_SUCCEEDED)
    assert (done.stdout, "no evaluation with a value" in done.stderr) == ("", True)
    done = user.types("study", "best", "study", "--json", code=ExitCode.NOTHING_SUCCEEDED)
    assert json.loads(done.stdout)["proposals"] == []


@pytest.mark.every_server
def test_results_of_two_versions_of_a_recipe_are_said(archive, user):
    propose(archive, cells(5), protocol="digits/1+recipe:mine")
    for version in ("sha256:aa", "sha256:aa", "sha256:bb"):
        assert "of the recipe" not in user.types("study", "show", "study").stderr
        complete(archive, 0.5, environment={"recipe_version": version})

    told = " ".join(user.types("study", "show", "study").stderr.split())
    assert (
        "results of 2 versions of the recipe, which are not comparable: sha256:aa (2), "
        "sha256:bb (1)"
    ) in told
    document = json.loads(user.types("study", "show", "study", "--json").stdout)
    assert document["recipe_versions"] == [
        {"version": "sha256:aa", "evaluations": 2}, {"version": "sha256:bb", "evaluations": 1},
    ]  # fmt: skip


def test_the_best_and_the_latest_proposals_are_shown_and_all_on_demand(archive, user, monkeypatch):
    monkeypatch.setattr(command, "SHOWN", 2)
    propose(archive, cells(5))

    def numbers(*arguments, **how):
        done = user.types("study", "show", "study", *arguments, **how)
        first = (line.split("│")[0].strip() for line in done.stdout.splitlines() if "│" in line)
        return [int(number) for number in first if number.isdigit()], done.stderr

    assert numbers(terminal=True) == ([3, 4], "left out: 3 earlier proposals; --all shows all\n")
    for value in (0.5, 0.75, 0.25):
        complete(archive, value)

    assert (
        numbers()
        == numbers(terminal=True)
        == ([1, 3, 4], "left out: 2 earlier proposals; --all shows all\n")
    )
    assert numbers("--all") == numbers("--all", terminal=True) == ([0, 1, 2, 3, 4], "")
    for value in (0.5, 1.0):
        complete(archive, value)

    assert numbers()[0] == [3, 4]
    assert len(json.loads(user.types("study", "show", "study", "--json").stdout)["proposals"]) == 5


def test_what_was_not_recorded_is_no_zero(archive, user):
    propose(archive, cells(1))
    key = complete(archive, 0.5).architecture.key
    for words in (
        ("study", "show", "study"),
        ("study", "best", "study"),
        ("proposal", "show", "study#0"),
        ("study", "log", "study"),
        ("arch", "show", key),
    ):
        told = user.types(*words).stdout
        assert not re.search(r"epochs +0|\b0 epochs|\b0(\.0)? s\b", told), told
        lines = [[cell.strip() for cell in re.split("[│┃]", line)] for line in told.splitlines()]
        for start, line in enumerate(lines):
            for place in (line.index(name) for name in ("epochs", "seconds") if name in line):
                assert lines[start + 2][place] == "–", told

        recorded = list(_recorded(json.loads(user.types(*words, "--json").stdout)))
        assert recorded and set(recorded) == {None}, words


def _recorded(item):
    """Yield all numbers of epochs and seconds, wherever they stand."""
    if isinstance(item, dict):
        for name, value in item.items():
            if name in ("epochs", "seconds"):
                yield value

            yield from _recorded(value)
    elif isinstance(item, list):
        for each in item:
            yield from _recorded(each)


@pytest.mark.parametrize("configured", [{}, {"agent": "random:batch=2"}])
def test_a_study_names_the_agents_of_its_proposals(archive, user, configured):
    archive.studies.create(study(budget=10, config=configured))
    for kind, cell in (("random", 0), ("regularized-evolution", 1), ("random", 2)):
        agent = archive.proposals.register_agent(kind, {"seed": cell}, "1")
        archive.proposals.create("study", agent, suggest([cells(3)[cell]]))

    names = [configured.get("agent", "random"), "regularized-evolution"]
    (listed,) = json.loads(user.types("study", "list", "--json").stdout)["studies"]
    shown = json.loads(user.types("study", "show", "study", "--json").stdout)
    assert listed["agents"] == shown["agents"] == names
    assert listed["agent"] == shown["agent"] == names[0]
    (line,) = (
        line
        for line in user.types("study", "show", "study").stdout.splitlines()
        if line.startswith("agent ")
    )
    assert line.split(maxsplit=1)[1] == ", ".join(names)
    live = (
        StudyFeed(archive.connection, "study").look()["about"],
        StudiesFeed(archive.connection).look()["study"],
    )
    assert [entry["agent"] for entry in live] == [", ".join(names)] * 2


@pytest.fixture
def exported(archive):
    archive.studies.create(study(budget=10))
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create(
        "study", agent, suggest(cells(3), hyperparameters={"rate": 0.5, "name": "a,b"})
    )
    complete(archive, 0.5, metrics={"accuracy": 0.5, "loss": 2.0}, epochs=4, seconds=1.5)
    held = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.fail(held.id, held.token, 'crash\n"here"')


def test_csv_has_a_column_for_each_metric_and_hyperparameter(user, exported):
    user.types("study", "export", "study", "-o", "rows.csv")
    text = Path("rows.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["state"] for row in rows] == ["complete", "failed", "waiting"]
    assert (rows[0]["metric_accuracy"], rows[0]["metric_loss"], rows[0]["epochs"]) == (
        "0.5",
        "2.0",
        "4",
    )
    assert (rows[1]["metric_accuracy"], rows[1]["reason"]) == ("", 'crash\n"here"')
    assert {row["hyperparameter_name"] for row in rows} == {"a,b"}
    assert rows[0]["finished"] >= rows[0]["created"] and rows[0]["created"].endswith("Z")
    assert user.types("study", "export", "study").stdout == text
    user.types("study", "export", "study", "--format", "csv", "-o", "rows.txt")
    assert Path("rows.txt").read_text() == text


def test_the_same_rows_in_every_format(archive, user, exported):
    user.types("study", "export", "study", "-o", "rows.json")
    rows = json.loads(Path("rows.json").read_text())["proposals"]
    told = user.types("study", "export", "study", "--format", "jsonl").stdout
    lines = [json.loads(line) for line in told.splitlines()]
    assert [{**line, "schema_version": 1} for line in lines] == [
        {"schema_version": 1, **row} for row in rows
    ]
    assert rows[0]["metrics"] == {"accuracy": 0.5, "loss": 2.0}
    assert study_rows.flat(study_rows.rows_of(archive, "study"))[0]["metric_loss"] == 2.0
    # What data frames say of the same proposals.
    frame = frames.proposals(archive, "study")
    assert list(frame.index) == [row["proposal"] for row in rows]
    assert list(frame["attempts"]) == [row["attempts"] for row in rows]


def test_parquet_comes_back(user, exported):
    import pandas

    user.types("study", "export", "study", "-o", "rows.parquet")
    frame = pandas.read_parquet("rows.parquet")
    assert list(frame["state"]) == ["complete", "failed", "waiting"]
    assert frame["metric_loss"][0] == 2.0


MIXED = {
    "features": ["sqrt", 0.5, None],
    "bootstrap": [True, "auto", None],
    "warm": [True, None, False],
    "rate": [1, 0.5, None],
    "large": [2**70, 1, None],
    "sizes": [[1, 2], [], None],
    "name": ["a", None, "b"],
    "unknown": [None, None, None],
}
UNIFORM = MIXED | {
    "features": ['"sqrt"', "0.5", None],
    "bootstrap": ["true", '"auto"', None],
    "large": [str(2**70), "1", None],
    "sizes": ["[1, 2]", "[]", None],
}


def test_a_column_of_mixed_types_is_json_in_parquet():
    rows = [dict(zip(MIXED, values, strict=True)) for values in zip(*MIXED.values(), strict=True)]
    uniform = study_rows.of_one_type(rows)
    assert {name: [row[name] for row in uniform] for name in MIXED} == UNIFORM
    assert study_rows.of_one_type([]) == []


def test_hyperparameters_of_mixed_types_come_back_from_parquet(archive, user):
    import pandas

    archive.studies.create(study(budget=10))
    agent = archive.proposals.register_agent("random", {}, "1")
    for network, *values in zip(cells(3), *MIXED.values(), strict=True):
        hyperparameters = dict(zip(MIXED, values, strict=True))
        archive.proposals.create(
            "study", agent, suggest([network], hyperparameters=hyperparameters)
        )

    user.types("study", "export", "study", "-o", "rows.parquet")
    frame = pandas.read_parquet("rows.parquet").astype(object)
    for name, values in UNIFORM.items():
        column = frame[f"hyperparameter_{name}"]
        assert column.where(column.notna(), None).tolist() == values


CELL = st.none() | st.floats(allow_nan=False) | st.integers(-(2**60), 2**60)


@given(st.lists(st.tuples(st.none() | st.text(max_size=3), CELL, CELL), max_size=3), st.booleans())
@settings(max_examples=25)
def test_parquet_columns_have_their_type_whatever_the_rows(values, typed):
    """Empty tables, columns of null and rows that begin with null are concatenated with a whole
    one."""
    import pyarrow
    from pyarrow import parquet

    def stored(rows):
        return parquet.read_table(io.BytesIO(study_rows.to_parquet(rows)))

    def row(text, number, metric):
        values = {name: None for name in study_rows.row_names()}
        values |= {
            "reason": text,
            "seconds": number,
            "cancelled": False,
            "partial": None if number is None else True,
        }
        return {
            **values,
            "number": 0,
            "metric_loss": metric,
            "hyperparameter_rate": None if typed else 0.5,
        }

    rows = [row(*each) for each in values]
    whole = stored(
        [
            {
                **row("a", 0.5, 0.5),
                "seed": 1,
                "epochs": 2,
                "created": "2026",
                "hyperparameter_rate": 1,
            }
        ]
    )
    table = stored(rows)
    if rows:
        assert table.schema == whole.schema
        assert table.column("reason").to_pylist() == [text for text, _, _ in values]
        assert table.column("metric_loss").to_pylist() == [
            None if metric is None else float(metric) for *_, metric in values
        ]
    else:
        assert table.schema == whole.schema.remove(len(whole.schema) - 1).remove(
            len(whole.schema) - 2
        )

    shared = whole.select(table.column_names)
    assert (
        pyarrow.concat_tables([table, shared, stored([])] if not rows else [table, shared]).num_rows
        == len(rows) + 1
    )


def test_every_column_of_an_export_has_a_declared_type(archive):
    evaluate(archive, [0.5])
    names = list(study_rows.flat(study_rows.rows_of(archive, "study"))[0])
    assert set(study_rows.row_names()) == set(study_rows.TYPES)
    assert [name for name in names if name not in study_rows.TYPES] == ["metric_accuracy"]


def test_without_pyarrow_parquet_is_one_line(user, exported, monkeypatch):
    monkeypatch.setattr(
        study_rows, "find_spec", lambda package: None if package == "pyarrow" else package
    )
    (line,) = user.types(
        "study", "export", "study", "-o", "rows.parquet", code=2
    ).stderr.splitlines()
    assert "parquet needs pyarrow: pip install pyarrow" in line


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("nobody",), "unknown study 'nobody'"),
        (("study", "-o", "there.csv"), "there.csv exists"),
        (("study", "-o", "none/rows.csv"), "cannot write none/rows.csv"),
        (
            ("study", "-o", "rows.xml"),
            "a file ending in .csv, .json, .jsonl, .parquet, .db, or has a --format, got 'rows.xml'",
        ),
        (("study", "--format", "parquet"), "-o FILE"),
        (("study", "--json"), "-o FILE"),
    ],
)
def test_mistakes_of_an_export_are_one_line(user, exported, tmp_path, arguments, fragment):
    (tmp_path / "there.csv").write_text("mine")
    done = user.types("study", "export", *arguments, code=2)
    (line,) = done.stderr.splitlines()
    assert fragment in line and done.stdout == ""
    assert (tmp_path / "there.csv").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there.csv"]


def test_a_file_is_replaced_on_demand(user, exported, tmp_path):
    (tmp_path / "rows.csv").write_text("mine")
    user.types("study", "export", "study", "-o", "rows.csv", "--force")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 5


def test_a_study_without_proposals_has_its_columns(archive, user):
    archive.studies.create(study())
    (header,) = csv.reader(io.StringIO(user.types("study", "export", "study").stdout))
    propose(archive, cells(1))
    assert header == next(csv.reader(io.StringIO(user.types("study", "export", "study").stdout)))


def test_watching_tells_what_happens_until_the_study_is_done(archive, user, tmp_path):
    propose(archive, cells(2), budget=2)
    command = [sys.executable, "-m", "archive.cli.main", "study", "watch", "study"]
    with (tmp_path / "told").open("wb") as told:
        watcher = subprocess.Popen(command, stdout=told, env=user.environment)

    try:
        wait_until(lambda: "#1" in (tmp_path / "told").read_text(), what="the first look")
        complete(archive, 0.5)
        complete(archive, 0.75)
        assert watcher.wait(60) == 0
    finally:
        watcher.kill()
        watcher.wait()

    lines = (tmp_path / "told").read_text().splitlines()
    assert [line.split()[0] for line in lines if "waiting" in line] == ["#0", "#1"]
    # These results have neither epochs nor seconds.
    assert lines[-1].endswith(" complete: accuracy 0.75; best 0.75; 2 of 2")


def test_watching_ends_by_ctrl_c_and_leaves_the_study_alone(archive, user):
    propose(archive, cells(1))
    watcher = user.starts("study", "watch", "study")
    wait_until(lambda: "#0" in user.said, 60)
    watcher.send_signal(signal.SIGINT)
    assert watcher.wait(60) == 130
    assert "Traceback" not in user.said
    assert [proposal.state.value for proposal in archive.proposals.list("study")] == ["WAITING"]


def test_a_done_study_is_shown_once_on_a_terminal(archive, user):
    evaluate(archive, [0.5, 0.25], budget=2)
    done = user.types("study", "watch", "study", terminal=True)
    assert "2 of 2 evaluations" in done.stdout and "best: #0" in done.stdout
    assert "the study study is done" in done.stderr


def drawn(snapshot, epochs=None):
    """Return the lines of the live view on a wide terminal."""
    contents = ScreenContents(snapshot, "about", epochs=epochs)
    return [line.plain for line in screen_lines(contents, 160, 24)]


def test_a_study_without_a_limit_shows_no_budget(archive, user):
    opened = agents.study(archive, "own", "nasbench201")
    opened.tell(cells(1)[0], 0.5)
    table = user.types("study", "list").stdout.splitlines()
    assert table[2].replace("│", " ").split()[6:8] == ["no", "limit"]
    assert ["budget", "no", "limit"] in [
        line.split() for line in user.types("study", "show", "own").stdout.splitlines()
    ]
    assert json.loads(user.types("study", "show", "own", "--json").stdout)["budget"] == UNBOUNDED
    lines = drawn(archive.studies.snapshot("own"))
    assert lines[2] == "1 evaluation"


def test_results_that_were_never_seen_to_run_are_events_but_not_those_before_the_search(
    archive, capsys
):
    opened = agents.study(archive, "own", "nasbench201")
    view = live.LiveView(opened.record, "random", "here", None, 0)
    for architecture, value in zip(cells(2), (0.25, 0.5), strict=True):
        opened.tell(architecture, value)
        view.update(archive.studies.snapshot("own"))

    view.update(archive.studies.snapshot("own"))
    (event,) = capsys.readouterr().err.splitlines()
    assert event.startswith("#1 ") and event.endswith("complete: value 0.5; best 0.5")


def test_a_cancelled_proposal_is_no_failure_in_the_view(archive, user):
    proposals = propose(archive, cells(2), budget=2)
    archive.proposals.cancel(proposals[0].id)
    (row,) = (line for line in drawn(archive.studies.snapshot("study")) if line.startswith("0 │"))
    assert [cell.strip() for cell in row.split("│")][1::2] == ["cancelled", "cancelled"]


def test_a_promoted_training_shows_its_last_epoch_beside_the_result_of_its_rung(archive):
    rungs = Rungs((2, 6), 2)
    propose(archive, cells(2), objective="valid_accuracy", config={"rungs": rungs.as_config()})
    for value in (0.8, 0.5):
        held = archive.proposals.claim("w", study="study")
        result = Result(value, {"valid_accuracy": value}, epochs=2)
        archive.proposals.settle([Completion(held.id, held.token, result, True, 0)])

    held = archive.proposals.claim("w", study="study")
    archive.proposals.report(
        held.id, held.token, {"epoch": [1, 2, 3], "valid_accuracy": [0.1, 0.8, 0.75]}
    )
    lines = drawn(archive.studies.snapshot("study"), epochs=6)
    (row,) = (line for line in lines if line.startswith("0 │"))
    assert [cell.strip() for cell in row.split("│")][4:7] == ["3/6", "0.75", "0.8"]
    assert lines[1].startswith("best: #0")
