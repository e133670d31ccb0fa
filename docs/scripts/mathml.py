"""MkDocs hook: formulas become MathML when the site is built.

Pages need no script and no network.

`pymdownx.arithmatex` marks `$…$` and `$$…$$`; the marked text is LaTeX, which `latex2mathml`
converts.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

MARKED = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
TAG = re.compile(r"\\tag\{([^}]*)\}")


def on_page_content(content: str, **_: Any) -> str:
    """Replace every marked formula of a page."""
    return MARKED.sub(_mathml, content)


def _mathml(match: re.Match[str]) -> str:
    # An equation's number stands after the formula: MathML has no margin for it.
    formula = TAG.sub(r"\\qquad \\text{(\1)}", html.unescape(match[3]).strip())
    return convert(formula, display="block" if match[2] == "[" else "inline")
