"""The layout that CONTRIBUTING.md promises: class names, the length of modules and the size of
folders."""

from __future__ import annotations

import ast
import re
from collections import Counter

from tests.support import ROOT

# Path.glob does not follow the links in archive/ (`**` stops at links).
FOLDERS = ("archive", "agents", "kernels", "trainer", "cli")
MODULES = [path for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/*.py")]


def test_a_class_name_exists_once():
    classes = Counter(
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert len(classes) > 500
    assert {name for name, count in classes.items() if count > 1} == set()


def test_no_module_has_more_than_400_lines():
    assert [
        path for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > 500
    ] == []


def test_no_folder_has_more_than_20_modules():
    folders = Counter(path.parent for path in [*MODULES, *ROOT.glob("tests/**/*.py")])
    assert [(str(folder), count) for folder, count in folders.items() if count > 20] == []


CYPHER = re.compile(r"\b(MATCH|MERGE|CREATE) \(|\bUNWIND \$|-\[:[A-Z_]+\]")
HOMES_OF_CYPHER = ("archive/store/", "archive/queue/", "archive/queries/", "archive/database/")
WITH_EXAMPLES = {
    "archive/__init__.py",
    "archive/api.py",
    "archive/server/sql.py",
    "cli/db/command.py",
    "cli/query.py",
}


def test_cypher_stands_in_store_queue_and_queries():
    elsewhere = set()
    for path in MODULES:
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(HOMES_OF_CYPHER):
            continue

        text = path.read_text(encoding="utf-8")
        if CYPHER.search(text):
            elsewhere.add(name)

    assert elsewhere <= WITH_EXAMPLES
