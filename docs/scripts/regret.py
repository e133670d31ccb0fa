"""The picture and the tables of results on the pages, from a run of `archive bench search`.

    archive bench search --run picture --agent … --until-best          measures; hours, the same command goes on
    python docs/scripts/regret.py --collect picture --commit …         reads the run into docs/results/regret.json
    python docs/scripts/regret.py                                      draws docs/regret.svg, writes the tables

The curves are those of the studies in the archive of the run, rounded to 0.0001 accuracy points.
Drawing needs the standard library alone, so that the same results give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
from pathlib import Path
from typing import Any

from archive.benchmarks.measurement import significant

DOCS = Path(__file__).resolve().parents[1]
RESULTS = DOCS / "results" / "regret.json"
PICTURE = DOCS / "regret.svg"

AGENTS = ("portfolio", "tw", "tw:preset=paper", "regularized-evolution", "random")
TASK = "nb201-cifar10"
SEEDS = 20
BUDGET = 200
STARTS = 20
METHODS = {
    "portfolio": "this archive's",
    "tw": "this archive's variant of tree-Wasserstein",
    "tw:preset=paper": "tree-Wasserstein as published",
    "regularized-evolution": "baseline",
    "random": "baseline",
}
COLOURS = {
    "portfolio": "#3f51b5",
    "tw": "#00897b",
    "tw:preset=paper": "#e65100",
    "regularized-evolution": "#8e24aa",
    "random": "#757575",
}
QUERIES = (50, 100, 200)

WIDTH = 720
HEIGHT = 360
LEFT = 56
RIGHT = 190
TOP = 34
BOTTOM = 44
TICKS = (0, 0.1, 0.3, 1, 3, 10)
LINEAR = 0.05
"""Regret spans orders of magnitude and ends at 0: the axis is log(1 + regret / LINEAR)."""


def collect(run: str, machine: str, date: str, commit: str) -> None:
    """Read a finished run from the archive of `archive bench search` into the file of results."""
    from dataclasses import replace

    from archive import connect, settings
    from archive.cli.bench.command import FOLDER
    from archive.searches.comparison.plan import ComparisonPlan, contestant, table_problem
    from archive.searches.comparison.regret import traces
    from archive.searches.comparison.standings import standings

    plan = ComparisonPlan(
        contestants=[contestant(name) for name in AGENTS],
        problems=[table_problem(TASK)],
        seeds=SEEDS,
        budget=BUDGET,
        batch=1,
        starts=STARTS,
        run=run,
        until_best=True,
    )
    own = settings.load()
    with connect(replace(own, home=own.home / FOLDER)) as archive:
        recorded = traces(archive, plan.jobs)

    unfinished = [
        job.study.name
        for job, one in zip(plan.jobs, recorded, strict=True)
        if not job.is_finished(one.values)
    ]
    if unfinished:
        raise SystemExit(
            f"{len(unfinished)} searches of the run {run!r} are not finished, the "
            f"first: {unfinished[0]}"
        )

    rows = [
        {
            "agent": row.contestant,
            "mean": [float(f"{value:.4g}") for value in row.curve[:, 0]],
            "error": [float(f"{value:.4g}") for value in row.curve[:, 1]],
            "queries_to_best": list(row.to_best),
        }
        for row in standings(plan.jobs, recorded)
    ]
    named = " ".join(f"--agent {shlex.quote(name)}" for name in AGENTS)
    head = {
        "command": f"archive bench search {named} --until-best",
        "machine": machine,
        "date": date,
        "commit": commit,
        "protocol": plan.problems[0].protocol,
        "seeds": SEEDS,
    }
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    RESULTS.write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def results() -> dict[str, Any]:
    """Return the results on file."""
    measured: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return measured


def picture(measured: dict[str, Any]) -> str:
    """Return the curves as SVG: mean regret by queries, with a band of one standard error."""
    bottom = HEIGHT - BOTTOM
    right = WIDTH - RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#222">',
        (
            f"<title>{TASK}, {measured['protocol']}: "
            f"regret by queries, mean of {measured['seeds']} seeds</title>"
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#fff"/>',
        (
            f'<rect x="{LEFT}" y="{TOP}" width="{_x(STARTS) - LEFT:.1f}" height="{bottom - TOP}" '
            'fill="#f2f2f2"/>'
        ),
        f'<text x="{LEFT}" y="20" font-weight="600">CIFAR-10 of NAS-Bench-201 '
        f"({measured['protocol']}): "
        f"regret in accuracy points, mean of {measured['seeds']} seeds</text>",
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">queries '
        f"(the first {STARTS} are random, the same for all)</text>",
    ]
    for value in TICKS:
        parts.append(f'<path d="M{LEFT} {_y(value):.1f}H{right}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{_y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
        )

    for value in (1, 50, 100, 150, 200):
        parts.append(
            f'<text x="{_x(value):.1f}" y="{bottom + 16}" text-anchor="middle">{value}</text>'
        )

    for row in measured["rows"]:
        parts += _curve(row)

    parts += _legend(measured["rows"])
    return "\n".join([*parts, "</svg>", ""])


def table(measured: dict[str, Any]) -> str:
    """Return the table of results as Markdown, with its source below."""
    lines = [
        (
            f"| agent | method | regret after {' / '.join(map(str, QUERIES))} | median queries to "
            "the best | found it |"
        ),
        "|---|---|---|---|---|",
    ]
    for row in measured["rows"]:
        after = " / ".join(significant(row["mean"][queries - 1]) for queries in QUERIES)
        to_best = sorted(math.inf if one is None else one for one in row["queries_to_best"])
        median = (to_best[(len(to_best) - 1) // 2] + to_best[len(to_best) // 2]) / 2
        shown = f"{median:g}" if math.isfinite(median) else "–"
        times = sum(math.isfinite(one) for one in to_best)
        lines.append(
            f"| `{row['agent']}` | {METHODS[row['agent']]} | {after} | {shown} | {times} of "
            f"{measured['seeds']} |"
        )

    return "\n".join(
        [
            (
                "Mean regret on CIFAR-10 of NAS-Bench-201, in points of accuracy below the best "
                "cell: validation accuracy"
            ),
            (
                "after 12 epochs of one seed, without noise; isomorphic cells without dead layers "
                "count once. Each search"
            ),
            (
                f"has {measured['seeds']} seeds; "
                f"all agents begin with the same {STARTS} random cells of a seed."
            ),
            (
                "The defaults were chosen on this table, "
                "which favours them over published settings and baselines."
            ),
            "",
            *lines,
            "",
            f"`{measured['command']}`",
            f"({measured['date']}, `{measured['commit']}`, {measured['machine']}).",
        ]
    )


def replaced(text: str, mark: str, content: str) -> str:
    """Return a page's text with new content between two marks.

    The marks are `<!-- mark -->` and `<!-- /mark -->`.
    """
    begin = f"<!-- {mark} -->"
    end = f"<!-- /{mark} -->"
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}\n{content}\n{end}{tail}"


PAGES = {DOCS.parent / "README.md": "results", DOCS / "benchmarks.md": "picture"}


def _curve(row: dict[str, Any]) -> list[str]:
    colour = COLOURS[row["agent"]]
    means = row["mean"]
    errors = [error if error == error else 0.0 for error in row["error"]]
    upper = [mean + error for mean, error in zip(means, errors, strict=True)]
    lower = [max(mean - error, 0.0) for mean, error in zip(means, errors, strict=True)]
    band = f"{_line(upper)}L{_line(lower, backwards=True)[1:]}Z"
    return [
        f'<path d="{band}" fill="{colour}" fill-opacity=".12"/>',
        f'<path d="{_line(means)}" fill="none" stroke="{colour}" stroke-width="1.8"/>',
    ]


def _line(values: list[float], backwards: bool = False) -> str:
    """Return a path through the values after 1, 2, … queries.

    It has no inner points of level stretches.
    """
    last = len(values) - 1
    points = [
        (queries + 1, value)
        for queries, value in enumerate(values)
        if queries in (0, last) or not values[queries - 1] == value == values[queries + 1]
    ]
    return "M" + "L".join(
        f"{_x(at):.1f} {_y(value):.1f}" for at, value in points[:: -1 if backwards else 1]
    )


def _legend(rows: list[dict[str, Any]]) -> list[str]:
    parts = []
    for place, row in enumerate(rows):
        y = TOP + 14 + 40 * place
        x = WIDTH - RIGHT + 14
        colour = COLOURS[row["agent"]]
        parts.append(f'<path d="M{x} {y - 4}h16" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 22}" y="{y}" font-weight="600">{row["agent"]}</text>')
        kind = "as published" if "paper" in row["agent"] else METHODS[row["agent"]].split(" of ")[0]
        parts.append(f'<text x="{x + 22}" y="{y + 15}" fill="#666">{kind}</text>')

    return parts


def _x(queries: float) -> float:
    return LEFT + (queries - 1) / (BUDGET - 1) * (WIDTH - RIGHT - LEFT)


def _y(regret: float) -> float:
    share = math.log1p(regret / LINEAR) / math.log1p(20 / LINEAR)
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


def main() -> None:
    """Collect a run if one is named; then draw, and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--collect", metavar="RUN")
    for name in ("machine", "date", "commit"):
        parser.add_argument(f"--{name}", default="unknown")

    options = parser.parse_args()
    if options.collect:
        collect(options.collect, options.machine, options.date, options.commit)

    measured = results()
    PICTURE.write_text(picture(measured), encoding="utf-8")
    for page, mark in PAGES.items():
        page.write_text(
            replaced(page.read_text(encoding="utf-8"), mark, table(measured)), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
