"""Tables that answer searches of several objectives in this process."""

from __future__ import annotations

from archive import agents, spaces
from archive.agents.base import History
from archive.searches.comparison.plan import Problem
from archive.store.records import Result
from tests.benchmarks.searches.costed_table import evaluations

SPACE = spaces.get("choices", decisions={name: ["0", "1", "2"] for name in "abcd"})


def test_searches_of_two_seeds_have_different_noise():
    def answer(network, query=""):
        asked.append((network.functional_key, query))
        return Result(1.0)

    asked = []
    problem = Problem(
        "t",
        "t",
        "t/1",
        SPACE.name,
        SPACE.config,
        "v",
        "maximise",
        1.0,
        81,
        1.0,
        "",
        answer,
        noise=0.1,
    )
    searches = []
    for seed in (0, 1, 0):
        asked.clear()
        *_, seen = evaluations(
            [agents.get("random", SPACE)], problem, seed, 5, lambda _, past: History(past)
        )
        searches.append(list(asked))
        assert len({query for _, query in asked}) == len(seen) == 5

    first, second, again = searches
    assert first == again
    assert not {query for _, query in first} & {query for _, query in second}
