"""News: what changed reaches every browser once, nothing is missed, and one reader serves all."""

import asyncio
import json
import math
import time

import pytest

from archive.dashboard import news as module
from archive.dashboard.feeds.studies import StudiesFeed
from archive.dashboard.feeds.study import NUMBER, STATE, VALUE
from archive.dashboard.news import News
from archive.errors import UnknownNameError
from archive.store.records import Objective, Result
from tests.support.stores import cells, evaluate, propose, suggest


@pytest.fixture
def news(archive):
    opened = News(archive)
    yield opened
    opened.close()


def looked(news, topic="study:study"):
    """Look again, as the reader would a second later."""
    news.hurry(topic)
    return news.fresh(topic)


def told(news, seen, topic="study:study"):
    """Return what a browser is told that has seen this version, and the version that it has seen
    then."""
    looked(news, topic)
    version, text = news.message({topic: seen})
    return version, json.loads(text).get(topic, {}) if text else {}


def complete(archive, value=0.5):
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.complete(claim.id, claim.token, Result(value, {"accuracy": value}))


def test_the_list_has_no_numbers_of_a_deleted_study_of_the_same_name(archive):
    feed = StudiesFeed(archive.connection)
    evaluate(archive, [0.5, 0.9])
    assert feed.look()["study"]["best"] == 0.9
    archive.studies.delete("study")
    # Created in another millisecond, as any user does.
    time.sleep(0.002)
    evaluate(archive, [0.1, 0.2])
    assert feed.look()["study"]["best"] == 0.2


def test_a_browser_is_told_each_change_once_in_its_last_form(archive, news):
    propose(archive, cells(3))
    looked(news)
    seen, _ = told(news, 0)
    assert told(news, seen)[1] == {}
    complete(archive, 0.25)
    complete(archive, 0.75)
    late, message = told(news, seen)
    assert {(row[NUMBER], row[STATE], row[VALUE]) for row in message["rows"]} == {
        (0, "COMPLETE", 0.25),
        (1, "COMPLETE", 0.75),
    }
    assert message["about"]["counts"] == {"complete": 2, "waiting": 1}
    assert message["about"]["best"]["number"] == 1
    assert told(news, late)[1] == {}
    # A browser that was away for both is told both.
    complete(archive, 0.5)
    assert {row[NUMBER] for row in told(news, seen)[1]["rows"]} == {0, 1, 2}


@pytest.mark.every_server
def test_every_way_of_a_proposal_is_followed(archive, news):
    propose(archive, cells(2))
    seen, _ = told(news, 0)
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.report(claim.id, claim.token, {"train_loss": [2.0, 1.0]})
    seen, message = told(news, seen)
    assert message["running"][0]["curve"] == {"train_loss": [2.0, 1.0]}
    archive.proposals.fail(claim.id, claim.token, "out of memory")
    seen, message = told(news, seen)
    assert message["running"] == [] and message["about"]["counts"] == {"failed": 1, "waiting": 1}
    archive.proposals.retry(claim.id)
    seen, message = told(news, seen)
    assert message["about"]["counts"] == {"waiting": 2}
    archive.proposals.cancel(claim.id)
    seen, message = told(news, seen)
    assert message["about"]["counts"] == {"cancelled": 1, "waiting": 1}
    # The result of a trial that was cancelled arrives nevertheless, long after.
    for _ in range(5):
        seen, _ = told(news, seen)

    archive.proposals.complete(claim.id, claim.token, Result(0.5, {"accuracy": 0.5}))
    seen, message = told(news, seen)
    assert [(row[NUMBER], row[STATE]) for row in message["rows"]] == [(0, "COMPLETE")]
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create("study", agent, suggest(cells(4)))
    assert {row[NUMBER] for row in told(news, seen)[1]["rows"]} == {2, 3}


def test_a_failure_that_speaks_of_cancelling_is_a_failure(archive, news):
    propose(archive, cells(3))
    seen, _ = told(news, 0)
    claim = archive.proposals.claim("trainer", study="study")
    archive.proposals.fail(claim.id, claim.token, "cancelled_tensor is not defined")
    archive.proposals.cancel("study#00001", "no longer needed")
    archive.proposals.cancel("study#00002")
    expected = {"cancelled": 2, "failed": 1}
    assert told(news, seen)[1]["about"]["counts"] == expected
    assert StudiesFeed(archive.connection).look()["study"]["counts"] == expected


def test_a_value_that_a_user_corrects_is_news(archive, news):
    evaluate(archive, [0.25, 0.75])
    seen, _ = told(news, 0)
    archive.query("MATCH (e:Evaluation {id: 'study#00001'}) SET e.value = 0.125", write=True)
    _, message = told(news, seen)
    assert [(row[NUMBER], row[VALUE]) for row in message["rows"]] == [(1, 0.125)]
    assert message["about"]["best"]["number"] == 0


def test_a_result_without_a_value_of_each_objective_is_the_best_until_there_is_one_with(
    archive, news
):
    propose(archive, cells(4), objective="accuracy", further=(Objective("loss", "minimise"),))
    for value, loss, best in (
        (0.75, math.inf, 0),
        (0.5, 2.0, 1),
        (0.875, None, 1),
        (0.625, 3.0, 3),
    ):
        claim = archive.proposals.claim("trainer", study="study")
        metrics = {"accuracy": value, **({} if loss is None else {"loss": loss})}
        archive.proposals.complete(claim.id, claim.token, Result(value, metrics))
        head = looked(news).entry("about")["best"]
        listed = StudiesFeed(archive.connection).look()["study"]
        incumbent = archive.studies.snapshot("study").incumbent
        assert head["number"] == incumbent.number == best
        assert head["value"] == listed["best"] == incumbent.value

    assert listed["counts"] == {"complete": 4}


def test_partial_results_are_the_best_until_there_is_a_whole_one(archive, news):
    def end(value, *, pruned):
        claim = archive.proposals.claim("trainer", study="study")
        archive.proposals.complete(
            claim.id, claim.token, Result(value, {"accuracy": value}), pruned=pruned
        )

    def best():
        head = looked(news).entry("about")["best"]
        listed = StudiesFeed(archive.connection).look()["study"]["best"]
        assert head["value"] == listed == archive.studies.snapshot("study").incumbent.value
        return head["number"], listed

    propose(archive, cells(4))
    assert looked(news).entry("about")["best"] is None
    end(0.75, pruned=True)
    assert best() == (0, 0.75)
    end(0.875, pruned=True)
    assert best() == (1, 0.875)
    # A promoted proposal keeps its result while it waits and runs.
    for state in ("WAITING", "RUNNING", "PRUNED"):
        archive.query(
            f"MATCH (p:Proposal {{id: 'study#00001'}}) SET p.state = '{state}'", write=True
        )
        assert best() == (1, 0.875)

    end(0.25, pruned=False)
    assert best() == (2, 0.25)
    end(0.125, pruned=False)
    assert best() == (2, 0.25)


def test_another_study_of_the_same_name_and_another_process_are_loaded_again(archive, news):
    evaluate(archive, [0.25, 0.75])
    seen, _ = told(news, 0)
    assert news.seen(news.name(seen)) == seen
    assert news.seen(f"other-{seen}") == 0 and news.seen("nonsense") == 0 and news.seen(None) == 0
    assert news.message({"study:study": 0}) == (seen, '{"study:study":{"reset":true}}')
    archive.studies.delete("study")
    with pytest.raises(UnknownNameError):
        looked(news)

    assert news.troubles(["study:study"])
    evaluate(archive, [0.5])
    assert told(news, seen)[1] == {"reset": True}
    assert news.troubles(["study:study"]) == {}


@pytest.mark.every_server
def test_studies_and_workers_come_as_a_whole_first(archive, news):
    evaluate(archive, [0.25, 0.75])
    archive.proposals.register_worker("trainer", "host", "cpu")
    seen, message = told(news, 0, "studies")
    assert message["whole"] and message["studies"]["study"]["best"] == 0.75
    looked(news, "workers")
    message = json.loads(news.message({"workers": 0})[1])["workers"]
    assert message["whole"] and message["workers"]["trainer"]["state"] == "idle"
    archive.studies.delete("study")
    _, message = told(news, seen, "studies")
    assert message == {"studies": {"study": None}}


def test_an_outage_is_told_and_delays_no_later_look(archive, news):
    evaluate(archive, [0.25])
    feed = looked(news)
    long_ago = time.monotonic() - 60
    # A look that waits for the server is told before it ends.
    feed.asked = long_ago
    assert "does not answer" in news.troubles(["study:study"])["study:study"]
    looked(news)
    assert news.troubles(["study:study"]) == {}
    # The wait is no work of the database, and is not made up for by a rest; two long looks are.
    for failed in (True, False, True, False):
        feed.postpone(long_ago, failed=failed)
        assert feed.due <= time.monotonic() + feed.pause

    feed.postpone(long_ago)
    assert feed.due > time.monotonic() + 60


def test_one_reader_serves_all_browsers(archive, news, monkeypatch):
    """A hundred subscriptions cost the looks of one, and are all woken."""
    propose(archive, cells(2))
    feed = looked(news)
    looks = []
    look = feed.look
    monkeypatch.setattr(feed, "look", lambda: looks.append(1) or look())

    async def browse():
        loop = asyncio.get_running_loop()
        browsers = [news.subscribe(["study:study"], loop) for _ in range(100)]
        await asyncio.to_thread(complete, archive)
        news.hurry("study:study")
        await asyncio.wait_for(asyncio.gather(*(each.wake.wait() for each in browsers)), 20)
        for each in browsers:
            news.unsubscribe(each)

    asyncio.run(browse())
    assert 1 <= len(looks) <= 5


def test_any_number_of_topics_has_browsers_at_a_time(archive, news, monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)
    for name in ("a", "b", "c"):
        propose(archive, cells(1), name)

    async def browse():
        loop = asyncio.get_running_loop()
        for name in ("a", "b", "c"):
            news.prepare([f"study:{name}"])
            news.subscribe([f"study:{name}"], loop)

    asyncio.run(browse())
    kept = [news.fresh(f"study:{name}") for name in ("a", "b", "c")]
    # A request without a browser has a feed, too; it leaves first.
    for topic in ("studies", "workers"):
        assert news.fresh(topic).topic == topic

    assert [news.fresh(f"study:{name}") for name in ("a", "b", "c")] == kept
    assert "studies" not in news._feeds
