"""MkDocs hook: one page of the API reference for each package.

A page has a section for each module.

Pages exist only while the site is built. mkdocstrings reads the sources without importing them, so
the build needs neither torch nor a database.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
SECTION = "API"
FOLDER = "api"
PART = os.environ.get("ARCHIVE_DOCS_PART", "archive")
"""The package whose pages are made, with the packages below it; all by default."""


def on_config(config: MkDocsConfig, **_: Any) -> MkDocsConfig:
    """Fill the section of the navigation: parts of the package, and below them their packages."""
    parts: dict[str, list[dict[str, str]]] = {}
    for package in packages():
        part = ".".join(package.split(".")[:2])
        parts.setdefault(part, []).append({package: page(package)})

    section = [{SECTION: "api/index.md"}, *({part: pages} for part, pages in parts.items())]
    config.nav = [{SECTION: section} if SECTION in entry else entry for entry in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the pages."""
    files.append(File.generated(config, f"{FOLDER}/index.md", content=_index()))
    for package in packages():
        files.append(File.generated(config, page(package), content=_content(package)))

    return files


def packages() -> list[str]:
    """Return the dotted names of `PART` and of all packages below it, in order."""
    names = sorted(_dotted(file.parent) for file in _sources() if file.name == "__init__.py")
    return [name for name in names if f"{name}.".startswith(f"{PART}.")]


def modules(package: str) -> list[str]:
    """Return the dotted names of a package's public modules, in order."""
    folder = ROOT.joinpath(*package.split("."))
    names = sorted(file.stem for file in folder.glob("*.py") if not file.stem.startswith("_"))
    return [f"{package}.{name}" for name in names]


def page(package: str) -> str:
    """Return the path of a package's page among the documents."""
    return f"{FOLDER}/{package}.md"


def _sources() -> Iterator[Path]:
    # `rglob` does not follow the links of the namespace (`archive/agents`), which are packages like
    # the others.
    folders = [ROOT / "archive"]
    while folders:
        folder = folders.pop()
        yield from folder.glob("*.py")
        folders += [
            each for each in folder.iterdir() if each.is_dir() and (each / "__init__.py").exists()
        ]


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parts)


def _content(package: str) -> str:
    named = [package, *modules(package)]
    return f"# {package}\n\n" + "\n".join(f"::: {name}\n" for name in named)


def _index() -> str:
    lines = [f"- [{package}]({package}.md): {_first_line(package)}" for package in packages()]
    return (
        "# API reference\n\nGenerated from the docstrings; one page per package.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def _first_line(package: str) -> str:
    source = ROOT.joinpath(*package.split("."), "__init__.py").read_text(encoding="utf-8")
    text = ast.get_docstring(ast.parse(source)) or ""
    # Up to the end of the first sentence.
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."
