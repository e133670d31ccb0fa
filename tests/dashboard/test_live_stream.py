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

REFUSED = """
window.requests = 0;
window.EventSource = class {
  static CLOSED = 2;
  readyState = 2;
  constructor() { setTimeout(() => this.onerror()); }
  addEventListener() {}
  close() {}
};
window.fetch = async () => { window.requests++; throw new TypeError("no network"); };
"""
"""Scripts of a page whose stream is refused, and which reaches no server."""


def test_a_stream_that_was_ended_is_not_opened_again(visit, archive):
    evaluate(archive, [0.5])
    page = visit("/", script=COUNTED)
    page.get_by_role("row").filter(has_text="study").first.wait_for()
    before = page.evaluate(
        "window.streams.filter((each) => each.readyState !== EventSource.CLOSED).length"
    )
    assert page.evaluate(FOLLOWED_AGAIN) == before + 1


def test_a_long_outage_is_asked_about_at_an_even_rate(visit):
    page = visit("/", script=REFUSED)
    page.locator("#live", has_text="offline").wait_for()
    page.clock.install()
    page.reload()
    for _ in range(60):
        page.clock.run_for(1000)

    # One in five seconds, and one three seconds after each.
    assert 10 <= page.evaluate("window.requests") <= 60 / 5 + 60 / 3
