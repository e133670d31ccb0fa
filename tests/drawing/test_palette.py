"""One source of colours: pages and figures name tokens only, and texts can be read on every ground."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import archive
from archive.drawing import palette

PACKAGE = Path(archive.__file__).parent
STATIC = PACKAGE / "dashboard" / "static"
FIGURES = PACKAGE / "plots" / "figures"
LITERAL = re.compile(r"#[0-9a-fA-F]{3,8}\b(?![\w-])|\brgba?\(|\bhsla?\(")


def sources():
    """Return the files that may name no colour of their own."""
    report = PACKAGE / "report" / "page" / "report.css"
    found = [STATIC / "style.css", report, *FIGURES.glob("*.py")]
    for folder in ("parts", "study", "views"):
        found += (STATIC / folder).glob("*.js")

    return sorted(found)


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.name)
def test_no_file_has_a_colour_of_its_own(path):
    assert LITERAL.findall(path.read_text(encoding="utf-8")) == []


def test_every_name_of_the_page_has_a_value():
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    defined = set(re.findall(r"(--[a-z]+\d?):", style + palette.page_css()))
    used = set(re.findall(r"var\((--[a-z]+\d?)\)", style))
    for path in sources():
        if path.suffix == ".js":
            used |= set(re.findall(r'"(--[a-z]+\d?)"', path.read_text(encoding="utf-8")))

    assert used <= defined


def test_a_picture_and_a_page_have_the_same_ground_and_ink():
    picture = palette.css("dark")
    assert f"fill:{palette.hue('card', dark=True)}" in picture
    assert f"fill:{palette.hue('ink', dark=True)}" in picture


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("surface", ["card", "ground"])
def test_texts_and_marks_stand_out(dark, surface):
    ground = palette.hue(surface, dark=dark)
    texts = ["ink", "quiet", "accent", "bad", "best", "gain", "loss"]
    texts += ["complete", "running", "waiting", "pruned", "failed", "cancelled"]
    for name in texts:
        assert contrast(palette.hue(name, dark=dark), ground) >= 4.5, name

    for name in (*palette.SERIES, "none"):
        assert contrast(palette.hue(name, dark=dark), ground) >= 3, name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_of_boxes_stand_out(theme):
    picture = palette.css(theme)
    ground = palette.hue("card", dark=theme == "dark")
    for name in palette.KINDS:
        line = re.search(rf"\.aa-{name} \.aa-box{{fill:#\w+;stroke:(#\w+)", picture)[1]
        assert contrast(line, ground) >= 3, name


@pytest.mark.parametrize("dark", [False, True])
def test_the_best_value_is_farthest_from_the_ground(dark):
    ground = palette.hue("card", dark=dark)
    ratios = [contrast(palette.hue(name, dark=dark), ground) for name in palette.VALUES]
    assert ratios == sorted(ratios)


def contrast(first, second):
    """Return the ratio of two colours, as WCAG 2.2 defines it."""
    lighter, darker = sorted(map(luminance, (first, second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    channels = []
    for start in (1, 3, 5):
        share = int(colour[start : start + 2], 16) / 255
        channels.append(share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4)

    red, green, blue = channels
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
