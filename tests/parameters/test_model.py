"""The model of a space: names and shapes, and a folder that no database knows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from archive import space
from archive.errors import SettingsError

MODELS = """
def build(width):
    return width


def inputs():
    return ()
"""

PYTHON = """
from archive import space
from models_of_a_test import build, inputs

search = space.Space(width=[2, 4], model=build, example={example})
"""

TOML = """
model = "models_of_a_test.py:build"
example = {example}

[parameters]
width = [2, 4]
"""


@pytest.mark.parametrize(
    ("python", "toml", "stored"),
    [
        ("[3, 8, 8]", "[3, 8, 8]", ["3x8x8"]),
        ("[[3, 8, 8], '4:int64']", "[[3, 8, 8], '4:int64']", ["3x8x8", "4:int64"]),
        ("inputs", "'models_of_a_test.py:inputs'", "models_of_a_test.py:inputs"),
    ],
)
def test_both_kinds_of_file_name_one_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str, toml: str, stored: object
) -> None:
    monkeypatch.delitem(sys.modules, "models_of_a_test", raising=False)
    (tmp_path / "models_of_a_test.py").write_text(MODELS)
    (tmp_path / "space.py").write_text(PYTHON.format(example=python))
    (tmp_path / "space.toml").write_text(TOML.format(example=toml))
    one = space.load(str(tmp_path / "space.py"))
    assert one == space.load(str(tmp_path / "space.toml"))
    assert one.json()["model"] == "models_of_a_test.py:build"
    assert one.json()["example"] == stored
    assert one.model is not None
    assert one.model.target(one.model.reference) == f"{tmp_path}/models_of_a_test.py:build"


def test_a_space_of_a_database_has_no_folder_to_import_from() -> None:
    stored = space.Space(width=[2, 4], model="models.py:build", example=[3]).json()
    model = space.Space.from_json(stored).model
    assert model is not None
    assert model.target(model.reference) is None


def test_a_parameter_may_be_named_model() -> None:
    declared = space.Space(model=space.choice(["cnn", "mlp"]), example=[1, 2])
    assert declared.model is None
    assert declared.names == ("model", "example")


@pytest.mark.parametrize(
    ("model", "example", "fault"),
    [
        ("models", [3], "file.py:function or module:function, got 'models'"),
        ("models.py:build", None, "a model needs an example"),
        ("models.py:build", [0], "a model needs an example"),
        (lambda width: width, [3], "at the top level of a file"),
    ],
)
def test_a_wrong_model_is_one_line(model: object, example: object, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        space.Space(width=[2, 4], model=model, example=example)
