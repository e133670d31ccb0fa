"""Names of edits, and of changes of recipes."""

from __future__ import annotations

import pytest

from archive.effects.edits import edit_of, edits_of_value
from archive.effects.recipes import change_of_recipe, read_recipe


@pytest.mark.parametrize(
    ("name", "before", "after", "text"),
    [
        ("squeeze-excitation", None, 0.25, "squeeze-excitation added"),
        ("activation", "relu", "gelu", "activation relu -> gelu"),
        ("norm place", "post", "pre", "norm place post -> pre"),
        ("mixer", "conv", "attention", "mixer conv -> attention"),
        ("operation", "none", "skip_connect", "operation none -> skip_connect"),
        ("kernel", 3, 5, "kernel 3 -> 5"),
        ("kernel", 7, 31, "kernel 7 -> 31"),
        ("lr", "1e-05", "0.001", "lr 1e-05 -> 0.001"),
        ("bound", "-1", "0.5", "bound -1 -> 0.5"),
        ("bound", "0.5", "nan", "bound 0.5 -> nan"),
        ("width", "64/128/256", "96/192/384", "width about x1.5"),
        ("depth", "3/4/6/3", "3/4/23/3", "depth about x4"),
        ("input size", "3x224x224", "3x384x384", "input size about x1.5"),
    ],
)
def test_an_edit_has_one_name_in_both_directions(name, before, after, text):
    edit, reverse = edit_of(name, before, after)
    assert (str(edit), reverse) == (text, False)
    assert edit_of(name, after, before) == (edit, True)


def test_wider_here_and_narrower_there_is_no_factor():
    edit, _ = edit_of("width", "64/128", "96/64")
    assert str(edit) == "width 64/128 -> 96/64"
    assert edit.whole == edit


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (("timm/fb_in1k@224", ""), ("timm/fb_dist_in1k@224", ""), "distillation added"),
        (("timm/fb_in1k@224", ""), ("timm/fb_distilled_in1k@224", ""), "distillation added"),
        (("timm/fb_in1k@224", ""), ("timm/fb_in22k_ft_in1k@224", "in22k"), "pretraining on in22k added"),
        (("timm/a2_in1k@224", ""), ("timm/a1_in1k@224", ""), "recipe a1 -> a2"),
        (("timm/a1_in1k@224", ""), ("timm/a1_in1k@288", ""), "test size about x1.25"),
        (("timm/sail_in1k@224", ""), ("timm/sail_in1k_384@384", ""), "input size about x1.5"),
        (("timm/rtx4090/amp@224", ""), ("timm/rtx4090/amp@448", ""), "test size about x2"),
        (("digits/1", ""), ("digits/1+recipe:sgd", ""), "recipe default -> sgd"),
    ],
)  # fmt: skip
def test_one_change_of_a_recipe_has_a_name(first, second, text):
    edit, reverse = change_of_recipe(read_recipe(*first), read_recipe(*second))
    assert str(edit) == text
    assert change_of_recipe(read_recipe(*second), read_recipe(*first)) == (edit, not reverse)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("timm/fb_in1k@224", ""), ("timm/fb_dist_in22k_ft_in1k@224", "in22k")),
        (("timm/a1_in1k@224", ""), ("timm/a2_in1k@288", "")),
        (("timm/rtx4090/amp@224", ""), ("timm/rtx5090/amp@224", "")),
        (("digits/1", ""), ("digits/1+objective:valid_loss", "")),
    ],
)
def test_confounded_trainings_are_not_compared(first, second):
    assert change_of_recipe(read_recipe(*first), read_recipe(*second)) is None


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (1, 2, ["about x2", "larger", "doubled"]),
        (2, 1, ["about x2", "larger", "doubled"]),
        (0, 3, ["0 -> 3", "larger"]),
        (-1, 4, ["-1 -> 4", "larger"]),
        (5e-324, 1e308, ["4.941e-324 -> 1e+308", "larger"]),
        # Whole numbers that one float stands for, and one that none does.
        (2**60, 2**60 + 1, [f"{2**60} -> {2**60 + 1}"]),
        (1, 10**400, None),
        (True, 1.5, None),
    ],
)
def test_edits_of_a_number(before, after, names):
    edits = edits_of_value("n", before, after)
    if names is None:
        assert len(edits) == 1
    else:
        assert [str(edit) for edit, _ in edits] == [f"n {name}" for name in names]
