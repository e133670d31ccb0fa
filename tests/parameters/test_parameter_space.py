"""Spaces of parameters: what is drawn, encoded, changed and refused."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import space
from archive.architecture import parameter_operations
from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.parameters.declaration import Prior
from archive.parameters.domains import Choice, json_text
from archive.parameters.ranges import Integer, Real
from tests.support import examples
from tests.support.strategies import generators

SEARCH = space.Space(
    depth=space.integer(2, 12),
    width=space.choice([32, 64, 128]),
    act=space.choice(["relu", "gelu"]),
    lr=space.real(1e-5, 1e-1, log=True, prior=(1e-3, "high")),
    dropout=space.real(0, 0.5, when="depth >= 4"),
    batch=space.integer(16, 256, step=16, default=64),
    size=space.ordinal(["small", "base", "large"], prior="base"),
    odd=space.choice([None, True, 1, [1, 2], {"a": 1}], when="dropout > 0.1"),
    seed=3,
    optimiser=space.group(
        {"kind": ["sgd", "adam"], "momentum": space.real(0, 1, when="kind == 'sgd'")}
    ),
    stage=space.repeat(
        {
            "op": space.choice(["conv3", "mbconv", "skip"]),
            "kernel": space.choice([3, 5], when="op != 'skip'"),
        },
        "depth",
    ),
    constraints=["width * depth <= 512", "not (act == 'gelu' and stage_1_op == 'skip')"],
)


@st.composite
def domains(draw: st.DrawFn) -> Any:
    """A declaration without a condition, of any kind."""
    kind = draw(
        st.sampled_from(
            ["integer", "log integer", "real", "log real", "grid real", "choice", "ordinal"]
        )
    )
    if "integer" in kind:
        low = draw(st.integers(1, 50))
        high = low + draw(st.integers(0, 1000))
        step = 1 if "log" in kind else draw(st.integers(1, 7))
        return space.integer(low, high, step=step, log="log" in kind)

    if kind == "grid real":
        tenths = st.integers(-50, 50)
        low = draw(tenths) / 10
        return space.real(low, low + draw(st.integers(1, 40)) / 10, step=0.1)

    if "real" in kind:
        low = draw(st.floats(1e-6, 1.0))
        return space.real(low, low * draw(st.floats(1.5, 1e6)), log="log" in kind)

    values = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
    values |= st.lists(st.integers(0, 2), max_size=2)
    options = draw(st.lists(values, min_size=1, max_size=6, unique_by=json_text))
    return space.choice(options, ordered=kind == "ordinal")


@st.composite
def spaces(draw: st.DrawFn) -> space.Space:
    """A space of up to eight parameters, whose conditions read any parameters before them."""
    parameters: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 8))):
        entry = draw(domains())
        if parameters and draw(st.booleans()):
            name = draw(st.sampled_from(sorted(parameters)))
            domain = parameters[name].domain
            value = domain.sample(np.random.default_rng(draw(st.integers(0, 100))))
            text = f"{name} >= {value!r}" if isinstance(domain, Integer | Real) else ""
            if isinstance(domain, Choice) and isinstance(value, str | bool | None | int):
                text = f"{name} == {json_text(value)}"

            if text:
                entry = type(entry)(entry.domain, text)

        parameters[f"p{number}"] = entry

    return space.Space(parameters)


@given(search=spaces(), rng=generators())
def test_draws_and_their_changes_are_configurations_of_the_space(
    search: space.Space, rng: np.random.Generator
) -> None:
    drawn = search.sample(rng)
    assert search.check(drawn) == drawn
    assert search.check(search.sample(rng, prior=True))
    for other in (search.mutate(drawn, rng), *search.neighbours(drawn)):
        assert search.check(other) == other

    for other in search.neighbours(drawn):
        assert json_text(other) != json_text(drawn)


@given(search=spaces(), rng=generators())
def test_codes_give_the_configuration_back(search: space.Space, rng: np.random.Generator) -> None:
    drawn = search.sample(rng)
    (codes,) = search.encode([drawn])
    assert [name for name, code in zip(search.names, codes, strict=True) if code == code] == list(
        drawn
    )
    again = search.decode(codes)
    assert list(again) == list(drawn)
    for name, value in drawn.items():
        if isinstance(search[name].domain, Real) and search[name].domain.step is None:
            assert again[name] == pytest.approx(value, rel=1e-9)
        else:
            assert json_text(again[name]) == json_text(value)


@given(search=spaces())
def test_a_space_is_what_its_json_says(search: space.Space) -> None:
    again = space.Space.from_json(json.loads(json.dumps(search.json())))
    assert again == search
    assert hash(again) == hash(search)
    assert again.names == search.names


@given(rng=generators())
@examples(0.5)
def test_the_tree_of_a_configuration_has_its_values(rng: np.random.Generator) -> None:
    drawn = SEARCH.sample(rng)
    tree = SEARCH.nested(drawn)
    assert len(tree["stage"]) == drawn["depth"]
    assert tree["stage"][-1]["op"] == drawn[f"stage_{drawn['depth']}_op"]
    assert tree["optimiser"]["kind"] == drawn["optimiser_kind"]
    assert ("momentum" in tree["optimiser"]) == (drawn["optimiser_kind"] == "sgd")
    assert list(tree) == [name for name in SEARCH.declared if name in tree]
    assert SEARCH.flat(json.loads(json.dumps(tree))) == drawn
    assert SEARCH.flat(drawn) == drawn


def test_a_grid_of_reals_has_decimal_values() -> None:
    rng = np.random.default_rng(0)
    domain = Real(0.1, 1.05, step=0.1)
    values = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert list(domain.values()) == values
    assert domain.size == 10
    assert domain.normal(0.1 + 2 * 0.1) == 0.3
    assert {domain.sample(rng) for _ in range(200)} == set(values)
    assert domain.neighbours(0.1) == [0.2]
    assert domain.neighbours(0.5) == [0.4, 0.6]
    assert domain.decode(1.0) == 1.0
    for value in values:
        assert domain.decode(domain.encode(value)) == value
        assert domain.move(value, rng) in set(values) - {value}

    for value in (0.15, 1.05, 0.0, "0.1"):
        with pytest.raises(UsageError, match=r"from 0\.1 to 1\.05 in steps of 0\.1"):
            domain.check(value)

    search = space.Space(x=space.real(0, 1, step=0.25), n=space.integer(1, 2))
    assert len(list(search.every())) == 10
    assert "step" not in space.real(0, 1).json()


def test_conditions_decide_what_exists() -> None:
    assert SEARCH.names.index("dropout") > SEARCH.names.index("depth")
    shallow = SEARCH.complete({"depth": 3})
    deep = SEARCH.complete({"depth": 4})
    assert "dropout" not in shallow and "stage_4_op" not in shallow
    assert deep["dropout"] == 0.25 and deep["stage_4_op"] == "conv3"
    assert deep["odd"] is None and "odd" not in shallow
    assert SEARCH.complete({})["batch"] == 64
    assert SEARCH.complete({})["lr"] == 1e-3
    assert SEARCH.existing({**shallow, "dropout": 0.3}) == shallow


def test_whole_numbers_and_options_are_told_apart() -> None:
    options = Choice((1, True, 1.0, "1", None, [1], {"a": 1}))
    positions = [options.position(value) for value in options.options]
    assert positions == [0, 1, 2, 3, 4, 5, 6]
    search = space.Space(n=space.integer(1, 3), x=space.real(0, 3))
    assert json_text(search.existing({"n": 2.0, "x": 2})) == '{"n": 2, "x": 2.0}'
    for wrong in (2.5, True, "2", None, float("nan"), 4):
        with pytest.raises(UsageError, match="n must be a whole number from 1 to 3"):
            search.existing({"n": wrong, "x": 0})


def test_constraints_hold_for_every_draw_even_where_few_configurations_meet_them() -> None:
    tight = space.Space(
        {f"x{number}": space.integer(1, 60) for number in range(6)},
        constraints=["x0 + x1 + x2 + x3 + x4 + x5 <= 12", "x0 * x1 >= 4"],
    )
    rng = np.random.default_rng(0)
    drawn = {tuple(tight.sample(rng).values()) for _ in range(20)}
    assert len(drawn) > 5
    assert all(sum(values) <= 12 and values[0] * values[1] >= 4 for values in drawn)
    with pytest.raises(UsageError, match=r"does not meet 'x0 \* x1 >= 4': x0=1, x1=1"):
        tight.check({f"x{number}": 1 for number in range(6)})


def test_priors_draw_near_their_value_and_everywhere() -> None:
    rng = np.random.default_rng(0)
    drawn = [SEARCH.sample(rng, prior=True) for _ in range(400)]
    distances = [abs(np.log10(entry["lr"]) + 3) for entry in drawn]
    assert 0.3 < float(np.std(distances)) < 0.7
    assert max(distances) > 0.8
    assert {entry["size"] for entry in drawn} == {"small", "base", "large"}
    assert sum(entry["size"] == "base" for entry in drawn) > 200


def test_there_is_no_limit_of_sixteen_options_or_thirty_two_decisions() -> None:
    large = space.Space(
        {f"p{number}": space.choice([*range(100)]) for number in range(50)},
        stage=space.repeat({"op": ["a", "b"]}, 200),
    )
    assert len(large) == 250
    rng = np.random.default_rng(0)
    assert large.check(large.sample(rng))


def repeated(entry: Any, count: Any) -> Any:
    return lambda: space.Space(stage=space.repeat({"op": ["a", "b"]}, count), depth=entry)


WRONG = [
    (lambda: space.integer(5, 2), "the bounds are reversed, got low 5 and high 2"),
    (lambda: space.integer(1, 2.5), "an integer has whole bounds and a whole step, got 2.5"),
    (lambda: space.integer(0, 2**60), "an integer lies within 2\\^53"),
    (lambda: space.integer(1, 9, step=0), "the step of an integer is 1 or more, got 0"),
    (lambda: space.integer(1, 9, step=2, log=True), "a step or a log scale, got both"),
    (lambda: space.integer(0, 9, log=True), "a log scale begins above 0, got low 0"),
    (lambda: space.real(1, 0), "the bounds are reversed"),
    (lambda: space.real(1, 1), "the bounds of a real differ, got 1 twice"),
    (lambda: space.real(0, 1, log=True), "a log scale begins above 0, got low 0"),
    (lambda: space.real(0, float("inf")), "a real has finite bounds, got inf"),
    (lambda: space.real(-1.7e308, 1.7e308), "are too far apart"),
    (lambda: space.real(0, 1, step=0), "the step of a real is a number above 0, got 0"),
    (lambda: space.real(0, 1, step="a"), "the step of a real is a number above 0, got 'a'"),
    (lambda: space.real(0, 1, step=2), r"divides 0 to 1 into 1 to 2\^53 parts, got 2"),
    (lambda: space.real(0, 1, step=1e-30), r"divides 0 to 1 into 1 to 2\^53 parts, got 1e-30"),
    (lambda: space.real(1, 2, step=0.5, log=True), "a real has a step or a log scale, got both"),
    (lambda: space.real(0, "1"), "a real has finite bounds, got '1'"),
    (lambda: space.choice([]), "a choice has one option or more, got none"),
    (lambda: space.choice("relu"), "the options are a list, got 'relu'"),
    (lambda: space.choice([1, 2, 1]), "the option '1' stands twice"),
    (lambda: space.choice([object()]), "a value is a JSON value"),
    (lambda: space.choice(range(10**6)), "at most 10,000 options, got 1,000,000"),
    (
        lambda: space.integer(1, 4, default=7),
        "the default must be a whole number from 1 to 4, got 7",
    ),
    (lambda: space.integer(1, 4, prior=7), "the value of the prior must be a whole number"),
    (lambda: space.integer(1, 4, prior=Prior(2, "sure")), "low, medium, high"),
    (lambda: space.integer(1, 4, when="depth = 3"), "= is no comparison"),
    (lambda: space.repeat({}, 3), "parameters are given by name, got {}"),
    (lambda: space.repeat({"a": [1]}, 0), "a group is repeated 1 to 1000 times, got 0"),
    (lambda: space.repeat({"a": [1]}, 2.5), "a number or the name of a parameter, got 2.5"),
    (lambda: space.Space(), "parameters are given by name"),
    (lambda: space.Space({"a-b": [1]}), "letters, digits and _, got 'a-b'"),
    (lambda: space.Space({"class": [1]}), "'class' is a word of the language"),
    (lambda: space.Space({"null": [1]}), "'null' is a word of the language"),
    (lambda: space.Space({"a": [1]}, a=[2]), "the parameter a is given twice"),
    (lambda: space.Space(a={"x": 1}), "a is no parameter"),
    (lambda: space.Space(a=[1, 2], constraints="a > 1"), "constraints are a list of texts"),
    (lambda: space.Space(a=[1, 2], constraints=["b > 1"]), "there is no parameter 'b' at column 1"),
    (lambda: space.Space(a=[1, 2], constraints=["a > 9"]), "'a > 9': no configuration meets it"),
    (
        lambda: space.Space(a=space.real(0, 1), b=space.real(0, 1), constraints=["a + b > 3"]),
        "no configuration",
    ),
    (
        lambda: space.Space(a=[1, 2, 3], constraints=["a > 1", "a < 2"]),
        "no configuration was found that meets the constraints 'a > 1', 'a < 2'",
    ),
    (
        lambda: space.Space(a=space.integer(1, 2, when="a > 1")),
        "conditions form a cycle: a -> a",
    ),
    (
        lambda: space.Space(
            a=space.integer(1, 2, when="c > 1"),
            b=space.integer(1, 2, when="a > 1"),
            c=space.integer(1, 2, when="b > 1"),
        ),
        "conditions form a cycle: a -> c -> b -> a",
    ),
    (
        lambda: space.Space(act=["x", "y"], b=space.integer(1, 2, when="act == 'z'")),
        'act must be one of "x", "y", got \'z\' at column 5',
    ),
    (
        lambda: space.Space(act=["x", "y"], b=space.integer(1, 2, when="act > 3")),
        "act has options without an order",
    ),
    (
        lambda: space.Space(n=space.integer(1, 5), b=space.integer(1, 2, when="n == 'z'")),
        "n is a number, and never 'z'",
    ),
    (
        lambda: space.Space(stage_1_op=["a"], stage=space.repeat({"op": ["a"]}, 2)),
        "the parameter stage_1_op is given twice",
    ),
    (repeated(["a", "b"], "depth"), "must be whole numbers from 0, got 'a'"),
    (repeated(space.real(0, 3), "depth"), "must be whole numbers from 0, got 0.0"),
    (repeated(space.integer(-2, 3), "depth"), "must be whole numbers from 0, got -2"),
    (repeated(space.integer(1, 10**6), "depth"), "at most 1000, got 1000000"),
    (repeated(space.integer(1, 3), "dept"), "'dept' times, which is no parameter"),
    (
        lambda: space.Space(s=space.repeat({"t": space.repeat({"a": [1, 2]}, 1000)}, 1000)),
        "at most 2,000 parameters",
    ),
]


@pytest.mark.parametrize(("make", "fault"), WRONG, ids=[fault for _, fault in WRONG])
def test_a_wrong_declaration_is_one_line_that_names_the_value(make: Any, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault) as caught:
        make()

    assert "\n" not in str(caught.value)


def test_wrong_configurations_are_named() -> None:
    with pytest.raises(UnknownNameError, match="unknown parameter 'dept': did you mean depth"):
        SEARCH.existing({"dept": 3})
    with pytest.raises(UsageError, match="depth exists in this configuration and needs a value"):
        SEARCH.existing({})
    with pytest.raises(UnknownNameError, match="stage_1_opp"):
        SEARCH.flat({"stage": [{"opp": 1}]})
    with pytest.raises(UnknownNameError, match="stage_1"):
        SEARCH.flat({"stage": ["skip"]})


def test_a_document_that_describes_no_space_is_refused() -> None:
    document = SEARCH.json()
    for broken in (
        {},
        {"parameters": [["a"]]},
        {"parameters": [["a", {"kind": "what"}]]},
        {"parameters": [["a", {"kind": "integer", "low": 1}]]},
        {"parameters": [["a", {"kind": "choice"}]]},
        {"parameters": 3},
        {**document, "constraints": 3},
    ):
        with pytest.raises(SettingsError):
            space.Space.from_json(broken)


def test_a_space_travels_between_processes() -> None:
    again = pickle.loads(pickle.dumps(SEARCH))
    assert again == SEARCH
    assert again.sample(np.random.default_rng(1)) == SEARCH.sample(np.random.default_rng(1))


@given(rng=generators())
@examples(0.5)
def test_the_graph_of_a_configuration_has_its_tree(rng: np.random.Generator) -> None:
    drawn = SEARCH.sample(rng)
    network = parameter_operations.network_of(SEARCH, drawn)
    assert parameter_operations.parameters_of(network) == SEARCH.nested(drawn)
    assert parameter_operations.parameters_of(network.canonical) == SEARCH.nested(drawn)
    found = parameter_operations.configuration_of(network.canonical)
    assert json_text(SEARCH.check(found)) == json_text(drawn)
