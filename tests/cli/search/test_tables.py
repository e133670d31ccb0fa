"""Searches that a table answers, as a user types them, until all networks of the table are
evaluated."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from archive import spaces
from archive.architecture import codec
from archive.architecture.genotypes.codec import from_genotype, to_genotype
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.tasks import file_access
from tests.support.commands import serving, shell
from tests.support.stores import suggest


@pytest.fixture
def types(archive, store_settings, tmp_path):
    """Types `archive search` on a table of ten cells."""
    path = tmp_path / "some table, of ten.csv"
    lines = [
        f"{codec.to_nasbench201(cell)},{at % 7}"
        for at, cell in enumerate(spaces.get("nasbench201").members()[:10])
    ]
    path.write_text("\n".join(["arch_str,accuracy", *lines]))
    with shell(store_settings, tmp_path) as user:

        def search(*arguments, code=0, task=("--task", f"table:{path}#accuracy")):
            with serving(archive):
                return user.types("search", "--trainers", "0", *task, *arguments, code=code)

        yield search


def test_a_search_on_a_table_resumes_and_ends_with_the_table(archive, types):
    first = json.loads(types("--agent", "random", "--budget", "4", "--json").stdout)
    assert first["study"] == "random-nasbench201-some table- of ten-accuracy"
    assert (first["evaluations"], first["failed"], first["objective"]) == (4, 0, "accuracy")
    # The table has fewer networks than the budget: each is evaluated once.
    last = json.loads(types("--agent", "random", "--budget", "30", "--batch", "3", "--json").stdout)
    assert (last["evaluations"], last["failed"]) == (10, 0)
    assert (first["exhausted"], last["exhausted"]) == (False, True)
    assert last["best"]["value"] == 6
    assert last["best"]["held_out"] is None
    evaluations = archive.studies.evaluations(last["study"])
    assert sorted(each.value for each in evaluations) == [0, 0, 1, 1, 2, 2, 3, 4, 5, 6]
    assert len({each.architecture.functional_key for each in evaluations}) == 10
    assert (
        archive.studies.get(last["study"]).space_config["table"].endswith("some table, of ten.csv")
    )


def test_an_agent_keeps_its_settings(archive, types):
    named = "random-forest:trees=5,n_initial=3"
    first = json.loads(types("--agent", named, "--budget", "4", "--json").stdout)
    # Equal settings in another order are the same agent, and continue its study.
    assert first["agent"] == "random-forest:n_initial=3,trees=5"
    assert first["study"].startswith("random-forest:n_initial=3-trees=5-nasbench201-")
    other = json.loads(
        types("--agent", "random-forest:n_initial=3,trees=5", "--budget", "5", "--json").stdout
    )
    assert (other["study"], other["evaluations"]) == (first["study"], 5)
    last = json.loads(types("--study", first["study"], "--budget", "6", "--json", task=()).stdout)
    assert (last["agent"], last["evaluations"]) == (first["agent"], 6)
    configs = archive.query(
        "MATCH (a:Agent)-[:MADE]->(:Proposal) RETURN DISTINCT a.kind, a.config"
    ).rows
    assert [kind for kind, _ in configs] == ["random-forest"]
    assert {"n_initial": 3, "trees": 5}.items() <= json.loads(configs[0][1]).items()


def test_a_file_that_changed_is_said_whether_the_task_is_named_or_not(types, tmp_path):
    named = ("--agent", "random", "--budget", "2")
    study = json.loads(types(*named, "--json").stdout)["study"]
    with (tmp_path / "some table, of ten.csv").open("a") as file:
        file.write("\n")
        file.write(f"{codec.to_nasbench201(spaces.get('nasbench201').members()[10])},3")

    for options, task in ((named, "some table, of ten.csv"), (("--study", study), None)):
        chosen = {} if task else {"task": ()}
        refused = types(*options, code=None, **chosen).stderr
        assert "is not the one that the study was created with" in refused.replace("\n", " "), (
            refused
        )


def test_a_search_that_has_all_networks_says_so_and_advises_no_more_of_it(types):
    options = ("--agent", "random", "--study", "whole")
    for resumed in (False, True):
        done = types(*options, *(() if resumed else ("--budget", "12")))
        assert "all 10 networks of the space are evaluated: 10 of 12 evaluations" in done.stderr
        assert "archive arch show" in done.stdout and "archive search" not in done.stdout

    # What others found counts as evaluated, and is not this study's own.
    warm = types("--agent", "random", "--study", "warm", "--warm-start", "whole", "--json", code=3)
    assert json.loads(warm.stdout)["exhausted"]
    assert (
        "all 10 networks of the space are evaluated: 0 of 20 evaluations, the others are"
        in warm.stderr
    )
    # Nothing has failed, and no reason is on record.
    assert types("--agent", "random", "--study", "warm", code=3).stdout == (
        "no network was evaluated\n"
    )


def test_a_space_of_one_network_is_named_as_such(types, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text(
        f"arch_str,valid_accuracy\n{codec.to_nasbench201(spaces.get('nasbench201').members()[0])},0.5\n"
    )
    done = types(
        "--agent", "random", "--budget", "3", task=("--task", f"table:{path}#valid_accuracy")
    )
    assert "the only network of the space is evaluated: 1 of 3 evaluations" in done.stderr
    assert " complete: valid_accuracy 0.5; best 0.5; 1 of 3\n" in done.stderr
    # The table has no test values to report.
    assert "\naccuracy           0.5 on validation data\n" in done.stdout


def test_a_budget_that_is_the_whole_table_is_not_to_be_doubled(types):
    done = types("--agent", "random", "--budget", "10")
    assert "all 10 networks of the space are evaluated: 10 of 10 evaluations" in done.stderr
    assert "archive search" not in done.stdout


@pytest.mark.whole
def test_bananas_searches_a_table_of_genotypes(archive, types, store_settings, tmp_path):
    path = tmp_path / "genotypes.csv"
    space = spaces.get("darts")
    rng = np.random.default_rng(0)
    networks = [space.sample(rng) for _ in range(14)]
    rows = [(str(to_genotype(network)), len(network.functional.layers)) for network in networks]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("genotype", "accuracy"), *rows])

    task = ("--task", f"table:{path}#accuracy")
    done = json.loads(types("--agent", "bananas", "--budget", "12", "--json", task=task).stdout)
    assert (done["evaluations"], done["failed"]) == (12, 0)
    with shell(store_settings, tmp_path) as user:
        shown = json.loads(
            user.types("arch", "show", done["best"]["architecture"], "--json").stdout
        )

    best = from_genotype(shown["text"])
    assert best.functional_key in {network.functional_key for network in networks}
    proposed = [
        each for each in archive.proposals.list(done["study"]) if each.acquisition is not None
    ]
    assert len(proposed) == 2


def test_a_space_that_the_table_is_not_of(types):
    done = types("--agent", "random", "--space", "cnn", code=2)
    assert "holds networks of the space nasbench201, got 'cnn'" in done.stderr


def test_a_table_that_a_search_named_is_read_here_and_no_other(archive, store_settings, types):
    types("--agent", "random", "--study", "named", "--budget", "2")
    # By its name alone: the path is the database's now.
    more = types("--study", "named", "--budget", "3", task=())
    assert "error" not in more.stderr
    agent = archive.proposals.register_agent("random", {}, "1")
    known = {each.architecture.functional_key for each in archive.studies.evaluations("named")}
    left = [
        cell
        for cell in spaces.get("nasbench201").members()[:10]
        if cell.functional_key not in known
    ]
    archive.studies.set_budget("named", 9)
    archive.proposals.create("named", agent, suggest(left[:1]))
    assert Trainer(archive, TrainerOptions(study="named", once=True)).run().complete == 1

    (store_settings.home / file_access.RECORD).unlink()
    archive.proposals.create("named", agent, suggest(left[1:2]))
    Trainer(archive, TrainerOptions(study="named", once=True, device="cpu")).run()
    assert "may not be read here" in archive.proposals.list("named")[-1].reason
    refused = types("--study", "named", "--budget", "9", task=(), code=2)
    (line,) = refused.stderr.splitlines()
    assert "may not be read here: name it on this machine (archive search --task)" in line
