"""`archive record` and `archive tried`, typed as a user does."""

import json
import shutil
import sys
import time

import pytest

from archive.cli.runs.tried import read_days
from archive.errors import UsageError
from tests.support.commands import Shell
from tests.support.json_documents import check

TRAIN = """
import sys
rate = float(sys.argv[2])
if rate > 1:
    raise ValueError("diverged")
print("step 1 val_loss:", rate)
"""


@pytest.fixture
def user(archive, store_settings, tmp_path, monkeypatch):
    """A user whose runs are delivered where they wait for it: no process stays behind."""
    from archive.runs import life_cycle

    started = []
    monkeypatch.setattr(life_cycle, "start_delivery", started.append)
    # Runs that an earlier test has left to a delivery.
    shutil.rmtree(store_settings.home / "runs", ignore_errors=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    shell = Shell(store_settings, tmp_path)
    shell.deliveries = started
    return shell


def record(user, rate, *options, code=0):
    command = ("--", sys.executable, "train.py", "--rate", str(rate))
    return user.types("record", "--study", "tuning", *options, *command, code=code)


def test_runs_are_recorded_and_found_with_what_they_brought(archive, user, capfd):
    later = record(user, 0.5, "--why", "the usual rate").stderr
    assert "for the study tuning, or tuning-runs if that is a search that cannot have it" in later
    assert len(user.deliveries) == 1
    record(user, 0.25, "--why", "half the rate", "--parent", "best", "--wait")
    failed = record(user, 2, "--why", "twice", "--parent", "0", "--wait", code=1)
    assert "recorded as tuning#00002" in failed.stderr
    assert "ended with status 1: ValueError: diverged" in failed.stderr

    compared = user.types("compare", "tuning#0", "tuning#1").stdout
    assert "better by 0.25 in val_loss; whether that is more than noise is unknown" in compared
    check("compare", user.types("compare", "tuning#0", "tuning#1", "--json").stdout)
    table = user.types("tried", "rate").stdout
    assert "tuning#00001" in table and "+0.25" in table and "half the rate" in table
    assert "nothing on record holds 'muon'" in user.types("tried", "muon").stderr
    (document,) = check("tried", user.types("tried", "twice", "--json").stdout)
    assert document["runs"][0]["reason"] == "ended with status 1: ValueError: diverged"
    assert document["total"] == 1
    assert "rate 0.5 -> 0.25" in table and "#00000" in table
    counts = "1 of 3 runs: 2 complete, 1 failed; --limit shows more"
    assert counts in user.types("tried", "--limit", "1").stderr
    slow = user.types("tried", "--where", "rate < 0.4", "--program", "train.py").stdout
    assert "tuning#00001" in slow and "tuning#00000" not in slow
    wrong = user.types("tried", "--where", "rat < 0.4", code=2).stderr
    assert "unknown value 'rat': did you mean rate?" in wrong


def test_the_leaderboard_says_what_is_more_than_noise(archive, user):
    lines = ["width,loss", "4,1.0", "4,1.1", "8,0.1", "8,0.2", "16,0.17"]
    (user.folder / "runs.csv").write_text("\n".join(lines))
    user.types("import", "runs", "runs.csv", "--minimise", "loss")
    table = user.types("leaderboard", "--task", "runs").stdout
    first, single, last = table.splitlines()[-3:]
    assert "width=8" in first and "3" in first
    assert "0.02, unknown" in single
    assert "more than noise" in last and "0.9 [" in last
    error = user.types("leaderboard", "--task", "rnus", code=2).stderr
    assert "did you mean runs?" in error


def test_cells_are_imported_as_graphs(archive, user):
    rows = []
    for name in ("a", "b"):
        cell = {name: {"op": "linear", "input": ["x", "h"]}, "h_new": {"op": "tanh", "input": name}}
        rows.append(json.dumps({"cell": cell, "loss": 0.5}))

    (user.folder / "cells.jsonl").write_text("\n".join(rows))
    options = ("--graph", "cell", "--unordered", "linear", "--minimise", "loss")
    assert "different networks: 1" in user.types("import", "runs", "cells.jsonl", *options).stderr
    ((key,),) = archive.query("MATCH (n:Architecture {space: 'graph'}) RETURN n.key").rows
    assert "tanh" in user.types("arch", "show", key).stdout
    assert "cells#00001" in user.types("tried", "--network", key[:12]).stdout
    assert "0.5" in user.types("study", "lineage", "cells").stdout


def test_effects_of_the_edits_of_runs(archive, user):
    lines = ["id,up,lr,base,loss"]
    for base in range(8):
        lines.append(f"{base},,0.1,{base},{base}")
        lines.append(f"{base}a,{base},0.3,{base},{base + 0.5 + base / 100}")

    (user.folder / "runs.csv").write_text("\n".join(lines))
    user.types("import", "runs", "runs.csv", "--minimise", "loss", "--id", "id", "--parent", "up")
    shown = user.types("effects", "--study", "runs").stdout
    assert "lr about x3" in shown and "+0.535" in shown and "8 of 8" in shown
    check("effects", user.types("effects", "--study", "runs", "lr", "--json").stdout)
    error = user.types("effects", "--study", "runs", "--task", "runs", code=2).stderr
    assert "leave out --task and --space" in error


def test_what_ran_before_is_named_and_can_be_left_out(user, capfd):
    first = record(user, 0.5, "--json")
    (document,) = check("record", first.stdout)
    again = record(user, 0.5, "--skip-known")
    assert f"ran before: {document['run']}: val_loss 0.5" in again.stderr
    assert "it is left out, as --skip-known says" in again.stderr
    assert not record(user, 0.75, "--skip-known", "--json").stderr
    (skipped,) = check("record", record(user, 0.75, "--skip-known", "--json").stdout)
    assert skipped["is_skipped"] and skipped["metrics"]["val_loss"] == 0.75


def test_another_seed_is_no_repeat_to_skip(user, capfd):
    program = "import archive\nwith archive.record() as run: run.set(depth=4)\nprint('loss: 1')"
    (user.folder / "seeded.py").write_text(program)
    command = ("record", "--json", "--skip-known", "--", sys.executable, "seeded.py", "--seed")
    (first,) = check("record", user.types(*command, "1").stdout)
    other = user.types(*command, "2")
    assert f"ran before: {first['run']} with seed 1: loss 1" in other.stderr
    assert not check("record", other.stdout)[0]["is_skipped"]
    (skipped,) = check("record", user.types(*command, "1").stdout)
    assert (skipped["is_skipped"], skipped["run"]) == (True, first["run"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--minimise", "a", "--maximise", "b"),
            "judged by one metric: minimise 'a' or maximise 'b'",
        ),
        (("--metrics", "("), "--metrics is no regular expression"),
        (("--limit", "soon"), "soon"),
        (("--limt", "9"), "--limt"),
        (("--study", "a#b"), "a new study needs a name"),
        (("--parent", "bset"), "the parent of a run is best, last"),
        (("--keep", "/etc/*"), "--keep takes a pattern within the folder"),
    ],
)
def test_a_mistake_is_one_line_and_runs_nothing(user, options, message):
    error = record(user, 0.5, *options, code=2).stderr
    assert message in error
    assert "Traceback" not in error


def test_the_exit_status_is_the_programs(user, capfd):
    record_exit = ("record", "--", sys.executable, "-c")
    user.types(*record_exit, "raise SystemExit(7)", code=7)
    user.types(*record_exit, "import os; os.kill(os.getpid(), 15)", code=143)
    user.types("record", "--", "./missing", code=2)


def test_a_process_of_its_own_delivers_and_the_program_does_not_wait(
    archive, store_settings, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    arguments = ("record", "--study", "own", "--", sys.executable, "-c", "print('loss: 1')")
    done = Shell(store_settings, tmp_path).runs(*arguments)
    assert done.stdout == "loss: 1\n"
    assert "own-runs if that is a search that cannot have it: loss 1\n" in done.stderr
    for _ in range(600):
        if "own" in archive.studies.names() and archive.studies.evaluations("own"):
            break

        time.sleep(0.1)
    else:
        log = store_settings.home / "runs" / "delivery.log"
        pytest.fail(log.read_text())


@pytest.mark.parametrize(
    ("text", "days"),
    [("2026", 365), ("2028", 366), ("2026-02", 28), ("2026-12", 31), ("2026-08-31", 1)],
)
def test_a_day_a_month_or_a_year(text, days, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    begin, following = read_days("--since", text)
    assert following - begin == days * 86_400_000


@pytest.mark.parametrize("text", ["yesterday", "2026-13", ""])
def test_no_other_text_is_a_day(text):
    with pytest.raises(UsageError, match="--until takes a day"):
        read_days("--until", text)
