"""The tree of the runs of a study, as rows of which a user opens parts.

The way to the best run of a tree is in sight, without indentation; what else was tried from a run on it
is folded below that run. An answer is bounded, whatever the number of runs.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of, choice, named_study, news_of
from archive.dashboard.endpoints.run_lines import describe_runs
from archive.dashboard.feeds.run_columns import RunColumns
from archive.dashboard.feeds.study import ABOUT
from archive.dashboard.wire import json_response
from archive.errors import UsageError
from archive.queries.tried.lines import RunLines
from archive.values import whole_number

MOST_ROWS = 500
"""Rows of the tree on the page."""

TREES = 5
"""Trees whose lines are shown at first; each further one is opened by the user."""

SIDES = 10
"""Changes of a run that are shown first, the best ones."""

FIRST, LAST = 2, 10
"""Runs at both ends of a long line; those between are folded."""

MOST_OPEN = 200
"""Opened runs that an address names; the page shows no more of them than its rows."""


def _tree(request: Request) -> Response:
    """Return the rows of the tree of runs, from the top, with what the user has opened.

    `open` has the numbers of runs whose other changes are shown, `whole` of runs whose line, and whose
    changes, are shown without a fold.
    """
    archive = archive_of(request)
    name = named_study(request)
    opened = _numbers_of(request, "open")
    whole = _numbers_of(request, "whole")
    every = choice(request, "trees", ("first", "all"), "first") == "all"
    with news_of(request).study(name) as feed:
        tree = RunColumns.of(archive.connection, feed).tree()
        best = feed.entry(ABOUT)["best"]

    outline = RunOutline(tree, opened, whole)
    shown = tree.roots if every else tree.roots[:TREES]
    for root in shown:
        outline.add_tree(root)

    numbers = [row["number"] for row in outline.rows if row["kind"] == "run"]
    lines = describe_runs(archive, name, numbers)
    rows = []
    for row in outline.rows:
        if row["kind"] != "run":
            rows.append(row)
        elif row["number"] in lines:
            rows.append({**lines[row["number"]], **row})

    return json_response(
        {
            "rows": rows,
            "runs": len(tree),
            "trees": len(tree.roots),
            "shown": len(shown),
            "lone": tree.lone,
            "best": None if best is None else best["number"],
            "cut": outline.cut,
        }
    )


def _numbers_of(request: Request, name: str) -> set[int]:
    numbers = set()
    for text in request.query_params.getlist(name)[:MOST_OPEN]:
        number = whole_number(text)
        if number is None:
            raise UsageError(f"{name} must be the number of a run, got {text!r:.80}")

        numbers.add(number)

    return numbers


class RunOutline:
    """The tree as rows, of which a user opens parts.

    Attributes:
        rows: The rows; a `run` has its number, its level and what is below it, a `fold` how many runs
            it stands for, and `of`, the run that opens it.
        cut: Whether rows are left out, because there would be too many.
    """

    def __init__(self, tree: RunLines, opened: set[int], whole: set[int]) -> None:
        self.rows: list[dict[str, Any]] = []
        self.cut = False
        self._tree = tree
        self._opened = opened
        self._whole = whole

    def add_tree(self, root: int) -> None:
        """Add a run without a parent, with the way to its best run, and what the user has opened."""
        # A stack instead of recursion: a tree may be as deep as it is large.
        stack = [("root", root, 1)]
        while stack:
            kind, number, level = stack.pop()
            if len(self.rows) >= MOST_ROWS:
                self.cut = True
                return

            if kind == "fold":
                runs = len(self._tree.line(number)) - FIRST - LAST
                self.rows.append({"kind": kind, "of": number, "level": level, "runs": runs})
            elif kind == "more":
                runs = len(self._tree.sides(number)) - SIDES
                self.rows.append({"kind": kind, "of": number, "level": level, "runs": runs})
            else:
                stack += reversed(self._add_run(kind, number, level))

    def _add_run(self, kind: str, number: int, level: int) -> list[tuple[str, int, int]]:
        """Add the row of a run, and return what follows it.

        Args:
            kind: `root`, `side` for the first run of a side line, or `step` for a later run of a line.
            number: Number of the run.
            level: Depth of its line, from 1.
        """
        sides = self._tree.sides(number)
        line = [number] if kind == "step" else self._tree.line(number)
        is_opened = number in self._opened
        below = sum(map(self._tree.size, sides))
        folded = kind == "side" and len(line) > 1
        if folded:
            below = self._tree.size(number) - 1

        self.rows.append(
            {
                "kind": "run",
                "number": number,
                "level": level,
                "below": below,
                "opened": is_opened and below > 0,
                "goal": line[-1] if folded else None,
            }
        )
        following: list[tuple[str, int, int]] = []
        if is_opened:
            shown = sides if number in self._whole else sides[:SIDES]
            following += [("side", side, level + 1) for side in shown]
            if len(shown) < len(sides):
                following.append(("more", number, level + 1))

        if kind == "root" or (folded and is_opened):
            following += self._rest(line, level)

        return following

    def _rest(self, line: list[int], level: int) -> list[tuple[str, int, int]]:
        """Return the runs of a line behind its head, those in the middle folded."""
        rest = [("step", number, level) for number in line[1:]]
        if len(line) <= FIRST + LAST + 1 or line[0] in self._whole:
            return rest

        return [*rest[: FIRST - 1], ("fold", line[0], level), *rest[-LAST:]]


ROUTES = [Route("/api/study/run_tree", _tree)]
