"""`archive arch distance`, run as a user runs it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from archive import kernels, spaces
from archive.architecture import codec
from archive.cli.architecture.argument import is_key
from archive.cli.main import archive as command
from archive.errors import ArchiveError
from archive.spaces.darts.published import PUBLISHED

FIRST = "|nor_conv_3x3~0|+|nor_conv_3x3~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|skip_connect~2|"
SECOND = "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|"


def distance(*arguments, home="unused"):
    return CliRunner().invoke(
        command, ["--home", str(home), "arch", "distance", *arguments], catch_exceptions=False
    )


def test_every_kernel_is_reachable_by_its_name():
    rows = json.loads(distance(FIRST, SECOND, "--json").stdout)["distances"]
    assert {row["kernel"] for row in rows} == set(kernels.names())
    pair = [codec.from_nasbench201(FIRST)], [codec.from_nasbench201(SECOND)]
    for name in kernels.names():
        kernel = kernels.get(name)
        expected = dict(zip(kernel.components, kernel.distances(*pair).stack[:, 0, 0], strict=True))
        found = {row["component"]: row["distance"] for row in rows if row["kernel"] == name}
        assert found == pytest.approx(expected)


def test_genotypes_as_arguments_and_in_files(tmp_path):
    first = PUBLISHED["DARTS_V1"]
    second = PUBLISHED["DARTS_V2"]
    expected = (
        kernels.get("path").distances([first.architecture, second.architecture]).stack[0, 0, 1]
    )
    text = tmp_path / "second.txt"
    described = tmp_path / "second.json"
    text.write_text(f"DARTS_V2 = {second.text}\n")
    described.write_text(json.dumps(second.genotype.to_dict()))
    for other in (second.text, str(text), str(described), json.dumps(second.genotype.to_dict())):
        rows = json.loads(distance(first.text, other, "--kernel", "path", "--json").stdout)[
            "distances"
        ]
        assert [row["distance"] for row in rows] == [expected]

    text.write_text("DARTS_V2 = Genotype()")
    with pytest.raises(
        ArchiveError,
        match=r"second.txt describes no architecture: a genotype "
        r"needs normal",
    ):
        distance(first.text, str(text))


def test_files_and_settings(tmp_path):
    networks = spaces.get("mlp").initial_pool()[:2]
    files = []
    for at, network in enumerate(networks):
        files.append(tmp_path / f"{at}.json")
        files[-1].write_text(codec.to_json(network))

    expected = kernels.get("otmann", nu_str=[0.5]).distances(networks).stack[:, 0, 1]
    # --kind is the former name.
    for option in ("--kernel", "--kind"):
        asked = distance(*map(str, files), option, "otmann", "--set", "nu_str=[0.5]", "--json")
        rows = json.loads(asked.stdout)["distances"]
        np.testing.assert_allclose([row["distance"] for row in rows], expected)


@pytest.mark.whole
def test_a_kernel_that_cannot_compare_two_networks_is_left_out_of_the_list_of_all(tmp_path):
    long = tmp_path / "long.json"
    units = [
        {"op": "ip"},
        *({"op": "relu", "units": 8} for _ in range(997)),
        {"op": "linear"},
        {"op": "op"},
    ]
    edges = [[at, at + 1] for at in range(len(units) - 1)]
    long.write_text(json.dumps({"schema": 1, "space": "mlp", "layers": units, "edges": edges}))
    asked = distance(str(long), str(long), "--json")
    assert {row["distance"] for row in json.loads(asked.stdout)["distances"]} <= {0.0}
    with pytest.raises(ArchiveError, match="layers"):
        distance(str(long), str(long), "--kernel", "gromov-wasserstein")

    assert "gromov-wasserstein" in asked.stderr


def test_a_file_that_describes_no_network_is_named(tmp_path):
    texts = {
        "cells.csv": ("arch_str,accuracy", "describes no architecture: no JSON text"),
        "bad.json": ("{}", "describes no architecture: .* needs the field 'schema'"),
        "loop.json": (
            json.dumps({"schema": 1, "space": "mlp", "layers": [{"op": "ip"}], "edges": []}),
            "describes no",
        ),
    }
    for name, (text, message) in texts.items():
        (tmp_path / name).write_text(text)
        for asked in (("distance", FIRST, str(tmp_path / name)), ("nearest", str(tmp_path / name))):
            with pytest.raises(ArchiveError, match=f"{name} {message}"):
                CliRunner().invoke(
                    command, ["--home", str(tmp_path), "arch", *asked], catch_exceptions=False
                )


def test_a_long_text_that_describes_no_network_is_no_file():
    assert is_key("[(1,2)," * 100)
    assert not is_key(FIRST)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FIRST, SECOND, "--kernel", "otman"), "unknown kernel 'otman'"),
        ((FIRST, SECOND, "--set", "nu=1"), "--set needs one --kernel"),
        ((FIRST, SECOND, "--kernel", "otmann", "--set", "nu"), "NAME=VALUE"),
        ((FIRST, "nothing.json"), "nothing.json"),
        (("|a|", SECOND), "NAS-Bench-201"),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises(ArchiveError, match=message):
        distance(*arguments)
