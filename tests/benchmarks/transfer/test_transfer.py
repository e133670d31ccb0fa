"""`python -m tests.benchmarks transfer`: options that exclude each other, unknown names, and a matrix of a
user's tables."""

import json

import pytest

from archive import settings
from archive.api import connect
from archive.server import embedded
from tests.benchmarks import programs
from tests.support import java_only


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quick"], "write --matrix --quick"),
        (["--target", "transnas-object"], "write --matrix --target transnas-object"),
        (["--matrix", "--target", "transnas-object~0.005"], "did you mean transnas-object~0.003"),
        (["--task", "nbmacro"], "write --matrix --task nbmacro"),
        (["--matrix", "--quick", "--task", "nbmacro"], "write --seeds and --budget"),
        (
            ["--matrix", "--task", "nbmacro"],
            "needs two tasks or more that share a space, got nbmacro",
        ),
        (
            ["--matrix", "--quick", "--target", "nb201-cifar10"],
            "unknown target of the matrix 'nb201-cifar10'",
        ),
        (["--matrix", "--scenario", "searched"], "unknown scenario of the matrix 'searched'"),
        (
            ["--matrix", "--target", "nb201-cifar10", "--scenario", "nb201-cifar100-200-revers"],
            "did you mean nb201-cifar100-200-reversed",
        ),
        (["--scenario", "serched"], "unknown scenario 'serched': did you mean searched"),
    ],
)
@pytest.mark.usefixtures("official")
def test_what_cannot_be_is_one_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.setenv("ARCHIVE_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as ended:
        programs.main(["transfer", *arguments])

    lines = capsys.readouterr().err.strip().splitlines()
    assert (ended.value.code, len(lines)) == (2, 1)
    assert message in lines[0]
    assert not (tmp_path / "home" / "bench").exists()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of sixteen settings with two columns that agree on the best one, and another that has
    other settings."""
    path = tmp_path_factory.mktemp("table") / "settings.csv"
    rows = [f"{a},{b},{4 * a + b},{4 * a + b + 0.1 * (b == 1)}" for a in range(4) for b in range(4)]
    path.write_text("\n".join(["set:a,set:b,one,two", *rows]))
    (path.parent / "others.csv").write_text(
        "\n".join(["set:a,set:c,one", *(row.rpartition(",")[0] for row in rows)])
    )
    return path


@pytest.mark.whole
def test_a_matrix_of_the_columns_of_a_table(tmp_path, capsys, table):
    home = tmp_path / "home"
    tasks = [f"table:{table}#one", f"table:{table}#two~0.01"]
    numbers = ["--seeds", "1", "--budget", "6", "--shrink", "20", "--processes", "1", "--json"]
    chosen = [part for task in tasks for part in ("--task", task)]
    bench = settings.load(home=home / "bench", environment=java_only())
    try:
        with pytest.raises(SystemExit) as ended:
            programs.main(
                [
                    "--home",
                    str(home),
                    "transfer",
                    "--matrix",
                    *chosen,
                    *numbers,
                    "--target",
                    tasks[0],
                ]
            )

        assert ended.value.code == 0
        compared = json.loads(capsys.readouterr().out)["scenarios"]
        with connect(bench) as archive:
            names = archive.studies.names()
    finally:
        embedded.stop(bench)

    sources = ["50", "200", "200-reversed", "200-shuffled"]
    assert [row["scenario"] for row in compared] == [
        "cold",
        "cold-again-1",
        *(f"settings-two~0.01-{source}" for source in sources),
    ]
    assert {row["target"] for row in compared} == {tasks[0]}
    assert len(names) == 4 + 6
    assert not any("settings-one" in name for name in names if "source" in name)


@pytest.mark.usefixtures("official")
def test_tasks_without_a_common_space_are_refused(tmp_path, capsys, table):
    others = f"table:{table.parent / 'others.csv'}#one"
    for arguments, message in (
        (
            [f"table:{table}#one", f"table:{table}#one"],
            "needs two tasks or more that share a space",
        ),
        (
            [f"table:{table}#one", "nbmacro"],
            "share no space: one has a set where the other has a chain",
        ),
        (
            [f"table:{table}#one", "nb201-cifar10"],
            "share no space: one has choices, the other has nasbench201",
        ),
        ([f"table:{table}#one", others], "share no space: one has b '0' where the other has c '0'"),
        ([f"table:{table}#one", f"table:{table}#two"], "at most the 16 networks of settings-one"),
    ):
        chosen = [part for task in arguments for part in ("--task", task)]
        with pytest.raises(SystemExit) as ended:
            programs.main(["--home", str(tmp_path / "home"), "transfer", "--matrix", *chosen])

        lines = capsys.readouterr().err.strip().splitlines()
        assert (ended.value.code, len(lines)) == (2, 1)
        assert message in lines[0]
