"""What a search varies, in the user's words: `from archive import space`.

    search = space.Space(
        depth=space.integer(2, 12),
        width=space.choice([32, 64, 128]),
        lr=space.real(1e-5, 1e-1, log=True),
        dropout=space.real(0, 0.5, when="depth >= 4"),
        stage=space.repeat({"op": space.choice(["conv3", "skip"])}, "depth"),
        constraints=["width * depth <= 512"],
    )

`load("space.toml")` and `load("space.py:search")` read a file. `archive.parameters` has the parts.
"""

from __future__ import annotations

from archive.parameters.declaration import (
    choice,
    constant,
    group,
    integer,
    ordinal,
    real,
    repeat,
)
from archive.parameters.files import load
from archive.parameters.parameter_space import ParameterSpace as Space

__all__ = ["Space", "choice", "constant", "group", "integer", "load", "ordinal", "real", "repeat"]
