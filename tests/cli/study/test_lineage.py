"""Trees of runs on terminals of any width."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from archive.cli.study.lineage import tree_lines
from archive.queries.tried.tree import RunTree, TreeRun
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs
from tests.support.commands import shell
from tests.support.json_documents import check


@st.composite
def trees(draw):
    """Draw trees of up to 60 runs, in any shape, with any texts."""
    count = draw(st.integers(1, 60))
    deep = draw(st.booleans())
    runs = []
    for number in range(count):
        least = max(-1, number - 2) if deep else -1
        parent = draw(st.integers(least, number - 1))
        value = draw(st.none() | st.floats(allow_nan=False))
        above = None if parent < 0 else f"s#{parent:05d}"
        runs.append(
            TreeRun(
                run=f"s#{number:05d}",
                parent=above,
                above=above,
                skipped=0 if above is None else draw(st.integers(0, 3)),
                state="failed" if value is None else "complete",
                value=value,
                gain=draw(st.none() | st.floats(-10, 10)),
                children=0,
                hidden=draw(st.integers(0, 2)),
                hidden_best=draw(st.none() | st.just(0.5)),
                is_on_best_path=number == 0,
                motivation=draw(st.none() | st.text(max_size=40)),
                operations=draw(st.lists(st.text(max_size=10), max_size=2)),
                reason=None,
            )
        )

    return RunTree("s", "loss", "minimise", count, 1, 0, None, [], runs)


@given(trees(), st.integers(20, 200))
def test_no_line_is_wider_than_the_terminal_and_no_run_is_lost(tree, width):
    lines = [line.plain for line in tree_lines(tree, width)]
    assert max(map(cell_len, lines)) <= width
    drawn = 0
    counted = 0
    for line in lines:
        if any(mark in line for mark in "●○×") and "#" in line:
            drawn += 1

        words = line.split()
        for first, second in pairwise(words):
            if second.rstrip(",") == "more" and first.isdigit():
                counted += int(first)

            if second in ("run", "runs") and "⋮" in line:
                counted += int(first)

    everything = len(tree.runs) + sum(run.hidden + run.skipped for run in tree.runs)
    texts = "".join(f"{run.motivation}{run.operations}" for run in tree.runs)
    if not any(mark in texts for mark in "●○×⋮#") and "more" not in texts:
        assert drawn + counted == everything


def test_a_tree_in_the_terminal(archive, store_settings, tmp_path):
    rows = [
        {"id": "a", "up": None, "why": "baseline", "loss": 3.0},
        {"id": "b", "up": "a", "why": "wider", "loss": 3.5},
        {"id": "c", "up": "a", "why": "muon", "loss": 2.0},
        {"id": "d", "up": "c", "why": "wild", "loss": None},
        {"id": "e", "up": "c", "why": "tuned", "loss": 1.5},
        {"id": "f", "up": None, "why": "alone", "loss": 9.0},
    ]
    mapping = RunMapping(
        "loss", "minimise", identity="id", parent="up", motivation="why", values=()
    )
    import_runs(archive, "s", rows, mapping)
    with shell(store_settings, tmp_path) as user:
        drawn = user.types("study", "lineage", "s").stdout.splitlines()
        assert [line.rstrip() for line in drawn] == [
            "● #0         3        baseline",
            "├─○ #1     3.5  -0.5  wider",
            "● #2         2    +1  muon",
            "├─× #3  failed        wild; the run has no value of loss",
            "● #4       1.5  +0.5  tuned",
            "",
            "○ #5         9        alone",
        ]
        short = user.types("study", "lineage", "s", "--limit", "3")
        assert "3 further runs, of them 1 tree: --limit shows more" in short.stderr
        check("study lineage", user.types("study", "lineage", "s", "--json").stdout)
        user.environment["ARCHIVE_PLAIN"] = "1"
        spoken = user.types("study", "lineage", "s", "--run", "2", "--limit", "2").stdout
        assert "#2 from #0: loss 2, +1, on the way to the best run, 2 more below; muon" in spoken
        wrong = user.types("study", "lineage", "s", "--run", "7", code=2).stderr
        assert "unknown run 's#00007'" in wrong
