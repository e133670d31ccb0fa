"""A builder: the networks of the chains."""

from typing import TYPE_CHECKING

from archive.architecture.graph import Architecture
from archive.trainer.nn.base import Builder, check_image
from archive.trainer.protocols.networks import NetworkForm

if TYPE_CHECKING:
    from torch import nn


class ChainBuilder(Builder):
    """Builds a stem, the chain a number of times, and a linear layer on the mean over the image."""

    def check(self, form: NetworkForm) -> None:
        """Refuse inputs that are no images, and invalid options."""
        check_image("chains", form)
        form.count("channels", 16)
        form.count("cells", 3)

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> "nn.Module":
        """Return the network; torch's generator has the seed."""
        # Loads torch, which naming the builder must not.
        from torch import nn

        channels = form.count("channels", 16)
        chain = [layer.op for layer in architecture.layers[1:-1]] * form.count("cells", 3)
        return nn.Sequential(
            nn.Conv2d(form.input_shape[0], channels, 3, padding=1),
            *(_operation(name, channels) for name in chain),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(channels, form.outputs),
        )


def _operation(name: str, channels: int) -> "nn.Module":
    from torch import nn

    if name == "conv":
        convolution = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(channels), nn.ReLU())

    return nn.MaxPool2d(3, stride=1, padding=1) if name == "pool" else nn.Identity()
