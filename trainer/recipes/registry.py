"""Recipes of this machine by name, and which of them trials may run.

    default                         the loop of `archive.trainer.fit`
    entry points of the group       recipes of installed packages:   resnet-sgd = "some_package.training:fit"
      `archive.recipes`               a name of two packages, or of the built-in recipe, is not used
    HOME/recipes.toml               recipes of this machine (`archive.trainer.recipes.machine`)

The name of a recipe comes from the database, where every writer of the archive could choose it. It
is only looked up
here: nothing that the database holds is imported or started. `archive trainer --recipes` narrows
the choice further.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from archive.errors import SettingsError, UnknownNameError
from archive.registry import Registry
from archive.store.protocol_names import DEFAULT_RECIPE
from archive.trainer.recipes import machine
from archive.trainer.recipes.source import RecipeSource

GROUP = "archive.recipes"

DEFAULT_SOURCE = RecipeSource(DEFAULT_RECIPE, "archive.trainer.fit.train:fit")

registry = Registry("recipe", GROUP, {DEFAULT_RECIPE: DEFAULT_SOURCE.target})
"""The recipes of packages beside the built-in one."""


@dataclass(frozen=True)
class RecipeAccess:
    """The recipes that trials of a trainer may run.

    Attributes:
        home: Folder of the archive on this machine, with `recipes.toml`.
        allowed: Names of the recipes that may run; None allows all that are on this machine.
    """

    home: Path
    allowed: tuple[str, ...] | None = None

    @cached_property
    def sources(self) -> Mapping[str, RecipeSource]:
        """Recipes of this machine by name: built-in ones, those of packages, those of
        `recipes.toml`.

        Raises:
            SettingsError: `recipes.toml` cannot be used.
        """
        by_name = {DEFAULT_RECIPE: DEFAULT_SOURCE} | {
            source.name: source for source in _installed()
        }
        # A package replaces no built-in recipe, and the file replaces none at all: names in studies
        # keep their meaning.
        for source in machine.read(self.home):
            if source.name in registry.names():
                built_in = source.name == DEFAULT_RECIPE
                raise SettingsError(
                    f"the recipe {source.name!r} in {self.home / machine.FILE} has the name of "
                    f"{'the built-in one' if built_in else f'one of {registry.package(source.name)}'}: "
                    "choose another name"
                )

            by_name[source.name] = source

        return MappingProxyType(dict(sorted(by_name.items())))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the recipes that trials may run.

        Raises:
            SettingsError: `recipes.toml` cannot be used.
        """
        return tuple(name for name in self.sources if self.allowed is None or name in self.allowed)

    def check(self) -> None:
        """Check that `recipes.toml` can be read, and that all allowed recipes are on this machine.

        Raises:
            UnknownNameError: An allowed recipe is not on this machine.
            SettingsError: `recipes.toml` cannot be used.
        """
        sources = self.sources
        for name in self.allowed or ():
            if name not in sources:
                raise UnknownNameError("recipe", name, sources)

    def find(self, name: str, *, with_file: bool = False) -> RecipeSource:
        """Return a recipe by the name that a study gives.

        Args:
            name: The name.
            with_file: Whether its file must exist.

        Raises:
            SettingsError: It is not on this machine, or may not run here; another trainer may have
                it.
        """
        if self.allowed is not None and name not in self.allowed:
            raise SettingsError(
                f"the recipe {name!r} may not run here: start the trainer with --recipes {name}"
            )

        if name not in self.sources:
            if name in registry.names():
                # Two packages have it: this raises.
                registry.target(name)

            near = difflib.get_close_matches(name, [*self.sources], n=1)
            guess = f"did you mean {near[0]}? Else " if near else ""
            raise SettingsError(
                f"the recipe {name!r} is not on this machine: {guess}install its package, or "
                "name it in "
                f"{machine.FILE} of the trainer's home (archive recipes)"
            )

        if with_file:
            self.sources[name].check_file()

        return self.sources[name]


def _installed() -> Iterable[RecipeSource]:
    for name in registry.plug_ins():
        # A name of two packages is left out.
        with suppress(SettingsError):
            yield RecipeSource(name, registry.target(name), registry.package(name))
