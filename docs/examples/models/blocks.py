"""A convolutional network whose blocks exist by the configuration."""

from torch import nn


class Residual(nn.Module):
    """Two convolutions beside a skip."""

    def __init__(self, width, bottleneck):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, bottleneck, 1),
            nn.BatchNorm2d(bottleneck),
            nn.ReLU(),
            nn.Conv2d(bottleneck, width, 3, padding=1),
        )

    def forward(self, x):
        """Return the sum of the input and the convolutions."""
        return x + self.body(x)


def build(width, stage, dropout=0.0):
    """Return the network; `lr` belongs to the training, and is no argument."""
    blocks = []
    for block in stage:
        if block["op"] == "residual":
            blocks.append(Residual(width, block["bottleneck"]))

    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(width, 10)]
    return nn.Sequential(nn.Conv2d(1, width, 3, padding=1), *blocks, *head)
