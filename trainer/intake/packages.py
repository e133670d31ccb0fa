"""Networks that a package publishes, by name and without memory for their weights.

    network = import_network("timm", "resnet50")
    network.imported.architecture, network.family, network.input

A model that crashes, hangs or takes all memory is left to the caller's process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from archive.architecture.aten.wiring import Input
from archive.errors import ArchiveError, SettingsError, UnknownNameError, UsageError, first_line
from archive.trainer.intake.models import ImportedModel, import_model
from archive.trainer.intake.weightless import without_weights

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
        model, configured = _BUILDERS[package](name)
    except ArchiveError:
        raise
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"networks of {package} need the package: pip install {error.name}"
        ) from error
    except Exception as error:
        raise UsageError(
            f"{package} cannot build {name}: {type(error).__name__}: {first_line(error, 200)}"
        ) from error

    input_ = Input(tuple(shape or configured))
    family = type(model).__module__.rpartition(".")[2]
    return PackagedNetwork(name, family, input_, import_model(model.eval(), [input_]))


def _build_timm(name: str) -> tuple[nn.Module, Sequence[int]]:
    import timm

    if not timm.is_model(name):
        raise UnknownNameError("network of timm", name, timm.list_models())

    with without_weights():
        model: Any = timm.create_model(_find_classifier(name), pretrained=False)

    return model, model.pretrained_cfg["input_size"]


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


def _build_torchvision(name: str) -> tuple[nn.Module, Sequence[int]]:
    from torchvision import models

    if name not in models.list_models():
        raise UnknownNameError("network of torchvision", name, models.list_models())

    with without_weights():
        model = models.get_model(name, weights=None, **_SETTINGS.get(name, {}))

    weights = models.get_model_weights(name).DEFAULT
    side = getattr(weights.transforms(), "crop_size", [224])[0]
    return model, (3, side, side)


_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "googlenet": {"transform_input": True, "aux_logits": False, "init_weights": False},
    "inception_v3": {"transform_input": True, "init_weights": False},
}
"""Arguments of torchvision's models with which their published weights are loaded."""

_BUILDERS: Mapping[str, Callable[[str], tuple[nn.Module, Sequence[int]]]] = {
    "timm": _build_timm,
    "torchvision": _build_torchvision,
}
"""Package to the function that builds one of its networks, and returns the shape of its input."""
