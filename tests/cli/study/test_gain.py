"""`archive study gain`, as it is typed."""

from __future__ import annotations

import json

from archive.searches.prospects import ProspectReport
from tests.support.commands import shell
from tests.support.json_documents import faults
from tests.support.stores import evaluate


def test_the_gain_is_shown_or_explained(archive, store_settings, tmp_path):
    evaluate(archive, [0.5, 0.25, 0.75])
    with shell(store_settings, tmp_path) as user:
        assert "an estimate needs whole trainings of 10" in " ".join(
            user.types("study", "gain", "study").stderr.split()
        )
        archive.studies.delete("study")
        evaluate(archive, [0.5 + 0.01 * number for number in range(14)])
        shown = user.types("study", "gain", "study").stdout
        assert shown.startswith("searching on") and " at most (95 %: " in shown
        document = json.loads(user.types("study", "gain", "study", "--json").stdout)

    assert faults(document, ProspectReport) == []
    assert document["searching"]["networks"] == 14 and document["reason"] is None
