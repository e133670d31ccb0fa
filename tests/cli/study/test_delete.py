"""`archive study delete`, as it is typed: it asks, says what goes and what stays, and deletes only
on a yes."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from archive.api import Archive
from archive.cli.main import archive as command
from archive.errors import UsageError
from tests.support.stores import cells, evaluate, propose


@pytest.fixture
def run(archive, monkeypatch):
    """Runs `archive study delete` with an answer, over the archive of the test."""
    monkeypatch.setattr(Archive, "close", lambda self: None)
    monkeypatch.setattr("archive.cli.study.command.open_archive", lambda ctx: archive)

    def delete(*arguments, answer=""):
        return CliRunner().invoke(command, ["study", "delete", *arguments], input=answer)

    return delete


def test_it_asks_and_a_no_changes_nothing(archive, run):
    evaluate(archive, [0.5, 0.25])
    propose(archive, cells(3)[2:])
    archive.proposals.claim("w", study="study")
    result = run("study", answer="n\n")
    assert result.exit_code == 1 and "nothing was deleted" in result.stderr
    assert "3 proposals and 2 results are deleted; networks stay" in result.stderr
    assert "1 proposal in training: the results will be refused" in result.stderr
    assert archive.studies.names() == ["study"]


def test_where_nobody_can_answer_it_names_the_option(archive, run):
    evaluate(archive, [0.5])
    result = run("study")
    assert isinstance(result.exception, UsageError) and "add --yes" in str(result.exception)
    assert archive.studies.names() == ["study"]


def test_a_yes_deletes_it(archive, run):
    evaluate(archive, [0.5])
    result = run("study", answer="y\n")
    assert (result.exit_code, archive.studies.names()) == (0, [])
    assert "deleted study: 1 proposal, 1 result" in result.stderr


def test_without_asking_as_json(archive, run):
    evaluate(archive, [0.5])
    result = run("study", "--yes", "--json")
    assert json.loads(result.stdout)["evaluations"] == 1
    assert archive.studies.names() == []


def test_an_unknown_study_is_a_line(archive, run):
    evaluate(archive, [0.5])
    result = run("stduy", "--yes")
    assert result.exit_code != 0
    assert archive.studies.names() == ["study"]
