"""Colours of pages, plots and pictures, light and dark, as CSS.

This module is the only source: the dashboard serves `page_css()`, reports and figures take the
same values. `docs/design.md` says what each colour means.

Colours never stand alone: boxes have words, states have names, and the results of a comparison have
signs and dashes besides. Hues follow Okabe and Ito's palette, which colour-blind readers can tell
apart. They are darker on a light ground and lighter on a dark one, so that a text in them has a
contrast of 4.5 and a mark one of 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from archive.drawing.diagram import Theme

_TOKENS: dict[str, tuple[str, str]] = {
    # name: on a light ground, on a dark one
    "ground": ("#f6f7f9", "#14171b"),
    "card": ("#ffffff", "#1c2026"),
    "ink": ("#1b1f24", "#e8ebef"),
    "quiet": ("#59616c", "#9aa5b1"),
    "line": ("#d9dee4", "#343b44"),
    "hover": ("#eef2f8", "#262c35"),
    "accent": ("#2457c5", "#8ab0ff"),
    "bad": ("#b3261e", "#ff8a80"),
    "none": ("#868e9a", "#6f7884"),
    # hues
    "blue": ("#0072b2", "#56b4e9"),
    "orange": ("#b84f00", "#ff9d5c"),
    "green": ("#00795a", "#35c79a"),
    "yellow": ("#946200", "#f0d24a"),
    "sky": ("#3a8fc7", "#9bd3f5"),
    "pink": ("#b3568b", "#e39ac4"),
    "violet": ("#6a51a3", "#b6a4ee"),
    "grey": ("#69717b", "#8d97a3"),
    # values from worst to best: cividis, whose end that stands out from the ground is the best
    "g0": ("#d9cd86", "#2c4a80"),
    "g1": ("#b8b07a", "#4a6694"),
    "g2": ("#98957a", "#6b7f96"),
    "g3": ("#7c7b78", "#8b9294"),
    "g4": ("#5c6070", "#aea883"),
    "g5": ("#33486f", "#d9c85a"),
    "g6": ("#00265f", "#fff06a"),
}
_MEANINGS = {
    "best": "orange",
    "gain": "green",
    "loss": "bad",
    "complete": "green",
    "running": "blue",
    "waiting": "quiet",
    "pruned": "yellow",
    "failed": "bad",
    "cancelled": "grey",
    "lost": "pink",
    "returned": "sky",
}

SERIES: tuple[str, ...] = ("blue", "green", "pink", "yellow", "sky", "violet", "grey")
"""Hues of studies, agents and other kinds without an order; orange is the best alone."""
VALUES: tuple[str, ...] = tuple(name for name in _TOKENS if name[0] == "g" and name[1:].isdigit())
"""Colours of values, from the worst to the best."""

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
    "zero": ("#ffffff", "#868e9a", "#1b1f24", "#6b7480"),
    "other": ("#f5f6f8", "#868e9a", "#23272d", "#7b8491"),
    # no part in what the network computes
    "dead": ("#ffffff", "#868e9a", "#1c2026", "#6b7480"),
}
_STATUSES: dict[str, tuple[str, str, str, str]] = {
    "matched": ("#f5f6f8", "#a8aeb8", "#23272d", "#626b77"),
    "changed": ("#fdf0c4", "#b07d00", "#3d330d", "#e0b93a"),
    "inserted": ("#d5f1e7", "#00805c", "#0d3a2d", "#2cc394"),
    "removed": ("#fbe2d3", "#c44f00", "#452410", "#f58a4b"),
}
_INKS = {
    "ground": _TOKENS["card"],
    "text": _TOKENS["ink"],
    "faint": _TOKENS["quiet"],
    "edge": ("#7d8692", "#8b949f"),
    "frame": ("#868e9a", "#6b7480"),
    "panel": ("#fafbfc", "#1a1e23"),
}

_DASHES = {"zero": "3 3", "dead": "2 3", "removed": "6 3"}

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


def hue(name: str, *, dark: bool = False) -> str:
    """Return the colour of a token or of a meaning, such as `blue`, `best` or `failed`."""
    return _TOKENS[_MEANINGS.get(name, name)][dark]


def page_css() -> str:
    """Return the colours of a page as custom properties.

    They follow the reader's system, which an attribute `data-theme` of the root overrides.
    """
    light = "color-scheme:light;"
    dark = "color-scheme:dark;"
    for name in (*_TOKENS, *_MEANINGS):
        light += f"--{name}:{hue(name)};"
        dark += f"--{name}:{hue(name, dark=True)};"

    return (
        f':root{{{light}}}\n:root[data-theme="dark"]{{{dark}}}\n'
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
    )


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
        (".aa-tip", f"fill:{colour('edge')}"),
        (
            ".aa-label",
            f"fill:{colour('faint')};font-weight:bold;paint-order:stroke;"
            f"stroke:{colour('ground')};stroke-width:4;stroke-linejoin:round",
        ),
        (".aa-frame", f"fill:none;stroke:{colour('frame')};stroke-width:1.2;stroke-dasharray:5 3"),
        (".aa-panel", f"fill:{colour('panel')};stroke:{colour('frame')};stroke-width:1"),
    ]
    for name in names:
        stroke = f"stroke:{colour(f'{name}-line')}"
        shape = f"fill:{colour(name)};{stroke};stroke-width:1.3"
        dashes = f";stroke-dasharray:{_DASHES[name]}" if name in _DASHES else ""
        rules.append((f".aa-{name} .aa-box", shape + dashes))
        if name in STATUSES:
            # A width in the style sheet would hide the width of the line itself.
            rules.append((f".aa-flow.aa-{name}", f"fill:none;stroke-opacity:0.75;{stroke}"))

        if name in ("inserted", "removed"):
            rules.append((f".aa-edge.aa-{name}", f"{stroke};stroke-width:2{dashes}"))
            rules.append((f".aa-tip.aa-{name}", f"fill:{colour(f'{name}-line')}"))

        if name == "dead":
            rules.append((".aa-edge.aa-dead", f"{stroke}{dashes}"))
            rules.append((".aa-tip.aa-dead", f"fill:{colour('dead-line')}"))
            rules.append((".aa-dead text", f"fill:{colour('faint')}"))

    for name in names:
        if name in ("changed", "inserted", "removed"):
            rules.append(
                (f".aa-{name} .aa-sign", f"fill:{colour(f'{name}-line')};font-weight:bold")
            )

    return "".join(f"{root} {selector}{{{body}}}" for selector, body in rules)
