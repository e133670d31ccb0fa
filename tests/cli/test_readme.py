"""The README says what is there: its commands run, its reference is that of `--help`, its dependencies are ours."""

import re
import tomllib
from pathlib import Path

from archive.cli.reference import replaced

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_command_reference_is_up_to_date():
    assert replaced(README) == README, "run: python -m archive.cli.reference README.md"


def test_every_dependency_is_named_with_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = re.search(r"## What it depends on.*?\n\n(\|.*?)\n\n", README, re.DOTALL)[1]
    for requirement in project["dependencies"]:
        name = re.match(r"[A-Za-z0-9-]+", requirement)[0]
        assert re.search(rf"\b{name}\b[^|]*\|.{{10,}}\|", table), f"the README gives no reason for {name}"
        assert re.search(r">=.*,<", requirement), f"{requirement} has no bounds"


def test_the_two_commands_stand_where_the_build_looks_for_them():
    assert "<!-- run-command -->\n```sh\npip install -e . && archive search --agent nasbot\n```" in README
    assert "<!-- test-command -->\n```sh\npip install -e '.[dev]' && pytest -n 2\n```" in README
    assert "'/<!-- test-command -->/" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_packages_of_the_namespace_are_links():
    for name in ("agents", "kernels", "trainer", "cli"):
        assert (ROOT / "archive" / name).is_symlink()
        assert (ROOT / "archive" / name).resolve() == ROOT / name
