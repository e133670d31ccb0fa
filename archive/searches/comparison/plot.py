"""Regret curves as a picture: one panel per problem.

The panels show the mean over seeds with a band of one standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.errors import SettingsError, UsageError
from archive.searches.comparison.standings import ContestantResult, by_problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".pdf", ".png")
STYLES = ("-", "--", ":", "-.")


def check(path: Path) -> None:
    """Check that the plot can be drawn, before hours of searches.

    Raises:
        UsageError: The file name has no extension of a picture format, or its folder does not
            exist.
        SettingsError: matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"the name of a plot must end in {', '.join(FORMATS)}, got {str(path)!r}")

    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {path.absolute().parent} for the plot")

    _matplotlib()


def draw(rows: Sequence[ContestantResult], path: Path) -> None:
    """Write the curves to a file, in the format that its name ends in.

    Raises:
        SettingsError: matplotlib is not installed.
        UsageError: The file cannot be written.
    """
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure

    problems = by_problem(rows)
    # The same curves give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "archive", "font.size": 9}):
        figure = Figure(figsize=(5.5 * max(1, len(problems)), 4), layout="constrained")
        panels = figure.subplots(1, max(1, len(problems)), squeeze=False)[0]
        for panel, ((problem, protocol), standings) in zip(panels, problems.items(), strict=False):
            _panel(panel, f"{problem} ({protocol})", standings)

        try:
            figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
        except OSError as error:
            raise UsageError(f"cannot write the plot {path}: {error.strerror}") from None


def _panel(panel: Axes, title: str, standings: Sequence[ContestantResult]) -> None:
    for number, row in enumerate(standings):
        queries = np.arange(1, len(row.curve) + 1)
        mean = row.curve[:, 0]
        error = np.nan_to_num(row.curve[:, 1])
        style = STYLES[number // 10 % len(STYLES)]
        line = panel.plot(
            queries, mean, style, label=row.contestant, color=f"C{number % 10}", linewidth=1.3
        )[0]
        band = np.maximum(mean - error, 0), mean + error
        panel.fill_between(queries, *band, color=line.get_color(), alpha=0.18, linewidth=0)

    # Regret spans orders of magnitude and ends at zero: a logarithm that becomes linear where it is
    # of no interest.
    threshold = 1e-3 * max(float(row.curve[0, 0]) for row in standings) or 1.0
    panel.set_yscale("symlog", linthresh=threshold)
    panel.set_ylim(bottom=0)
    panel.set_xlim(1, max(len(row.curve) for row in standings))
    panel.set(
        title=title, xlabel="queries", ylabel=f"regret ({standings[0].unit}), mean ± standard error"
    )
    panel.grid(alpha=0.25)
    panel.legend(fontsize=7)


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise SettingsError("plots need matplotlib: pip install 'nas-archive[bench]'") from None

    return matplotlib
