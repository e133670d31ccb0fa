"""Names that a user may give to a setting, against the pages that explain them."""

from __future__ import annotations

import re

import pytest

from archive import agents, kernels
from archive.agents import study_setup
from archive.agents.acquisition import batch, candidate_generators, functions
from archive.agents.registry import registry as of_agents
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


def test_the_table_of_abilities_names_the_agents_that_have_them():
    text = (ROOT / "docs" / "agents.md").read_text("utf-8")
    rows = {
        ability: set(re.findall(r"`([a-z0-9-]+)`", listed))
        for ability, listed in re.findall(
            r"^\| .*\[([\w ]+)\]\(#[\w-]+\).* \| (.*) \|$", text, re.MULTILINE
        )
    }
    others = {name for name in agents.names() if name.startswith("gp-")}
    assert rows["several objectives"] | others == set(study_setup.capable())
    informed = {name: of_agents.load(name).info for name in agents.names()}
    transferring = {name for name, info in informed.items() if info.transfers}
    assert rows["other tasks"] - {"random-forest"} == transferring
