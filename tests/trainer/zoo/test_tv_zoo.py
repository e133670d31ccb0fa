"""Published results of torchvision."""

from __future__ import annotations

import math

import pytest

from archive.trainer.zoo import tv_zoo


def test_weights_without_an_accuracy_are_no_result():
    # Here, as its import takes seconds of each worker that looks for tests.
    pytest.importorskip("torchvision")
    published = {network.name: network.results for network in tv_zoo.published(None)}
    for results in published.values():
        assert all(math.isfinite(result.result.value) for result in results)

    assert [result.model for result in published["vgg16"]] == ["vgg16.IMAGENET1K_V1"]
