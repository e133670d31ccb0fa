"""Batches of an epoch: as a protocol wants them, and nothing random but by the generator."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from archive.trainer.fit.batches import SHIFT, Batches, augmented
from archive.trainer.tasks import registry

PROTOCOL = replace(registry.DIABETES.protocol(), batch=10)


@pytest.fixture
def part():
    return Batches(torch.arange(45.0)[:, None], torch.arange(45))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_an_epoch_is_one_pass_unless_the_protocol_counts_steps(part):
    epoch = list(part.epoch(PROTOCOL, seeded()))
    same = list(part.shuffled(10, seeded()))
    assert len(epoch) == part.steps(PROTOCOL) == 5
    assert all(torch.equal(a, c) and torch.equal(b, d) for (a, b), (c, d) in zip(epoch, same, strict=True))


@pytest.mark.parametrize("steps", [1, 3, 5, 12])
def test_an_epoch_of_steps_goes_through_whole_passes_and_is_cut_off(part, steps):
    protocol = replace(PROTOCOL, epoch_steps=steps)
    generator = seeded()
    targets = [batch for _, batch in part.epoch(protocol, generator)]
    assert len(targets) == part.steps(protocol) == steps
    for start in range(0, steps, 5):
        seen = torch.cat(targets[start : start + 5])
        assert len(seen.unique()) == len(seen)
    state = generator.get_state()
    following = [batch for _, batch in part.epoch(protocol, generator)]
    resumed = [batch for _, batch in part.epoch(protocol, torch.Generator().set_state(state))]
    assert all(torch.equal(a, b) for a, b in zip(following, resumed, strict=True))


def moved(image, down, right, mirrored):
    """The slow oracle: one pixel after the other."""
    out = torch.zeros_like(image)
    _, height, width = image.shape
    for i in range(height):
        for j in range(width):
            k = i + down - SHIFT
            m = (width - 1 - j if mirrored else j) + right - SHIFT
            if 0 <= k < height and 0 <= m < width:
                out[:, i, j] = image[:, k, m]
    return out


@pytest.mark.parametrize("rule", ["shift", "shift-flip"])
def test_augmented_images_are_shifted_and_mirrored(rule):
    images = torch.rand(4, 3, 9, 7, generator=seeded(1)) + 1
    found = augmented(images, rule, seeded())
    generator = seeded()
    down, right = (torch.randint(0, 2 * SHIFT + 1, (4, 1, 1), generator=generator).flatten() for _ in range(2))
    mirrored = torch.randint(0, 2, (4, 1, 1), generator=generator).flatten() * (rule == "shift-flip")
    for k in range(4):
        assert torch.equal(found[k], moved(images[k], int(down[k]), int(right[k]), bool(mirrored[k])))
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert augmented(images, "none", seeded()) is images
