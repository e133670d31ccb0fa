"""Zero-cost proxies as a user has them: measured or imported, shown, and used by a search that can
be replayed."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from archive import spaces
from archive.agents.replay import recheck
from archive.architecture import codec
from archive.cli.architecture.command import ArchitectureDocument
from archive.cli.architecture.proxies import ProxyList
from archive.cli.exchange.imports import ProxyImport
from archive.trainer.tasks import registry
from tests.support.commands import serving, shell
from tests.support.json_documents import faults

CELLS = spaces.get("nasbench201").members()[::200][:40]


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def written(folder, name, columns):
    """Write a table of the cells with a column of numbers for each function."""
    rows = [
        [codec.to_nasbench201(cell), *(str(each(at)) for each in columns.values())]
        for at, cell in enumerate(CELLS)
    ]
    path = folder / name
    path.write_text("\n".join(",".join(row) for row in [["net_str", *columns], *rows]))
    return path


def test_networks_are_measured_once_and_shown(archive, user):
    command = ("arch", "proxies", "--task", "digits", "--space", "mlp", "--count", "2", "--json")
    first, again = (json.loads(user.types(*command).stdout) for _ in range(2))
    assert not faults(first, ProxyList)
    assert (first["measured"], again["measured"]) == (2, 0)
    assert first["networks"] == again["networks"]
    (one, other) = first["networks"]
    assert one["scores"]["synflow"] != other["scores"]["synflow"]
    shown = json.loads(user.types("arch", "show", one["architecture"], "--json").stdout)
    assert not faults(shown, ArchitectureDocument)
    assert {each["proxy"]: each["score"] for each in shown["proxies"]} == one["scores"]
    assert "synflow" in user.types("arch", "show", one["architecture"]).stdout
    cypher = (
        "MATCH (a:Architecture)-[m:MEASURED]->(:Task {name: 'digits'}) RETURN a.key, "
        "m.proxy_synflow"
    )
    scores = {each["architecture"]: each["scores"]["synflow"] for each in first["networks"]}
    assert dict(archive.query(cypher).rows) == scores


def test_a_search_uses_published_proxies_and_can_be_replayed(archive, user, tmp_path):
    # The second proxy says nothing, and one network lacks it.
    rng = np.random.default_rng(0)
    proxies = {"good": lambda at: at / 10, "noise": lambda at: "nan" if at == 3 else rng.normal()}
    path = written(tmp_path, "proxies.csv", proxies)
    task = f"table:{written(tmp_path, 'cells.csv', {'accuracy': lambda at: math.tanh(at / 20)})}#accuracy"
    done = json.loads(user.types("import", "proxies", str(path), "--task", task, "--json").stdout)
    assert not faults(done, ProxyImport)
    assert (done["proxies"], done["networks"]) == (["good", "noise"], len(CELLS))
    with serving(archive):
        user.types(
            "search",
            "--agent",
            "portfolio",
            "--task",
            task,
            "--study",
            "s",
            "--budget",
            "8",
            "--trainers",
            "0",
        )

    values = [each.value for each in archive.studies.evaluations(["s"])]
    assert max(values) == pytest.approx(math.tanh((len(CELLS) - 1) / 20))
    known = archive.proposals.list("s")[0].based_on["proxies"]
    assert known["source"].startswith("proxies.csv@")
    # Scores that come later do not change what a proposal was based on.
    later = spaces.get("nasbench201").members()[1:150]
    archive.architectures.add(later)
    protocol = archive.studies.get("s").protocol
    archive.proxies.add(
        task, protocol, known["source"], {cell.key: {"good": 99.0} for cell in later}
    )
    assert len(recheck(archive, "s").same) == 8


def table_of_choices(folder):
    """Return the task of a table of four networks; the first three differ in their activation."""
    path = folder / "table.csv"
    path.write_text("set:act,set:width,accuracy\nelu,64,1\ngelu,64,2\nrelu,64,3\nrelu,128,4\n")
    return f"table:{path}#accuracy"


def test_options_of_published_proxies_are_found_by_their_names(archive, user, tmp_path):
    task = table_of_choices(tmp_path)
    # Without a row of elu, the first option of the file is the second one of the table.
    path = tmp_path / "proxies.csv"
    path.write_text("set:width,set:act,synflow\n64,gelu,0.25\n128,relu,0.5\n")
    user.types("import", "proxies", str(path), "--task", task)
    space = registry.get(task).search_space()
    scores = {
        accuracy: [each["score"] for each in archive.proxies.of_architecture(network.key)]
        for network, accuracy in zip(space.members(), space.table.column("accuracy"), strict=True)
    }
    assert scores == {1.0: [], 2.0: [0.25], 3.0: [], 4.0: [0.5]}
    for text, message in (
        (
            "set:width,set:act,synflow\n64,gelu,0.25\n128,selu,0.5\n",
            "the decision 'act' has no option 'selu'",
        ),
        (
            "set:act,set:depth,synflow\nrelu,1,0.25\ngelu,2,0.5\n",
            "the decisions are act, width, got act, depth",
        ),
        (
            "chain:act,chain:width,synflow\nrelu,64,1\ngelu,128,2\n",
            "are a chain, those of the task",
        ),
    ):
        path.write_text(text)
        refused = user.types("import", "proxies", str(path), "--task", task, code=2).stderr
        assert message in " ".join(refused.split())


def test_published_proxies_may_have_one_option_of_a_decision(archive, user, tmp_path):
    task = table_of_choices(tmp_path)
    path = tmp_path / "proxies.csv"
    path.write_text("set:width,set:act,synflow\n64,gelu,0.25\n64,relu,0.5\n")
    user.types("import", "proxies", str(path), "--task", task)
    space = registry.get(task).search_space()
    scores = [
        [each["score"] for each in archive.proxies.of_architecture(one.key)]
        for one in space.members()
    ]
    assert scores == [[], [0.25], [0.5], []]
    for text, task_name, message in (
        (
            "set:width,set:act,synflow\n64,selu,0.25\n128,selu,0.5\n",
            task,
            "the decision 'act' has no option 'selu'",
        ),
        (
            "set:width,set:act,synflow\n64,selu,0.25\n128,selu,0.5\n",
            "digits",
            "must be 2 to 16, got 1",
        ),
    ):
        path.write_text(text)
        refused = user.types("import", "proxies", str(path), "--task", task_name, code=2).stderr
        assert message in " ".join(refused.split())


def test_what_cannot_be_measured_is_one_line(user, tmp_path):
    for arguments, message in (
        (["--task", "nb201-cifar10", "--count", "1"], "archive import proxies"),
        (["--count", "1"], "--task"),
        (["--task", "digits"], "name the networks"),
    ):
        assert message in user.types("arch", "proxies", *arguments, code=None).stderr


def test_proxies_of_networks_of_another_space_are_refused(archive, user, tmp_path):
    path = tmp_path / "proxies.csv"
    cells = [codec.to_nasbench201(cell) for cell in spaces.get("nasbench201").members()[:2]]
    path.write_text(
        "\n".join(["arch_str,synflow", *(f"{cell},{at}" for at, cell in enumerate(cells))])
    )
    for task, expected in ((table_of_choices(tmp_path), "choices"), ("diabetes", "mlp")):
        refused = " ".join(
            user.types("import", "proxies", str(path), "--task", task, code=2).stderr.split()
        )
        assert (
            f"holds networks of the space nasbench201, and the task '{task}' has those of "
            f"{expected}"
        ) in refused

    assert archive.query("MATCH (a:Architecture) RETURN count(a) AS n").rows == [(0,)]
