"""Exit codes as a scheduler sees them: one table, in the help and in what commands end with."""

from __future__ import annotations

import json

import pytest

from archive import spaces
from archive.architecture import codec
from archive.cli.exit_codes import MEANINGS, ExitCode
from archive.trainer.daemon import logs
from tests.support.commands import CELLS, propose, serving, shell, table
from tests.support.stores import suggest


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def test_the_help_lists_them(user):
    told = user.types("--help").stdout
    assert all(f"  {code.value:<3}  {text}" in told for code, text in MEANINGS.items())
    assert set(MEANINGS) == set(ExitCode)


def test_a_trainer_whose_trials_all_failed_does_not_end_with_0(
    archive, user, tmp_path, monkeypatch
):
    # The log of this process is not the trainer's.
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)
    task = table(tmp_path)
    propose(archive, task, 2)
    # The third is not in the table.
    other = [cell for cell in spaces.get("nasbench201").members()[10:400] if cell not in CELLS][:1]
    agent = archive.proposals.register_agent("random", {}, "1")
    (missing,) = archive.proposals.create("study", agent, suggest(other))
    archive.proposals.prioritise(missing.id, 1.0)
    options = ("trainer", "--study", "study", "--data-folder", str(tmp_path), "--json")
    done = user.types(*options, "--once", code=ExitCode.NOTHING_SUCCEEDED)
    assert json.loads(done.stdout)["failed"] == 1
    archive.proposals.retry(missing.id)
    assert json.loads(user.types(*options, "--idle", "0.1").stdout)["complete"] == 2
    # Without a trial, nothing has failed.
    user.types(*options, "--once")


def test_a_search_without_a_success_does_not_end_with_0(archive, user, tmp_path):
    path = tmp_path / "none.csv"
    lines = [f"{codec.to_nasbench201(cell)}," for cell in CELLS]
    path.write_text("\n".join(["arch_str,accuracy", *lines]))
    options = ("--task", f"table:{path}#accuracy", "--agent", "random", "--json", "--trainers", "0")
    with serving(archive):
        done = user.types("search", *options, code=ExitCode.NOTHING_SUCCEEDED)

    found = json.loads(done.stdout)
    assert (found["best"], found["failed"], found["evaluations"]) == (None, 10, 0)
