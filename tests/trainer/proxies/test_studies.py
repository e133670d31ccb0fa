"""What is measured for a study."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archive import spaces
from archive.errors import UsageError
from archive.trainer.proxies.measurement import sample_of, subject_of
from archive.trainer.tasks.file_access import FileAccess
from tests.support.stores import study

DIABETES = replace(study(), task="diabetes", protocol="diabetes/1")


def subject(protocol, tmp_path):
    return subject_of(replace(DIABETES, protocol=protocol), FileAccess.of(tmp_path))


def test_a_sample_is_the_same_everywhere_and_grows():
    space = spaces.get("mlp")
    small, large = ([one.key for one in sample_of(space, count)] for count in (5, 12))
    assert large[:5] == small
    assert len({*large}) == 12


def test_inherited_weights_and_objectives_change_no_initial_network(tmp_path):
    for protocol in ("diabetes/1", "diabetes/1+morph", "diabetes/1+objective:valid_mse"):
        task, rules = subject(protocol, tmp_path)
        assert (task.name, rules.name) == ("diabetes", "diabetes/1")


def test_another_recipe_may_train_other_networks(tmp_path):
    with pytest.raises(UsageError, match="sgd"):
        subject("diabetes/1+recipe:sgd", tmp_path)
