"""The version of a module is that of its installed package, or a digest of its file, without an
import."""

from __future__ import annotations

import hashlib
import sys

import pytest

from archive.trainer.recipes.source import RecipeSource, version_of

CODE = "raise SystemExit('imported')\n"
DIGEST = f"sha256:{hashlib.sha256(CODE.encode()).hexdigest()[:16]}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of packages, two of which an installer has written."""
    for name in (
        "own_lab/deep/training.py",
        "own_lab/deep/__init__.py",
        "own_lab/__init__.py",
        "own_script.py",
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CODE)

    for name, record in (
        ("other", "other.py,,\n"),
        ("own-lab", "own_lab/__init__.py,,\nown_lab/deep/training.py,,\n"),
    ):
        info = tmp_path / f"{name}-1.2.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        info.joinpath("RECORD").write_text(record)

    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("own_lab", "own-lab 1.2"),
        ("own_lab.deep.training", "own-lab 1.2"),
        ("own_lab.deep", DIGEST),
        ("own_script", DIGEST),
        ("own_script.part", None),
        ("own_lab.gone.training", None),
        ("no_such_package", None),
        ("no_such_package.training", None),
        ("sys", None),
        ("..", None),
    ],
)
def test_the_version_is_that_of_the_package_or_a_digest(folder, module, version):
    assert version_of(module) == version
    assert not {"own_lab", "own_script"} & set(sys.modules)


def test_an_evaluation_records_the_version_of_a_recipe_in_a_module(folder):
    source = RecipeSource("mine", "own_lab.deep.training:fit", "recipes.toml")
    assert source.record() == {"recipe": "mine", "recipe_version": "own-lab 1.2"}
    gone = RecipeSource("mine", "no_such_package:fit", "recipes.toml")
    assert gone.record() == {"recipe": "mine", "recipe_version": "recipes.toml"}
