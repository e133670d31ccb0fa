"""Spaces by name: built-in ones, and those of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from archive import spaces
from archive.errors import SettingsError, UnknownNameError
from archive.registry import Registry
from archive.spaces.mlp import Mlp


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register spaces as another package would, some of them broken."""
    offered = {
        "other": "archive.spaces.mlp:Mlp",
        "missing": "no_such_module:Space",
        "no-space": "builtins:dict",
        "number": "math:pi",
        "needs-more": "fractions:Fraction.from_float",
        "cnn": "archive.spaces.mlp:Mlp",
    }
    points = [EntryPoint(name, value, "archive.spaces") for name, value in offered.items()]
    monkeypatch.setattr("archive.registry.entry_points", lambda group: points)
    ours = spaces.registry
    monkeypatch.setattr(spaces, "registry", Registry(ours.kind, ours.group, ours.built_in))


def test_names_are_sorted_and_hold_the_built_in_spaces() -> None:
    names = spaces.names()
    assert list(names) == sorted(names)
    assert {"cnn", "mlp", "nasbench101", "nasbench201"} <= set(names)


def test_an_unknown_space_is_named_with_its_neighbours() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown space 'nasbench'.*did you mean nasbench"):
        spaces.get("nasbench")


@pytest.mark.usefixtures("installed")
def test_another_package_adds_a_space() -> None:
    assert "other" in spaces.names()
    assert isinstance(spaces.get("other", max_layers=20), Mlp)


@pytest.mark.usefixtures("installed")
def test_another_package_cannot_take_a_built_in_name() -> None:
    assert spaces.get("cnn").name == "cnn"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "cannot be loaded: ModuleNotFoundError: No module"),
        ("no-space", "must be a Space"),
        ("number", "the space 'number' of another package must be a class or a function, got 3.14"),
        (
            "needs-more",
            r"the space 'needs-more' of another package cannot be made: TypeError: "
            r".*missing 1 required",
        ),
    ],
)
def test_a_broken_entry_point_is_a_settings_error(name: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        spaces.get(name)


@pytest.mark.usefixtures("installed")
def test_a_module_that_ends_the_process_is_a_settings_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tmp_path.joinpath("ends_the_process.py").write_text("import sys\nsys.exit(4)\n")
    monkeypatch.syspath_prepend(tmp_path)
    spaces.registry._offered["ends"] = EntryPoint(
        "ends", "ends_the_process:Space", "archive.spaces"
    )
    with pytest.raises(
        SettingsError,
        match="'ends' of another package cannot be loaded: its module ends the process",
    ):
        spaces.get("ends")
