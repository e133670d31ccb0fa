"""Genotypes as text and JSON: exact, and safe whatever the text holds."""

from __future__ import annotations

import json
from collections import namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.genotypes.genotype import Genotype, is_genotype, parse
from archive.errors import ArchiveError, CodecError
from archive.spaces.darts.published import PUBLISHED
from tests.support.networks.genotypes import SPACES, genotypes

V2 = PUBLISHED["DARTS_V2"].genotype
Published = namedtuple("Genotype", "normal normal_concat reduce reduce_concat")


@given(st.sampled_from(SPACES).flatmap(genotypes))
def test_text_and_json_round_trip(genotype: Genotype) -> None:
    assert (
        parse(str(genotype))
        == parse(json.dumps(genotype.to_dict()))
        == parse(genotype.to_dict())
        == genotype
    )
    assert is_genotype(str(genotype)) and is_genotype(json.dumps(genotype.to_dict(), indent=2))


@pytest.mark.parametrize(
    "text",
    [
        str(V2),
        f"DARTS_V2 = {V2}",
        f"  genotypes.{V2}\n",
        str(V2).replace("range(2, 6)", "[2, 3, 4, 5]"),
        str(V2).replace("range(2, 6)", "list(range(2, 6))"),
        str(V2).replace("range(2, 6)", "[5, 4, 3, 2]"),
        str(V2).replace("[", "(").replace("]", ")").replace("), ", "),\n"),
        str(V2).replace("normal=", "").replace("normal_concat=", ""),
        json.dumps(V2.to_dict()),
    ],
)
def test_forms_of_the_published_text(text: str) -> None:
    assert is_genotype(text)
    assert parse(text) == V2


def test_the_named_tuple_of_the_repository_is_read() -> None:
    theirs = Published(list(V2.normal), range(2, 6), list(V2.reduce), [2, 3, 4, 5])
    assert parse(theirs) == V2
    assert parse(V2) == V2
    assert str(V2) == str(theirs).replace("[2, 3, 4, 5]", "range(2, 6)")


EDIT = "normal=[('sep_conv_3x3', 0)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "Genotype()",
            "a genotype needs normal, normal_concat, reduce, reduce_concat, got no normal",
        ),
        (str(V2).replace("reduce=", "redux="), "got no reduce"),
        (f"{str(V2)[:-1]}, more=1)", "reduce, reduce_concat only, got 'more'"),
        (str(V2)[:-1], "no text of a genotype"),
        (f"{V2}.normal", "it must be one call of Genotype"),
        (f"{V2}; import os", "no text of a genotype"),
        (
            str(V2).replace("range(2, 6)", "__import__('os').system('true')"),
            "no text of a genotype: malformed",
        ),
        (str(V2).replace("range(2, 6)", "range(10**9)"), "no text of a genotype: malformed"),
        (
            str(V2).replace("range(2, 6)", "range(2, 999)"),
            "normal_concat must have at most 20 entries, got 997",
        ),
        (
            str(V2).replace("range(2, 6)", f"range(2, {10**30})"),
            "a whole number up to 1000, got 1000000",
        ),
        (
            str(V2).replace("range(2, 6)", "range('a')"),
            "a bound of range must be a whole number up to 1000, got 'a'",
        ),
        (
            str(V2).replace("range(2, 6)", "range(2, 7)"),
            "normal_concat must have nodes from 2 to 5, got 6",
        ),
        (str(V2).replace("range(2, 6)", "[2, 2]"), r"one or more nodes, each once, got \[2, 2\]"),
        (str(V2).replace("range(2, 6)", "'2345'"), "normal_concat must be a list, got '2345'"),
        (
            str(V2).replace(EDIT, "normal=[('sep_conv_3x3', 2)"),
            "node 2 of normal must read a state from 0 to 1, got 2",
        ),
        (str(V2).replace(EDIT, "normal=[('sep_conv_3x3', True)"), "a state from 0 to 1, got True"),
        (
            str(V2).replace(EDIT, "normal=[(3, 0)"),
            r"normal must have pairs of operation and "
            r"state, got \(3, 0\)",
        ),
        (
            str(V2).replace(EDIT + ", ", "normal=["),
            "two pairs of operation and state for each node, got 7",
        ),
        ("Genotype(*[1], **{})", "no text of a genotype"),
        ("Genotype(" + "(" * 5_000, "no text of a genotype"),
        ("Genotype(" + "-" * 15_000 + "1)", "no text of a genotype"),
        ("Genotype(" + "1, " * 10_000 + ")", "at most 20000 characters, got 30010"),
        ('{"normal": [', "no text of a genotype"),
        ('["normal"]', "the JSON of a genotype is an object"),
    ],
)
def test_texts_that_are_no_genotypes_are_refused(text: str, reason: str) -> None:
    with pytest.raises(CodecError, match=reason):
        parse(text)


@given(st.text(max_size=60).map(lambda tail: f"Genotype({tail}"))
def test_any_text_is_refused_by_one_of_our_errors(text: str) -> None:
    with pytest.raises(ArchiveError):
        parse(text)


@pytest.mark.parametrize(
    "text", ["|none~0|", '{"schema": 1}', "abcdef12", "genotype.json", "Genotypes of DARTS"]
)
def test_other_texts_are_not_taken_for_genotypes(text: str) -> None:
    assert not is_genotype(text)
