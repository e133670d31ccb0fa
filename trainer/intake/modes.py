"""Operations that behave differently in training, and the ones that follow the network's mode.

| in evaluation | in training | a dropout or a batch normalisation                              |
|---------------|-------------|-----------------------------------------------------------------|
| off           | on          | follows the mode: a stand-in                                    |
| off           | off         | is frozen: its decomposition                                    |
| on            | on          | is the same in both modes: its decomposition; a normalisation   |
|               |             | by the batch in both has no statistics                          |
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from archive.trainer.intake import stand_ins, tracing
from archive.trainer.intake.alignment import Pairs, settings_of
from archive.trainer.intake.settings import is_stand_in, name_of

_STATISTICS = {"batch_norm": 3, "instance_norm": 3}

_OWN = "torch.nn.modules."

_FOLLOWING = (_BatchNorm, _InstanceNorm, _DropoutNd, nn.RReLU, nn.RNNBase)
"""Layers with the mode as an argument of their one operation. Subclasses may be others."""

_FUSING = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
"""Layers that read their mode in order to choose a fused operation, which `_FUSED` names."""

_MODE_FUNCTIONS: Mapping[Any, str] = {
    nn.functional.dropout: "training",
    nn.functional.dropout1d: "training",
    nn.functional.dropout2d: "training",
    nn.functional.dropout3d: "training",
    nn.functional.alpha_dropout: "training",
    nn.functional.feature_alpha_dropout: "training",
    nn.functional.rrelu: "training",
    nn.functional.batch_norm: "training",
    nn.functional.instance_norm: "use_input_stats",
}
"""Functions that become one operation of `stand_ins.MODES`, and their argument that is the mode."""

_FUSED = ("_native_multi_head_attention", "_transformer_encoder_layer_fwd")


def has_own_training(
    model: nn.Module,
    readers: set[nn.Module],
    evaluation: ExportedProgram,
    examples: Sequence[torch.Tensor],
) -> bool:
    """Return whether a model may compute more than layers that follow the mode in training.

    Args:
        model: The model, in training mode.
        readers: Modules that had their mode read in evaluation.
        evaluation: The trace in evaluation.
        examples: The inputs of the trace.
    """
    fused = any(_operation(node) in _FUSED for node in evaluation.graph.nodes)
    for module in model.modules():
        if not module.training or type(module).train is not nn.Module.train:
            return True

    names: set[str] = set()
    for name, module in model.named_modules():
        if _follows(module):
            names.add(name)

    differs = False
    # Others, such as the wrappers of torch.export, keep their mode when the model changes its own.
    for module in readers.intersection(model.modules()):
        if not _follows(module) and (fused or not _attends_alike(module)):
            differs = True

    for node in evaluation.graph.nodes:
        if _mode_operation(node) and _module_name(node) not in names:
            differs = True

    return differs and not _calls_alike(model, examples)


def _calls_alike(model: nn.Module, examples: Sequence[torch.Tensor]) -> bool:
    """Return whether a model calls the same functions in both modes, but for their modes.

    The model runs on the device `meta`, which is much faster than a trace. Any doubt, such as an
    operation that needs values, counts as a difference. The model is left in training mode.
    """
    state: dict[str, torch.Tensor] = {}
    for name, tensor in chain(model.named_parameters(), model.named_buffers()):
        state[name] = torch.empty_like(tensor, device="meta").requires_grad_(tensor.requires_grad)

    inputs = tuple(torch.empty_like(example, device="meta") for example in examples)
    calls: list[list[_Call]] = []
    for training in (False, True):
        model.train(training)
        recorder = _CallRecorder(state, inputs)
        try:
            with recorder, tracing.own_gradients() as functions:
                torch.func.functional_call(model, state, inputs)
        except Exception:
            model.train()
            return False

        calls.append([*recorder.calls, _Call(None, repr(sorted(functions)), None)])

    if len(calls[0]) != len(calls[1]):
        return False

    for before, after in zip(*calls, strict=True):
        follows = (before.mode, after.mode) in ((None, None), (False, True))
        if before[:2] != after[:2] or not follows:
            return False

    return True


class _Call(NamedTuple):
    """A call of one of PyTorch's functions.

    Attributes:
        function: The function.
        settings: Its arguments without its mode, and whether gradients are recorded.
        mode: Its mode; None for a function without.
    """

    function: Any
    settings: str
    mode: bool | None


class _CallRecorder(TorchFunctionMode):
    """Records the calls of PyTorch's functions.

    Args:
        state: Parameters and buffers of the model by name.
        inputs: Its inputs.
    """

    def __init__(self, state: Mapping[str, torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.calls: list[_Call] = []
        self._numbers: dict[int, int] = {}
        # Kept, since ids of freed objects are used again.
        self._tensors: list[torch.Tensor] = []
        # Batch normalisation counts its batches in training.
        self._counters = {id(state[name]) for name in state if name.endswith("batches_tracked")}
        for tensor in (*state.values(), *inputs):
            self._number(tensor)

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        keywords = dict(kwargs or {})
        result = function(*args, **keywords)
        if function in _MODE_FUNCTIONS and result is args[0] and not keywords.get("inplace"):
            # In evaluation it returns its input, and in training another tensor.
            result = result.view_as(result)

        tree_map_only(torch.Tensor, self._number, result)
        if args and id(args[0]) in self._counters:
            return result

        mode = None
        if function in _MODE_FUNCTIONS:
            values = inspect.signature(function).bind(*args, **keywords)
            values.apply_defaults()
            mode = values.arguments.pop(_MODE_FUNCTIONS[function])
            arguments: Any = dict(values.arguments)
        else:
            arguments = (args, keywords)

        settings = tree_map_only(torch.Tensor, self._number, arguments)
        self.calls.append(_Call(function, repr((settings, torch.is_grad_enabled())), mode))
        return result

    def _number(self, tensor: torch.Tensor) -> str:
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self._tensors)
            self._tensors.append(tensor)

        return f"tensor {self._numbers[id(tensor)]}"


def own_steps(program: ExportedProgram) -> list[str]:
    """Return the names of recurrent layers with their steps written out."""
    names: set[str] = set()
    for node in program.graph.nodes:
        if _operation(node) in stand_ins.RECURRENT:
            names.add(_module_name(node))

    return sorted(names)


def replace(evaluation: ExportedProgram, training: ExportedProgram | None, pairs: Pairs) -> None:
    """Put stand-ins for operations that follow the mode, in both traces.

    Without a trace in training, all operations follow.

    Args:
        evaluation: The trace in evaluation.
        training: The trace in training; None if it has the same operations.
        pairs: Node in training to the same node in evaluation.
    """
    partners = {other: node for node, other in pairs.items()}
    for node in list(evaluation.graph.nodes):
        partner = partners.get(node)
        if training is None:
            mode = _mode(node)
            _replace(evaluation, node, mode, True if _mode_operation(node) else mode)
        elif partner is not None:
            modes = _mode(node), _mode(partner)
            _replace(training, partner, *modes)
            _replace(evaluation, node, *modes)
        else:
            # In evaluation alone: nothing reads it in training.
            _replace(evaluation, node, _mode(node), _mode(node))

    if training is not None:
        for node in list(training.graph.nodes):
            if node not in pairs:
                _replace(training, node, False, _mode(node))

    for program in (evaluation, training):
        if program is not None:
            _detach(program)
            program.graph.lint()
            program.graph_module.recompile()


def _follows(module: nn.Module) -> bool:
    return isinstance(module, _FOLLOWING) and type(module).__module__.startswith(
        "torch.nn.modules."
    )


def _attends_alike(module: nn.Module) -> bool:
    """Return whether an unfused layer of a transformer does the same in both modes.

    Its dropouts and its attention are separate modules; their modes are read, too.
    """
    if not isinstance(module, _FUSING) or not type(module).__module__.startswith(_OWN):
        return False

    return not isinstance(module, nn.MultiheadAttention) or not module.dropout


def _module_name(node: fx.Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    name = next(reversed(stack.values()), ("", ""))[0]
    return str(name).partition("@")[0]


def _operation(node: fx.Node) -> str:
    """Return the name of an operation of PyTorch; empty for other nodes."""
    target = node.target
    if (
        node.op != "call_function"
        or not isinstance(target, torch._ops.OpOverload)
        or target.namespace != "aten"
    ):
        return ""

    return target._schema.name.partition("::")[2]


def _mode_operation(node: fx.Node) -> str:
    """Return the name of an operation that depends on the mode; empty for others."""
    name = _operation(node)
    return name if name in stand_ins.MODES else ""


def _mode(node: fx.Node) -> Any:
    """Return the argument of a node that is the mode; None without."""
    name = _operation(node)
    if name == "scaled_dot_product_attention":
        return settings_of(node)["dropout_p"]

    return settings_of(node)[stand_ins.MODES[name]] if name in stand_ins.MODES else None


def _replace(program: ExportedProgram, node: fx.Node, evaluation: Any, training: Any) -> None:
    """Put a stand-in for a node that has one mode in evaluation and another in training."""
    name = _operation(node)
    if is_stand_in(node) and name_of(node) in stand_ins.RECURRENT:
        if not _is_whole(program, node):
            # Its steps are written out.
            node.target = getattr(torch.ops.aten, name_of(node)).input
    elif name == "pad" and settings_of(node)["mode"] == "circular":
        node.target = stand_ins.get(name)
    elif name == "scaled_dot_product_attention":
        if training and not evaluation:
            settings = settings_of(node)
            node.args = tuple(settings.values())[:6]
            node.kwargs = {key: settings[key] for key in ("scale", "enable_gqa") if key in settings}
            node.target = stand_ins.get(name)
            node.update_arg(4, training)
    elif name in stand_ins.MODES:
        _replace_by_mode(node, name, evaluation, training)


def _replace_by_mode(node: fx.Node, name: str, evaluation: Any, training: Any) -> None:
    first = _STATISTICS.get(name)
    settings = settings_of(node)
    without = first is not None and settings["running_mean"] is None
    if without and name == "instance_norm":
        # By the image in both modes.
        return

    if (
        name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
        and not settings["p"]
    ):
        return

    if without or (training and not evaluation):
        node.args = tuple(settings.values())
        node.kwargs = {}
        node.target = stand_ins.get(name)
    elif training and evaluation and first is not None:
        node.args = tuple(settings.values())
        node.kwargs = {}
        node.update_arg(first, None)
        node.update_arg(first + 1, None)
        if name == "batch_norm":
            node.target = stand_ins.get(name)


def _is_whole(program: ExportedProgram, node: fx.Node) -> bool:
    """Return whether a recurrent layer has its own weights, each a parameter that it alone uses."""
    by_name = settings_of(node)
    specs = program.graph_signature.input_specs
    nodes = program.graph.find_nodes(op="placeholder")
    parameters: set[fx.Node] = set()
    for placeholder, spec in zip(nodes, specs, strict=True):
        if spec.kind is InputKind.PARAMETER:
            parameters.add(placeholder)

    return all(weight in parameters and len(weight.users) == 1 for weight in by_name["params"])


def _detach(program: ExportedProgram) -> None:
    """Put stand-ins where the gradient of a parameter is stopped."""
    graph = program.graph
    trained = tracing.trained_values(program)
    for node in list(graph.nodes):
        if node.target not in (torch.ops.aten.detach.default, torch.ops.aten.detach_.default):
            continue

        if node.args[0] in trained and not any(_changes(user, node) for user in node.users):
            node.target = stand_ins.get("detach")


def _changes(user: fx.Node, node: fx.Node) -> bool:
    target = user.target
    return (
        isinstance(target, torch._ops.OpOverload)
        and target._schema.is_mutable
        and user.args[:1] == (node,)
    )
