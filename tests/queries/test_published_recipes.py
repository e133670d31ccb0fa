"""One vocabulary of recipes: imports, effects and predictions read each word alike."""

from __future__ import annotations

import math

import pytest

from archive.agents.prediction.protocol_features import read_protocol
from archive.effects.recipes import read_recipe
from archive.queries.published_recipes import IMAGES, split_side
from archive.trainer.zoo.published import pretraining_of


@pytest.mark.parametrize("word", IMAGES)
def test_each_word_for_data_is_read_alike(word):
    recipe = f"fb_{word}_ft_in1k"
    data = pretraining_of(recipe)["pretraining"]
    assert data == word
    assert read_protocol(f"timm/{recipe}@224").data == pytest.approx(
        math.log10(IMAGES[word] / 1.28)
    )
    assert read_protocol(f"timm/{recipe}@224").data > 0.0
    assert read_recipe(f"timm/{recipe}@224", data).words == ("fb",)


def test_data_that_is_named_counts_and_not_the_usual_one():
    assert read_protocol("timm/clip_cc12m_ft_in1k@224").data == math.log10(12 / 1.28)


@pytest.mark.parametrize(
    "protocol", ["mine", "@224", "mine@best", "mine@0", "mine@²", "a@" + "9" * 5000]
)
def test_what_is_no_side_belongs_to_the_name(protocol):
    assert split_side(protocol) == (protocol, None)
    assert read_recipe(protocol).size is read_protocol(protocol).side is None
