"""Genotypes in the published form, as text and as JSON.

    text    Genotype(normal=[('sep_conv_3x3', 1), ('sep_conv_3x3', 0), …],
                     normal_concat=range(2, 6), reduce=…, reduce_concat=…)
    JSON    {"normal": [["sep_conv_3x3", 1], ["sep_conv_3x3", 0], …],
             "normal_concat": [2, 3, 4, 5], "reduce": …, "reduce_concat": …}

A cell has the states 0 and 1, its inputs c_{k-2} and c_{k-1}, and a state for each node: two
consecutive pairs of an operation and the state that it reads make a node, and the first node is
state 2. `…_concat` lists the nodes that the output of the cell concatenates. The names come from
`cnn/genotypes.py` in quark0/darts.

Text is parsed, never evaluated.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import Any, NamedTuple

from archive.architecture.genotypes.operations import CELLS, DARTS_PRIMITIVES, NASNET_PRIMITIVES
from archive.errors import CodecError, UnknownNameError
from archive.values import brief

INPUTS = 2
"""States of a cell that are no nodes."""

# Far above every published genotype, and low enough that hostile text cannot keep a process busy.
_MOST_NODES = 20
_MOST_TEXT = 20_000
_MOST_BOUND = 1_000
_CALL = re.compile(r"(?:\w+\s*=\s*)?(?:\w+\.)*Genotype\s*(?=\()")
_FIELDS = ("normal", "normal_concat", "reduce", "reduce_concat")

Choice = tuple[str, int]
"""An operation and the state that it reads."""


class Genotype(NamedTuple):
    """A normal and a reduction cell.

    Attributes:
        normal: Two choices for each node of the normal cell.
        normal_concat: The states that the output of the normal cell concatenates, ascending.
        reduce: The same for the reduction cell.
        reduce_concat: The same for the reduction cell.
    """

    normal: tuple[Choice, ...]
    normal_concat: tuple[int, ...]
    reduce: tuple[Choice, ...]
    reduce_concat: tuple[int, ...]

    def __str__(self) -> str:
        """Return the published form; `parse` reads it."""
        return (
            f"Genotype(normal={list(self.normal)}, "
            f"normal_concat={_states_text(self.normal_concat)}, "
            f"reduce={list(self.reduce)}, reduce_concat={_states_text(self.reduce_concat)})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object; `parse` reads it."""
        return {
            "normal": list(map(list, self.normal)),
            "normal_concat": list(self.normal_concat),
            "reduce": list(map(list, self.reduce)),
            "reduce_concat": list(self.reduce_concat),
        }


def is_genotype(text: str) -> bool:
    """Return whether a text begins like a genotype: `Genotype(`, or a JSON object of `normal`."""
    start = text.lstrip()
    return bool(_CALL.match(start)) or bool(re.match(r'\{\s*"(?:normal|reduce)', start))


def parse(described: Any) -> Genotype:
    """Return a checked genotype.

    Args:
        described: A `Genotype`; its text or JSON text; a mapping; or an object with the four
            attributes, such as the named tuple of the DARTS repository.

    Raises:
        CodecError: It describes no genotype; the message gives the reason.
    """
    fields = _fields(described)
    return Genotype(
        *_cell("normal", fields["normal"], fields["normal_concat"]),
        *_cell("reduce", fields["reduce"], fields["reduce_concat"]),
    )


def _fields(described: Any) -> Mapping[str, Any]:
    if isinstance(described, str):
        fields: Mapping[str, Any] = _from_text(described)
    elif isinstance(described, Mapping):
        fields = described
    else:
        fields = {}
        for name in _FIELDS:
            if hasattr(described, name):
                fields[name] = getattr(described, name)

    for name in _FIELDS:
        if name not in fields:
            raise CodecError(f"a genotype needs {', '.join(_FIELDS)}, got no {name}")

    for name in fields:
        if name not in _FIELDS:
            raise CodecError(f"a genotype has {', '.join(_FIELDS)} only, got {brief(name)}")

    return fields


def _from_text(text: str) -> Mapping[str, Any]:
    if len(text) > _MOST_TEXT:
        raise CodecError(
            f"the text of a genotype has at most {_MOST_TEXT} characters, got {len(text)}"
        )

    call = _CALL.match(text.strip())
    try:
        if call:
            return _arguments(text.strip()[call.end() :])

        parsed = json.loads(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise CodecError(f"no text of a genotype: {error}") from None

    if not isinstance(parsed, dict):
        raise CodecError(f"the JSON of a genotype is an object, got {brief(parsed)}")

    return parsed


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call of `Genotype` without its name."""
    call = ast.parse(f"Genotype{text}", mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError("it must be one call of Genotype")

    if len(call.args) > len(_FIELDS) or any(keyword.arg is None for keyword in call.keywords):
        raise ValueError(f"Genotype takes {', '.join(_FIELDS)}")

    arguments = dict(zip(_FIELDS, map(_value, call.args), strict=False))
    for keyword in call.keywords:
        if keyword.arg in arguments:
            raise ValueError(f"{keyword.arg} is given twice")

        arguments[str(keyword.arg)] = _value(keyword.value)

    return arguments


def _value(node: ast.expr) -> Any:
    """Return a literal, or the states of `range(…)` and `list(range(…))`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id in ("list", "tuple") and len(node.args) == 1:
            return _value(node.args[0])

        if node.func.id == "range":
            return range(*map(_whole, map(ast.literal_eval, node.args)))

    return ast.literal_eval(node)


def _whole(bound: Any) -> int:
    if isinstance(bound, bool) or not isinstance(bound, int) or abs(bound) > _MOST_BOUND:
        raise ValueError(
            f"a bound of range must be a whole number up to {_MOST_BOUND}, got {bound!r:.80}"
        )

    return bound


def _cell(name: str, choices: Any, concat: Any) -> tuple[tuple[Choice, ...], tuple[int, ...]]:
    listed = _check_list(choices, name, 2 * _MOST_NODES)
    if not listed or len(listed) % 2:
        raise CodecError(
            f"{name} must have two pairs of operation and state for each node, got {len(listed)}"
        )

    checked = []
    for position, choice in enumerate(listed):
        checked.append(_choice(name, position, choice))

    states = INPUTS + len(listed) // 2
    joined = _check_list(concat, f"{name}_concat", _MOST_NODES)
    for state in joined:
        if isinstance(state, bool) or not isinstance(state, int) or not INPUTS <= state < states:
            raise CodecError(
                f"{name}_concat must have nodes from {INPUTS} to {states - 1}, got {brief(state)}"
            )

    if not joined or len(set(joined)) < len(joined):
        raise CodecError(
            f"{name}_concat must have one or more nodes, each once, got {brief(joined)}"
        )

    return tuple(checked), tuple(sorted(joined))


def _choice(name: str, position: int, choice: Any) -> Choice:
    if not isinstance(choice, (list, tuple)) or len(choice) != 2 or not isinstance(choice[0], str):
        raise CodecError(f"{name} must have pairs of operation and state, got {brief(choice)}")

    operation, state = choice
    node = INPUTS + position // 2
    if isinstance(state, bool) or not isinstance(state, int) or not 0 <= state < node:
        raise CodecError(
            f"node {node} of {name} must read a state from 0 to {node - 1}, got {brief(state)}"
        )

    return operation, state


def _check_list(value: Any, name: str, most: int) -> list[Any]:
    if not isinstance(value, (list, tuple, range)):
        raise CodecError(f"{name} must be a list, got {brief(value)}")

    if len(value) > most:
        raise CodecError(f"{name} must have at most {most} entries, got {len(value)}")

    return list(value)


def _states_text(states: tuple[int, ...]) -> str:
    consecutive = range(states[0], states[-1] + 1)
    return (
        f"range({consecutive.start}, {consecutive.stop})"
        if len(consecutive) == len(states)
        else str(list(states))
    )


@dataclass(frozen=True, slots=True)
class GenotypeRules:
    """The rules of one space.

    Attributes:
        space: Name of the space and of its vocabulary.
        nodes: Nodes of a cell.
        primitives: Names of the operations.
        repeats: Whether both operations of a node may read one state.
        every_node: Whether the output of a cell concatenates all nodes, or those that no operation
            reads.
    """

    space: str
    nodes: int
    primitives: tuple[str, ...]
    repeats: bool
    every_node: bool

    def sources(self, node: int) -> tuple[tuple[int, int], ...]:
        """Return the pairs of states that a node may read, each in ascending order.

        Args:
            node: Number of its state, the first node has 2.
        """
        pairs = combinations_with_replacement if self.repeats else combinations
        return tuple(pairs(range(node), 2))

    def outputs(self, choices: Sequence[Choice]) -> tuple[int, ...]:
        """Return the states that the output of a cell of these choices concatenates."""
        states = set(range(INPUTS, INPUTS + len(choices) // 2))
        if not self.every_node:
            for _, state in choices:
                states.discard(state)

        return tuple(sorted(states))

    def fault(self, genotype: Genotype) -> str | None:
        """Return why the space does not have a genotype; None if it has it."""
        cells = (
            (genotype.normal, genotype.normal_concat),
            (genotype.reduce, genotype.reduce_concat),
        )
        for name, (choices, concat) in zip(CELLS, cells, strict=True):
            if len(choices) != 2 * self.nodes:
                return f"a cell has {self.nodes} nodes, got {len(choices) // 2} ({name})"

            for operation, _ in choices:
                if operation not in self.primitives:
                    return (
                        f"an operation is one of {', '.join(self.primitives)}, got "
                        f"{operation!r:.80} ({name})"
                    )

            for begin in range(0, len(choices), 2):
                first = choices[begin][1]
                second = choices[begin + 1][1]
                if first == second and not self.repeats:
                    return (
                        f"a node reads two different states, got {first} twice ({name}, node "
                        f"{INPUTS + begin // 2})"
                    )

            if concat != self.outputs(choices):
                which = "all nodes" if self.every_node else "the nodes that no operation reads"
                return (
                    f"the output concatenates {which}, {list(self.outputs(choices))}, got "
                    f"{list(concat)} ({name})"
                )

        return None


RULES = {
    "darts": GenotypeRules("darts", 4, DARTS_PRIMITIVES, repeats=False, every_node=True),
    "nasnet": GenotypeRules("nasnet", 5, NASNET_PRIMITIVES, repeats=True, every_node=False),
}
"""The rules by the name of the space, the narrowest first."""


def rules_of(space: str) -> GenotypeRules:
    """Return the rules of a space.

    Raises:
        UnknownNameError: Its architectures are no genotypes.
    """
    try:
        return RULES[space]
    except KeyError:
        raise UnknownNameError("space of genotypes", space, RULES) from None
