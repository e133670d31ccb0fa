"""Documented settings of agents exist, and every setting of an agent is documented."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from dataclasses import fields

import pytest

from archive import agents, spaces
from archive.agents.registry import registry
from archive.searches.comparison.plan import PEERS, contestant
from tests.support import ROOT

FOLDERS = ("archive", "agents", "kernels", "trainer", "cli")
NAMES = "|".join(sorted({*agents.names(), *PEERS}, key=len, reverse=True))

# An agent with a setting, alone or among others of a team; up to a space, a backtick or a closing
# bracket.
EXAMPLE = re.compile(rf"(?<![\w#:/-])((?:{NAMES})(?:\+[\w-]+)*:[a-z_]+=[^\s`)]+)")


def docstrings():
    """Yield the docstrings of every module that may hold an example: to parse them all takes
    seconds."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if EXAMPLE.search(text) else ():
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    yield ast.get_docstring(node) or ""


@functools.cache
def documented():
    """Return every `agent:setting=value` of the documents, which hold all help texts, and of the
    docstrings."""
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = [*(document.read_text(encoding="utf-8") for document in documents), *docstrings()]
    return sorted({each.rstrip(".,;") for text in texts for each in EXAMPLE.findall(text)})


def test_examples_are_found():
    examples = documented()
    assert any(example.startswith("portfolio:members=[") for example in examples)
    assert any("+" in example for example in examples)


@pytest.mark.parametrize("example", documented())
def test_a_documented_setting_is_accepted(example):
    assert contestant(example).agents(spaces.get("nasbench201"))


@pytest.mark.parametrize("kind", agents.names())
def test_the_arguments_of_an_agent_are_those_that_its_class_documents(kind):
    made = registry.load(kind)
    names = described(made, "Args") - {"space"}
    if "options" in names:
        options = type(inspect.signature(made).parameters["options"].default)
        own = {name for each in options.__mro__ for name in described(each, "Attributes")}
        assert own == {field.name for field in fields(options)}
        names = (names - {"options"}) | own

    if names:
        assert names == set(agents.settings(kind))


def described(made, section):
    """Return the names that a section of a docstring describes."""
    _, _, rest = (made.__doc__ or "").partition(f"{section}:\n")
    lines = re.findall(r"^ {8}(\w+(?:, \w+)*):", re.split(r"\n\n", rest)[0], re.MULTILINE)
    return {name for several in lines for name in several.split(", ")}
