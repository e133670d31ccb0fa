"""`archive.search`: one call of the library runs a search, reports its events, and returns its
outcome."""

from __future__ import annotations

import dataclasses
import json
import threading

import pytest

import archive as package
from archive.errors import StudyConflictError, UnknownNameError, UsageError
from archive.searches.call import SearchResult
from archive.searches.events import NothingToDo, SearchEnded, SearchProgress, StudyOpened
from archive.store.records import State
from tests.support.commands import serving, shell, table


def search(archive, task, **arguments):
    """Search a table, and return the result and the events."""
    events = []
    arguments = {"agent": "random", "task": task, "study": "mine", "trainers": 0, **arguments}
    with serving(archive):
        result = package.search(archive=archive, progress=events.append, **arguments)

    return result, events


def test_a_search_returns_what_the_command_writes(archive, store_settings, tmp_path):
    task = table(tmp_path)
    result, events = search(archive, task, budget=3)
    assert (result.evaluations, result.failed, result.budget) == (3, 0, 3)
    evaluations = archive.studies.evaluations("mine")
    assert result.best.value == max(evaluation.value for evaluation in evaluations)

    with shell(store_settings, tmp_path) as user:
        written = json.loads(
            user.types("search", "--study", "mine", "--trainers", "0", "--json").stdout
        )

    assert written.pop("schema_version") == 1
    assert written == dataclasses.asdict(result)

    assert [type(event) for event in events[:2]] == [StudyOpened, SearchProgress]
    assert isinstance(events[-1], SearchEnded)
    assert {type(event) for event in events[1:-1]} == {SearchProgress}
    assert events[0].study.name == "mine" and events[0].evaluations == 0
    assert events[-1].snapshot.counts[State.COMPLETE] == 3 and events[-1].exhausted is None


def test_the_same_call_again_resumes_the_study(archive, tmp_path):
    task = table(tmp_path)
    search(archive, task, budget=2)
    result, events = search(archive, None, agent=None, budget=4)
    assert (result.task, result.agent, result.evaluations) == (task, "random", 4)
    assert events[0].evaluations == 2

    result, events = search(archive, task, budget=3)
    assert [type(event) for event in events] == [NothingToDo, SearchEnded]
    assert (result.evaluations, result.budget) == (4, 4)


def test_a_search_in_a_thread_leaves_signals_alone(archive, tmp_path):
    results = []
    task = table(tmp_path)
    thread = threading.Thread(target=lambda: results.append(search(archive, task, budget=2)[0]))
    thread.start()
    thread.join(timeout=60)
    assert [type(result) for result in results] == [SearchResult]


def test_what_is_exhausted_is_said_in_the_last_event(archive, tmp_path):
    result, events = search(archive, table(tmp_path), budget=20)
    assert result.exhausted and result.evaluations == 10
    assert (
        "all 10 networks of the space are evaluated: 10 of 20 evaluations" in events[-1].exhausted
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"agent": "rando"}, UnknownNameError, "agent 'rando': did you mean random"),
        ({"task": "digit"}, UnknownNameError, "task 'digit': did you mean digits"),
        ({"on": "slurn"}, UnknownNameError, "launcher 'slurn': did you mean slurm"),
        ({"observe": "tensorbord"}, UnknownNameError, "observer 'tensorbord'"),
        ({"trainers": -1}, UsageError, "trainers must be a whole number >= 0, got -1"),
        ({"trainers": "2"}, UsageError, "trainers must be a whole number >= 0, got '2'"),
        ({"devices_per_trial": 0}, UsageError, "devices_per_trial must be at least 1, got 0"),
        ({"devices_per_trial": 2}, UsageError, "the default recipe trains on one device"),
        ({"batch": 0}, UsageError, "batch must be at least 1, got 0"),
        ({"rungs": (2, 1)}, UsageError, "rungs|epochs"),
        ({"constraints": "params=3"}, UsageError, "a constraint is NAME<=NUMBER"),
        ({"budget": 0}, UsageError, "the budget must be at least 1 evaluation, got 0"),
    ],
)
def test_mistakes_are_refused_before_anything_is_stored(archive, arguments, error, message):
    with pytest.raises(error, match=message):
        package.search(**{"agent": "random", "task": "digits", **arguments}, archive=archive)

    assert not archive.studies.names()


def test_an_argument_that_contradicts_the_study_is_refused(archive, tmp_path):
    search(archive, table(tmp_path), budget=1)
    with pytest.raises(StudyConflictError, match="'mine'"):
        package.search(study="mine", task="digits", trainers=0, archive=archive)

    with pytest.raises(UsageError, match="an open archive or settings, not both"):
        package.search(archive=archive, settings=archive.connection.settings)
