"""The benchmark of the encodings at a small size: its figures and differences from the
reference."""

from __future__ import annotations

from tests.benchmarks.kernels import encodings


def test_figures():
    figures = {figure.name: figure for figure in encodings.measure(networks=12, pairs=20)}
    assert figures["path: features on nasbench101"].value == 364
    assert figures["path: features on darts"].value == 18724
    kernels = ("path", "adjacency", "adjacency-continuous", "hamming", "weisfeiler-lehman")
    for space in encodings.SPACES:
        for kernel in kernels:
            speed = figures[f"{kernel}, {space}: a block of 12 x 12"]
            assert speed.value > 0
            assert speed.reference is not None and speed.reference > 0
            assert figures[f"{kernel}, {space}: preparing a network"].value > 0
            assert (
                figures[f"{kernel}, {space}: largest difference from the reference"].value
                <= encodings.DIFFERENCE
            )

    assert len(figures) == 2 + 3 * len(kernels) * len(encodings.SPACES)
