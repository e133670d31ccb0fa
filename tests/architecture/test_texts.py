"""Architectures in the forms that users write."""

from __future__ import annotations

import json

import pytest

from archive.architecture import codec
from archive.architecture.texts import from_text, is_text, to_text
from archive.errors import CodecError
from archive.spaces.darts.published import PUBLISHED
from tests.support.strategies import space_of

STRING = "|nor_conv_3x3~0|+|none~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|skip_connect~2|"


@pytest.mark.parametrize("name", ["DARTS_V2", "NASNet"])
def test_genotypes(name: str) -> None:
    published = PUBLISHED[name]
    assert (
        from_text(published.text)
        == from_text(json.dumps(published.genotype.to_dict()))
        == published.architecture
    )
    assert to_text(published.architecture) == published.text
    assert is_text(published.text)


def test_other_forms() -> None:
    cell = codec.from_nasbench201(STRING)
    network = space_of("mlp").initial_pool()[0]
    assert from_text(f" {STRING}\n") == cell and is_text(STRING)
    assert to_text(cell) == codec.to_nasbench201(cell)
    assert from_text(codec.to_json(network)) == network and is_text(codec.to_json(network))
    shown = {"schema_version": 1, "layers": 10, "architecture": codec.to_dict(network)}
    assert from_text(json.dumps(shown)) == network
    assert to_text(network) is None
    assert not any(map(is_text, ("", "0123abcd", "some/file.json", "DARTS_V2")))
    with pytest.raises(CodecError, match="no JSON text"):
        from_text("DARTS_V2")

    for given in (
        {"architecture": "0123abcd"},
        {"architecture": {"architecture": codec.to_dict(network)}},
    ):
        with pytest.raises(CodecError, match="an architecture needs the field 'schema'"):
            from_text(json.dumps(given))
