"""Signatures of operations: attributes that a layer may have, and the meaning of its inputs.

    convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, …) -> Tensor

`signatures.txt` has one line per signature, in PyTorch's own language. A tensor parameter is an
input: an edge with its number, an attribute with the shape of a tensor that the layer owns, or an
attribute with a number. Inputs are counted from 0 in the order of the parameters, inputs of a list
after all others. Other parameters are attributes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from archive.architecture.aten.sizes import NON_FINITE, is_number_text, is_size
from archive.errors import InvalidArchitectureError

KINDS = {
    "Tensor": "tensor",
    "int": "size",
    "SymInt": "size",
    "float": "number",
    "Scalar": "number",
    "bool": "flag",
    "str": "text",
    "ScalarType": "text",
}
"""Type of a parameter to the kind of its values; other types say where a tensor lies, and are no
attributes."""

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)
"""Types of the numbers of a tensor."""

_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "convolution": {
        "stride": "1",
        "padding": "0",
        "dilation": "1",
        "output_padding": "0",
        "transposed": "False",
        "groups": "1",
    },
    "_softmax": {"half_to_float": "False"},
    "_log_softmax": {"half_to_float": "False"},
    "batch_norm": {"momentum": "0.1", "eps": "1e-05"},
    "instance_norm": {"momentum": "0.1", "eps": "1e-05"},
    "_native_batch_norm_legit_no_training": {"momentum": "0.1", "eps": "1e-05"},
    "native_layer_norm": {"eps": "1e-05"},
    "native_group_norm": {"eps": "1e-05"},
}
"""Defaults of parameters that have none in PyTorch's signature, from the layers of
`torch.nn`."""

MODES: Mapping[str, str] = {
    "batch_norm": "training",
    "instance_norm": "use_input_stats",
    "rrelu": "training",
    **dict.fromkeys(
        ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"), "train"
    ),
}
"""Operation to the parameter that the mode of the whole network decides, and no attribute."""

_ADDED = {"scaled_dot_product_attention": "float training_dropout_p=0.0"}
"""Operation to parameters that PyTorch does not have: a dropout that follows the mode of the
network."""

_RECURRENT = (
    "int input_size, int hidden_size, int num_layers=1, bool bias=True, bool batch_first=False, "
    "float dropout=0.0, bool bidirectional=False"
)

_OWN = (
    "getitem(Tensor self, int item) -> Tensor",
    "parameter(int[] shape) -> Tensor",
    "constant(int[] shape, str dtype, str content) -> Tensor",
    "block_start(Tensor self, int times) -> Tensor",
    "block_end(Tensor self) -> Tensor",
    "by_mode(Tensor training, Tensor evaluation) -> Tensor",
    "detach(Tensor self) -> Tensor",
    (
        f"lstm(Tensor input, Tensor? h0=None, Tensor? c0=None, {_RECURRENT}, int proj_size=0) -> "
        "(Tensor, Tensor, Tensor)"
    ),
    f"gru(Tensor input, Tensor? h0=None, {_RECURRENT}) -> (Tensor, Tensor)",
    (
        f'rnn(Tensor input, Tensor? h0=None, {_RECURRENT}, str nonlinearity="tanh") -> '
        "(Tensor, Tensor)"
    ),
)
"""Operations that PyTorch does not have; see `archive.architecture.aten.vocabulary`."""

# Parameters that say how and where something is computed.
_PLACES = frozenset(["cudnn_enabled", "pin_memory", "non_blocking", "implicit"])

_LINE = re.compile(r"(\w+)(?:\.(\w+))?\((.*)\) -> (.*)")
_PARAMETER = re.compile(r"(\w+)(\?)?(\[\d*\])?(\?)? (\w+)(?:=(.*))?")


class FaultRank(IntEnum):
    """Kinds of faults; a layer with a later one is nearer to the signature."""

    UNKNOWN_ATTRIBUTE = 0
    UNKNOWN_INPUT = 1
    WRONG_VALUE = 2
    INPUT_GIVEN_TWICE = 3
    MISSING_ATTRIBUTE = 4
    MISSING_INPUT = 5


class Fault(NamedTuple):
    """Why a layer does not have a signature."""

    rank: FaultRank
    message: str


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """One parameter of an operation.

    Attributes:
        name: Its name.
        kind: `tensor`, `size`, `number`, `flag`, `text`, or empty for a parameter that is no
            attribute.
        listed: Whether it takes a list.
        length: Number of values of a list, to which a single value is repeated; 0 for any number.
        optional: Whether it may be absent.
        default: Its default as text; empty without a default.
        keyword: Whether it is passed by name only.
    """

    name: str
    kind: str
    listed: bool
    length: int
    optional: bool
    default: str
    keyword: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature of an operation.

    Attributes:
        operation: Name of the operation.
        overload: Name of the signature within the operation; empty for the default signature.
        parameters: All parameters, in order.
        outputs: Number of tensors that it returns; 0 for a list.
    """

    operation: str
    overload: str
    parameters: tuple[OperationParameter, ...]
    outputs: int

    @property
    def tensors(self) -> tuple[OperationParameter, ...]:
        """The tensor parameters in the order of their numbers: a list of tensors is last."""
        unordered = [parameter for parameter in self.parameters if parameter.kind == "tensor"]
        return tuple(sorted(unordered, key=lambda parameter: parameter.listed))

    def fault(self, attributes: Mapping[str, Any], arguments: Collection[int]) -> Fault | None:
        """Return why a layer does not have this signature; None if it has it.

        Args:
            attributes: Attributes of the layer.
            arguments: Numbers of the inputs that edges give.
        """
        return (
            self._find_unknown(attributes, arguments)
            or self._find_wrong_value(attributes)
            or self._find_wrong_input(attributes, arguments)
            or self._find_missing_attribute(attributes)
        )

    def _find_unknown(
        self, attributes: Mapping[str, Any], arguments: Collection[int]
    ) -> Fault | None:
        names = [parameter.name for parameter in self.parameters if parameter.kind]
        for name in attributes:
            if name not in names:
                others = ", ".join(names) or "it has none"
                message = f"{self.operation} has no attribute {name}: {others}"
                return Fault(FaultRank.UNKNOWN_ATTRIBUTE, message)

        tensors = self.tensors
        for number in arguments:
            if number >= len(tensors) and not (tensors and tensors[-1].listed):
                message = (
                    f"{self.operation} has {len(tensors)} inputs, "
                    f"got an edge with the argument {number}"
                )
                return Fault(FaultRank.UNKNOWN_INPUT, message)

        return None

    def _find_wrong_value(self, attributes: Mapping[str, Any]) -> Fault | None:
        parameters = {parameter.name: parameter for parameter in self.parameters}
        for name, value in attributes.items():
            if not _value_fits(parameters[name], value):
                requirement = _requirement(parameters[name])
                message = f"{name} of {self.operation} must be {requirement}, got {value!s:.60}"
                return Fault(FaultRank.WRONG_VALUE, message)

        return None

    def _find_wrong_input(
        self, attributes: Mapping[str, Any], arguments: Collection[int]
    ) -> Fault | None:
        for number, parameter in enumerate(self.tensors):
            if parameter.name in attributes and number in arguments:
                message = (
                    f"{parameter.name} of {self.operation} is given twice, "
                    "by an edge and by an attribute"
                )
                return Fault(FaultRank.INPUT_GIVEN_TWICE, message)

            present = parameter.name in attributes or number in arguments
            # A list may begin with an absent tensor.
            present = present or (parameter.listed and max(arguments, default=0) > number)
            if not present and not parameter.optional:
                message = (
                    f"{self.operation} needs {parameter.name}: an edge with the argument {number}"
                )
                return Fault(FaultRank.MISSING_INPUT, message)

        return None

    def _find_missing_attribute(self, attributes: Mapping[str, Any]) -> Fault | None:
        for parameter in self.parameters:
            absent = (
                parameter.name not in attributes
                and not parameter.optional
                and not parameter.default
            )
            if parameter.kind not in ("", "tensor") and absent:
                message = f"{self.operation} needs the attribute {parameter.name}"
                return Fault(FaultRank.MISSING_ATTRIBUTE, message)

        return None


def resolve(operation: str, attributes: Mapping[str, Any], arguments: Collection[int]) -> Signature:
    """Return the first signature of an operation that a layer has.

    Raises:
        InvalidArchitectureError: The layer has none of them; the message is about the nearest one.
    """
    faults = []
    for signature in signatures()[operation]:
        fault = signature.fault(attributes, arguments)
        if fault is None:
            return signature

        faults.append(fault)

    nearest = max(faults, key=lambda fault: fault.rank)
    raise InvalidArchitectureError(nearest.message)


@cache
def signatures() -> Mapping[str, tuple[Signature, ...]]:
    """Return the signatures by the name of their operation."""
    file = resources.files("archive.architecture.aten") / "signatures.txt"
    by_operation: dict[str, tuple[Signature, ...]] = {}
    for line in (*file.read_text(encoding="utf-8").splitlines(), *_OWN):
        signature = parse_signature(_extend(line))
        by_operation[signature.operation] = (*by_operation.get(signature.operation, ()), signature)

    return by_operation


def _extend(line: str) -> str:
    """Return the signature of an operation with the parameters that it has here alone."""
    name, _, parameters = line.partition("(")
    added = _ADDED.get(name)
    return f"{name}({parameters.replace(') ->', f', {added}) ->', 1)}" if added else line


def parse_signature(line: str) -> Signature:
    """Return the signature of a line."""
    match = _LINE.fullmatch(line)
    assert match is not None, line
    operation, overload, inside, returned = match.groups()
    parameters = []
    keyword = False
    for text in inside.split(", ") if inside else ():
        if text == "*":
            keyword = True
        else:
            parameters.append(_parameter(operation, text, keyword))

    outputs = 0 if returned.endswith("[]") else returned.count(",") + 1
    return Signature(operation, overload or "", tuple(parameters), outputs)


def _parameter(operation: str, text: str, keyword: bool) -> OperationParameter:
    match = _PARAMETER.fullmatch(text)
    assert match is not None, text
    type_, inner, brackets, outer, name, default = match.groups()
    length = int(brackets[1:-1] or 0) if brackets else 0
    default = _DEFAULTS.get(operation, {}).get(name, default or "")
    optional = outer is not None or (inner is not None and not brackets)
    kind = "" if name in _PLACES or name == MODES.get(operation) else KINDS.get(type_, "")
    return OperationParameter(name, kind, brackets is not None, length, optional, default, keyword)


def _value_fits(parameter: OperationParameter, value: Any) -> bool:
    if parameter.kind == "tensor":
        shape = isinstance(value, tuple) and all(type(side) is int and side >= 0 for side in value)
        number = type(value) in (int, float, bool) or (
            isinstance(value, str) and is_number_text(value)
        )
        return shape or (number and not parameter.listed)

    if parameter.name == "dtype":
        return value in DTYPES

    if isinstance(value, tuple):
        return parameter.listed and all(_is_of_kind(parameter.kind, item) for item in value)

    return _is_of_kind(parameter.kind, value)


def _is_of_kind(kind: str, value: Any) -> bool:
    if isinstance(value, str) and kind in ("size", "number"):
        return is_size(value) or (
            kind == "number" and (value in NON_FINITE or is_number_text(value))
        )

    if kind == "number":
        # Elements of a tensor of truth values are numbers as well.
        return type(value) in (int, float, bool)

    if kind == "size":
        return type(value) is int

    return type(value) is {"flag": bool, "text": str}[kind]


def _requirement(parameter: OperationParameter) -> str:
    if parameter.name == "dtype":
        return f"one of {', '.join(DTYPES)}"

    noun = {
        "tensor": "the shape of a tensor or a number",
        "size": "a whole number",
        "number": "a number",
        "flag": "true or false",
        "text": "a text",
    }[parameter.kind]
    return f"{noun} or a list" if parameter.listed and parameter.kind != "tensor" else noun
