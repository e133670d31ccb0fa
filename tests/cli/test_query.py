"""`archive query`: its commands, and the forms without a command."""

from __future__ import annotations

import csv
import io
import json

import pytest

from archive import settings
from archive.queries import catalogue
from tests.support.commands import Shell, shell
from tests.support.stores import cells, propose


@pytest.fixture
def user(archive, store_settings, tmp_path):
    propose(archive, cells(2))
    with shell(store_settings, tmp_path) as opened:
        yield opened


@pytest.fixture
def nobody(tmp_path):
    """A user whose archive has never been started."""
    return Shell(settings.load(home=tmp_path / "none", environment={}), tmp_path)


COUNT = "MATCH (p:Proposal) RETURN count(p) AS proposals"


@pytest.mark.parametrize(
    "arguments",
    [
        (COUNT,),
        ("run", COUNT),
        ("--limit", "5", COUNT),
        (COUNT, "--timeout", "1min"),
        ("--json", COUNT),
    ],
)
def test_cypher_is_answered_with_and_without_the_command(user, arguments):
    answer = json.loads(user.types("query", *dict.fromkeys([*arguments, "--json"])).stdout)
    assert answer["rows"] == [{"proposals": 2}]


@pytest.mark.parametrize(
    "form", [("run", "cost"), ("--named", "cost"), ("run", "--named", "cost"), ("cost",)]
)
def test_a_saved_query_is_run_by_every_form(user, form):
    expected = user.types("query", "run", "cost", "--csv").stdout
    answer = list(
        csv.reader(io.StringIO(user.types("query", *form, "--param", "task=null", "--csv").stdout))
    )
    assert answer == list(csv.reader(io.StringIO(expected)))
    assert answer[0][0] == "task"


@pytest.mark.parametrize(
    ("new", "old"), [(["list"], ["--list"]), (["show", "cost"], ["--named", "cost", "--show"])]
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_list_and_show_have_commands_and_their_old_options(nobody, new, old, form, tmp_path):
    shown = nobody.types("query", *new, *form).stdout
    assert nobody.types("query", *old, *form).stdout == shown
    assert catalogue.get("cost").summary in shown
    assert not (tmp_path / "none").exists()


def test_the_text_that_is_shown_is_the_text_that_runs(nobody):
    assert (
        json.loads(nobody.types("query", "show", "cost", "--json").stdout)["cypher"]
        == catalogue.get("cost").cypher
    )
    assert nobody.types("query", "show", "lineage").stdout == catalogue.get("lineage").cypher


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ([], ["NAME", "CYPHER", "archive query list"]),
        (["run"], ["NAME", "CYPHER"]),
        (["cost", "--named", "cost"], ["NAME", "CYPHER"]),
        (["run", "csot"], ["unknown saved query 'csot'", "cost"]),
        (["csot"], ["unknown saved query 'csot'", "cost"]),
        (["show", "csot"], ["unknown saved query 'csot'", "cost"]),
        (["run", "cost", "--write"], ["--write", "CYPHER"]),
        (["RETURN 1", "--show"], ["archive query show NAME"]),
        (["run", "cost", "-p", "tsak=digits"], ["tsak", "task"]),
        (["RETURN 1", "--timeout", "soon"], ["--timeout", "'soon'", "90s"]),
        (["RETURN 1", "--timeout", "0"], ["--timeout", "'0'", "0.1s"]),
        (["RETURN 1", "--limit", "0"], ["--limit", "0"]),
        (["RETURN 1", "--csv", "--json"], ["--csv", "--json"]),
    ],
)
def test_a_mistake_is_one_line_and_starts_nothing(nobody, arguments, fragments, tmp_path):
    (line,) = nobody.types("query", *arguments, code=2).stderr.splitlines()
    assert line.startswith("error: ")
    assert all(fragment in line for fragment in fragments), line
    assert not (tmp_path / "none").exists()


def test_help_shows_the_commands_and_no_old_option(nobody):
    shown = nobody.types("query", "--help").stdout
    assert all(f"\n  {name} " in shown for name in ("list", "run", "show"))
    shown = nobody.types("query", "run", "--help").stdout
    assert "--named" not in shown and "--list" not in shown and "--show" not in shown
