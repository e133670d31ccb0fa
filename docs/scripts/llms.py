"""MkDocs hook: `llms.txt`, the contents of the site for programs that read it.

Each page is also written as Markdown.

The form is that of https://llmstxt.org: title, summary, and sections with links. The API reference
is left out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig

NAME = "llms.txt"
OMITTED = "API"
FIRST = "Start"

# Blocks of a page that are no prose: headings, tables, lists, quotes, pictures, comments.
_NO_PROSE = re.compile(r"[#|>!<`-]|\d+\.")


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """Write the list and the pages."""
    docs = Path(config.docs_dir)
    site = Path(config.site_dir)
    sections = [
        (title, entries) for title, entries in _sections(config.nav or []) if title != OMITTED
    ]
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for title, entries in sections:
        lines += [f"## {title}", ""]
        for name, page in entries:
            lines.append(
                f"- [{name}]({page}): {summary((docs / page).read_text(encoding='utf-8'))}"
            )
            (site / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(docs / page, site / page)

        lines.append("")

    (site / NAME).write_text("\n".join(lines), encoding="utf-8")


def summary(text: str) -> str:
    """Return the first sentence of a page, on one line and without links."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    blocks = (block.strip() for block in re.split(r"\n\s*\n", prose))
    first = next((block for block in blocks if block and not _NO_PROSE.match(block)), "")
    plain = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first).split())
    return re.split(r"(?<=[.:])\s", plain)[0].rstrip(":")


def _sections(nav: list[Any]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the sections of the navigation with names and paths of their pages.

    Single pages come first.
    """
    single = [
        (name, page) for entry in nav for name, page in entry.items() if isinstance(page, str)
    ]
    yield FIRST, single
    for entry in nav:
        for title, pages in entry.items():
            if not isinstance(pages, str):
                yield (
                    title,
                    [
                        (name, page)
                        for each in pages
                        for name, page in each.items()
                        if isinstance(page, str)
                    ],
                )
