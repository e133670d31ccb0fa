"""The import of a zoo: what is stored, what is left out, and what another import does again."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from archive.trainer.zoo import importing
from archive.trainer.zoo.importing import OTHER_SIZE, import_zoo
from archive.trainer.zoo.processes import BuildLimits, Built
from tests.support.networks import toy_zoo
from tests.support.networks.toy_zoo import network
from tests.support.stores import cells


@pytest.fixture
def built(archive, monkeypatch):
    """References that were built, in this process; the journal is empty."""
    references = []

    def build_all(build, waiting, limits):
        for reference in waiting:
            references.append(reference)
            if reference.isdigit():
                yield Built(reference, build(reference))
            else:
                yield Built(reference, None, f"it is {reference}")

    monkeypatch.setattr(importing, "build_all", build_all)
    monkeypatch.setattr(importing, "PACKAGES", {toy_zoo.NAME: lambda: "1"})
    monkeypatch.setattr(importing, "ZOOS", {toy_zoo.NAME: SimpleNamespace(build=toy_zoo.build)})
    Path(archive.connection.settings.home, "zoo", "toys.jsonl").unlink(missing_ok=True)
    return references


def run(archive, networks, **options):
    return import_zoo(archive, toy_zoo.NAME, networks, BuildLimits(), **options)


def lines(content):
    return [json.loads(line) for line in content.file.read_text().splitlines()]


def test_a_network_is_stored_once_with_the_results_of_its_recipes(archive, built):
    # Two names of one graph.
    content = run(archive, [network("small", "0"), network("same", "00", recipes=1)])
    assert (content.names, content.architectures, content.evaluations) == (2, 1, 3)
    assert content.left_out == [] == lines(content)
    stored = archive.studies.evaluations(task="imagenet-1k")
    assert {evaluation.architecture.key for evaluation in stored} == {cells(1)[0].key}
    models = {}
    for evaluation in stored:
        models[evaluation.provenance["model"]] = (evaluation.protocol, evaluation.value)

    assert models == {
        "small.r0": ("toys/r0@224", 70.0),
        "small.r1": ("toys/r1@224", 71.0),
        "same.r0": ("toys/r0@224", 70.0),
    }
    assert stored[0].provenance.items() >= {**toy_zoo.ORIGIN, "family": "cell"}.items()
    assert archive.architectures.details(cells(1)[0].key)["params"] == toy_zoo.PARAMS


def test_another_import_builds_and_stores_only_what_is_missing(archive, built):
    run(archive, [network("small", "0", recipes=1)])
    networks = [network("small", "0", recipes=3), network("more", "1"), network("bad", "broken")]
    content = run(archive, networks)
    assert built == ["0", "1", "broken"]
    assert (content.names, content.evaluations) == (2, 5)
    again = run(archive, networks)
    assert built == ["0", "1", "broken"]
    assert again == content
    assert len(archive.studies.evaluations(task="imagenet-1k")) == 5


def test_what_cannot_come_in_is_listed_and_tried_again_on_request(archive, built):
    content = run(archive, [network("bad", "broken"), network("small", "0")])
    [left] = content.left_out
    assert (left.name, left.results, left.reason) == ("bad", 2, "it is broken")
    assert [line["name"] for line in lines(content)] == ["bad"]
    # An import of others keeps the line, as does a part of a line of a killed import.
    with content.file.open("a") as file:
        file.write('{"name": "torn')

    assert run(archive, [network("small", "0")]).left_out == []
    assert [line["name"] for line in lines(content)] == ["bad"]
    mended = run(archive, [network("bad", "1")], again=True)
    assert (mended.names, mended.left_out, lines(mended)) == (1, [], [])


def test_a_failure_is_tried_again_by_another_version(archive, built, monkeypatch):
    run(archive, [network("bad", "broken")])
    monkeypatch.setattr(importing, "PACKAGES", {toy_zoo.NAME: lambda: "2"})
    run(archive, [network("bad", "broken")])
    assert built == ["broken", "broken"]


def test_results_of_another_number_of_parameters_are_left_out(archive, built):
    right = network("part", "0", recipes=1)
    wrong = network("part", "0", params=1.24).results[1]
    part = importing.PublishedNetwork("part", "0", (*right.results, wrong))
    content = run(archive, [part, network("whole", "1", params=5.0)])
    assert content.names == content.evaluations == 1
    assert [(left.name, left.results, left.reason) for left in content.left_out] == [
        ("part", 1, OTHER_SIZE),
        ("whole", 2, OTHER_SIZE),
    ]
    assert list(archive.architectures.get_many([cells(2)[1].key])) == []


def test_an_interrupted_import_keeps_its_networks_and_failures(archive, built):
    def interrupt(progress):
        if progress.stored + progress.left_out == 2:
            raise KeyboardInterrupt

    networks = [network("bad", "broken"), network("small", "0"), network("more", "1")]
    with pytest.raises(KeyboardInterrupt):
        run(archive, networks, progress=interrupt)

    assert built == ["broken", "0"]
    content = run(archive, networks)
    assert built == ["broken", "0", "1"]
    assert (content.names, len(content.left_out)) == (2, 1)
