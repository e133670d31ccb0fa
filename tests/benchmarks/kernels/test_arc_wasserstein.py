"""The benchmarks of the Arc and Wasserstein kernels: their figures and differences from the
references."""

from __future__ import annotations

from tests.benchmarks.kernels import arc, wasserstein


def check(figures) -> None:
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        if "difference from" in figure.name:
            assert figure.goal == "<= 1e-9"
            assert figure.value <= 1e-9
        else:
            assert figure.value > 0
            assert figure.unit == "us"


def test_arc():
    figures = list(arc.measure(count=12, pairs=10))
    check(figures)
    assert len(figures) == 2 + 4 * 2
    assert sum(figure.reference is not None for figure in figures) == 5


def test_wasserstein():
    figures = list(wasserstein.measure(networks=4, pairs=2))
    check(figures)
    assert len(figures) == 4 * 3
    assert sum(figure.reference is not None for figure in figures) == 8
