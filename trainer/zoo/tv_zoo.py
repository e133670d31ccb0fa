"""torchvision: its classification networks, with the results in the metadata of their weights.

Nothing is downloaded: `torchvision.models` describes weights without having them.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from archive.errors import UsageError
from archive.store.evaluations import TaskProtocol
from archive.store.records import Result
from archive.trainer.zoo.building import PACKAGES, build_network
from archive.trainer.zoo.published import PublishedNetwork, PublishedResult, pretraining_of

NAME = "torchvision"
LICENSE = "BSD-3-Clause"
DATA = "ImageNet-1K"
"""Name of the data set in the metadata."""

build = partial(build_network, NAME)
"""Function that returns a model by its name as an architecture."""


def published(folder: Path | None = None) -> list[PublishedNetwork]:
    """Return the networks that have published results, small ones first.

    Raises:
        UsageError: A folder of results is given, which torchvision does not have.
    """
    if folder is not None:
        raise UsageError("the results of torchvision are in its package: leave out --results")

    from torchvision import models

    version = PACKAGES[NAME]()
    source = {"source": f"{NAME} {version}", "license": LICENSE, "commit": f"v{version}"}
    networks = []
    for name in models.list_models(module=models):
        results = []
        for weights in models.get_model_weights(name):
            metrics = weights.meta["_metrics"].get(DATA)
            # Weights without their head have no accuracy: NaN.
            if metrics is None or not math.isfinite(metrics["acc@1"]):
                continue

            size = weights.transforms.keywords["crop_size"]
            task = TaskProtocol("imagenet-1k", f"{NAME}/{weights.name}@{size}", "maximise")
            measured = {"top1": metrics["acc@1"], "top5": metrics["acc@5"]}
            if "_ops" in weights.meta:
                measured["flops"] = float(round(1e9 * weights.meta["_ops"]))

            result = Result(
                measured["top1"],
                measured,
                environment={"recipe": weights.meta["recipe"]} if "recipe" in weights.meta else {},
                provenance=source | pretraining_of(weights.name),
            )
            params = weights.meta["num_params"] / 1e6
            results.append(PublishedResult(task, f"{name}.{weights.name}", result, params))

        if results:
            networks.append(PublishedNetwork(name, name, tuple(results), results[0].params or 0.0))

    return sorted(networks, key=lambda network: (network.size, network.name))
