"""Any value that a caller passes to ask and tell is stored and read back equal, or refused in one
line."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from archive import agents
from archive.agents.ask_tell.types import extend, lists, numbers_of, real, values_of
from archive.errors import ArchiveError, UsageError
from archive.queue.admission import checked_priority
from archive.queue.leases import milliseconds
from archive.store.records import Objective, State
from archive.values import as_float, checked_seconds, is_duration
from tests.support import examples
from tests.support.stores import cells


class Unprintable:
    """A value whose text cannot be made, as that of a broken tensor."""

    def __repr__(self):
        raise RuntimeError("no text")


class Refusing:
    """A value that is no number, and says so by an error of its own."""

    def __float__(self):
        raise RuntimeError("a tensor with 2 elements")

    def __index__(self):
        raise RuntimeError("a tensor with 2 elements")


class Huge(int):
    """An integer that prints as one of thousands of digits: not at all."""

    def __repr__(self):
        raise ValueError("Exceeds the limit (4300 digits) for integer string conversion")


HUGE = Huge(10**500)
TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "a",
            "loss\n",
            "a\nb",
            "\x00",
            "\x1b[31m",
            "\ud800",
            "`",
            "a`b",
            "ünï",
            "epoch",
            "m" * 481,
        ]
    ),
    st.text(max_size=6),
)
NUMBERS = st.one_of(
    st.floats(),
    st.integers(),
    st.sampled_from([
        0, 1, -1, 2**53, 2**53 - 1, 2**62, 2**63, 2**64, 2**70, -(2**70), 10**400, HUGE, Huge(-(10**500)), math.inf,
        -math.inf, math.nan, -0.0, 5e-324, 1e308, True, False,
    ]),
    st.floats().map(np.float64), st.floats(width=32).map(np.float32), st.integers(0, 255).map(np.uint8),
    st.integers(-(2**63), 2**63 - 1).map(np.int64), st.floats().map(np.array),
    st.floats().map(lambda one: np.array([one])),
    st.decimals(), st.fractions(), st.booleans().map(np.bool_),
)  # fmt: skip
OTHERS = st.one_of(
    st.none(), TEXTS, st.binary(max_size=4), st.complex_numbers(), st.builds(object),
    st.builds(Refusing), st.just(np.array([1.0, 2.0])), st.just(np.datetime64("NaT")), st.just(Decimal("sNaN")),
    st.lists(NUMBERS, max_size=3), st.dictionaries(TEXTS, NUMBERS, max_size=2),
)  # fmt: skip
ANY = st.one_of(NUMBERS, OTHERS)
METRICS = st.one_of(st.dictionaries(TEXTS, st.one_of(NUMBERS, ANY), max_size=3), ANY)


def refused(call):
    """Return what a call returns, or None where it is refused in one line."""
    try:
        return call()
    except ArchiveError as error:
        assert len(str(error).splitlines()) == 1, str(error)
        assert str(error).isprintable() or "\t" in str(error)
        return None


def same(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


@examples(8)
@given(ANY, ANY, METRICS, st.lists(TEXTS, min_size=1, max_size=2, unique=True))
@example(HUGE, HUGE, {"a": HUGE}, ["a"])
@example(Decimal("sNaN"), Refusing(), {"\ud800": 1.0}, ["a", "b"])
def test_a_value_is_a_number_or_refused_in_one_line(value, step, metrics, names):
    seconds = refused(lambda: checked_seconds(value))
    assert seconds is None or is_duration(seconds)
    number = refused(lambda: real(value, "value"))
    assert number is None or type(number) is float
    stored = refused(lambda: numbers_of(metrics))
    if stored is not None:
        assert metrics.keys() == stored.keys()
        assert all(same(as_float(metrics[name]), number) for name, number in stored.items())

    curve = refused(lambda: extend({0: {"a": 1.0}}, step, metrics))
    if curve is not None:
        columns = lists(curve)
        assert len({len(values) for values in columns.values()}) == 1
        assert all(0 <= epoch < 2**53 and epoch.is_integer() for epoch in columns["epoch"])
        for place, metrics_of_step in enumerate(curve[epoch] for epoch in sorted(curve)):
            found = {
                name: values[place]
                for name, values in columns.items()
                if not math.isnan(values[place])
            }
            known = {
                name: number for name, number in metrics_of_step.items() if not math.isnan(number)
            }
            assert known == {name: number for name, number in found.items() if name != "epoch"}

    refused(lambda: milliseconds(value))
    refused(lambda: checked_priority(value))
    refused(lambda: values_of(value, [Objective(name) for name in names], stored or {}))


# Without the phase that shortens a failing example, which would take minutes on a server.
@settings(
    examples(0.5), suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate)
)
@given(st.data())
def test_what_is_told_is_read_back_or_refused(archive, data):
    """One proposal with reports and a result of any values; the server stores what is not
    refused."""
    study = agents.study(archive, "mine", "nasbench201", task="t")
    asked = study.ask("random")[0]
    curve = {}
    for _ in range(data.draw(st.integers(0, 2))):
        step = data.draw(st.one_of(st.integers(0, 9), ANY))
        metrics = data.draw(METRICS)
        if (
            refused(lambda step=step, metrics=metrics: (study.report(asked, step, metrics),))
            is not None
        ):
            known = curve.setdefault(int(step), {})
            known.update({name: as_float(value) for name, value in metrics.items()})

    value = data.draw(st.one_of(st.floats(), ANY))
    metrics = data.draw(METRICS)
    seconds = data.draw(ANY)
    told = refused(lambda: study.tell(asked, value, metrics=metrics, seconds=seconds))
    proposal = archive.proposals.get(asked.id)
    if told is None:
        assert proposal.state is State.RUNNING
        refused(lambda: study.fail(asked, data.draw(OTHERS)))
        refused(
            lambda: study.enqueue(
                cells(900)[-1 - proposal.number], data.draw(ANY), motivation=data.draw(OTHERS)
            )
        )
        if archive.proposals.get(asked.id).state is State.RUNNING:
            study.fail(asked, "unusable")

        return

    if not told:
        assert proposal.state is State.FAILED
        assert "the value is" in proposal.reason
        return

    evaluation = archive.studies.evaluation(asked.id)
    numbers = (
        {name: as_float(one) for name, one in metrics.items()} if isinstance(metrics, dict) else {}
    )
    assert evaluation.metrics.keys() == {"value", *numbers}
    assert all(
        same(evaluation.metrics[name], one) for name, one in numbers.items() if name != "value"
    )
    assert evaluation.seconds == (None if seconds is None else as_float(seconds))
    assert [*evaluation.curve.get("epoch", [])] == sorted(curve)
    for place, epoch in enumerate(sorted(curve)):
        assert all(same(evaluation.curve[name][place], one) for name, one in curve[epoch].items())


def test_a_value_without_a_text_is_named_by_its_type():
    value = Unprintable()
    for call in (
        lambda: checked_seconds(value),
        lambda: real(value, "a\nb"),
        lambda: numbers_of({"a": value}),
        lambda: numbers_of(value),
        lambda: extend({}, value, {"a": 1.0}),
    ):
        with pytest.raises(UsageError, match=r"^[^\n]* got a value of the type Unprintable$"):
            call()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), "inf"])
def test_a_network_of_ones_own_with_a_value_that_is_none_is_refused(archive, value):
    study = agents.study(archive, "mine", "nasbench201")
    with pytest.raises(UsageError, match="value must be a finite number, got"):
        study.tell(cells(1)[0], value)

    assert archive.proposals.list("mine") == []
