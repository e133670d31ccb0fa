"""Fixtures that the benchmarks of agents share with their tests."""

from tests.agents.conftest import few_candidates

__all__ = ["few_candidates"]
