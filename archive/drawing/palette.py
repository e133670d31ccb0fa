"""Colours of kinds of operations and of the results of a comparison, light and dark, as CSS.

Colours never stand alone: boxes have words, and the results of a comparison have signs and dashes
besides. Inserted and removed are bluish green and vermillion of Okabe and Ito's palette, which
colour-blind readers can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from archive.drawing.diagram import Theme

_FILLS: dict[str, tuple[str, str, str, str]] = {
    # kind: fill and line on a light ground, fill and line on a dark one
    "ends": ("#eceff3", "#6b7280", "#2b3138", "#9aa4b2"),
    "conv": ("#dceafb", "#3a7fc1", "#17324d", "#5aa2e0"),
    "pool": ("#d8f0e4", "#2a9468", "#12382b", "#45b98a"),
    "dense": ("#eae2fa", "#8460cc", "#2e2550", "#a98bea"),
    "activation": ("#fdf2cc", "#b98a00", "#3a310f", "#d9b03a"),
    "norm": ("#e1f0f3", "#4f909e", "#173338", "#6fb6c4"),
    "attention": ("#fce1e8", "#c64a72", "#451b2b", "#ea7fa2"),
    "embedding": ("#e7f2d6", "#658f2c", "#283614", "#94c255"),
    "join": ("#fee7d3", "#cc6c22", "#43280f", "#ee9850"),
    "decision": ("#f8e3f4", "#a84b92", "#3b1c35", "#d583c3"),
    "source": ("#f3ecdf", "#957a48", "#352d1e", "#bda26d"),
    "identity": ("#ffffff", "#8a93a0", "#1b1f24", "#7b8491"),
    "zero": ("#ffffff", "#b4bac3", "#1b1f24", "#59616c"),
    "other": ("#f5f6f8", "#8f97a3", "#23272d", "#7b8491"),
}
_STATUSES: dict[str, tuple[str, str, str, str]] = {
    "matched": ("#f5f6f8", "#a8aeb8", "#23272d", "#626b77"),
    "changed": ("#fdf0c4", "#b07d00", "#3d330d", "#e0b93a"),
    "inserted": ("#d5f1e7", "#00805c", "#0d3a2d", "#2cc394"),
    "removed": ("#fbe2d3", "#c44f00", "#452410", "#f58a4b"),
}
_INKS = {
    # name: on a light ground, on a dark one
    "ground": ("#ffffff", "#15181c"),
    "text": ("#1b1f24", "#e7eaee"),
    "faint": ("#59616c", "#aab2bd"),
    "edge": ("#7d8692", "#8b949f"),
    "frame": ("#8f97a3", "#6b7480"),
    "panel": ("#fafbfc", "#1a1e23"),
}

KINDS: tuple[str, ...] = tuple(_FILLS)
"""Kinds of operations."""
STATUSES: tuple[str, ...] = tuple(_STATUSES)
"""Results of a comparison."""
SIGNS: Mapping[str, str] = MappingProxyType(
    {"matched": " ", "changed": "~", "inserted": "+", "removed": "−"}
)
"""A sign for each result of a comparison."""

Colour = Callable[[str], str]

FONT = (
    "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Helvetica,Arial,'Noto "
    "Sans','Liberation Sans','DejaVu Sans',Ubuntu,Cantarell,sans-serif"
)
"""Families of fonts; several by name, since resvg knows no generic ones."""


def css(theme: Theme, names: Iterable[str] = (*KINDS, *STATUSES)) -> str:
    """Return the style sheet of pictures.

    Args:
        theme: `light` and `dark` have literal colours, which every program reads. `auto` and `page`
            have custom properties: the system's choice, which an attribute `data-theme` of an
            element around the picture overrides.
        names: Kinds and statuses that the picture has.
    """
    selected = sorted(set(names), key=(*KINDS, *STATUSES).index)
    if theme in ("light", "dark"):
        return _rules(f".aa-{theme}", selected, _colours(dark=theme == "dark").__getitem__)

    light = _properties(_colours(dark=False), selected)
    dark = _properties(_colours(dark=True), selected)
    return (
        f".aa{{{light}}}@media (prefers-color-scheme:dark){{.aa{{{dark}}}}}"
        f'[data-theme="light"] .aa{{{light}}}[data-theme="dark"] .aa{{{dark}}}'
        + _rules(".aa", selected, lambda name: f"var(--aa-{name})")
    )


def _colours(*, dark: bool) -> dict[str, str]:
    colours = {name: inks[dark] for name, inks in _INKS.items()}
    for name, four in {**_FILLS, **_STATUSES}.items():
        colours[name] = four[2 * dark]
        colours[f"{name}-line"] = four[2 * dark + 1]

    return colours


def _properties(colours: dict[str, str], selected: list[str]) -> str:
    names = list(_INKS)
    for name in selected:
        names += [name, f"{name}-line"]

    properties = ""
    for name in names:
        properties += f"--aa-{name}:{colours[name]};"

    return properties


def _rules(root: str, names: list[str], colour: Colour) -> str:
    rules = [
        (".aa-ground", f"fill:{colour('ground')}"),
        ("text", f"font-family:{FONT};fill:{colour('text')}"),
        (".aa-faint", f"fill:{colour('faint')}"),
        (".aa-edge", f"fill:none;stroke:{colour('edge')};stroke-width:1.3"),
        (".aa-frame", f"fill:none;stroke:{colour('frame')};stroke-width:1.2;stroke-dasharray:5 3"),
        (".aa-panel", f"fill:{colour('panel')};stroke:{colour('frame')};stroke-width:1"),
    ]
    for name in names:
        stroke = f"stroke:{colour(f'{name}-line')}"
        shape = f"fill:{colour(name)};{stroke};stroke-width:1.3"
        dashes = {"zero": ";stroke-dasharray:3 3", "removed": ";stroke-dasharray:6 3"}.get(name, "")
        rules.append((f".aa-{name} .aa-box", shape + dashes))
        if name in STATUSES:
            # A width in the style sheet would hide the width of the line itself.
            rules.append((f".aa-flow.aa-{name}", f"fill:none;stroke-opacity:0.75;{stroke}"))

        if name in ("inserted", "removed"):
            rules.append((f".aa-edge.aa-{name}", f"{stroke};stroke-width:2{dashes}"))

    for name in names:
        if name in ("changed", "inserted", "removed"):
            rules.append(
                (f".aa-{name} .aa-sign", f"fill:{colour(f'{name}-line')};font-weight:bold")
            )

    return "".join(f"{root} {selector}{{{body}}}" for selector, body in rules)
