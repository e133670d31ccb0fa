"""Batches of an epoch: order and augmentation by the protocol, random numbers by the generator
alone, bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from archive.trainer.datasets.splits import DataPart
from archive.trainer.fit import batches
from archive.trainer.fit.batches import SHIFT, Batches, augment
from archive.trainer.tasks import registry

PROTOCOL = replace(registry.DIABETES.protocol(), batch=10)


@pytest.fixture
def part():
    return Batches(torch.arange(45.0)[:, None], torch.arange(45))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn_by_batch(part, protocol, generator):
    """The slow oracle: each batch is drawn, moved and yielded before the next one."""
    left = part.steps(protocol)
    while left > 0:
        order = torch.randperm(len(part), generator=generator)
        for chosen in order.tensor_split(-(-len(part) // protocol.batch))[:left]:
            images = part.inputs[chosen]
            left = left - 1
            if protocol.augmentation != "none":
                down, right = (
                    torch.randint(0, 2 * SHIFT + 1, (len(chosen), 1, 1), generator=generator)
                    for _ in "dr"
                )
                mirrored = torch.randint(0, 2, (len(chosen), 1, 1), generator=generator).bool()
                mirrored &= torch.tensor(protocol.augmentation == "shift-flip")
                each = zip(images, down, right, mirrored, strict=True)
                images = torch.stack(
                    [moved(image, int(d), int(r), bool(m)) for image, d, r, m in each]
                )

            yield images, part.targets[chosen]


@pytest.mark.parametrize("rule", ["none", "shift", "shift-flip"])
@pytest.mark.parametrize(("steps", "drawn"), [(None, 1000), (7, 1000), (12, 1), (17, 90)])
def test_batches_drawn_at_once_have_the_stream_of_draws_by_batch(monkeypatch, rule, steps, drawn):
    monkeypatch.setattr(batches, "DRAWN", drawn)
    images = Batches(torch.rand(45, 2, 5, 4, generator=seeded(1)), torch.arange(45))
    protocol = replace(PROTOCOL, augmentation=rule, epoch_steps=steps)
    ours = seeded()
    theirs = seeded()
    for _ in range(2):
        expected = list(drawn_by_batch(images, protocol, theirs))
        epoch = list(images.epoch(protocol, ours))
        assert len(epoch) == images.steps(protocol)
        assert all(
            torch.equal(a, c) and torch.equal(b, d)
            for (a, b), (c, d) in zip(epoch, expected, strict=True)
        )
        assert torch.equal(ours.get_state(), theirs.get_state())


@pytest.mark.parametrize("first", [3, 5, 8])
def test_resumed_epoch_has_the_rest_of_the_batches(monkeypatch, part, first):
    monkeypatch.setattr(batches, "DRAWN", 1)
    protocol = replace(PROTOCOL, epoch_steps=12)
    whole = list(part.epoch(protocol, seeded()))
    rest = list(part.epoch(protocol, seeded(), first=first))
    assert len(whole) == 12
    assert all(
        torch.equal(a, c) and torch.equal(b, d)
        for (a, b), (c, d) in zip(whole[first:], rest, strict=True)
    )


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


def test_augmented_images_are_shifted_and_mirrored():
    images = torch.rand(4, 3, 9, 7, generator=seeded(1)) + 1
    moves = torch.tensor([[0, 8, 0], [8, 0, 1], [4, 4, 1], [2, 5, 0]], dtype=torch.uint8)
    batch = augment(images, moves)
    for k, (down, right, mirrored) in enumerate(moves.tolist()):
        assert torch.equal(batch[k], moved(images[k], down, right, mirrored))

    assert batch.is_contiguous(memory_format=torch.channels_last)


def photographs(n=100, values=256):
    """Standardised images of bytes, as `archive.trainer.datasets.layout` makes them."""
    rng = np.random.default_rng(0)
    raw = rng.integers(0, values, (n, 6, 5, 3), dtype=np.uint8)
    mean = raw.mean(axis=(0, 1, 2))
    deviation = raw.std(axis=(0, 1, 2))
    return DataPart(
        np.moveaxis(((raw - mean) / deviation).astype(np.float32), -1, 1), rng.integers(0, 10, n)
    )


@pytest.mark.parametrize("chunk", [7, 4096])
def test_images_kept_as_bytes_are_equal_to_the_last_bit(monkeypatch, chunk):
    monkeypatch.setattr(batches, "_CHUNK", chunk)
    part = photographs()
    device = torch.device("cpu")
    floats, coded = (Batches.of(part, device, compact=compact) for compact in (False, True))
    assert (coded.inputs.dtype, coded.inputs.nbytes * 4) == (torch.uint8, floats.inputs.nbytes)
    assert torch.equal(torch.cat(list(coded.parts(16))), floats.inputs)
    protocol = replace(PROTOCOL, augmentation="shift-flip")
    for (a, b), (c, d) in zip(
        *(each.epoch(protocol, seeded()) for each in (floats, coded)), strict=True
    ):
        assert torch.equal(a, c) and torch.equal(b, d)
        assert c.is_contiguous(memory_format=torch.channels_last)


def test_images_that_bytes_cannot_hold_stay_floats():
    part = photographs()
    device = torch.device("cpu")
    for value in (np.float32(0.123), np.float32("nan")):
        inputs = part.inputs.copy()
        inputs[0, 0, 0, 0] = value
        kept = Batches.of(DataPart(inputs, part.targets), device, compact=True)
        assert (kept.levels, kept.inputs.dtype) == (None, torch.float32)

    assert Batches.of(part, device).levels is None
