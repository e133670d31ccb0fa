"""Networks that a package publishes, by name and without memory for their weights.

A model whose code computes with its parameters, or on their device, is built with its weights.

    network = import_network("timm", "resnet50")
    network.imported.architecture, network.family, network.input

A model that crashes, hangs or takes all memory is left to the caller's process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import nn

from archive.architecture.aten.wiring import Input
from archive.errors import ArchiveError, SettingsError, UnknownNameError, UsageError, first_line
from archive.trainer.intake.models import ImportedModel, import_model
from archive.trainer.intake.weightless import AbsentValuesError, without_weights

CLASSES = 1000
"""Classes of ImageNet-1k, on which packages publish their results."""


@dataclass(frozen=True)
class PackagedNetwork:
    """A network of a package.

    Attributes:
        name: Its name in the package.
        family: Module of the package that defines its model, such as `resnet`.
        input: The input that it was imported for.
        imported: The network.
    """

    name: str
    family: str
    input: Input
    imported: ImportedModel


class _Model(NamedTuple):
    """A model with the shape of its input."""

    model: nn.Module
    shape: Sequence[int]


def import_network(package: str, name: str, shape: Sequence[int] | None = None) -> PackagedNetwork:
    """Return a network of a package.

    Args:
        package: `timm` or `torchvision`.
        name: Its name in the package.
        shape: Shape of an input, (channels, height, width); None for the input of its
            configuration.

    Raises:
        SettingsError: The package is not installed.
        UnknownNameError: There is no such package, or it has no such network.
        UsageError: The network cannot be built or imported.
    """
    if package not in _BUILDERS:
        raise UnknownNameError("package", package, _BUILDERS)

    try:
        with without_weights():
            built = _build(package, name)

        return _import(name, built, shape)
    except (AbsentValuesError, _BuildError):
        return _import(name, _build(package, name), shape)


class _BuildError(UsageError):
    """The code of a package has failed."""


def _build(package: str, name: str) -> _Model:
    try:
        return _BUILDERS[package](name)
    except ArchiveError:
        raise
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"networks of {package} need the package: pip install {error.name}"
        ) from error
    except Exception as error:
        raise _BuildError(
            f"{package} cannot build {name}: {type(error).__name__}: {first_line(error, 200)}"
        ) from error


def _import(name: str, built: _Model, shape: Sequence[int] | None) -> PackagedNetwork:
    input_ = Input(tuple(shape or built.shape))
    family = type(built.model).__module__.rpartition(".")[2]
    return PackagedNetwork(name, family, input_, import_model(built.model.eval(), [input_]))


def _build_timm(name: str) -> _Model:
    import timm

    if not timm.is_model(name):
        raise UnknownNameError("network of timm", name, timm.list_models())

    model: Any = timm.create_model(_find_classifier(name), pretrained=False)
    return _Model(model, model.pretrained_cfg["input_size"])


def _find_classifier(name: str) -> str:
    """Return the name of timm's configuration of a network with the classes of ImageNet-1k.

    The first configuration of a network may have other classes, or none.
    """
    from timm import models

    configurations = models.get_arch_pretrained_cfgs(name)
    default = models.get_pretrained_cfg(name)
    if "." in name or default is None or default.num_classes == CLASSES:
        return name

    for tagged, configuration in configurations.items():
        if configuration.num_classes == CLASSES:
            return tagged

    return name


def _build_torchvision(name: str) -> _Model:
    from torchvision import models

    if name not in models.list_models():
        raise UnknownNameError("network of torchvision", name, models.list_models())

    weights = models.get_model_weights(name).DEFAULT
    side = getattr(weights.transforms(), "crop_size", [224])[0]
    settings = dict(_SETTINGS.get(name, {}))
    if name.startswith("vit_"):
        # Its table of positions has this size.
        settings["image_size"] = side

    model = models.get_model(name, weights=None, **settings)
    return _Model(model, (3, side, side))


_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "googlenet": {"transform_input": True, "aux_logits": False, "init_weights": False},
    "inception_v3": {"transform_input": True, "init_weights": False},
}
"""Arguments of torchvision's models with which their published weights are loaded."""

_BUILDERS: Mapping[str, Callable[[str], _Model]] = {
    "timm": _build_timm,
    "torchvision": _build_torchvision,
}
"""Package to the function that builds one of its networks."""
