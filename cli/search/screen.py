"""A running study as the lines of a terminal: head, best result, totals, and a table.

The best result and the totals stand above the table, and the row of the best result stays when
newer rows take its place. A terminal that is too narrow gets fewer columns; no word is broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.text import Text

from archive.cli.render import span, text
from archive.cli.render.layout import GAP, fit_words, fold_words, table_lines
from archive.store.metric_names import own_unit_metric
from archive.store.records import State
from archive.store.studies.studies import UNBOUNDED
from archive.values import MOST_SETTINGS, counted, short_settings

if TYPE_CHECKING:
    from archive.searches.pace import Pace
    from archive.store.snapshots import ProposalView, Snapshot

ROWS = 14
"""Most rows of the latest proposals."""
MOST_LINES = 2
"""Most lines of the best result with its configuration."""
CONFIGURATION = 32
"""Width of configurations for which other columns are left out."""
NUMBER = "#"
SEPARATOR = " · "

COLOURS = {
    State.WAITING: "dim",
    State.RUNNING: "cyan",
    State.COMPLETE: "green",
    State.PRUNED: "yellow",
    State.FAILED: "red",
}


@dataclass(frozen=True)
class ScreenContents:
    """What a terminal shows of a running study.

    Attributes:
        snapshot: The study.
        about: Agent, task and space of the search, in words.
        place: Place of the archive; left out where the line has no room for it.
        epochs: Maximum number of epochs of a training; None where it is unknown.
        warm: Number of observations from other studies.
        elapsed: Seconds since the search began; None where unknown.
        pace: Its pace; None before the first result.
        notes: Lines below the table.
    """

    snapshot: Snapshot
    about: str
    place: str = ""
    epochs: int | None = None
    warm: int = 0
    elapsed: float | None = None
    pace: Pace | None = None
    notes: Sequence[str] = field(default_factory=tuple)


def screen_lines(contents: ScreenContents, width: int, height: int) -> list[Text]:
    """Return the lines of a terminal.

    Args:
        contents: What is shown.
        width: Columns of the terminal.
        height: Lines of the terminal; head and best result are shown on any.
    """
    snapshot = contents.snapshot
    head = [*_title(contents, width), *_best_lines(snapshot, width)]
    head += map(text, join_parts(totals(contents), width))
    notes = []
    for note in contents.notes:
        notes += _fold(text((note, "yellow")), width)

    # The headings, their rule, and the line of the cursor.
    rows = height - len(head) - len(notes) - 3
    table = _table(contents, width, min(max(rows, 1), ROWS))
    return [*head, *table, *notes]


def totals(contents: ScreenContents) -> Iterator[str]:
    """Yield the parts of the line about the progress of a study."""
    snapshot = contents.snapshot
    counts = snapshot.counts
    evaluated = counts[State.COMPLETE] + counts[State.PRUNED]
    budget = snapshot.study.budget
    if budget < UNBOUNDED:
        yield f"{evaluated} of {counted(budget, 'evaluation')}"
    else:
        yield counted(evaluated, "evaluation")

    if counts[State.PRUNED]:
        yield f"{counts[State.PRUNED]} of them pruned"

    for state in (State.FAILED, State.RUNNING, State.WAITING):
        if counts[state]:
            yield f"{counts[state]} {state.value.lower()}"

    if contents.warm:
        yield f"{counted(contents.warm, 'observation')} from other studies"

    if contents.elapsed is not None:
        yield f"{span(contents.elapsed)} elapsed"

    if contents.pace is not None:
        if contents.pace.remaining:
            yield f"about {span(contents.pace.remaining)} left"

        yield describe_rate(contents.pace.per_second)


def describe_rate(per_second: float) -> str:
    """Return a rate in the smallest unit of time in which it is at least one."""
    for unit, seconds in (("second", 1), ("minute", 60), ("hour", 3600)):
        if per_second * seconds >= 1:
            return f"{per_second * seconds:.2g} {_article(unit)} {unit}"

    return f"{per_second * 86_400:.2g} a day"


def _article(unit: str) -> str:
    return "an" if unit == "hour" else "a"


def join_parts(parts: Iterable[str], width: int) -> list[str]:
    """Return parts with separators as lines that break between parts; a long part, between words."""
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]}{SEPARATOR}{part}" if lines else part
        if cell_len(joined) <= width:
            lines[-1:] = [joined]
        else:
            lines += [line.plain for line in _fold(text(part), width)]

    return lines


def settings_in_parentheses(view: ProposalView) -> str:
    """Return the configuration of a proposal; empty without named values."""
    return f" ({short_settings([view.configuration])[0]})" if view.configuration else ""


def error_text(snapshot: Snapshot, view: ProposalView) -> str:
    """Return the objective in the target's own unit; empty where it has none."""
    own_unit = own_unit_metric(snapshot.study)
    value = None if own_unit is None else view.metrics.get(own_unit)
    return "" if value is None else f", {own_unit} {number_text(value)}"


def number_text(value: float | None, form: str = ".4g") -> str:
    """Return a number, or a dash for None."""
    return "–" if value is None else format(value, form)


def is_repeated(view: ProposalView) -> bool:
    """Return whether a proposal waits after a lost attempt, or a trial that did not begin."""
    return view.state is State.WAITING and view.reason is not None


def _fold(content: Text, width: int) -> list[Text]:
    """Return lines that the terminal has room for; a word that no line holds is cut."""
    lines = fold_words(content, width)
    for line in lines:
        line.truncate(width, overflow="ellipsis")

    return lines


def _title(contents: ScreenContents, width: int) -> list[Text]:
    name = contents.snapshot.study.name
    whole = text((name, "bold"), f"  {contents.about}, {contents.place}")
    if contents.place and cell_len(whole.plain) <= width:
        return [whole]

    return _fold(text((name, "bold"), f"  {contents.about}"), width)


def _best_lines(snapshot: Snapshot, width: int) -> list[Text]:
    best = snapshot.incumbent
    if best is None:
        constrained = snapshot.study.constraints
        missing = "no result meets the constraints yet" if constrained else "no evaluation yet"
        return _fold(text((missing, "dim")), width)

    shown = text(
        (
            f"best: #{best.number} {best.architecture_key[:8]}, {snapshot.study.objective} "
            f"{number_text(best.value)}{error_text(snapshot, best)}",
            "bold",
        ),
        settings_in_parentheses(best),
    )
    lines = _fold(shown, width)
    if len(lines) <= MOST_LINES:
        return lines

    rest = lines[MOST_LINES - 1] + Text(" ") + lines[MOST_LINES]
    return [*lines[: MOST_LINES - 1], fit_words(rest, width)]


def _table(contents: ScreenContents, width: int, rows: int) -> Iterator[Text]:
    """Yield the lines of the latest proposals, below the best one where it is older."""
    snapshot = contents.snapshot
    views = list(snapshot.proposals[-rows:])
    best = snapshot.incumbent
    if best is not None and best.id not in {view.id for view in views}:
        views = [best, *views[len(views) - rows + 1 :]] if rows > 1 else [best]

    cells = [_cells(contents, view) for view in views]
    names = _columns(snapshot, views)
    widths = {}
    for name in names:
        widths[name] = max(cell_len(name), *(cell_len(row.get(name, "")) for row in cells), 0)

    columns = _choose(names, widths, _priority(snapshot), width)
    if "configuration" in columns:
        _shorten_configurations(cells, views, widths["configuration"])

    headings = [text(name) for name in columns]
    lines = [
        _row(view, row, columns, widths, width) for view, row in zip(views, cells, strict=True)
    ]
    numeric = [name not in ("state", "architecture", "configuration") for name in columns]
    chosen_widths = [widths[name] for name in columns]
    drawn = table_lines(headings, lines, chosen_widths, numeric, fold=False)
    for index, line in enumerate(drawn):
        # Two lines of headings come before the rows.
        if index >= 2 and views[index - 2] == best:
            line.stylize("bold")

        yield line


def _columns(snapshot: Snapshot, views: Sequence[ProposalView]) -> list[str]:
    """Return the columns from left to right."""
    named = ["configuration"] if any(view.configuration for view in views) else []
    own_unit = own_unit_metric(snapshot.study)
    results = [snapshot.study.objective, *([] if own_unit is None else [own_unit])]
    if any(_is_ahead(snapshot.study.objective, view) for view in views):
        results.insert(1, "value")

    columns = [NUMBER, "state", "architecture", *named, "acquisition", "epoch", *results, "seconds"]
    # An objective may have the name of another column.
    return list(dict.fromkeys(columns))


def _priority(snapshot: Snapshot) -> list[str]:
    """Return the columns in the order in which a narrow terminal has room for them."""
    own_unit = own_unit_metric(snapshot.study) or ""
    results = [snapshot.study.objective, "state", "configuration", own_unit, "value"]
    return [NUMBER, *results, "epoch", "architecture", "seconds", "acquisition"]


def _choose(
    names: Sequence[str], widths: dict[str, int], priority: Sequence[str], width: int
) -> list[str]:
    """Return the columns that fit, from left to right; configurations get the room that is left."""
    columns: list[str] = []
    room = width + GAP
    whole = widths.get("configuration", 0)
    for name in dict.fromkeys(priority):
        least = min(whole, CONFIGURATION) if name == "configuration" else widths.get(name)
        if least is not None and name in names and least + GAP <= room:
            columns.append(name)
            room -= least + GAP

    if "configuration" in columns:
        widths["configuration"] = min(whole, min(whole, CONFIGURATION) + room)

    return [name for name in names if name in columns]


def _shorten_configurations(
    cells: Sequence[dict[str, str]], views: Sequence[ProposalView], width: int
) -> None:
    """Let configurations have as many settings as the width of their column holds."""
    settings = [view.configuration for view in views]
    for most in range(MOST_SETTINGS, 0, -1):
        texts = short_settings(settings, most)
        if max(map(cell_len, texts)) <= width:
            break

    for row, shown in zip(cells, texts, strict=True):
        row["configuration"] = fit_words(text(shown), width).plain


def _cells(contents: ScreenContents, view: ProposalView) -> dict[str, str]:
    """Return the texts of a row by column."""
    study = contents.snapshot.study
    settings = short_settings([view.configuration])[0] if view.configuration else ""
    cells = {
        "state": "cancelled" if view.cancelled else view.state.lower(),
        "architecture": view.architecture_key[:8],
        "configuration": settings,
        "acquisition": number_text(view.acquisition),
        "epoch": _epochs(view, contents.epochs),
        "seconds": number_text(view.seconds, ".1f"),
        "value": number_text(view.value),
        study.objective: number_text(_value(study.objective, view)),
        NUMBER: str(view.number),
    }
    own_unit = own_unit_metric(study)
    if own_unit is not None:
        cells[own_unit] = number_text(view.metrics.get(own_unit))

    return cells


def _value(objective: str, view: ProposalView) -> float | None:
    """Return the latest value of the objective, also of a training that runs."""
    return view.latest.get(objective, view.value)


def _is_ahead(objective: str, view: ProposalView) -> bool:
    """Return whether a training runs beyond its result, as from one rung to the next."""
    return view.value is not None and _value(objective, view) != view.value


def _epochs(view: ProposalView, most: int | None) -> str:
    if not view.epochs:
        return "–"

    return str(view.epochs) if most is None else f"{view.epochs}/{most}"


def _row(
    view: ProposalView,
    cells: Mapping[str, str],
    columns: Sequence[str],
    widths: Mapping[str, int],
    width: int,
) -> list[Text]:
    """Return the cells of a row; the reason of a proposal without a result is the last one."""
    row: list[Text] = []
    reason: Any = view.reason if view.state is State.FAILED or is_repeated(view) else None
    room = width
    for name in columns:
        names_row = name in (NUMBER, "state", "architecture", "configuration")
        if reason is not None and not names_row:
            style = "dim" if view.cancelled else "red"
            return [*row, fit_words(text((reason, style)), room)]

        room -= widths[name] + GAP
        style = COLOURS[view.state] if name == "state" and not view.cancelled else ""
        style = "dim" if name == "state" and view.cancelled else style
        row.append(text((cells[name], style)))

    return row
