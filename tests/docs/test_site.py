"""The site builds strictly, without a network, and its pages ask for nothing from other hosts."""

import contextlib
import html
import importlib.util
import logging
import os
import re
from unittest import mock

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.utils.yaml import yaml_load
from mkdocstrings_handlers.python._internal import handler

from tests.support import ROOT, WHOLE

pytestmark = pytest.mark.lasts(5)

PART = "archive.kernels"
LOADED = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="?(?:https?:)?//[^">\s]*')


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the built site, and the package that the build has read for it.

    Links between pages, anchors and the navigation are checked by the build.
    """
    folder = tmp_path_factory.mktemp("site")
    # Whatever would be fetched cannot be: no host has this proxy.
    nowhere = {"NO_MKDOCS_2_WARNING": "1"} | dict.fromkeys(
        ("http_proxy", "https_proxy"), "http://127.0.0.1:9"
    )
    if not WHOLE:
        # Pages of the API reference take two thirds of the time, and are all made alike.
        nowhere |= {
            "ARCHIVE_DOCS_LINE_LENGTH": "1000",
            "ARCHIVE_DOCS_PART": PART,
            "ARCHIVE_DOCS_SEARCH": "false",
        }

    loaders = []

    class Loader(handler.GriffeLoader):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            loaders.append(self)

    # In this process, as reading the package is a fifth of the time of a build.
    with (
        mock.patch.dict(os.environ, nowhere),
        mock.patch.object(handler, "GriffeLoader", Loader),
        contextlib.chdir(ROOT),
    ):
        config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder))
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()

    (loader,) = loaders
    return folder, loader.modules_collection["archive"]


@pytest.fixture(scope="module")
def site(built):
    """The folder with the built site."""
    return built[0]


def test_programs_find_every_page_by_llms_txt(site):
    text = (site / "llms.txt").read_text(encoding="utf-8")
    navigation = yaml_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    named = re.findall(r"\b[\w/-]+\.md\b", yaml.safe_dump(navigation))
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S.{20,}", text, re.MULTILINE)
    assert len(named) > 20 and sorted(listed) == sorted(named)
    for name in listed:
        assert (site / name).read_text(encoding="utf-8") == (ROOT / "docs" / name).read_text(
            encoding="utf-8"
        )

    assert re.match(r"# Architecture Archive\n\n> A graph database ", text)


def pages(site):
    return {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8")
        for path in site.rglob("*.html")
    }


def test_no_page_loads_anything_from_another_host(site):
    for name, text in pages(site).items():
        found = [one for one in LOADED.findall(text) if 'rel="canonical"' not in one]
        assert not found, f"{name} loads {found[0]}"


def test_every_formula_is_mathml(site):
    found = pages(site)
    assert found["kernels.html"].count("<math") > 20
    for name, text in found.items():
        assert "arithmatex" not in text, f"{name} has a formula that was not converted"
        for formula in re.findall(r"<math.*?</math>", text, re.DOTALL):
            assert "\\" not in formula, (
                f"{name} has a command that latex2mathml does not know: {formula}"
            )


def test_docstrings_keep_their_angle_brackets_and_bars(site):
    text = html.unescape(re.sub(r"</?code>", "", pages(site)["api/archive.kernels.features.html"]))
    assert "k(x, y) = <phi(x), phi(y)>, d(x, y) = ||phi(x) - phi(y)||</td>" in text


def public_modules():
    folders = [ROOT / "archive", *(ROOT / name for name in ("agents", "kernels", "trainer", "cli"))]
    for folder in folders:
        for path in folder.rglob("*.py"):
            relative = path.relative_to(ROOT).with_suffix("")
            parts = [part for part in relative.parts if part != "__init__"]
            if not parts[-1].startswith("_") and path.read_text(encoding="utf-8").strip():
                yield ".".join(parts if parts[0] == "archive" else ["archive", *parts])


def test_the_reference_has_every_public_module(site):
    text = "".join(text for name, text in pages(site).items() if name.startswith("api/"))
    identifiers = set(re.findall(r'id="(archive[\w.]*)"', html.unescape(text)))
    for module in public_modules():
        if WHOLE or module.startswith(PART):
            assert module in identifiers, f"the API reference lacks {module}"


def test_every_public_module_is_on_a_page():
    # The pages themselves are all made with the whole matrix only.
    spec = importlib.util.spec_from_file_location("api_pages", ROOT / "docs/scripts/api_pages.py")
    pages_of_packages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages_of_packages)
    packages = pages_of_packages.packages()
    named = {*packages, *(name for each in packages for name in pages_of_packages.modules(each))}
    assert set(public_modules()) <= named


def test_every_docstring_is_read_without_a_warning(built, caplog):
    """The warnings with which the strict build of the whole reference would fail."""
    package = built[1]
    parsed = 0
    waiting = [package]
    while waiting:
        member = waiting.pop()
        if member.docstring is not None:
            member.docstring.parse(
                "google",
                returns_named_value=False,
                returns_multiple_items=False,
                warn_missing_types=False,
            )
            parsed += 1

        for name, inner in member.members.items():
            if not inner.is_alias and not name.startswith("_"):
                waiting.append(inner)

    assert parsed > 3000
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in warnings] == []
