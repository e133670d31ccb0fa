"""Dumps: a load restores the archive, in any order, repeatedly, on either server."""

from __future__ import annotations

from functools import partial
from itertools import islice

import pytest

from archive.api import Archive, connect
from archive.database.user_query import run_query
from archive.errors import StudyConflictError, UnknownNameError, UsageError
from archive.exchange import export_queries
from archive.exchange.dump import dump
from archive.exchange.load import load, verify
from archive.exchange.merge import merge_records
from archive.store.evaluations import Evaluations
from archive.store.records import Result, State
from tests.conftest import wipe
from tests.support import WHOLE
from tests.support.dumped import dumped, fill, forged, records
from tests.support.stores import Forgetful, cells, count, evaluate, propose, study, suggest


@pytest.fixture
def file(tmp_path):
    return tmp_path / "dump.jsonl.gz"


def whole(archive):
    """Everything about studies that programs read."""
    names = archive.studies.names()
    return {
        "studies": archive.studies.list(),
        "evaluations": [repr(each) for each in archive.studies.evaluations()],
        "sources": [archive.studies.sources(name) for name in names],
        "proposals": [
            (each.id, each.state if each.state.evaluated or each.state is State.FAILED else State.WAITING,
             each.architecture_key, each.functional_key, each.agent, each.based_on, each.hyperparameters, each.mean)
            for name in names
            for each in archive.proposals.list(name)
        ],
    }  # fmt: skip


def test_a_load_restores_what_was_dumped(archive, connection, file):
    networks = fill(archive)
    archive.studies.warm_start("one", ["one-source"])
    before = whole(archive)
    first = dumped(archive, file)
    details = archive.architectures.details(networks[0].key)
    keys = [network.key for network in networks[:4]]
    matrix = archive.distances.matrix(keys, "otmann")
    weights = archive.weights.of_evaluation("one#00000")
    wipe(connection)
    contents, changed = load(connection, file)
    assert contents.counts == {
        "agent": 1, "worker": 1, "study": 2, "warm_start": 1, "architecture": 8, "morph": 6, "evaluation": 4,
        "proposal": 6, "distances": 3, "proxies": 1,
    }  # fmt: skip
    assert changed == contents.counts
    after = whole(archive)
    studies = after.pop("studies")
    for ours, theirs in zip(before.pop("studies"), studies, strict=True):
        assert (ours.study, ours.best) == (theirs.study, theirs.best)

    assert after == before
    assert archive.architectures.details(networks[0].key) == details
    assert (archive.distances.matrix(keys, "otmann") == matrix).all()
    assert archive.weights.of_evaluation("one#00000") == weights
    assert dumped(archive, file) == first


def test_a_dump_of_schema_6_is_loaded_with_its_weights(archive, connection, file):
    def as_of_schema_6(lines):
        lines[0].update(version=1, schema=6)
        for line in lines:
            if line.get("record") == "evaluation":
                line["checkpoint"] = line.pop("weights")

    fill(archive)
    first = dumped(archive, file)
    weights = archive.weights.of_evaluation("one#00000")
    forged(file, as_of_schema_6)
    wipe(connection)
    contents, _ = load(connection, file)
    assert (contents.header.version, contents.header.schema) == (1, 6)
    assert weights is not None and archive.weights.of_evaluation("one#00000") == weights
    assert dumped(archive, file) == first


def test_a_loaded_study_can_be_continued(archive, connection, file):
    fill(archive)
    dumped(archive, file)
    wipe(connection)
    load(connection, file)
    waiting = [each.id for each in archive.proposals.list("one", [State.WAITING])]
    assert len(waiting) == 2  # one waited, one was running elsewhere
    for _ in waiting:
        claim = archive.proposals.claim("another", study="one")
        assert not claim.proposal.curve
        archive.proposals.complete(claim.id, claim.token, Result(0.5))

    counts = archive.studies.snapshot("one").counts
    assert (counts[State.COMPLETE], counts[State.PRUNED], counts[State.FAILED]) == (4, 1, 1)


def test_loading_again_changes_nothing(archive, connection, file):
    fill(archive)
    first = dumped(archive, file)
    running = repr(archive.proposals.list("one", [State.RUNNING]))
    changed = load(connection, file)[1]
    assert not any(changed.values())
    # Running proposals, whose state is not in the file, do not change either.
    assert repr(archive.proposals.list("one", [State.RUNNING])) == running
    assert dumped(archive, file) == first


def test_two_archives_make_one_in_either_order(archive, connection, tmp_path):
    files = {}
    for name, start in (("one", 0), ("two", 3)):
        fill(archive, name, start)
        files[name] = tmp_path / name
        dumped(archive, files[name])
        wipe(connection)

    found = []
    for order in (("one", "two"), ("two", "one"), ("two", "one", "two", "one")):
        for name in order:
            load(connection, files[name])

        found.append(dumped(archive, tmp_path / "both"))
        wipe(connection)

    assert found[0] == found[1] == found[2]
    both = records(tmp_path / "both")
    # Networks 3 to 7 are in both.
    assert both[-1]["counts"]["architecture"] == 11
    assert both[-1]["counts"]["agent"] == 1
    assert both[-1]["counts"]["proposal"] == 12


def test_an_older_dump_and_a_newer_one_in_either_order(archive, connection, tmp_path):
    fill(archive)
    dumped(archive, tmp_path / "older")
    (running,) = archive.proposals.list("one", [State.RUNNING])
    archive.proposals.complete(running.id, "somebody's", Result(0.875))
    claim = archive.proposals.claim("worker-one", study="one")
    archive.proposals.fail(claim.id, claim.token, "NaN")
    archive.studies.set_budget("one", 2000)
    newest = dumped(archive, tmp_path / "newer")
    load(connection, tmp_path / "older")
    assert dumped(archive, tmp_path / "same") == newest
    wipe(connection)
    load(connection, tmp_path / "older")
    load(connection, tmp_path / "newer")
    assert dumped(archive, tmp_path / "same") == newest
    assert archive.studies.get("one").budget == 2000


@pytest.mark.every_server
def test_from_one_server_to_the_other_and_back(archive, connection, home, tmp_path):
    if connection.dialect == "embedded" and not WHOLE:
        pytest.skip("other tests load a dump into the server that it is of")

    fill(archive)
    first = dumped(archive, tmp_path / "first")
    wipe(connection)
    with connect(home) as embedded:
        load(embedded.connection, tmp_path / "first")
        assert dumped(embedded, tmp_path / "second") == first

    load(connection, tmp_path / "second")
    assert dumped(archive, tmp_path / "third") == first


def test_a_study_brings_all_that_it_refers_to_and_no_more(archive, connection, file):
    fill(archive, "one", 0)
    fill(archive, "two", 3, agent="evolution")
    archive.studies.warm_start("one", ["one-source"])
    dumped(archive, file, studies=["one"])
    lines = records(file)
    assert lines[0]["studies"] == ["one"]
    assert {line["name"] for line in lines if line.get("record") == "study"} == {
        "one",
        "one-source",
    }
    assert {line["kind"] for line in lines if line.get("record") == "agent"} == {"random"}
    assert lines[-1]["counts"]["evaluation"] == 3  # none of the table's
    wipe(connection)
    load(connection, file)
    assert len(archive.studies.evaluations("one")) == 3
    assert archive.studies.sources("one") == ["one-source"]
    with pytest.raises(UnknownNameError, match="did you mean one"):
        dumped(archive, file, studies=["onee"])


def test_distances_may_be_left_out(archive, connection, file):
    fill(archive)
    dumped(archive, file, distances=False)
    wipe(connection)
    load(connection, file)
    assert count(connection, "()-[:DISTANCE]->()") == 0


class Dying:
    """A connection that breaks after some writes."""

    def __init__(self, connection, writes):
        self._connection = connection
        self._left = writes
        self.read = connection.read

    def write(self, work, **how):
        if not self._left:
            raise KeyboardInterrupt

        self._left -= 1
        return self._connection.write(work, **how)


@pytest.mark.parametrize("writes", [1, 3, 5])
def test_a_load_that_was_cut_off_is_healed_by_the_next(
    archive, connection, file, monkeypatch, writes
):
    monkeypatch.setattr("archive.exchange.load.BATCH", 4)
    fill(archive)
    first = dumped(archive, file)
    wipe(connection)
    with pytest.raises(KeyboardInterrupt):
        load(Dying(connection, writes), file)

    load(Forgetful(connection), file)
    assert dumped(archive, file) == first


def test_a_load_that_was_cut_off_leaves_no_result_in_a_trainer_s_way(
    archive, connection, tmp_path, monkeypatch
):
    monkeypatch.setattr("archive.exchange.load.BATCH", 1)
    propose(archive, cells(2))
    dumped(archive, tmp_path / "before")
    result = Result(0.5, {"accuracy": 0.5})
    for each in archive.proposals.list("study"):
        archive.proposals.complete(each.id, None, result)

    dumped(archive, tmp_path / "after")
    at = 0
    while True:
        wipe(connection)
        load(connection, tmp_path / "before")
        archive.proposals.register_worker("worker", "host", "cpu")
        claims = [archive.proposals.claim("worker", study="study") for _ in range(2)]
        try:
            load(Dying(connection, at), tmp_path / "after")
        except KeyboardInterrupt:
            at += 1
        else:
            break

        for claim in claims:
            # The file may have completed the proposal already.
            archive.proposals.complete(claim.id, claim.token, result)

    assert at == 6
    assert [one.value for one in archive.studies.evaluations("study")] == [0.5, 0.5]
    assert count(connection, "(:Evaluation)-[:OF]->()") == 2


def test_results_of_a_file_set_the_direction_of_their_task(archive, connection, file, monkeypatch):
    monkeypatch.setattr("archive.exchange.load.BATCH", 1)
    evaluations = Evaluations(connection, archive.architectures)
    (network,) = cells(1)
    archive.architectures.add([network])
    evaluations.add(
        "digits", "digits/1", [("table/0", network.key, Result(0.5))], direction="minimise"
    )
    archive.studies.create(study())  # maximises on the same task
    first = dumped(archive, file)
    wipe(connection)
    load(connection, file)
    assert dumped(archive, file) == first
    assert archive.query("MATCH (t:Task) RETURN t.direction").rows == [("minimise",)]


def test_a_study_of_the_same_name_is_refused_and_can_be_renamed(
    archive, connection, file, tmp_path
):
    fill(archive, "one", 0)
    archive.studies.warm_start("one", ["one-source"])
    dumped(archive, file)
    wipe(connection)
    fill(archive, "one", 3)
    mine = dumped(archive, tmp_path / "mine")
    with pytest.raises(StudyConflictError, match=r"another study 'one.*--rename one.*=NEW"):
        load(connection, file)

    assert dumped(archive, tmp_path / "mine") == mine
    load(connection, file, rename={"one": "ann", "one-source": "bob"})
    assert archive.studies.sources("ann") == ["bob"]
    assert [each.id for each in archive.studies.evaluations("ann")] == [
        "ann#00000",
        "ann#00001",
        "ann#00005",
    ]
    basis = archive.proposals.list("ann")[0].based_on
    assert (set(basis["observations"]), basis["coupling"]) == ({"ann", "bob"}, {"bob": 0.5})
    assert len(archive.studies.evaluations("one")) == 3
    with pytest.raises(UsageError, match="holds no study 'three'"):
        load(connection, file, rename={"one": "carl", "one-source": "dora", "three": "four"})


def test_a_renamed_study_is_checked_without_being_loaded_and_stays_apart_from_the_others(
    connection, archive, file
):
    fill(archive, "one", 0)
    archive.studies.warm_start("one", ["one-source"])
    dumped(archive, file)
    wipe(connection)
    assert verify(file, rename={"one": "ann"}).counts["study"] == 2
    for names, message in (
        ({"three": "four"}, "holds no study 'three'"),
        ({"one": "-a"}, "a new study needs a name"),
    ):
        with pytest.raises(UsageError, match=message):
            verify(file, rename=names)

    for read in (verify, partial(load, connection)):
        with pytest.raises(
            UsageError, match="two studies of the file would have the name 'one-source'"
        ):
            read(file, rename={"one": "one-source"})

    assert archive.studies.names() == []


def test_diverged_copies_of_a_study_are_refused(archive, connection, tmp_path):
    fill(archive)
    dumped(archive, tmp_path / "common")
    found = []
    for value in (0.25, 0.5):
        wipe(connection)
        load(connection, tmp_path / "common")
        # Another process, which knows nothing of the queue before.
        claim = Archive(connection).proposals.claim("worker", study="one")
        archive.proposals.complete(claim.id, claim.token, Result(value))
        found.append(dumped(archive, tmp_path / str(value)))

    with pytest.raises(
        StudyConflictError,
        match=r"value 0\.5 in the archive, 0\.25 in the file: "
        r".*--rename one=NEW",
    ):
        load(connection, tmp_path / "0.25")

    assert dumped(archive, tmp_path / "same") == found[1]


def diverge(archive, connection, folder, mine=lambda: None):
    """Continue two copies of `study`, dumped as `mine` and as `theirs`, which the archive then
    has."""
    common = dumped(archive, folder / "common")
    for name, at in (("mine", 3), ("theirs", 5)):
        wipe(connection)
        (folder / name).write_bytes(common)
        load(connection, folder / name)
        propose(archive, [cells(at + 1)[at]])
        claim = Archive(connection).proposals.claim("worker", study="study")
        archive.proposals.complete(claim.id, claim.token, Result(0.75))
        if name == "mine":
            mine()

        dumped(archive, folder / name)


def test_the_error_about_diverged_copies_names_the_way_out(archive, connection, tmp_path):
    evaluate(archive, [0.25, 0.5])
    diverge(archive, connection, tmp_path)
    message = (
        r"study#00002 has the architecture .*copies of the study 'study' diverged; "
        r".*--rename study=NEW"
    )
    with pytest.raises(StudyConflictError, match=message):
        load(connection, tmp_path / "mine")

    load(connection, tmp_path / "mine", rename={"study": "study-mine"})
    found = {name: [each.architecture.key for each in archive.studies.evaluations(name)]
             for name in ("study", "study-mine")}  # fmt: skip
    assert found["study"][:2] == found["study-mine"][:2]
    assert (found["study"][2], found["study-mine"][2]) == (cells(6)[5].key, cells(4)[3].key)


def test_differing_external_results_have_no_study_to_rename(archive, connection, file):
    id_ = "table:/tables/cells.csv#12345/table/1/0"
    archive.architectures.add(cells(1))
    results = Evaluations(connection, archive.architectures)
    results.add("table", "table/1", [(id_, cells(1)[0].key, Result(0.5))])
    dumped(archive, file)
    wipe(connection)
    archive.architectures.add(cells(1))
    results.add("table", "table/1", [(id_, cells(1)[0].key, Result(0.25))])
    with pytest.raises(
        StudyConflictError,
        match=r"0\.25 in the archive, 0\.5 in the file: it is "
        r"an external result",
    ):
        load(connection, file)


def test_a_file_that_contradicts_the_archive_changes_nothing(archive, connection, file):
    fill(archive)
    before = dumped(archive, file)

    def lie(lines):
        next(line for line in lines if line.get("record") == "evaluation")["properties"][
            "value"
        ] = 0.99

    with pytest.raises(UsageError, match=r"has value .* in the archive, 0\.99 in the file"):
        load(connection, forged(file, lie))

    assert dumped(archive, file) == before


def test_a_record_that_could_not_be_loaded_is_not_dumped(archive, connection, file):
    fill(archive)
    run_query(
        connection, "MATCH (p:Proposal {number: 3}) SET p.hyperparameters = 'fast'", write=True
    )
    with pytest.raises(
        UsageError, match="proposal has an invalid property: 'hyperparameters' = 'fast'"
    ):
        dumped(archive, file)

    assert not file.exists()


def test_a_study_that_is_deleted_during_its_dump_is_refused(archive, connection, file, monkeypatch):
    def interrupted(ask, study):
        for page in proposals(ask, study):
            archive.studies.delete(study)
            yield page

    proposals = export_queries.proposals
    fill(archive)
    monkeypatch.setattr(export_queries, "proposals", interrupted)
    with pytest.raises(
        UsageError,
        match=r"proposal one#00000 .* refers to the evaluation one#00000, which was "
        r"deleted",
    ):
        dump(connection, file, studies=["one"])

    assert not file.exists()


def test_numbers_far_apart_take_no_longer_to_read(archive, connection, file):
    fill(archive)
    dumped(archive, file)

    def renumber(lines):
        waiting = next(
            line for line in lines if line.get("record") == "proposal" and line["result"] is None
        )
        waiting["number"] = 2**31 - 1

    wipe(connection)
    load(connection, forged(file, renumber))
    pages = list(islice(export_queries.proposals(export_queries.asking(connection), "one"), 9))
    assert [record["number"] for page in pages for record in page] == [0, 1, 3, 4, 5, 2**31 - 1]


def test_a_study_that_used_the_renamed_one_is_left_as_it_is(archive, connection, tmp_path):
    def use(at):
        """Reuse a result of `study` in the study `user`, which starts warm from it."""
        made = archive.proposals.create(
            "user", agent, suggest(cells(at + 1)[at:]), outcomes=[Result(0.5, answered_from=f"study#{at:05d}")],
            basis={"observations": {"study": f"0-{at}"}, "pending": "", "failed": "", "wanted": 1},
        )  # fmt: skip
        assert [one.state for one in made] == [State.COMPLETE]

    evaluate(archive, [0.25, 0.5])
    archive.studies.create(study("user"))
    archive.studies.warm_start("user", ["study"])
    agent = archive.proposals.register_agent("random", {}, "1")
    use(1)
    diverge(archive, connection, tmp_path, mine=lambda: use(2))

    def of_user(number):
        (proposal,) = [each for each in archive.proposals.list("user") if each.number == number]
        (evaluation,) = [
            each for each in archive.studies.evaluations("user") if each.number == number
        ]
        return evaluation.answered_from, set(proposal.based_on["observations"])

    for _ in range(2):  # again, as after an interruption
        load(connection, tmp_path / "mine", rename={"study": "study-mine"})
        assert (
            len(archive.studies.evaluations("study"))
            == len(archive.studies.evaluations("study-mine"))
            == 3
        )
        # What both copies have belongs to the archive's study; what only the file has belongs to
        # the file's.
        assert archive.studies.sources("user") == ["study"]
        assert of_user(0) == ("study#00001", {"study"})
        assert of_user(1) == ("study-mine#00002", {"study-mine"})


def test_a_dump_of_a_study_holds_all_ancestors_of_its_networks(archive, connection, file):
    first, second, third = cells(3)
    agent = archive.proposals.register_agent("random", {}, "1")
    for name, parent, child in (("other", first, second), ("study", second, third)):
        archive.studies.create(study(name))
        archive.proposals.create(
            name, agent, suggest([child], parent=parent, operations=["swap_label"])
        )

    dump(connection, file, studies=["study"])
    wipe(connection)
    load(connection, file)
    found = archive.query("MATCH (a)-[:MORPHED_INTO]->(b) RETURN a.key, b.key").rows
    assert set(found) == {(first.key, second.key), (second.key, third.key)}


@pytest.mark.parametrize("names", [{}, {"study": "again"}])
def test_a_deleted_study_comes_back_from_a_dump_though_another_one_used_it(
    archive, connection, file, names
):
    evaluate(archive, [0.25])
    archive.studies.create(study("user"))
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create(
        "user",
        agent,
        suggest(cells(1)),
        outcomes=[Result(0.25, {"accuracy": 0.25}, answered_from="study#00000")],
    )
    dumped(archive, file)
    archive.studies.delete("study")
    for _ in range(2):
        load(connection, file, rename=names)
        (evaluation,) = archive.studies.evaluations(names.get("study", "study"))
        assert evaluation.value == 0.25
        assert [one.value for one in archive.studies.evaluations("user")] == [0.25]


def test_names_in_the_wrong_order_are_no_new_names(archive, connection, file):
    evaluate(archive, [0.25], "one")
    dumped(archive, file)
    for read in (verify, partial(load, connection)):
        with pytest.raises(UsageError, match="holds no study 'ann' to rename: it holds one"):
            read(file, rename={"ann": "one"})


def test_a_promotion_that_is_tried_again_is_later_than_the_one_that_was_given_up():
    def proposal(state, **properties):
        given = {"state": state, "rung": 1, "rung_values": [0.5], "created": 1, **properties}
        return {"study": "s", "number": 0, "architecture": "a", "agent": None, "result": "s#00000",
                "properties": given, "claims": []}  # fmt: skip

    given_up = proposal("PRUNED", finished=100, reason="crash; given up after 3 attempts")
    again = proposal("WAITING", retried=[200])
    done = proposal("PRUNED", rung_values=[0.5, 0.75], finished=300)
    for first, second, later in (
        (given_up, again, "WAITING"),
        (again, done, "PRUNED"),
        (given_up, done, "PRUNED"),
    ):
        for pair in ((first, second), (second, first)):
            assert merge_records("proposal", *pair)["properties"]["state"] == later

    assert merge_records("proposal", given_up, done)["properties"]["rung_values"] == [0.5, 0.75]
