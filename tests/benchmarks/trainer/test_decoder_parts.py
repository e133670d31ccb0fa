"""The benchmark of a decoder's parts: both loops compute the same sums."""

from __future__ import annotations

import pytest
import torch

from tests.benchmarks.trainer.decoder_parts import WIDTH, parts


@pytest.mark.parametrize("name", ["attention", "sliding attention", "gelu", "swiglu", "moe"])
def test_the_plain_loop_computes_the_same(name):
    part, plain = next((part, plain) for known, part, plain in parts() if known == name)
    x = torch.randn(2, 70, WIDTH)
    torch.testing.assert_close(part(x), plain(part, x), rtol=1e-4, atol=1e-5)
