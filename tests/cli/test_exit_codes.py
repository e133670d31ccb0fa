"""Exit codes as a scheduler sees them: one table, in the help and in what commands end with."""

from __future__ import annotations

import json

import pytest

from archive import spaces
from archive.architecture import codec
from archive.cli.exit_codes import MEANINGS, ExitCode
from tests.support.commands import CELLS, propose, shell, table
from tests.support.stores import suggest


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def test_the_help_lists_them(user):
    told = user.types("--help").stdout
    assert all(f"  {code.value:<3}  {text}" in told for code, text in MEANINGS.items())
    assert set(MEANINGS) == set(ExitCode)


def test_a_trainer_whose_trials_all_failed_does_not_end_with_0(archive, user, tmp_path):
    task = table(tmp_path)
    propose(archive, task, 2)
    # The third is not in the table.
    other = [cell for cell in spaces.get("nasbench201").members()[10:400] if cell not in CELLS][:1]
    agent = archive.proposals.register_agent("random", {}, "1")
    (missing,) = archive.proposals.create("study", agent, suggest(other))
    archive.proposals.prioritise(missing.id, 1.0)
    options = ("trainer", "--study", "study", "--data-folder", str(tmp_path), "--json")
    done = user.runs(*options, "--once")
    assert (done.returncode, json.loads(done.stdout)["failed"]) == (ExitCode.NOTHING_SUCCEEDED, 1), done.stderr
    archive.proposals.retry(missing.id)
    done = user.runs(*options, "--idle", "0.1")
    assert (done.returncode, json.loads(done.stdout)["complete"]) == (ExitCode.OK, 2), done.stderr
    # Without a trial, nothing has failed.
    assert user.runs(*options, "--once").returncode == ExitCode.OK


def test_a_search_without_a_success_does_not_end_with_0(archive, user, tmp_path):
    path = tmp_path / "none.csv"
    lines = [f"{codec.to_nasbench201(cell)}," for cell in CELLS]
    path.write_text("\n".join(["arch_str,accuracy", *lines]))
    options = ("--task", f"table:{path}#accuracy", "--agent", "random", "--json")
    done = user.types("search", *options, code=ExitCode.NOTHING_SUCCEEDED)
    found = json.loads(done.stdout)
    assert (found["best"], found["failed"], found["evaluations"]) == (None, 10, 0)
