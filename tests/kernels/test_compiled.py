"""Compiled functions: without a writable cache, and with machine code that only their own file makes stale."""

from __future__ import annotations

import ast
from pathlib import Path

import numba
import pytest

import archive
from archive.kernels.compiled import compiled


def double(x):
    return 2 * x


def test_without_any_folder_to_cache_in(monkeypatch):
    real = numba.njit

    def njit(function, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'double': no locator available")
        return real(function, **options)

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled(double)(21) == 42


SOURCES = {
    str(path.relative_to(folder)): path
    for folder in map(Path, archive.__path__)
    for part in ("kernels", "agents", "trainer", "spaces")
    for path in sorted((folder / part).rglob("*.py"))
    if "@compiled" in path.read_text()
}


def test_compiled_modules_are_found():
    known = {"kernels/distances/transport.py", "kernels/features/l1/rows.py", "agents/surrogates/ensemble/descent.py"}
    assert known <= SOURCES.keys()


@pytest.mark.parametrize("name", SOURCES)
def test_compiled_code_depends_on_its_own_file_alone(name):
    module = ast.parse(SOURCES[name].read_text())
    imported = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("archive")
        for alias in node.names
    } - {"compiled"}
    for function in module.body:
        if isinstance(function, ast.FunctionDef) and any(
            ast.unparse(one) == "compiled" for one in function.decorator_list
        ):
            used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            assert not used & imported, f"{function.name} compiles {used & imported} of another file"
