"""Studies whose spaces have grown: their history, and their way through a dump."""

from __future__ import annotations

import pytest

from archive import agents, space
from archive.errors import StudyConflictError
from archive.exchange.dump import dump
from archive.exchange.load import load

FIRST = {"lr": space.real(1e-4, 1e-1, log=True), "depth": space.integer(1, 4)}
SECOND = {
    **FIRST,
    "lr": space.real(1e-5, 1e-1, log=True),
    "act": space.choice(["relu", "gelu"], default="relu"),
}
THIRD = {
    **SECOND,
    "depth": space.integer(1, 6),
    "act": space.choice(["relu", "gelu", "silu"], default="relu"),
    "beta": space.real(0, 1, when="act == 'silu'"),
    "stage": space.repeat({"op": space.choice(["a", "b"], default="a")}, "depth"),
}


def views(archive):
    return [dict(view.configuration) for view in archive.studies.snapshot("grows").proposals]


@pytest.mark.every_server
def test_a_space_grows_twice_and_goes_through_a_dump(archive, tmp_path):
    for parameters in (FIRST, SECOND, THIRD):
        study = agents.study(archive, "grows", space.Space(parameters))
        for trial in study.ask("random", 2):
            assert study.tell(trial, trial.parameters["lr"])

    rows = views(archive)
    assert len(rows) == 6
    assert [row["act"] for row in rows[:2]] == ["relu", "relu"]
    for row in rows:
        assert [f"stage_{number}_op" in row for number in range(1, 7)] == [
            number <= row["depth"] for number in range(1, 7)
        ]

    found = "MATCH (p:Proposal {study: 'grows'}) WHERE p.parameter_act = 'relu' RETURN p.number"
    assert len(archive.query(found).rows) >= 2
    before = archive.studies.get("grows")
    dump(archive.connection, tmp_path / "grows.gz")
    archive.studies.delete("grows")
    load(archive.connection, tmp_path / "grows.gz")
    assert archive.studies.get("grows") == before
    assert views(archive) == rows
    again = agents.study(archive, "grows", space.Space(THIRD))
    assert len(again.ask("portfolio", 2)) == 2
    with pytest.raises(StudyConflictError, match="depth has narrower bounds"):
        agents.study(archive, "grows", space.Space(SECOND))
