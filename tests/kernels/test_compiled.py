"""Compiled functions: without a usable cache, and with machine code that only their own file makes
stale."""

from __future__ import annotations

import ast
import errno
from pathlib import Path

import pytest

import archive
from archive.kernels.compiled import compiled


def double(x):
    return 2 * x


@pytest.fixture
def cached(monkeypatch, tmp_path):
    """The folder of the machine code, in which `double` has been stored."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    assert compiled(double)(21) == 42
    return tmp_path


def files(folder, ending):
    return sorted(folder.rglob(f"*{ending}"))


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_machine_code_is_compiled_once(cached):
    again = compiled(double)
    assert (again(4), hits(again)) == (8, 1)


def test_without_any_folder_to_cache_in(monkeypatch):
    def no_locator(self, function):
        raise RuntimeError("cannot cache function 'double': no locator available")

    monkeypatch.setattr("numba.core.caching.FunctionCache.__init__", no_locator)
    assert compiled(double)(21) == 42


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("change", ["cut", "of another release"])
def test_machine_code_that_cannot_be_read_is_compiled_again(cached, ending, change):
    (file,) = files(cached, ending)
    content = file.read_bytes()
    if change == "cut":
        file.write_bytes(content[: len(content) // 2])
    else:
        # A class that this release does not have.
        file.write_bytes(content.replace(b"numba.core.types", b"numba.core.tipes"))
        assert file.read_bytes() != content

    assert compiled(double)(21) == 42
    again = compiled(double)
    assert (again(4), hits(again)) == (8, 1)


def test_a_full_disk_does_not_end_a_search(monkeypatch, tmp_path):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._save_data", full)
    assert compiled(double)(21) == 42


SOURCES = {
    str(path.relative_to(folder)): path
    for folder in map(Path, archive.__path__)
    for part in ("kernels", "agents", "trainer", "spaces")
    for path in sorted((folder / part).rglob("*.py"))
    if "@compiled" in path.read_text()
}


def test_compiled_modules_are_found():
    known = {
        "kernels/distances/transport.py",
        "kernels/features/l1_rows.py",
        "agents/surrogates/ensemble/descent.py",
    }
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
            assert not used & imported, (
                f"{function.name} compiles {used & imported} of another file"
            )
