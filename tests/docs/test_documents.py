"""Documents: the commands, layers, settings and results that they name exist, and generated parts
are up to date."""

import ast
import importlib.util
import re
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from archive import settings
from archive.cli import json_reference as documents
from archive.cli.reference import reference
from tests.archive.test_layout import MODULES
from tests.support import ROOT

DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def script(name):
    """Return a module of docs/scripts, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


def test_the_command_reference_is_up_to_date():
    assert reference() == page("commands.md"), (
        "run: python -m archive.cli.reference docs/commands.md"
    )


def test_the_reference_of_the_json_output_is_up_to_date():
    run = "run: python -m archive.cli.json_reference docs/json.md"
    assert documents.reference() == page("json.md"), run


def test_the_results_are_those_on_file():
    regret = script("regret")
    found = regret.results()
    assert regret.picture(found) == regret.PICTURE.read_text(encoding="utf-8"), (
        "run: python docs/scripts/regret.py"
    )
    for path, mark in regret.PAGES.items():
        text = path.read_text(encoding="utf-8")
        assert regret.replaced(text, mark, regret.table(found)) == text, (
            "run: python docs/scripts/regret.py"
        )

    assert all(len(row["mean"]) == regret.BUDGET for row in found["rows"])


def test_the_pictures_of_networks_are_up_to_date():
    pictures = script("pictures")
    for name, text in pictures.pictures().items():
        drawn = (pictures.FOLDER / name).read_text(encoding="utf-8")
        assert text == drawn, "run: python docs/scripts/pictures.py"


def test_the_pictures_of_the_readme_are_small_and_load_nothing():
    recording = (DOCS / "pictures" / "first-search.svg").read_text(encoding="utf-8")
    assert len(recording) < 1_000_000 and (DOCS / "pictures" / "page.png").stat().st_size < 300_000
    assert "docs/pictures/page.png" in README.partition("## Run")[0]
    ET.fromstring(recording)
    assert re.findall(r'(?:href|src)="(?!#)', recording) == []
    assert "prefers-reduced-motion" in recording


def test_every_dependency_is_named_with_its_reason():
    text = page("dependencies.md")
    extras = [
        each for named in PROJECT["project"]["optional-dependencies"].values() for each in named
    ]
    for requirement in [*PROJECT["project"]["dependencies"], *extras]:
        name = re.match(r"[A-Za-z0-9-]+", requirement)[0]
        if name == PROJECT["project"]["name"]:
            continue

        assert re.search(rf"\|[^|\n]*\b{name}\b[^|\n]*\|.{{10,}}\|", text), (
            f"docs/dependencies.md has no reason for {name}"
        )
        assert re.search(r">=.*,<|==", requirement), f"{requirement} has no bounds"


def test_the_two_commands_stand_where_the_build_looks_for_them():
    assert (
        "<!-- run-command -->\n```sh\npip install -e . && archive search --agent nasbot\n```"
        in README
    )
    assert "<!-- test-command -->\n```sh\npip install -e '.[dev]' && pytest -n 2\n```" in README
    assert "'/<!-- test-command -->/" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_layers_are_those_of_the_contract():
    (layers,) = [
        each["layers"]
        for each in PROJECT["tool"]["importlinter"]["contracts"]
        if each.get("containers") == ["archive"]
    ]
    section = page("architecture.md").partition("## Layers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", section.partition("###")[0], re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == [layer.split(" | ") for layer in layers]


def test_the_guide_shows_every_example_of_a_recipe():
    text = page("guides/recipes.md")
    files = list(DOCS.glob("examples/recipes/*.py"))
    assert len(files) == 6
    for path in files:
        assert f'```python title="{path.name}"\n{path.read_text(encoding="utf-8")}```\n' in text


def test_the_guide_of_spaces_shows_the_example_of_a_model():
    text = page("guides/spaces.md")
    files = [*DOCS.glob("examples/models/*.*")]
    assert len(files) == 4
    for path in files:
        assert f'{path.name}"\n{path.read_text(encoding="utf-8")}```\n' in text


def test_messages_of_the_page_on_troubles_are_those_of_the_code():
    """Each message in its tables is in the code, with names and numbers in place of the sign
    `…`."""
    known = list(texts_of_the_code())
    cells = [
        line.split(" | ")[0] for line in page("troubles.md").splitlines() if line.startswith("|")
    ]
    messages = [
        text
        for cell in cells
        for text in re.findall("`([^`]+)`", cell)
        if "…" in text or text.endswith(".")
    ]
    assert len(messages) > 15
    for message in messages:
        form = re.compile(".*?".join(re.escape(part) for part in message.split("…")))
        assert any(form.search(text) for text in known), message


def texts_of_the_code() -> Iterator[str]:
    """Yield the texts in the modules, with `…` in place of the values of f-strings and of `%r`."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "…"
                    for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.sub(r"%[drs]|%[.\d]*g", "…", node.value)


@pytest.mark.parametrize("name", ["architecture.md", "../CONTRIBUTING.md"])
def test_files_and_folders_that_are_named_exist(name):
    paths = re.findall(
        r"`((?:archive|agents|kernels|trainer|cli|docs|queue|tests)/[\w./-]*)`", page(name)
    )
    assert len(paths) > 5
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "archive" / path).exists(), f"{name} names {path}"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_outside_the_site_lead_somewhere(name):
    links = re.findall(r"\]\(([^)#]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert links
    assert not [link for link in links if "://" not in link and not (ROOT / link).exists()]


def test_the_version_is_the_same_in_every_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.search(r"^date-released: \"(.*)\"$", citation, re.MULTILINE)
    assert f"\nversion: {project['version']}\n" in citation
    assert released
    assert f"\n## {project['version']} - {released[1]}\n" in changes


def test_every_setting_is_named():
    table = (
        page("operations.md").partition("<!-- settings -->")[2].partition("<!-- /settings -->")[0]
    )
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", table, re.MULTILINE))
    assert rows == settings._ENVIRONMENT


def test_the_packages_of_the_namespace_are_links():
    for name in ("agents", "kernels", "trainer", "cli"):
        assert (ROOT / "archive" / name).is_symlink()
        assert (ROOT / "archive" / name).resolve() == ROOT / name
