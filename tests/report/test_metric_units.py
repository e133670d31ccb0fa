"""Units of metrics whose names do not say them, wherever a value is shown."""

from __future__ import annotations

import pytest

from archive.dashboard.feeds.study import StudyFeed
from archive.store.metric_names import STANDARDISED, unit_of
from archive.store.records import Result
from archive.trainer.tasks import registry
from tests.support.commands import shell
from tests.support.stores import cells, study, suggest


@pytest.mark.parametrize(
    "name", [name for name in registry.names() if not name.startswith(("nb", "transnas"))]
)
def test_the_unit_of_a_task_is_known_by_its_metric(name):
    task = registry.get(name)
    unit = unit_of(task.protocol().name, task.objective)
    assert unit == (STANDARDISED if task.metric == "mse" else None)


def test_a_recipe_or_a_task_of_a_user_may_have_another_unit():
    assert (
        unit_of("csv/0123456789ab", "valid_mse")
        == unit_of("csv/0123456789ab+morph", "test_mse")
        == STANDARDISED
    )
    for protocol, metric in (
        ("csv/1+recipe:mine", "valid_mse"),
        ("mine/own", "valid_mse"),
        ("csv/1", "valid_loss"),
    ):
        assert unit_of(protocol, metric) is None


def test_the_unit_is_said_wherever_the_value_is_shown(archive, store_settings, tmp_path):
    archive.studies.create(
        study(
            task="csv:a.csv#price",
            protocol="csv/0123456789ab",
            objective="valid_mse",
            direction="minimise",
        )
    )
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create(
        "study",
        agent,
        suggest(cells(2)),
        outcomes=[Result(0.5), Result(0.25, {"valid_mse": 0.25, "valid_rmse": 50.5})],
    )
    with shell(store_settings, tmp_path) as user:
        shown = [user.types("study", part, "study").stdout for part in ("show", "best")]
        user.types("report", "study", "-o", str(tmp_path / "r.html"))

    shown.append((tmp_path / "r.html").read_text())
    feed = StudyFeed(archive.connection, "study")
    feed.look()
    about = feed._about()
    assert about["best"]["error"] == {"valid_rmse": 50.5}
    shown.append(about["unit"])
    assert all(
        "valid_mse is of the standardised target" in " ".join(text.split()) for text in shown
    )
    # The error in the own unit stands beside the standardised one.
    assert all("50.5" in text for text in shown[:3])
    # A sentence stands apart from the one before it.
    assert "2 with a result.&#32;<span" in shown[2]
