"""One program for both modes of a model.

The programs of the two modes have most nodes in common. A node with different inputs reads them by
the stand-in `by_mode`, and nodes that only the training mode has are added:

    x ───────────────┐                                      x ─────────────┐
    x ─> f ─> g ─> h │  in training, and in evaluation  =>  x ─> f ─> g ─> by_mode ─> h
    x ─> h           │

In each mode, nothing reads the nodes that only the other mode has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

from archive.trainer.intake import stand_ins
from archive.trainer.intake.alignment import Pairs, are_paired, arguments, is_choice, settings_of
from archive.trainer.intake.programs import Program
from archive.trainer.intake.settings import parameter_names

# In evaluation mode these return their first input.
_IDENTITIES = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")

# Operations that may return their input, or a view of it, although their schema does not say so.
_MAY_SHARE = (
    *_IDENTITIES,
    "contiguous",
    "flatten",
    "ravel",
    "reshape",
    "reshape_as",
    "to",
    "type_as",
)


def differs(evaluation: Program, training: Program, pairs: Pairs) -> bool:
    """Return whether the outputs of the two programs are computed in different ways."""
    waiting = _output_pairs(evaluation, training)
    seen = set(waiting)
    while waiting:
        source, target = waiting.pop()
        if pairs.get(source) is not target:
            return True

        for pair in arguments(source, target) if source.op == "call_function" else ():
            if pair not in seen and not _is_size(pair[1]):
                seen.add(pair)
                waiting.append(pair)

    return False


def is_safe(evaluation: Program, training: Program, pairs: Pairs) -> bool:
    """Return whether the programs can be merged with operations that change their inputs.

    They can where each changed input belongs to one of the programs alone, and where both programs
    have all tensors.
    """
    if not pairs.keys() >= training.tensors.keys():
        return False

    common = {*pairs, *pairs.values(), *evaluation.tensors, *evaluation.inputs}
    needed = _needed_nodes(training) | _needed_nodes(evaluation)
    for node in (*training.graph.nodes, *evaluation.graph.nodes):
        if node not in needed or node in common:
            continue

        if any(_root(source) in common for source in _changed_inputs(node)):
            return False

    for node, other in pairs.items():
        if not are_paired(zip(_changed_inputs(node), _changed_inputs(other), strict=True), pairs):
            return False

    return True


def write_without_changes(pairs: Pairs) -> None:
    """Replace operations that change different inputs in the two programs by ones that change none.

    An example is the sum at the end of a residual block. An operation is replaced where nothing
    else reads the input that it changes: its values stay the same.
    """
    for node, other in pairs.items():
        if are_paired(zip(_changed_inputs(node), _changed_inputs(other), strict=True), pairs):
            continue

        operation = _operation_without_changes(node)
        if operation is not None and operation is _operation_without_changes(other):
            node.target = operation
            other.target = operation


def changes_unseen(node: fx.Node) -> bool:
    """Return whether an operation is the only reader of its first input, which it changes.

    An input that shares the memory of other values, as a view does, is followed to the first.
    """
    reader = node
    source = node.args[0]
    while isinstance(source, fx.Node):
        if source.op != "call_function" or set(source.users) != {reader}:
            return False

        reader = source
        source = _shared_source(source)

    return True


def merge(evaluation: Program, training: Program, pairs: Pairs) -> Program:
    """Add the different nodes of the training mode to a program; its graph is changed.

    Returns:
        The program, with the outputs of both.
    """
    merging = _Merging(evaluation, training, pairs)
    merging.run()
    outputs = list(evaluation.outputs)
    for source, target in _output_pairs(evaluation, training):
        with evaluation.graph.inserting_before(merging.end):
            outputs[outputs.index(target)] = merging.choose(source, target)

    replaced = dict(zip(evaluation.outputs, outputs, strict=True))
    values: Any = merging.end.args[0]
    merging.end.args = (tuple(replaced.get(value, value) for value in values),)
    tensors = {**evaluation.tensors, **merging.tensors}
    return Program(
        evaluation.graph, evaluation.inputs, tensors, outputs, evaluation.changes, evaluation.names
    )


class _Merging:
    """State of one merge.

    Attributes:
        value: Node in training to the node of the merged graph that has its values then.
        switches: Values in training and in evaluation to the node that chooses.
        tensors: Tensors that only the training mode reads.
        end: The output node.
    """

    def __init__(self, evaluation: Program, training: Program, pairs: Pairs) -> None:
        self.graph = evaluation.graph
        self.training = training
        self.pairs = pairs
        self.value: dict[fx.Node, fx.Node] = dict(pairs)
        self.switches: dict[tuple[fx.Node, fx.Node], fx.Node] = {}
        self.tensors: dict[fx.Node, Any] = {}
        self.needed = _needed_nodes(training)
        self.end = self.graph.output_node()

    def run(self) -> None:
        """Go through the nodes of the training mode in order."""
        self._add_tensors()
        waiting: list[fx.Node] = []
        for node in self.training.graph.nodes:
            if node.op != "call_function" or node not in self.needed:
                continue

            other = self.pairs.get(node)
            if other is None:
                waiting.append(node)
                continue

            # The waiting nodes of the training mode come after all nodes that they read.
            self._copy(waiting, other)
            waiting = []
            self._choose_inputs(node, other)

        self._copy(waiting, self.end)

    def choose(self, source: fx.Node, target: fx.Node) -> fx.Node:
        """Return a node with the values of one in training, and of another in evaluation."""
        value = self.value[source]
        if value is target or not is_choice(source, target):
            return target

        if _is_identity_in_evaluation(value, target):
            return value

        if (value, target) not in self.switches:
            switch = self.graph.call_function(stand_ins.get("by_mode"), (value, target))
            switch.meta.update(target.meta)
            self.switches[value, target] = switch

        return self.switches[value, target]

    def _add_tensors(self) -> None:
        first = next(iter(self.graph.nodes))
        for node, tensor in self.training.tensors.items():
            if node not in self.pairs and node in self.needed:
                with self.graph.inserting_before(first):
                    self.value[node] = self.graph.placeholder(f"training_{node.name}")

                self.value[node].meta.update(node.meta)
                self.tensors[self.value[node]] = tensor

    def _copy(self, nodes: Iterable[fx.Node], before: fx.Node) -> None:
        for node in nodes:
            with self.graph.inserting_before(before):
                self.value[node] = self.graph.node_copy(node, self.value.__getitem__)

    def _choose_inputs(self, node: fx.Node, other: fx.Node) -> None:
        for source, target in list(arguments(node, other)):
            if _is_size(target):
                continue

            with self.graph.inserting_before(other):
                value = self.choose(source, target)

            if value is not target:
                other.replace_input_with(target, value)


def changed_buffers(program: Program) -> set[str]:
    """Return the names of the buffers that operations of a traced program change."""
    names = set()
    for node in program.graph.nodes:
        for source in _changed_inputs(node):
            if _root(source) in program.tensors:
                names.add(program.tensors[_root(source)].name)

    return names


def _output_pairs(evaluation: Program, training: Program) -> list[tuple[fx.Node, fx.Node]]:
    """Return the outputs of both modes, in order, without outputs of one mode alone."""
    pairs: list[tuple[fx.Node, fx.Node]] = []
    for source, target in zip(training.outputs, evaluation.outputs, strict=False):
        if isinstance(source, fx.Node) and isinstance(target, fx.Node):
            pairs.append((source, target))

    return pairs


def _needed_nodes(program: Program) -> set[fx.Node]:
    """Return the nodes that lead to an output, or change a value that does."""
    waiting = program.output_nodes
    needed: set[fx.Node] = set()
    changing: dict[fx.Node, list[fx.Node]] = {}
    for node in program.graph.nodes:
        for source in _changed_inputs(node):
            changing.setdefault(_root(source), []).append(node)

    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes
            waiting += changing.get(_root(node), [])

    return needed


def _is_size(node: fx.Node) -> bool:
    return not isinstance(node.meta.get("val"), (torch.Tensor, list, tuple))


def _changed_inputs(node: fx.Node) -> list[fx.Node]:
    """Return the inputs that an operation writes to."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
        return []

    by_name = settings_of(node)
    inputs: list[fx.Node] = []
    for argument in target._schema.arguments:
        source = by_name.get(argument.name)
        is_written = argument.alias_info and argument.alias_info.is_write
        if is_written and isinstance(source, fx.Node):
            inputs.append(source)

    return inputs


def _operation_without_changes(node: fx.Node) -> Any:
    """Return the operation that gives the values of a node and changes nothing.

    None if there is none, or if something else may read what the node changes.
    """
    changed = _changed_inputs(node)
    source = node.args[0]
    if changed != [source] or not isinstance(source, fx.Node):
        return None

    alone = changes_unseen(node)
    types: set[torch.dtype] = set()
    for tensor in node.all_input_nodes:
        value = tensor.meta.get("val")
        if isinstance(value, torch.Tensor):
            types.add(value.dtype)

    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    name = target._schema.name.partition("::")[2]
    # Operands of several types might give another type than the changed input has.
    if not alone or len(types) > 1 or not name.endswith("_") or target.namespace != "aten":
        return None

    operations = getattr(torch.ops.aten, name.removesuffix("_"), None)
    operation = getattr(operations, target._overloadname, None)
    if operation is None or parameter_names(operation) != parameter_names(target):
        return None

    return operation


def _root(node: fx.Node) -> fx.Node:
    """Return the first node that may share its memory with a node."""
    source = _shared_source(node)
    while source is not None:
        node = source
        source = _shared_source(node)

    return node


def _shared_source(node: fx.Node) -> fx.Node | None:
    """Return the input that may share its memory with a node's result; None if there is none."""
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], fx.Node):
        return None

    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return node.args[0]

    schema = target._schema
    shares = schema.is_mutable or any(output.alias_info for output in schema.returns)
    shares = shares or schema.name.partition("::")[2] in _MAY_SHARE
    return node.args[0] if shares else None


def _is_identity_in_evaluation(value: fx.Node, target: fx.Node) -> bool:
    """Return whether a node that follows the mode gives another one's values in evaluation."""
    name = str(getattr(value.target, "_schema", "")).partition("(")[0]
    return name.removeprefix(f"{stand_ins.NAMESPACE}::") in _IDENTITIES and value.args[0] is target
