"""Options that the networks of a study on choices take, under the names of their decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archive import spaces
from archive.architecture import compact
from archive.errors import ArchiveError, InvalidArchitectureError
from archive.spaces.choices import Choices
from archive.store.records import Study


def choices_of(study: Study) -> Choices | None:
    """Return the space of a study on choices;

    None for any other space, and for settings that are unknown here.
    """
    if study.space != Choices.name:
        return None

    # A table of choices has the settings of its whole space.
    config = {name: value for name, value in study.space_config.items() if name != "table"}
    try:
        space = spaces.get(study.space, **config)
    except ArchiveError:
        return None

    return space if isinstance(space, Choices) else None


def options_of(space: Choices, codes: Sequence[str]) -> dict[str, list[str | None]]:
    """Return the option of each network in each decision, by its name;

    None for a network of another space.
    """
    rows: list[Mapping[str, str]] = []
    for code in codes:
        try:
            rows.append(space.named(compact.decode("", space.name, "", code)))
        except InvalidArchitectureError:
            rows.append({})

    return {name: [row.get(name) for row in rows] for name in space.options}
