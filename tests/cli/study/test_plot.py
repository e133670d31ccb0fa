"""`archive study plot`, as it is typed."""

from __future__ import annotations

import json

import pytest

from archive.cli.main import archive as root
from archive.cli.study.export import PlotFile
from archive.plots import kinds
from tests.support.commands import completed, shell
from tests.support.json_documents import faults
from tests.support.stores import evaluate


@pytest.fixture
def user(archive, store_settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with shell(store_settings, tmp_path) as opened:
        yield opened


def test_a_plot_is_a_file_that_is_not_replaced(archive, user):
    evaluate(archive, [0.5, 0.25, 0.75])
    told = user.types("study", "plot", "study").stderr
    path = user.folder / "study-best-so-far.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "study-best-so-far.png: best-so-far of 1 study" in told
    assert (
        "choose another name, or replace it with --force"
        in user.types("study", "plot", "study", code=2).stderr
    )
    about = json.loads(
        user.types(
            "study", "plot", "study", "--kind", "network-map", "-o", "x.svg", "--json"
        ).stdout
    )
    assert faults(about, PlotFile) == []
    assert (about["kind"], about["bytes"]) == (
        "network-map",
        (user.folder / "x.svg").stat().st_size,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "best"], "unknown kind of plot 'best': did you mean best-so-far"),
        (
            ["--kind", "wrong"],
            f"unknown kind of plot 'wrong': known: {', '.join(sorted(kinds.KINDS))}",
        ),
        (["-o", "x.gif"], "a plot is a file ending in .png, .svg, .pdf, got 'x.gif'"),
        (["--cost", "flops"], "cost is an option of value-and-cost, not of best-so-far"),
        (
            ["other", "--kind", "learning-curves"],
            "learning-curves plots one study at a time, got 2",
        ),
    ],
)
def test_mistakes_are_named_before_a_server_is_started(
    tmp_path, user, arguments, message, monkeypatch
):
    monkeypatch.setattr("archive.cli.study.export.open_archive", None)
    assert message in user.types("study", "plot", "study", *arguments, code=2).stderr


def test_kinds_are_completed_and_explained(user):
    assert completed(user, "archive study plot x --kind ") == list(kinds.KINDS)
    text = " ".join(root.get_command(None, "study").commands["plot"].help.split())
    for kind, about in kinds.KINDS.items():
        assert f"{kind} {about.summary}" in text
