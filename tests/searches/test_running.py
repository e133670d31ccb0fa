"""Checks before a search starts its trainers."""

from __future__ import annotations

from pathlib import Path

import pytest

from archive import space, spaces
from archive.constraints import parse
from archive.errors import SettingsError
from archive.searches.models import parameters_of
from archive.searches.running import _check_model
from archive.spaces.constrained import constrain
from archive.trainer.recipes.registry import RecipeAccess


def test_trainers_must_know_the_model_that_the_default_recipe_trains(tmp_path: Path) -> None:
    declared = space.Space(width=[2, 4], model="nets.py:build", example=[3])
    assert declared.model is not None
    declared.model = declared.model.within(tmp_path)
    found = spaces.of(declared)
    members = constrain(
        found, [parse("params<=3")], {"params": lambda networks: [1.0] * len(networks)}
    )
    assert parameters_of(members) is parameters_of(found) is declared
    assert parameters_of(spaces.get("mlp")) is None
    model = declared.model

    recipe = RecipeAccess(tmp_path).find("default")
    with pytest.raises(SettingsError) as error:
        _check_model(RecipeAccess(tmp_path), recipe, model)

    # The line of the message is the one that the file needs.
    line = str(error.value).partition("the line ")[2]
    assert line == f'"nets.py:build" = "{tmp_path}/nets.py:build"'
    path = tmp_path / "recipes.toml"
    path.write_text(f"[models]\n{line}\n")
    path.chmod(0o600)
    _check_model(RecipeAccess(tmp_path), recipe, model)
