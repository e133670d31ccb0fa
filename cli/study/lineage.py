"""`archive study lineage`: which run came from which, as trees in the terminal.

    ● #0      3.28            baseline
    ├─○ #1    3.31    -0.03   wider
    │ └─ 4 more, best 3.305
    ├─○ #3    3.30    -0.02   deeper
    ● #2      3.25    +0.03   muon
    ● #7      3.10    +0.15   muon, lr 0.02

A run came from the one above it in its column, and the first run of a branch from the one that the
branch leaves. Each column goes on with the way to its best run, so that a long lineage needs one
column.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich.text import Text

from archive import words
from archive.cli.names import STUDY
from archive.cli.parameters import Count
from archive.cli.render import (
    console,
    is_plain,
    json_option,
    open_archive,
    print_json,
    print_line,
    print_message,
    print_texts,
    show,
    text,
)
from archive.values import counted

if TYPE_CHECKING:
    from archive.queries.tried.tree import RunTree, TreeRun

_LEAST_TEXT = 16
"""Cells that the deepest branch leaves for its run."""
_GAP = 2


@click.command("lineage", short_help="Show which run came from which, and what each brought.")
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option("--run", "number", type=Count(0), help="The tree of one run, by its number.")
@click.option("--limit", type=Count(1), default=40, show_default=True, help="Runs to show.")
@json_option
@click.pass_context
def lineage(ctx: click.Context, name: str, number: int | None, limit: int, as_json: bool) -> None:
    """Show the runs of a study as trees: from which run each came, its value and what it brought.

    A run came from the one above it in its column, the first of a branch from the one that the
    branch leaves. ● is the way to the best run, × a run that failed. The best runs are shown with
    all that they came from; the others are counted. The gain is the difference of the means over
    repeats, + is better.

    Of a search, the parent of a network is the earlier proposal that it was made of.

    Example: archive study lineage tuning --run 12
    """
    from archive.queries.tried.tree import read_tree

    with open_archive(ctx) as archive:
        tree = read_tree(archive.connection, name, number, most=limit)

    if as_json:
        print_json(tree)
        return

    if not tree.runs:
        print_message(f"the study {name} has no runs yet")
        return

    if is_plain():
        for run in tree.runs:
            print_line(_sentence(tree, run))
    else:
        print_texts(tree_lines(tree, console(sys.stdout).width))

    left_out = tree.total - len(tree.runs)
    if left_out:
        hidden = f", of them {counted(tree.hidden_trees, 'tree')}" if tree.hidden_trees else ""
        print_message(f"{counted(left_out, 'further run')}{hidden}: --limit shows more")


@dataclass(frozen=True)
class _Line:
    """A line of a tree: its branch and name, then value and gain, and words."""

    head: str
    value: str = ""
    gain: str = ""
    description: str = ""
    weight: str = ""


def tree_lines(tree: RunTree, width: int) -> list[Text]:
    """Return the lines of trees, each at most `width` cells wide.

    Args:
        tree: The trees.
        width: Cells of a line, at least 20.
    """
    lines = _Drawing(tree, max(0, (width - _LEAST_TEXT) // 2)).lines()
    # A deep branch may move its own value to the right, and no other one.
    heads = min(width // 2, max(len(line.head) for line in lines if line.value))
    values = max(len(line.value) for line in lines)
    gains = max(len(line.gain) for line in lines)
    drawn = []
    for line in lines:
        parts = [line.head.ljust(heads)]
        if line.value or line.gain or line.description:
            parts.append(line.value.rjust(values))
            if gains:
                parts.append(line.gain.rjust(gains))

            parts.append(line.description)

        content = text(((" " * _GAP).join(parts).rstrip(), line.weight))
        content.truncate(width, overflow="ellipsis")
        drawn.append(content)

    return drawn


class _Drawing:
    """Lines of trees with at most so many columns of branches."""

    def __init__(self, tree: RunTree, columns: int) -> None:
        self._tree = tree
        self._columns = columns
        self._below: dict[str | None, list[TreeRun]] = defaultdict(list)
        for run in tree.runs:
            self._below[run.above].append(run)

        self._rank = self._ranks()

    def lines(self) -> list[_Line]:
        """Return the lines, the tree of the best run first."""
        lines: list[_Line] = []
        roots = sorted(self._below[None], key=lambda run: self._rank[run.run])
        # Branches that wait: the first run, its prefix, and the prefix of what follows.
        waiting = [(root, "", "") for root in reversed(roots)]
        while waiting:
            run, first_prefix, prefix = waiting.pop()
            if run.above is None and lines:
                # A run below another one in its column would have come from it.
                lines.append(_Line(""))

            if run.skipped:
                lines.append(_Line(f"{first_prefix}⋮ {counted(run.skipped, 'run')}"))
                first_prefix = prefix

            lines.append(self._line(first_prefix, run))
            below = sorted(self._below[run.run], key=lambda child: self._rank[child.run])
            if below:
                # The way to the best run goes on in this column, after the branches.
                waiting.append((below[0], prefix, prefix))

            branches = sorted(below[1:], key=lambda child: child.run)
            mark = "├─" if below else "└─"
            if len(prefix) // 2 < self._columns:
                for branch in reversed(branches):
                    waiting.append((branch, f"{prefix}├─", f"{prefix}│ "))

                if run.hidden:
                    lines.append(self._hidden(f"{prefix}{mark}", run.hidden, run.hidden_best))
            else:
                count, best = self._fold(branches)
                if count + run.hidden:
                    best = self._better(best, run.hidden_best)
                    lines.append(self._hidden(f"{prefix}{mark}", count + run.hidden, best))

        return lines

    def _ranks(self) -> dict[str, tuple[float, str]]:
        """Return the rank of the best run below each run, or of itself; smaller is better."""
        ranks: dict[str, tuple[float, str]] = {}
        for run in reversed(self._tree.runs):
            ranks_below = [ranks[child.run] for child in self._below[run.run]]
            ranks[run.run] = min([(self._cost(run.value), run.run), *ranks_below])

        if self._tree.best is not None:
            for run in self._tree.runs:
                if run.is_on_best_path:
                    ranks[run.run] = (-float("inf"), run.run)

        return ranks

    def _cost(self, value: float | None) -> float:
        if value is None or value != value:
            return float("inf")

        return value if self._tree.direction == "minimise" else -value

    def _better(self, first: float | None, second: float | None) -> float | None:
        return min((first, second), key=self._cost)

    def _fold(self, branches: Sequence[TreeRun]) -> tuple[int, float | None]:
        """Return the number of runs of branches without room, and the best value of them."""
        waiting = list(branches)
        count = 0
        best = None
        while waiting:
            run = waiting.pop()
            count += 1 + run.skipped + run.hidden
            best = self._better(best, self._better(run.value, run.hidden_best))
            waiting += self._below[run.run]

        return count, best

    def _line(self, prefix: str, run: TreeRun) -> _Line:
        mark = "●" if run.is_on_best_path else "×" if run.state == "failed" else "○"
        return _Line(
            head=f"{prefix}{mark} {_number(run)}",
            value=show(run.value) if run.value is not None else run.state,
            gain="" if run.gain is None else f"{run.gain:+.3g}",
            description=_describe(run),
            weight="bold" if run.run == self._tree.best else "",
        )

    def _hidden(self, prefix: str, count: int, best: float | None) -> _Line:
        best_shown = "" if best is None else f", best {show(best)}"
        return _Line(f"{prefix} {count} more{best_shown}")


def _number(run: TreeRun) -> str:
    """Return the number of a run in its study."""
    return f"#{int(run.run.rpartition('#')[2])}"


def _describe(run: TreeRun) -> str:
    """Return the reason for a run, what it changes, and why it failed."""
    operations = ", ".join(map(words.operation, run.operations))
    return "; ".join(part for part in (run.motivation, operations, run.reason) if part)


def _sentence(tree: RunTree, run: TreeRun) -> str:
    """Return a run as a line to be read aloud."""
    outcome = run.state if run.value is None else f"{tree.objective} {show(run.value)}"
    origin = "" if run.parent is None else f" from #{int(run.parent.rpartition('#')[2])}"
    parts = [f"{_number(run)}{origin}: {outcome}"]
    if run.gain is not None:
        parts.append(f"{run.gain:+.3g}")

    if run.is_on_best_path:
        parts.append("on the way to the best run")

    if run.hidden:
        parts.append(f"{run.hidden} more below")

    description = _describe(run)
    return ", ".join(parts) + (f"; {description}" if description else "")
