"""Parameter types: durations with units, and options with old spellings."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from archive.cli.parameters import AliasedOption, Count, Duration, Size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("90", 90.0),
        ("0.5", 0.5),
        ("15min", 900.0),
        ("15m", 900.0),
        ("2h", 7200.0),
        ("1.5h", 5400.0),
        (".5h", 1800.0),
        ("30d", 2_592_000.0),
        ("1w", 604_800.0),
        ("1h30m", 5400.0),
        (" 1h 30min ", 5400.0),
        ("inf", float("inf")),
    ],
)
def test_a_duration_is_a_number_with_a_unit(text, seconds):
    assert Duration().convert(text, None, None) == seconds


def test_a_plain_number_counts_the_unit_of_its_option():
    assert Duration(unit="d").convert("2", None, None) == 2 * 86_400
    assert Duration(unit="d").convert("2h", None, None) == 7200


@pytest.mark.parametrize("text", ["", "s", "5x", "2 parsecs", "1h30", "h1", "nan", "1,5h", "90 s"])
def test_what_is_no_duration_is_named_with_the_allowed_form(text):
    with pytest.raises(click.BadParameter) as refused:
        Duration().convert(text, None, None)

    assert repr(text) in refused.value.message
    assert all(form in refused.value.message for form in ("90s", "15min", "2h", "30d", "seconds"))


@pytest.mark.parametrize(
    ("limits", "text"), [({}, "-1"), ({"open_minimum": True}, "0s"), ({"minimum": 0.1}, "0.05")]
)
def test_a_duration_that_is_too_short_is_refused(limits, text):
    with pytest.raises(click.BadParameter, match=rf"must be >.*got '{text}'"):
        Duration(**limits).convert(text, None, None)


@click.command()
@click.option("--kernel", cls=AliasedOption, aliases=["--kind"], multiple=True)
@click.option("--many", type=Count(1), default=3, show_default=True)
@click.option("--idle", type=Duration(), default="2h", show_default=True)
def probe(kernel, many, idle):
    click.echo(f"{kernel} {many} {idle}")


def test_an_old_spelling_works_and_is_not_shown():
    done = CliRunner().invoke(probe, ["--kind", "a", "--kernel=b", "--kind=c"])
    assert done.output == "('a', 'b', 'c') 3 7200.0\n"
    shown = CliRunner().invoke(probe, ["--help"]).output
    assert "--kind" not in shown and "--kernel" in shown


def test_help_names_values_and_defaults_as_they_are_typed():
    lines = [
        " ".join(line.split()) for line in CliRunner().invoke(probe, ["--help"]).output.splitlines()
    ]
    assert "--many N [default: 3; x>=1]" in lines
    assert "--idle TIME [default: 2h]" in lines


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500", 500),
        ("0.5MB", 500_000),
        ("20GB", 20 * 10**9),
        ("4GiB", 4 << 30),
        ("1k", 1000),
        ("2 TB", 2 * 10**12),
    ],
)
def test_sizes_have_units(text, size):
    assert Size().convert(text, None, None) == size


def test_a_size_is_larger_than_nothing():
    with pytest.raises(click.BadParameter, match="a size must be > 0, got '0GB'"):
        Size().convert("0GB", None, None)


@pytest.mark.parametrize("text", ["", "GB", "5 apples", "-1", "1PB", "1ib", "nan"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(click.BadParameter, match="is no size: write 500MB, 20GB or 4GiB"):
        Size().convert(text, None, None)
