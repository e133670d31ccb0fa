"""Names that a user may give to a setting, against the pages that explain them."""

from __future__ import annotations

import re

import pytest

from archive import agents, kernels
from archive.agents.acquisition import batch, candidate_generators, functions
from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates import registry as surrogates
from tests.support import ROOT

NAMES = {
    "agents": (
        *agents.names(),
        *functions.names(),
        *batch.names(),
        *candidate_generators.NAMES,
        *outcome_transforms.names(),
        *surrogates.names(),
    ),
    "kernels": kernels.names(),
}


@pytest.mark.parametrize("page", NAMES)
def test_a_page_explains_every_name(page):
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    assert set(NAMES[page]) - set(re.findall(r"`([^`\s]+)`", text)) == set()
