"""Variants of the protocol of a text: another budget, Muon, scaling by width.

    pydoc-topics/DIGEST                 a quarter of a million tokens, AdamW
    pydoc-topics/DIGEST/8M              eight million tokens; k, M and G stand for powers of a thousand
    pydoc-topics/DIGEST/1e12flops       10^12 operations of the training of each network
    pydoc-topics/DIGEST/8M/muon/mup     Muon, and learning rates by the width of the network

A variant has one name: its parts are in this order, and numbers are in their shortest form. With a
budget in operations a small network trains on more tokens than a large one, so that designs are
compared at equal compute: 6 operations for each multiply-add of a token
(`archive.trainer.protocols.base.sized`). The steps of an epoch are a whole number, so that the budget
is met within half a step an epoch. A smaller budget is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace

from archive.trainer.protocols.base import TrainingProtocol

BASE_WIDTH = 64
"""Width at which `mup` changes nothing: the smallest default one of the space `decoder`."""

_VARIANT = re.compile(
    r"(?:/(?P<number>[1-9][0-9]{0,5})(?P<unit>[kMG])"
    r"|/(?P<flops>[1-9](?:\.[0-9]?[1-9])?e(?:[6-9]|1[0-9]|2[0-9]))flops)?"
    r"(?P<muon>/muon)?(?P<mup>/mup)?",
    re.ASCII,
)
_UNITS = {"k": 10**3, "M": 10**6, "G": 10**9}


def variant(protocol: TrainingProtocol, name: str) -> TrainingProtocol | None:
    """Return the variant of a protocol that a name gives; None for the name of none.

    Args:
        protocol: Default protocol of a task on text.
        name: Name such as `pydoc-topics/DIGEST/8M`.
    """
    rest = name.removeprefix(protocol.name)
    match = _VARIANT.fullmatch(rest)
    if rest in ("", name) or match is None:
        return None

    changed: TrainingProtocol | None = replace(protocol, name=name)
    if match["number"]:
        tokens = int(match["number"]) * _UNITS[match["unit"]]
        # 8000k would be a second name for 8M, and their results would be kept apart.
        is_short = int(match["number"]) % 1000 or match["unit"] == "G"
        changed = _with_tokens(protocol, name, tokens) if is_short else None
    elif match["flops"]:
        changed = replace(protocol, name=name, flops=float(match["flops"]), epoch_steps=None)

    if changed is not None and match["muon"]:
        changed = replace(changed, optimiser="muon")

    if changed is not None and match["mup"]:
        changed = replace(changed, network={**changed.network, "base_width": BASE_WIDTH})

    return changed


def _with_tokens(protocol: TrainingProtocol, name: str, tokens: int) -> TrainingProtocol | None:
    """Return a protocol with a number of tokens; None for the default one, or less than a step."""
    epoch = protocol.epochs * protocol.batch * int(protocol.preparation["context"])
    steps = round(tokens / epoch)
    if steps in (0, protocol.epoch_steps):
        return None

    return replace(protocol, name=name, epoch_steps=steps)
