"""Recipes in the names of protocols, and what differs between two trainings of one network.

    timm/fb_dist_in1k@224      words fb, dist      test size 224
    timm/rtx4090/amp@224       no words            test size 224
    digits/1+recipe:sgd        words sgd           no size

The data of the pretraining is a property of the result (`pretraining`), and no word of the recipe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from archive.effects.edits import Edit, edit_of
from archive.queries.published_recipes import OWN_DATA, split_side
from archive.store.protocol_names import ProtocolName

_DATA = frozenset(["ft", OWN_DATA])
"""Words of a recipe that name the task's own data, and the step from the pretraining to it."""

WORDS = {
    "dist": "distillation",
    "distilled": "distillation",
    "ap": "adversarial propagation",
    "augreg": "augmentation and regularisation",
}
"""Words of recipes whose addition is a change with a name."""


@dataclass(frozen=True)
class Recipe:
    """How a network was trained and measured.

    Attributes:
        source: Package or protocol, the same for comparable recipes.
        words: Words of the recipe, without those about data and size.
        pretraining: Data before the task's own; empty without any.
        size: Side of the test images; None where the protocol names none.
        tuned: Whether the recipe names the size as its own.
        objective: Metric that is the value; empty for the task's own.
    """

    source: str
    words: tuple[str, ...]
    pretraining: str
    size: int | None = None
    tuned: bool = False
    objective: str = ""

    @property
    def text(self) -> str:
        """The words in one text; `default` without any."""
        return "_".join(self.words) or "default"

    def without_size(self) -> Recipe:
        """Return the recipe at any size of the test images."""
        return replace(self, size=None, tuned=False)


@lru_cache(maxsize=2**14)
def read_recipe(protocol: str, pretraining: str = "") -> Recipe:
    """Return the recipe that a protocol names.

    Args:
        protocol: Name of the protocol.
        pretraining: Names of the data of the pretraining, joined by `+`.
    """
    stem, size = split_side(protocol)
    source, _, recipe = stem.partition("/")
    if size is None or not source or not recipe:
        name = ProtocolName.parse(protocol)
        source = f"{name.base}+morph" if name.morph else name.base
        return Recipe(source, (name.recipe,), pretraining, objective=name.objective or "")

    if "/" in recipe:
        # A device and its software, of a measurement without training.
        return Recipe(stem, (), pretraining, size)

    data = _DATA.union(pretraining.split("+"))
    words = []
    tuned = False
    for word in recipe.split("_"):
        if word == str(size):
            tuned = True
        elif word not in data:
            words.append(word)

    return Recipe(source, tuple(words), pretraining, size, tuned)


def change_of_recipe(first: Recipe, second: Recipe) -> tuple[Edit, bool] | None:
    """Return the one change between two recipes, as `edit_of`; None where there are several."""
    if (first.source, first.objective) != (second.source, second.objective):
        return None

    changes = []
    if first.size != second.size:
        # A network that is trained on at another size differs in more than the test.
        name = "test size" if first.tuned == second.tuned else "input size"
        changes.append(edit_of(name, first.size, second.size))

    if first.pretraining != second.pretraining:
        changes.append(_change_of_data(first.pretraining, second.pretraining))

    if first.words != second.words:
        changes.append(_change_of_words(first, second))

    return changes[0] if len(changes) == 1 else None


def _change_of_data(first: str, second: str) -> tuple[Edit, bool]:
    if not first or not second:
        return Edit(f"pretraining on {first or second}", "", "added"), not second

    return edit_of("pretraining", first, second)


def _change_of_words(first: Recipe, second: Recipe) -> tuple[Edit, bool]:
    more = set(second.words) - set(first.words)
    fewer = set(first.words) - set(second.words)
    added = more or fewer
    if len(more) + len(fewer) == 1 and next(iter(added)) in WORDS:
        return Edit(WORDS[next(iter(added))], "", "added"), not more

    return edit_of("recipe", first.text, second.text)
