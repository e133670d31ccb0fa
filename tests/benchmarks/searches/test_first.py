"""`python -m tests.benchmarks first`, as a user types it: real trainings over two seeds, a repeated command,
refusals."""

from __future__ import annotations

import json

import pytest

from archive import settings
from archive.api import connect
from archive.server import embedded
from tests.benchmarks import programs
from tests.benchmarks.searches.gains import SeedGain, medians
from tests.support import java_only

OPTIONS = [
    "--agent",
    "rand:n_initial=2",
    "--space",
    "mlp",
    "--seeds",
    "2",
    "--budget",
    "3",
    "--processes",
    "1",
]


@pytest.fixture
def bench(home):
    """Settings of the archive of the benchmarks in a home of the test's own."""
    own = settings.load(home=home.home / "bench", environment=java_only())
    yield own
    if own.home.is_dir():
        embedded.stop(own)


@pytest.mark.whole
@pytest.mark.lasts(10)
def test_every_seed_is_compared_with_its_initial_networks(home, bench, capsys, monkeypatch):
    monkeypatch.setenv("ARCHIVE_HOME", str(home.home))
    found = json.loads(types(capsys, *OPTIONS, "--json").out)
    assert [found[name] for name in ("agent", "task", "protocol", "space", "budget")] == [
        "rand:n_initial=2", "digits", "digits/small", "mlp", 3
    ]  # fmt: skip
    with connect(bench) as archive:
        names = sorted(archive.studies.names())
        values = [[one.value for one in archive.studies.evaluations(name)] for name in names]

    assert [row["seed"] for row in found["seeds"]] == [0, 1] and len(names) == 2
    for row, of_seed in zip(found["seeds"], values, strict=True):
        assert (row["initial"], row["evaluations"], len(of_seed)) == (2, 3, 3)
        assert (row["initial_best"], row["best"]) == (max(of_seed[:2]), max(of_seed))
        assert row["gain"] == row["best"] - row["initial_best"]
        assert of_seed[row["found_at"] - 1] == row["best"]

    # Another seed trains the same pool to other values.
    assert values[0][:2] != values[1][:2]
    # What is finished is only read; a table shows the same.
    shown = types(capsys, *OPTIONS)
    assert "0 not finished" in shown.err
    assert (
        f"{found['medians']['better']} of 2 searches found a better network than all initial ones"
    ) in shown.out


def types(capsys, *options):
    """Run the command in this process, which spares the start of another one; trainings have their
    own."""
    with pytest.raises(SystemExit) as end:
        programs.main(["first", *options])

    shown = capsys.readouterr()
    assert end.value.code == 0, shown.err
    return shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--task", "diabetes", "--protocol", "diabetes/1+morph"],
            "without inherited weights, got 'diabetes/1+morph'",
        ),
        (["--protocol", "digits/9"], "digits/small"),
        (["--agent", "nasbt"], "did you mean nasbot"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_a_server_starts(
    home, monkeypatch, capsys, options, message
):
    monkeypatch.setenv("ARCHIVE_HOME", str(home.home))
    with pytest.raises(SystemExit) as end:
        programs.main(["first", *options])

    assert end.value.code == 2
    assert message in capsys.readouterr().err
    assert not (home.home / "bench").exists()


def test_medians_are_of_the_seeds_and_count_those_that_gained():
    rows = [
        SeedGain(seed, 2, 0.5, 0.5 + gain, gain, 3, 4, 1.0)
        for seed, gain in enumerate([0.25, 0.0, 0.125])
    ]
    found = medians(rows)
    assert (found.seeds, found.better, found.initial_best, found.best, found.gain) == (
        3,
        2,
        0.5,
        0.625,
        0.125,
    )
