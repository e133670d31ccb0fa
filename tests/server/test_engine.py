"""Where the engine is: under either name of its package, and never in a package without a Java
runtime."""

from __future__ import annotations

import tomllib
from importlib.machinery import ModuleSpec

import pytest

from archive.server import engine
from archive.server.engine import StartFailed
from tests.support import ROOT

EMBEDDED, JVM = engine.MODULES


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Install packages with these contents, by module, in place of all others."""

    def install(**contents):
        specs = {}
        for module, files in contents.items():
            folder = tmp_path / module
            for name in ("__init__.py", *files):
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()

            specs[module] = ModuleSpec(module, None, origin=str(folder / "__init__.py"))

        monkeypatch.setattr("importlib.util.find_spec", specs.get)
        return tmp_path

    return install


def jvm(version):
    return (
        "jre/bin/java",
        f"jars/arcadedb-engine-{version}.jar",
        "jars/arcadedb-studio-1.jar",
        "jars/gson-2.jar",
    )


NATIVE = ("_native/libarcadedb.so",)


@pytest.mark.parametrize(
    ("contents", "module", "version"),
    [
        ({EMBEDDED: jvm("26.10.2")}, EMBEDDED, "26.10.2"),
        ({JVM: jvm("26.11.1-SNAPSHOT")}, JVM, "26.11.1-SNAPSHOT"),
        ({EMBEDDED: jvm("26.10.2"), JVM: jvm("26.11.1")}, EMBEDDED, "26.10.2"),
        ({EMBEDDED: jvm("26.10.2"), JVM: NATIVE}, EMBEDDED, "26.10.2"),
        ({EMBEDDED: (), JVM: jvm("26.11.1")}, JVM, "26.11.1"),
    ],
)
def test_either_package_holds_the_engine(packages, contents, module, version):
    folder = packages(**contents)
    found = engine.installed()
    assert (found.folder, found.version) == (folder / module, version)
    assert [jar.name for jar in found.jars] == [f"arcadedb-engine-{version}.jar", "gson-2.jar"]


@pytest.mark.parametrize(
    "contents", [{}, {JVM: NATIVE}, {EMBEDDED: ()}, {EMBEDDED: (), JVM: NATIVE}]
)
def test_without_a_java_runtime_the_package_to_install_is_named(packages, contents):
    packages(**contents)
    with pytest.raises(StartFailed, match=f"pip install '{engine.REQUIREMENT}'") as caught:
        engine.installed()

    assert "\n" not in str(caught.value)
    assert ("native build" in str(caught.value)) == bool(contents)


def test_the_named_package_is_the_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert engine.REQUIREMENT in project["project"]["dependencies"]


def test_versions_sort_by_age():
    versions = ["26.8.1", "26.9.1", "26.10.1", "26.10.2", "26.11.1-SNAPSHOT", "26.11.1", "27.1"]
    assert sorted(reversed(versions), key=engine.order) == versions
