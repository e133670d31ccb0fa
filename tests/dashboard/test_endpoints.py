"""Endpoints over a real archive: what they answer, what they refuse, and what they change."""

import json
import threading
from collections import OrderedDict

import numpy as np
import pytest

from archive import spaces
from archive.architecture import codec
from archive.constraints import Constraint
from archive.dashboard.endpoints import maps
from archive.dashboard.wire import dumps
from archive.errors import UsageError
from archive.plots.data import network_map
from archive.spaces import stored_spaces
from archive.store.evaluations import Evaluations
from archive.store.records import Objective, Result, State
from archive.trainer.tasks import known_costs, registry
from tests.support import wait_until
from tests.support.stores import Repeat, Suggestion, cells, evaluate, propose, study, suggest

EVIL = "<img src=x onerror=alert(1)>"


def columns(answer):
    """Read the binary form as a browser does."""
    content = answer.content
    length = int.from_bytes(content[:4], "little")
    head = json.loads(content[4 : 4 + length])
    assert (4 + length) % 8 == 0
    kinds = {"f8": "<f8", "f4": "<f4", "u4": "<u4", "u1": "|u1"}
    return head, {
        each["name"]: np.frombuffer(
            content, kinds[each["type"]], head["rows"], 4 + length + each["offset"]
        )
        for each in head["columns"]
    }


def test_points_are_the_results_of_the_study(archive, client):
    evaluate(archive, [0.25, 0.75, 0.5], budget=4)
    propose(archive, cells(5)[3:4])
    archive.proposals.claim("trainer", study="study")
    head, found = columns(client.get("/api/study/points?study=study"))
    assert head["rows"] == 4 and head["about"]["budget"] == 4
    assert list(found["number"]) == [0, 1, 2, 3]
    assert list(found["value"][:3]) == [0.25, 0.75, 0.5] and np.isnan(found["value"][3])
    assert [head["states"][at] for at in found["state"]] == ["COMPLETE"] * 3 + ["RUNNING"]
    assert head["about"]["best"]["number"] == 1
    assert head["about"]["counts"] == {"complete": 3, "running": 1}
    assert [each["number"] for each in head["running"]] == [3]


@pytest.mark.every_server
def test_points_have_the_values_of_all_objectives(archive, client):
    evaluate(archive, [0.5], "one")
    _, found = columns(client.get("/api/study/points?study=one"))
    assert "objective_2" not in found
    further = (Objective("loss", "minimise"), Objective("size", "minimise"))
    archive.studies.create(study(objective="accuracy", further=further))
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = [
        Result(0.5, {"accuracy": 0.5, "loss": 3.0, "size": 7.0}),
        Result(0.25, {"accuracy": 0.25, "loss": 2.0}),
    ]
    archive.proposals.create("study", agent, suggest(cells(2)), outcomes=outcomes)
    _, found = columns(client.get("/api/study/points?study=study"))
    assert [list(found[name]) for name in ("value", "objective_2")] == [[0.5, 0.25], [3.0, 2.0]]
    assert found["objective_3"][0] == 7.0 and np.isnan(found["objective_3"][1])
    assert "objective_4" not in found


def test_several_objectives_have_a_best_each_and_a_pareto_set(archive, client):
    further = (Objective("loss", "minimise"),)
    networks = cells(5)
    archive.studies.create(
        study(objective="accuracy", further=further, constraints=(Constraint("size", "<=", 9.0),))
    )
    agent = archive.proposals.register_agent("random", {}, "1")
    rows = [(0.5, 3.0, 1.0), (0.6, 3.0, 1.0), (0.4, 1.0, 1.0), (0.9, 0.5, 10.0), (0.3, None, 1.0)]
    outcomes = [
        Result(value, {"accuracy": value, "size": size, **({} if loss is None else {"loss": loss})})
        for value, loss, size in rows
    ]
    archive.proposals.create("study", agent, suggest(networks), outcomes=outcomes)
    found = client.get("/api/study/objectives?study=study").json()
    best = [
        (each["name"], each["direction"], each["best"]["number"]) for each in found["objectives"]
    ]
    assert best == [("accuracy", "maximise", 1), ("loss", "minimise", 2)]
    assert [(each["number"], each["values"]) for each in found["front"]] == [
        (1, [0.6, 3.0]),
        (2, [0.4, 1.0]),
    ]
    # The fourth misses the constraint, the fifth lacks an objective.
    assert [each["number"] for each in found["others"]] == [0]
    assert (found["results"], found["left_out"], found["reference"]) == (3, 1, [0.4, 3.0])
    assert found["history"] == [[0, 0.0, 1], [2, 0.0, 3]] and found["hypervolume"] == 0.0
    assert client.get("/api/study/objectives?study=other").status_code == 404
    evaluate(archive, [0.5], "one")
    assert client.get("/api/study/objectives?study=one").json() == {
        "objectives": [{"name": "accuracy", "direction": "maximise"}]
    }


def test_a_hypervolume_that_decreases_with_a_mean_is_shown(archive, client):
    archive.studies.create(study(objective="accuracy", further=(Objective("loss", "minimise"),)))
    agent = archive.proposals.register_agent("random", {}, "1")
    bad, lucky = cells(2)
    outcomes = [
        Result(value, {"accuracy": value, "loss": loss})
        for value, loss in ((0.0, 2.0), (0.8, 1.0), (0.4, 1.0))
    ]
    archive.proposals.create(
        "study", agent, [Suggestion(bad), Suggestion(lucky), Repeat(lucky)], outcomes=outcomes
    )
    found = client.get("/api/study/objectives?study=study").json()
    assert [(each["number"], each["values"]) for each in found["front"]] == [
        (1, [pytest.approx(0.6), 1.0])
    ]
    assert found["history"] == [[0, 0.0, 1], [1, 0.8, 2], [2, pytest.approx(0.6), 3]]


def test_the_table_is_sorted_and_filtered_by_the_server(archive, client):
    evaluate(archive, [0.25, 0.75, 0.5])
    propose(archive, cells(5)[3:5])
    path = "/api/study/proposals?study=study"
    answer = client.get(f"{path}&sort=value&order=desc&limit=2").json()
    assert ([row["value"] for row in answer["proposals"]], answer["total"]) == ([0.75, 0.5], 5)
    # Rows without a value come last, in either order.
    assert [row["value"] for row in client.get(f"{path}&sort=value").json()["proposals"]] == [
        0.25,
        0.5,
        0.75,
        None,
        None,
    ]
    assert client.get(f"{path}&state=WAITING").json()["total"] == 2
    assert client.get(f"{path}&find={cells(1)[0].key[:12]}").json()["total"] == 1
    for wrong in ("sort=secret", "limit=0", "limit=x", "state=DONE", "order=up"):
        answer = client.get(f"{path}&{wrong}")
        assert answer.status_code == 400 and wrong.partition("=")[0] in answer.json()["error"]


@pytest.mark.every_server
def test_one_proposal_with_its_events_and_curves(archive, client):
    propose(archive, cells(2))
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.complete(
        claim.id, claim.token, Result(0.5, {"accuracy": 0.5}, {"train_loss": [2.0, 1.0]}, 2, 3.0)
    )
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.fail(claim.id, claim.token, "out of memory", log="the end of the log")
    found = client.get("/api/study/proposal?study=study&number=1").json()
    assert (found["state"], found["reason"]) == ("FAILED", "out of memory")
    assert [each["event"] for each in found["events"]] == ["proposed", "claimed", "failed"]
    assert found["events"][-1]["log"] == "the end of the log"
    (curve,) = client.get("/api/study/curves?study=study").json()["curves"]
    assert (curve["epochs"], curve["curve"]) == ([1, 2], {"train_loss": [2.0, 1.0]})
    assert client.get("/api/study/proposal?study=study&number=7").status_code == 404


@pytest.mark.every_server
def test_a_network_with_every_evaluation_and_its_relatives(archive, client):
    evaluate(archive, [0.5], "one")
    evaluate(archive, [0.25], "two")
    parent, child = cells(2)
    archive.architectures.record_morph(parent, child, ["swap"])
    found = client.get(f"/api/networks/{parent.key[:12]}").json()
    assert sorted((each["study"], each["value"]) for each in found["evaluations"]) == [
        ("one", 0.5),
        ("two", 0.25),
    ]
    assert [(each["key"], each["operations"]) for each in found["children"]] == [
        (child.key, ["swap"])
    ]
    assert found["parents"] == [] and found["graph"]["space"] == "nasbench201"
    assert {each["objective"] for each in found["evaluations"]} == {"accuracy"}
    assert {each["predicted"] for each in found["evaluations"]} == {False}
    assert found["children"][0]["values"] == [] and found["children"][0]["evaluations"] == 0
    # Values of different objectives have no common range.
    evaluate(archive, [1000.0], "sizes", objective="params", direction="minimise")
    (above,) = client.get(f"/api/networks/{child.key}").json()["parents"]
    assert above["evaluations"] == 3 and [tuple(each.values()) for each in above["values"]] == [
        ("digits", "accuracy", 0.25, 0.5), ("digits", "params", 1000.0, 1000.0),
    ]  # fmt: skip
    near = client.get(f"/api/networks/{parent.key}/nearest?k=1").json()
    assert [each["key"] for each in near["neighbours"]] == [child.key]
    pair = client.get(f"/api/comparison?network={parent.key}&network={child.key}").json()
    assert {each["kernel"] for each in pair["distances"]} >= {"edit", "path"}
    query = f"network={parent.key}&network={child.key}"
    difference = client.get(f"/api/difference?{query}").json()
    edit = [each["distance"] for each in pair["distances"] if each["kernel"] == "edit"]
    assert (
        difference["distance"] == pytest.approx(sum(part["cost"] for part in difference["parts"]))
        and edit
    )
    assert difference["distance"] == pytest.approx(edit[0]) and difference["distance"] > 0
    assert client.get(f"/differences.svg?{query}&theme=dark").text.startswith("<svg")
    assert client.get(f"/api/difference?{query}&kernel=path").status_code == 400
    unknown = client.get("/api/networks/zz")
    assert unknown.status_code == 404
    assert unknown.json()["error"] == (
        "unknown architecture 'zz': no network has a key that begins so"
    )
    slip = parent.key[:-1] + ("0" if parent.key[-1] != "0" else "1")
    assert (
        client.get(f"/api/networks/{slip}").json()["error"].endswith(f"did you mean {parent.key}?")
    )
    assert client.get("/api/comparison?network=a").status_code == 400


@pytest.mark.every_server
def test_lineage_of_the_best_network(archive, client):
    evaluate(archive, [0.5, 0.75])
    first, second = cells(2)
    archive.architectures.record_morph(first, second, ["swap"])
    found = client.get("/api/study/lineage?study=study").json()
    assert found["key"] == second.key
    assert [(step["parent"], step["child"]) for step in found["steps"]] == [(first.key, second.key)]
    assert {row["key"]: row["value"] for row in found["networks"]} == {
        first.key: 0.5,
        second.key: 0.75,
    }


def test_a_study_is_answered_and_its_best_trained_longer(archive, served):
    client = served(write=True)
    evaluate(archive, [0.5, 0.75, 0.25], protocol="digits/small")
    evaluate(archive, [0.875], "other", protocol="digits/small")
    best = cells(2)[1].key
    answer = client.get("/api/study/answer?study=study&estimated=no").json()
    assert (answer["number"], answer["architecture"], answer["value"]) == (1, best, 0.75)
    gains = {row["kind"]: row["gain"] for row in answer["beaten"]}
    assert gains == {"second": 0.25, "median": 0.25}
    assert answer["elsewhere"] == {"study": "other", "value": 0.875, "gain": -0.125}
    assert answer["longer"] == {"study": "study-longer", "protocol": "digits/1", "epochs": 16}
    for _ in range(2):
        # A second press leads to the same proposal.
        done = client.post("/api/changes/train_longer", json={"study": "study", "network": best})
        assert (done.json()["study"], done.json()["number"]) == ("study-longer", 0)

    longer = archive.studies.get("study-longer")
    assert (longer.protocol, longer.budget) == ("digits/1", 1)


def test_pictures_are_folded_and_coloured_by_the_page(archive, client):
    evaluate(archive, [0.5, 0.75])
    first, second = cells(2)
    picture = client.get(f"/networks/{first.key}.svg?theme=page&fold=no").text
    assert "aa-page" in picture and "<style>" not in picture
    pair = f"network={first.key}&network={second.key}"
    beside = client.get(f"/differences.svg?{pair}&view=beside&theme=page").text
    assert beside.count("aa-panel") == 2
    assert client.get(f"/api/networks/{first.key}/sizes?study=study").json() == {"sizes": []}
    colours = client.get("/static/palette.css").text
    assert "--best:" in colours and ".aa " in colours


def test_queries_only_read_and_end_by_themselves(archive, served):
    client = served(write=True)
    hasty = served(query_seconds=0.3)
    evaluate(archive, [0.5])

    def ask(**document):
        return client.post("/api/query", json=document)

    assert ask(cypher="MATCH (s:Study) RETURN s.name AS name").json()["rows"] == [["study"]]
    assert ask(name="cost", parameters={"task": "digits"}).json()["rows"]
    refused = ask(cypher="MATCH (n) DETACH DELETE n")
    assert refused.status_code == 400 and "could change the archive" in refused.json()["error"]
    # The page's own option allows its buttons, not its queries.
    assert refused.json()["error"].endswith(
        "; the page only reads: archive query --write can change"
    )
    assert archive.studies.names() == ["study"]
    assert ask(cypher="NOT CYPHER").status_code == 400
    assert ask(name="none").status_code == 404
    cypher = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN sum(a * b)"
    endless = hasty.post("/api/query", json={"cypher": cypher})
    assert endless.status_code == 400 and "took longer than 0.3 seconds" in endless.json()["error"]
    for wrong in (
        {},
        {"cypher": ""},
        {"cypher": 7},
        {"cypher": "RETURN 1", "limit": 0},
        {"name": "cost", "parameters": []},
    ):
        assert ask(**wrong).status_code == 400

    assert client.post("/api/query", content=b"[1]").status_code == 400


def test_changes_exist_only_with_write(archive, served):
    propose(archive, cells(3))
    for action in ("stop", "cancel", "retry", "prioritise", "enqueue", "annotate"):
        assert served().post(f"/api/changes/{action}", json={}).status_code == 404

    client = served(write=True)

    def change(action, **document):
        return client.post(f"/api/changes/{action}", json=document)

    assert change("cancel", proposal="study#00000").json()["changed"]
    assert archive.proposals.get("study#00000").cancelled
    assert change("cancel", proposal="study#00000").json() == {"study": "study", "changed": False}
    assert change("retry", proposal="study#00000").json()["changed"]
    for priority in ("9" * 400, "Infinity", "NaN", "true"):
        content = '{"proposal": "study#00002", "priority": ' + priority + "}"
        refused = client.post("/api/changes/prioritise", content=content)
        assert refused.status_code == 400 and "priority must be a number" in refused.text

    halved = client.post("/api/changes/annotate", content='{"study": "study", "note": "\\ud83d"}')
    assert halved.status_code == 400 and "half a character" in halved.text
    assert change("prioritise", proposal="study#00001", priority=2000).status_code == 200
    for _ in range(2):
        for number in (1, 2):
            assert (
                change("prioritise", proposal=f"study#0000{number}", first=True).status_code == 200
            )

    assert [archive.proposals.get(f"study#0000{number}").priority for number in (1, 2)] == [3, 4]
    claim = archive.proposals.claim("trainer", study="study")
    assert claim.id == "study#00002"
    assert change("retry", proposal="study#00002").status_code == 409
    made = change("enqueue", study="study", network=_stored(archive, cells(4)[3])).json()
    assert archive.proposals.get(made["proposal"]).architecture_key == cells(4)[3].key
    assert change("enqueue", study="study", network=cells(4)[3].key).status_code == 400
    stopped = change("stop", study="study").json()
    assert stopped == {"study": "study", "cancelled": 3, "budget": 1}
    assert archive.studies.get("study").budget == 1
    states = [each.state for each in archive.proposals.list("study")]
    assert states.count(State.FAILED) == 3 and states.count(State.RUNNING) == 1
    assert change("stop", study="none").status_code == 404
    assert change("annotate", study="study", note=EVIL, tags=["b", " a ", "", "b"]).json()[
        "tags"
    ] == ["a", "b"]
    head, _ = columns(client.get("/api/study/points?study=study"))
    assert (head["about"]["note"], head["about"]["tags"]) == (EVIL, ["a", "b"])
    assert change("annotate", study="study", tags="a").status_code == 400
    unknown = change("annotate", study="none")
    assert unknown.status_code == 404 and unknown.json()["error"] == (
        "unknown study 'none': known: study"
    )
    assert (
        change("annotate", study="study", note="", seen={"note": "another", "tags": []}).status_code
        == 400
    )
    assert (
        change(
            "annotate", study="study", note="", seen={"note": EVIL, "tags": ["a", "b"]}
        ).status_code
        == 200
    )
    assert change("annotate", study="study", note="", seen=7).status_code == 400


def test_a_network_that_no_agent_may_propose_is_not_enqueued(
    archive, served, tmp_path, monkeypatch
):
    few, many = (spaces.get("mlp").initial_pool()[at] for at in (0, -1))
    limit = float(known_costs.of_task(registry.get("digits"), "digits/1")["params"]([few])[0])
    limits = (Constraint("params", "<=", limit),)
    archive.studies.create(study(space="mlp", constraints=limits))
    (listed, other), path = cells(2), tmp_path / "cells.csv"
    path.write_text(f"arch_str,score\n{codec.to_nasbench201(listed)},1\n")
    table = spaces.get("nasbench201", table=str(path))
    archive.studies.create(study("table", space_config=table.config))
    stored_spaces.name_table(table, archive.connection.settings.home)
    client = served(write=True)

    def enqueue(name, network):
        return client.post(
            "/api/changes/enqueue", json={"study": name, "network": _stored(archive, network)}
        )

    assert enqueue("study", few).status_code == 200
    assert enqueue("table", listed).status_code == 200
    for name, network, reason in (
        ("study", many, f"does not meet params<={limit:.15g}"),
        ("study", listed, "must be of space mlp, got nasbench201"),
        ("table", other, "does not hold the architecture"),
    ):
        refused = enqueue(name, network)
        assert refused.status_code == 400 and reason in refused.text

    archive.studies.set_budget("table", 1)
    archive.studies.set_budget("study", 1)
    assert "has this network already, as number 0" in enqueue("table", listed).text
    assert [len(archive.proposals.list(name)) for name in ("study", "table")] == [1, 1]


def _stored(archive, network):
    archive.architectures.add([network])
    return network.key


def test_names_of_other_people_are_data(archive, client):
    evaluate(archive, [0.5], EVIL)
    page = client.get(f"/study?study={EVIL}", headers={"accept": "text/html"})
    assert page.status_code == 200 and "<img" not in page.text
    for path in (
        "/api/studies",
        f"/api/study/proposals?study={EVIL}",
        "/api/study/points?study=none",
    ):
        assert client.get(path).headers["content-type"] == "application/json"

    head, _ = columns(client.get(f"/api/study/points?study={EVIL}"))
    assert head["about"]["study"] == EVIL


@pytest.mark.every_server
def test_the_time_line_has_every_attempt(archive, client):
    propose(archive, cells(3))
    claims = [archive.proposals.claim(worker, study="study") for worker in ("one", "one", "two")]
    archive.proposals.complete(claims[0].id, claims[0].token, Result(0.5, {}))
    archive.proposals.fail(claims[1].id, claims[1].token, "out of memory")
    archive.proposals.release(claims[2].id, claims[2].token)
    archive.proposals.claim("one", study="study")
    evaluate(archive, [0.25], "other")
    for path in ("/api/timeline?study=study", "/api/timeline?seconds=3600", "/api/timeline"):
        found = client.get(path).json()
        told = {
            (each["worker"], each["study"], each["number"], each["outcome"])
            for each in found["trials"]
        }
        own = {
            ("one", "study", 0, "complete"),
            ("one", "study", 1, "failed"),
            ("two", "study", 2, "returned"),
            ("one", "study", 2, "running"),
        }
        others = {("trainer", "other", 0, "complete")}
        assert told == (own if path.endswith("=study") else own | others)
        assert all(each["begin"] <= each["end"] <= found["now"] + 1000 for each in found["trials"])

    assert {each["id"]: each["lanes"] for each in found["workers"]}["one"] == 2
    assert client.get("/api/timeline?most=1").json()["cut"]
    assert client.get("/api/timeline?study=none").status_code == 404


@pytest.mark.every_server
def test_hyperparameters_and_gains_are_those_of_the_plots(archive, client):
    propose(archive, cells(1))
    for part in ("parallel", "gains"):
        assert "study" in client.get(f"/api/study/{part}?study=study").json()["nothing"]
        assert client.get(f"/api/study/{part}?study=none").status_code == 404
        assert client.get(f"/api/study/{part}").status_code == 400

    agent = archive.proposals.register_agent("nasbot", {}, "1")
    archive.studies.create(study("rates"))
    made = [
        Suggestion(
            cell,
            hyperparameters={"rate": 0.1 * at},
            parent=cells(3)[at - 1] if at else None,
            operations=("swap",),
        )
        for at, cell in enumerate(cells(3))
    ]
    archive.proposals.create(
        "rates", agent, made, outcomes=[Result(value, {}) for value in (0.25, 0.75, 0.5)]
    )
    found = client.get("/api/study/parallel?study=rates").json()
    assert (found["number"], found["value"]) == ([0, 2, 1], [0.25, 0.5, 0.75])
    assert {axis["name"]: axis["places"] for axis in found["axes"]} == {
        "rate": [0, 1, 0.5],
        "accuracy": [0, 0.5, 1],
    }
    assert set(found["known"]) == {"rate", "layers", "depth", "edges", "mass"}
    named = client.get("/api/study/parallel?study=rates&axis=edges&axis=rate").json()
    assert [axis["name"] for axis in named["axes"]] == ["edges", "rate", "accuracy"]
    assert client.get("/api/study/parallel?study=rates&axis=none").status_code == 404
    (swap,) = client.get("/api/study/gains?study=rates").json()["operations"]
    assert (swap["operation"], swap["uses"], swap["improved"]) == ("swap", 2, 1)
    assert (
        swap["quantiles"] == pytest.approx([-0.2125, -0.0625, 0.125, 0.3125, 0.4625])
        and swap["raised"] == 0.5
    )


def test_what_matters_is_a_ranking_with_slices_or_nothing(archive, client):
    evaluate(archive, [0.5, 0.25], "few")
    few = client.get("/api/study/matters?study=few").json()
    assert "an analysis needs 10" in few["nothing"]
    archive.studies.create(study("rates"))
    agent = archive.proposals.register_agent("nasbot", {}, "1")
    made = [
        Suggestion(cell, hyperparameters={"rate": 10.0 ** -(at % 4)})
        for at, cell in enumerate(cells(24))
    ]
    outcomes = [Result(0.1 * (at % 4), {}) for at in range(24)]
    archive.proposals.create("rates", agent, made, outcomes=outcomes)
    found = client.get("/api/study/matters?study=rates").json()
    assert found["parameters"][0]["name"] == "rate" and found["explained"] > 0.5
    first = found["slices"][0]
    assert (first["name"], first["scaling"], len(first["value"])) == ("rate", "logarithmic", 24)
    assert len(first["grid"]) == len(first["mean"]) == len(first["low"])
    assert client.get("/api/study/matters?study=rates").json() == found
    assert client.get("/api/study/matters?study=nothing").status_code == 404


@pytest.mark.parametrize(
    "name", [".", "..", "a/b", "/", "50 % ?&+=;", "%2e%2e", "größer 🙂@home", "x/proposals", '"7"']
)
def test_a_study_of_any_name_is_reached(archive, client, name):
    evaluate(archive, [0.5], name)
    named = {"study": name}
    assert columns(client.get("/api/study/points", params=named))[0]["about"]["study"] == name
    assert client.get("/api/study/proposals", params=named).json()["total"] == 1
    assert client.get("/api/study/proposal", params={**named, "number": 0}).json()["value"] == 0.5
    for part in ("curves", "lineage", "parallel", "gains"):
        assert client.get(f"/api/study/{part}", params=named).status_code == 200

    assert len(client.get("/api/timeline", params=named).json()["trials"]) == 1
    topic = f"study:{name}"
    news = client.app.state.news
    news.prepare([topic])
    assert news.troubles([topic]) == {}


@pytest.mark.every_server
def test_the_queue_shows_what_waits_in_its_order_and_what_failed(archive, client):
    propose(archive, cells(3))
    archive.proposals.prioritise("study#00002", 3)
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.fail(claim.id, claim.token, "out of memory")
    found = client.get("/api/queue").json()
    assert [each["number"] for each in found["waiting"]] == [0, 1]
    assert [(each["number"], each["reason"]) for each in found["failed"]] == [(2, "out of memory")]


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf"), 1.0]}])
def test_json_has_no_nan(value):
    assert "null" in dumps(value) and "NaN" not in dumps(value) and "Infinity" not in dumps(value)


def test_an_archive_of_other_directions(archive, client):
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.studies.create(study("low", direction="minimise", objective="error"))
    archive.proposals.create(
        "low", agent, suggest(cells(2)), outcomes=[Result(0.5, {}), Result(0.25, {})]
    )
    head, _ = columns(client.get("/api/study/points?study=low"))
    assert head["about"]["best"]["value"] == 0.25
    (listed,) = client.get("/api/studies").json()["studies"]
    assert listed["best"] == 0.25 and listed["counts"] == {"complete": 2}


@pytest.mark.every_server
def test_the_map_places_every_network_and_marks_those_of_a_study(archive, client):
    choices = client.get("/api/map/choices").json()
    assert (choices["spaces"], choices["studies"]) == ([], []) and {"profile", "edit"} <= set(
        choices["distances"]
    )
    evaluate(archive, [0.25, 0.75, 0.5])
    archive.architectures.add(cells(9))
    assert client.get("/api/map/choices").json()["spaces"] == [
        {"space": "nasbench201", "networks": 9}
    ]
    head, found = columns(client.get("/api/map?study=study"))
    keys = [
        "".join(f"{found[f'key{at}'][row]:08x}" for at in range(4)) for row in range(head["rows"])
    ]
    assert sorted(keys) == sorted(cell.key for cell in cells(9))
    values = {cell.key: value for cell, value in zip(cells(3), [0.25, 0.75, 0.5], strict=True)}
    for key, value, owner in zip(keys, found["value"], found["study"], strict=True):
        assert (
            (value, owner) == (values[key], 1) if key in values else np.isnan(value) and owner == 0
        )

    assert [keys[at] for at in head["paths"][0]["at"]] == [cell.key for cell in cells(3)]
    whole, _ = columns(client.get("/api/map?space=nasbench201"))
    assert whole["paths"] == [] and whole["rows"] == 9
    # A map that is kept is made again when there are further networks.
    archive.architectures.add(cells(10))
    assert columns(client.get("/api/map?space=nasbench201"))[0]["rows"] == 10
    assert client.get("/api/map?space=cnn").status_code == 404
    published = []
    for number, (network, value) in enumerate([(0, 70.0), (0, 80.0), (1, 60.0)]):
        result = Result(value, {"top1": value}, provenance={"source": "timm 1.0"})
        published.append((f"timm/{number}", cells(2)[network].key, result))

    Evaluations(archive.connection, archive.architectures).add("imagenet-1k", "a", published)
    head, found = columns(client.get("/api/map?space=nasbench201"))
    values = found["value"]
    assert head["objective"] == "imagenet-1k"
    assert sorted(values[~np.isnan(values)]) == [60.0, 80.0]
    # A colour is the kind that most of the networks are of; the search keeps its order.
    head, found = columns(client.get("/api/map?space=nasbench201&colour=task"))
    assert head["kinds"] == [
        {"name": "digits", "count": 3},
        {"name": "imagenet-1k", "count": 0},
    ]
    assert sorted(found["kind"]) == [0] * 7 + [1] * 3
    head, found = columns(client.get("/api/map?study=study&colour=agent"))
    assert head["kinds"] == [{"name": "random", "count": 3}]
    assert head["paths"][0]["values"] == [0.25, 0.75, 0.5]
    keys = [cell.key for cell in cells(3)]
    asked = client.post("/api/map/selection?space=nasbench201", json={"keys": keys})
    assert {"inside", "outside", "name"} >= set().union(*asked.json()["shared"])
    assert client.post("/api/map/selection?space=x", json={"keys": keys}).status_code == 400
    assert client.post("/api/map/selection?space=x", json={"keys": 1}).status_code == 400


def test_a_map_by_a_slow_kernel_tells_its_progress_and_ends_by_itself(archive, served, monkeypatch):
    evaluate(archive, [0.25, 0.75, 0.5])
    monkeypatch.setattr(maps, "PATIENCE_SECONDS", 60)  # for the first use of a kernel
    whole = columns(served().get("/api/map?study=study&distance=edit"))
    assert whole[0]["distance"] == "edit" and whole[0]["rows"] == 3
    monkeypatch.setattr(maps, "_made", OrderedDict())
    monkeypatch.setattr(maps, "PATIENCE_SECONDS", 0)
    going = threading.Event()
    reached = threading.Event()

    def slowly(archive, *, report, **settings):
        # What is added later is not in it, whichever thread is faster.
        made = network_map.network_map(archive, report=lambda share: None, **settings)
        report(0.25)
        reached.set()
        going.wait(30)
        return made

    monkeypatch.setattr(maps, "network_map", slowly)
    path = "/api/map?space=nasbench201&distance=edit"
    client = served()
    first = client.get(path)
    assert first.status_code == 202 and first.json()["limit"] == 180
    reached.wait(30)
    assert client.get(path).json()["share"] == 0.25
    # A map is finished although there are further networks by now, and then made again.
    archive.architectures.add(cells(5))
    going.set()
    assert len(maps._made) == 1

    def places():
        answer = client.get(path)
        return columns(answer)[1]["x"].tolist() if answer.status_code == 200 else None

    assert wait_until(places, what="the map") == whole[1]["x"].tolist()
    assert len(wait_until(places, what="the map of all networks")) == 5


def test_a_job_ends_after_its_limit_or_when_nobody_waits(monkeypatch):
    def endless(report):
        while True:
            report(0.5)

    with pytest.raises(UsageError, match=r"takes longer than 0.01 seconds, 50% is done: try less"):
        maps.Job(endless, 0.01, "try less").outcome(30)

    monkeypatch.setattr(maps, "LEFT_SECONDS", 0.01)
    left = maps.Job(endless, 1000, "")
    wait_until(lambda: left.failed, what="the end of a job that nobody asks for")


def test_a_picture_is_in_the_colours_of_the_page(archive, client):
    evaluate(archive, [0.5])
    path = f"/networks/{cells(1)[0].key}.svg"
    light, dark = (client.get(f"{path}?theme={theme}") for theme in ("light", "dark"))
    assert light.headers["content-type"] == "image/svg+xml" and light.text.startswith("<svg")
    assert light.text != dark.text
    assert client.get(f"{path}?theme=pink").status_code == 400


def test_an_unknown_address_is_a_page_for_a_browser_and_json_for_a_program(client):
    browser = client.get("/nonsense", headers={"accept": "text/html,*/*;q=0.8"})
    assert browser.status_code == 404 and 'href="/"' in browser.text
    assert client.get("/nonsense").json() == {"error": "Not Found"}
