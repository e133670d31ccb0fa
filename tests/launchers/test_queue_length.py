"""The length of the queue and its progress, by which fleets are sized."""

import pytest

from archive.database.user_query import run_query
from archive.errors import UnknownNameError
from archive.launchers.keeper import queue_length
from archive.store.studies.studies import COUNTS_OF, COUNTS_OF_ALL
from tests.support.stores import cells, evaluate, propose

pytestmark = pytest.mark.every_server


def test_the_queue_of_all_studies_or_of_one(archive):
    assert queue_length(archive, None) == (0, 0)
    propose(archive, cells(3), "one")
    evaluate(archive, [0.5, 0.25], "two")
    assert queue_length(archive, None) == (3, 2)
    claim = archive.proposals.claim("trainer", study="one")
    archive.proposals.claim("trainer", study="one")
    assert queue_length(archive, "one") == (3, 0) and queue_length(archive, "two") == (0, 2)
    archive.proposals.fail(claim.id, claim.token, "broken")
    assert queue_length(archive, "one") == (2, 1) and queue_length(archive, None) == (2, 3)
    with pytest.raises(UnknownNameError):
        queue_length(archive, "none")

    archive.studies.delete("two")
    assert queue_length(archive, None) == (2, 1)


def test_a_study_is_counted_after_a_users_query(archive):
    evaluate(archive, [0.5, 0.25], "one")
    run_query(
        archive.connection, "MATCH (p:Proposal {id: 'one#00000'}) DETACH DELETE p", write=True
    )
    assert queue_length(archive, "one") == queue_length(archive, None) == (0, 1)


def test_a_look_reads_no_proposals_that_have_ended(archive, monkeypatch):
    evaluate(archive, [0.5, 0.25], "one")
    asked = []
    read = archive.connection.read

    def recorded(work, **options):
        class Recorder:
            def __init__(self, tx):
                self.tx = tx

            def run(self, statement, **parameters):
                asked.append(statement)
                return self.tx.run(statement, **parameters)

        return read(lambda tx: work(Recorder(tx)), **options)

    monkeypatch.setattr(archive.connection, "read", recorded)
    for study in (None, "one"):
        assert queue_length(archive, study) == (0, 2)

    assert asked and not {COUNTS_OF_ALL, COUNTS_OF} & set(asked)
    assert not any("PROPOSED" in statement for statement in asked)
