from torch import nn


def build(kind, width, block, kernel=3):
    layers, inputs = [nn.Flatten()], 64
    if kind == "convolutions":
        layers = [nn.Conv2d(1, 4, kernel, padding="same"), nn.ReLU(), nn.Flatten()]
        inputs = 4 * 64
    for member in block:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        layers.append(nn.BatchNorm1d(width) if member["norm"] else nn.Dropout(member["dropout"]))
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 10))
