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
OTHER = {**FIRST, "lr": space.real(1e-4, 1.0, log=True), "decay": space.real(0, 1, default=0.0)}


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


def test_copies_of_a_study_whose_spaces_have_grown_apart_are_merged(archive, tmp_path):
    def ask(parameters, count):
        study = agents.study(archive, "grows", space.Space(parameters))
        for trial in study.ask("random", count) if count else ():
            assert study.tell(trial, 0.5)

    ask(FIRST, 2)
    dump(archive.connection, tmp_path / "first.gz")
    ask(SECOND, 1)
    dump(archive.connection, tmp_path / "second.gz")
    archive.studies.delete("grows")
    load(archive.connection, tmp_path / "first.gz")
    ask(OTHER, 0)
    dump(archive.connection, tmp_path / "other.gz")
    load(archive.connection, tmp_path / "second.gz")
    merged = archive.studies.get("grows")
    rows = views(archive)
    assert [(row["act"], row["decay"]) for row in rows[:2]] == [("relu", 0.0)] * 2
    assert (len(rows), rows[2]["decay"]) == (3, 0.0)
    names = dict(merged.space_config["parameters"])
    assert (names["lr"]["low"], names["lr"]["high"]) == (1e-5, 1.0)
    for name in ("first", "second", "other"):
        _, changed = load(archive.connection, tmp_path / f"{name}.gz")
        assert not any(changed.values())

    archive.studies.delete("grows")
    for name in ("second", "other", "first"):
        load(archive.connection, tmp_path / f"{name}.gz")

    assert archive.studies.get("grows").space_config == merged.space_config
    assert views(archive) == rows


def test_spaces_that_have_grown_against_each_other_are_refused(archive, tmp_path):
    agents.study(archive, "grows", space.Space({**FIRST, "act": space.choice(["a"], default="a")}))
    dump(archive.connection, tmp_path / "a.gz")
    archive.studies.delete("grows")
    agents.study(archive, "grows", space.Space({**FIRST, "act": space.choice(["b"], default="b")}))
    with pytest.raises(StudyConflictError, match="grown apart: act has another default"):
        load(archive.connection, tmp_path / "a.gz")
