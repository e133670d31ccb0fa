"""The site builds strictly, without a network, and its pages ask for nothing from other hosts."""

import html
import os
import re
import subprocess
import sys

import pytest
import yaml
from mkdocs.utils.yaml import yaml_load

from tests.support import ROOT, WHOLE

pytestmark = pytest.mark.lasts(5)

LOADED = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="?(?:https?:)?//[^">\s]*')


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder with the built site; links between pages, anchors and the navigation are checked
    by the build."""
    folder = tmp_path_factory.mktemp("site")
    # Whatever would be fetched cannot be: no host has this proxy.
    nowhere = {"NO_MKDOCS_2_WARNING": "1"} | dict.fromkeys(
        ("http_proxy", "https_proxy"), "http://127.0.0.1:9"
    )
    if not WHOLE:
        nowhere |= {"ARCHIVE_DOCS_LINE_LENGTH": "1000", "ARCHIVE_DOCS_SEARCH": "false"}

    # With --quiet, --strict would count no warnings.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | nowhere, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


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


def test_the_reference_has_every_public_module(site):
    text = "".join(text for name, text in pages(site).items() if name.startswith("api/"))
    identifiers = set(re.findall(r'id="(archive[\w.]*)"', html.unescape(text)))
    folders = [ROOT / "archive", *(ROOT / name for name in ("agents", "kernels", "trainer", "cli"))]
    for folder in folders:
        for path in folder.rglob("*.py"):
            relative = path.relative_to(ROOT).with_suffix("")
            parts = [part for part in relative.parts if part != "__init__"]
            module = ".".join(parts if parts[0] == "archive" else ["archive", *parts])
            if not parts[-1].startswith("_") and path.read_text(encoding="utf-8").strip():
                assert module in identifiers, f"the API reference lacks {module}"
