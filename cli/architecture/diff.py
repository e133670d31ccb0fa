"""`archive arch diff`: what two networks have in common, and what each difference costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from archive.cli.architecture.argument import (
    architecture_of,
    decoder_of,
    networks_of,
    setting_option,
)
from archive.cli.architecture.draw import (
    TEXT_ONLY,
    PictureFile,
    PictureForm,
    PictureTheme,
    check_suffix,
    picture_options,
    print_text,
    write_picture,
)
from archive.cli.render import json_option, print_json, print_line, print_table
from archive.values import assignments, setting_text
from archive.words import PARTS

if TYPE_CHECKING:
    from archive.architecture.decoders.design import Design
    from archive.architecture.graph import Architecture
    from archive.architecture.outline.changes import Change
    from archive.kernels.differences import Difference, DifferencePart

TOTAL_COLUMNS = ("part", "change", "number", "cost")
PARAMETER_COLUMNS = ("parameter", "A", "B")
PART_COLUMNS = ("part", "change", "A", "B", "cost", "reason")

ChangeName = Literal["matched", "changed", "inserted", "removed"]


@dataclass(frozen=True)
class DifferenceTotal:
    """The parts of one kind.

    Attributes:
        subject: `layer`, `skip` or `break` of the edit distance, `block` or `stream` of a decoder's,
            `mass` of OTMANN.
        change: What happens to them.
        parts: Number of them.
        cost: Sum of their costs.
    """

    subject: str
    change: ChangeName
    parts: int
    cost: float


@dataclass(frozen=True)
class DifferencePartItem:
    """A part of a distance.

    Attributes:
        subject: `layer`, `skip` or `break` of the edit distance, `block` or `stream` of a decoder's,
            `mass` of OTMANN.
        change: What happens to it.
        first: Layers of the first architecture: one, or the two ends of a skip; empty for what is
            inserted.
        second: The same of the second architecture; empty for what is removed.
        cost: Its share of the distance.
        amount: Mass that is moved; 1 for a layer or a skip.
        reason: Where the cost comes from.
    """

    subject: str
    change: ChangeName
    first: tuple[int, ...]
    second: tuple[int, ...]
    cost: float
    amount: float
    reason: str


@dataclass(frozen=True)
class LayerPair:
    """Layers that belong together.

    Attributes:
        first: Position in the first architecture; null for an inserted layer.
        second: Position in the second one; null for a removed layer.
        change: Whether they are equal.
    """

    first: int | None
    second: int | None
    change: ChangeName


@dataclass(frozen=True)
class NamedChange:
    """A difference that has a name, such as the number of heads.

    Attributes:
        name: What changed: `width`, `depth`, `kernel`, `kv heads`, …; `other` without a name.
        where: `network`, `stem`, `head`, or stages or blocks of the first network.
        before: Value in the first network; null where it has none.
        after: Value in the second network; null where it has none.
    """

    name: str
    where: str
    before: Any
    after: Any


@dataclass(frozen=True)
class ParameterDifference:
    """A parameter in which two configurations differ.

    Attributes:
        name: Its name.
        first: Its value in the first configuration; null where it does not exist.
        second: The same of the second one.
    """

    name: str
    first: Any
    second: Any


@dataclass(frozen=True)
class DifferenceDocument:
    """The difference of two architectures.

    Attributes:
        first: Key of the first architecture.
        second: Key of the second one.
        kernel: Name of the kernel that matches the layers.
        component: Name of the distance.
        distance: The distance, which is the sum of the costs.
        changes: The difference in words of blocks; empty but for imported models and
            decoders.
        totals: The parts by kind.
        parts: All parts.
        layers: Every layer of both architectures, once.
        configurations: Keys of the two configurations of parameters whose networks these are; empty
            for others.
        parameters: The parameters in which the two configurations differ.
        file: The picture; null where none was written.
        format: `svg`, `png` or `text`.
        bytes: Size of the file.
    """

    first: str
    second: str
    kernel: str
    component: str
    distance: float
    changes: list[NamedChange]
    totals: list[DifferenceTotal]
    parts: list[DifferencePartItem]
    layers: list[LayerPair]
    configurations: list[str]
    parameters: list[ParameterDifference]
    file: str | None
    format: PictureForm
    bytes: int | None


@click.command(short_help="Show what differs between two architectures, and what it costs.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--kernel",
    type=click.Choice(["edit", "otmann"]),
    show_default="edit",
    help="Distance that matches the layers. edit: by its script; otmann: by the transport plan.",
)
@click.option(
    "--component",
    metavar="NAME",
    show_default="the first",
    help="Component of the kernel (otmann:0.4).",
)
@setting_option
@click.option(
    "--layers", "by_layer", is_flag=True, help="Show each layer of imported models and decoders."
)
@picture_options
@json_option
@click.pass_context
def diff(
    ctx: click.Context,
    first: str,
    second: str,
    kernel: str | None,
    component: str | None,
    assigned: tuple[str, ...],
    by_layer: bool,
    path: Path | None,
    theme: PictureTheme,
    force: bool,
    as_json: bool,
) -> None:
    """Show what turns architecture A into B: layers matched, changed, inserted and removed.

    Of imported models and decoders, the changes are named in words of blocks (kv heads 4 -> 2 in
    blocks 1-6); --layers, --kernel, --component and --set show the layers and costs. The costs of the parts sum
    up to the distance of archive arch distance. A and B are keys of the archive or their prefixes,
    files, NAS-Bench-201 strings, or genotypes of DARTS. With -o, the picture goes to a file:
    networks over each other for the edit distance, side by side for otmann. Of two configurations
    of parameters, the networks that their model builds are compared.
    """
    from archive.architecture.aten.vocabulary import NAME as TORCH
    from archive.architecture.decoders.outline import changes as decoder_changes
    from archive.architecture.outline.changes import changes
    from archive.architecture.outline.outline import outline
    from archive.kernels.differences import difference
    from archive.kernels.differences.picture import difference_diagram

    check_suffix(path)
    settings = assignments(assigned, "a setting")
    # Layers are numbered as `archive arch show` lists them.
    members = [architecture_of(ctx, first).canonical, architecture_of(ctx, second).canonical]
    networks = networks_of(ctx, members)
    parameters = []
    if networks != members:
        parameters = _differing(*members)

    pair = (networks[0].canonical, networks[1].canonical)
    by_layer = by_layer or any(option is not None for option in (kernel, component, path))
    by_layer = by_layer or bool(assigned)
    named: list[Change] = []
    design = decoder_of(pair[0])
    other = decoder_of(pair[1])
    if design is not None and other is not None and (as_json or not by_layer):
        named = decoder_changes(design, other)
        if not as_json:
            _print_decoders(design, other, named)
            return

    elif pair[0].space == pair[1].space == TORCH and (as_json or not by_layer):
        named = changes(outline(pair[0]), outline(pair[1]))
        if not as_json:
            print_changes([str(change) for change in named])
            _print_parameters(parameters)
            return

    explained = difference(*pair, kernel or "edit", component, **settings)
    drawn = difference_diagram(explained)
    picture = TEXT_ONLY
    if path is not None:
        picture = write_picture(drawn, path, theme, force=force)

    if as_json:
        keys = [member.key for member in members] if networks != members else []
        print_json(_document(explained, named, picture, keys, parameters))
        return

    if path is None:
        print_text(drawn)

    _print_parameters(parameters)
    totals: list[tuple[str, str, int, float]] = []
    for subject, change, number, cost in explained.totals():
        totals.append((PARTS[subject].text, change, number, cost))

    totals.append(("all", "", len(explained.parts), explained.distance))
    print_table(TOTAL_COLUMNS, totals, title=explained.component)
    costly = [_row(explained, part) for part in explained.parts if part.cost]
    if costly:
        print_table(PART_COLUMNS, costly, title="what costs something")


def _print_decoders(first: Design, second: Design, named: Sequence[Change]) -> None:
    """Write two decoders, equal blocks once, and the changes from one to the other."""
    from archive.architecture.decoders.outline import lines

    for title, design in (("A", first), ("B", second)):
        for text in [title, *lines(design)]:
            print_line((text, ""))

        print_line(("", ""))

    print_changes([str(change) for change in named])


def print_changes(lines: Sequence[str]) -> None:
    """Write named changes, a line each."""
    for line in lines:
        print_line((line, ""))

    if not lines:
        print_line(("the two are one network", ""))


def _differing(first: Architecture, second: Architecture) -> list[ParameterDifference]:
    """Return the parameters in which two configurations differ."""
    from archive.architecture.parameter_operations import configuration_of

    values = configuration_of(first)
    others = configuration_of(second)
    differing = []
    for name in dict.fromkeys([*values, *others]):
        if name not in values or name not in others or values[name] != others[name]:
            differing.append(ParameterDifference(name, values.get(name), others.get(name)))

    return differing


def _print_parameters(parameters: Sequence[ParameterDifference]) -> None:
    rows = []
    for entry in parameters:
        rows.append((entry.name, setting_text(entry.first), setting_text(entry.second)))

    if rows:
        print_table(PARAMETER_COLUMNS, rows, title="parameters")


def _document(
    explained: Difference,
    named: Sequence[Change],
    picture: PictureFile,
    configurations: list[str],
    parameters: list[ParameterDifference],
) -> DifferenceDocument:
    parts = [
        DifferencePartItem(
            subject=part.subject,
            change=part.change,
            first=part.first,
            second=part.second,
            cost=part.cost,
            amount=part.amount,
            reason=part.reason,
        )
        for part in explained.parts
    ]
    return DifferenceDocument(
        first=explained.first.key,
        second=explained.second.key,
        kernel=explained.kernel,
        component=explained.component,
        distance=explained.distance,
        changes=[NamedChange(**vars(change)) for change in named],
        totals=[DifferenceTotal(*total) for total in explained.totals()],
        parts=parts,
        layers=[LayerPair(*pair, explained.change(pair)) for pair in explained.layers],
        configurations=configurations,
        parameters=parameters,
        file=picture.file,
        format=picture.format,
        bytes=picture.bytes,
    )


def _row(explained: Difference, part: DifferencePart) -> tuple[str, str, str, str, float, str]:
    first = _ends(explained.first, part.first)
    second = _ends(explained.second, part.second)
    return (PARTS[part.subject].text, part.change, first, second, part.cost, part.reason)


def _ends(network: Architecture, ends: tuple[int, ...]) -> str:
    from archive.kernels.differences.base import words

    if len(ends) == 1:
        return f"{ends[0]} {words(network.layers[ends[0]])}"

    return "→".join(map(str, ends))
