"""The random forest: its posterior does not depend on the unit of the scores."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.bayesopt.bananas import encoding
from archive.agents.surrogates.random_forest import RandomForest

SPACE = spaces.get("nasbench201")


def posterior(scores, networks, queries):
    fitted = RandomForest(encoding(SPACE, "default"), 20).fit(
        networks, scores, np.random.default_rng(0)
    )
    return fitted.posterior(queries), fitted.hallucinate(queries[:2]).posterior(queries)


@pytest.mark.parametrize(("factor", "shift"), [(100.0, 0.0), (1e-9, 0.0), (7.0, 3.0)])
def test_the_unit_of_the_scores_does_not_matter(factor, shift):
    networks = [cell.functional for cell in SPACE.members()[::400]]
    known = networks[:14]
    queries = networks[14:]
    scores = np.array(
        [0.9 - 0.07 * (len(cell.layers) % 5) + 0.01 * len(cell.edges) for cell in known]
    )
    for plain, other in zip(
        posterior(scores, known, queries),
        posterior(shift + factor * scores, known, queries),
        strict=True,
    ):
        assert other.mean == pytest.approx(shift + factor * plain.mean, rel=1e-9)
        assert other.std == pytest.approx(factor * plain.std, rel=1e-6)
