"""The stream of a page that is opened again, in a real browser."""

import pytest

from tests.support.chromium import needs_chromium
from tests.support.stores import evaluate

pytestmark = [pytest.mark.lasts(10), needs_chromium]

COUNTED = """
window.streams = [];
window.EventSource = class extends EventSource {
  constructor(...given) { super(...given); window.streams.push(this); }
};
"""
FOLLOWED_AGAIN = """async () => {
  const { follow } = await import("/static/parts/live.js");
  for (let at = 0; at < 3; at++) follow({ studies: "" }, () => {})();
  follow({ studies: "" }, () => {});
  for (let at = 0; at < 3; at++) {
    window.dispatchEvent(new Event("online"));
    document.dispatchEvent(new Event("visibilitychange"));
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return window.streams.filter((each) => each.readyState !== EventSource.CLOSED).length;
}"""


def test_a_stream_that_was_ended_is_not_opened_again(visit, archive):
    evaluate(archive, [0.5])
    page = visit("/", script=COUNTED)
    page.get_by_role("row").filter(has_text="study").first.wait_for()
    before = page.evaluate("window.streams.filter((each) => each.readyState !== EventSource.CLOSED).length")
    assert page.evaluate(FOLLOWED_AGAIN) == before + 1
