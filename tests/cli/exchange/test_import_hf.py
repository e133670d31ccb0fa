"""`archive import hf` and `archive arch` of published models, typed as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from archive.cli.exchange.import_hf import PublishedImport
from tests.support.commands import shell
from tests.support.json_documents import faults
from tests.support.networks.published import CONFIGS, PARAMS

SCALING = (
    "llama3 factor=32 high_freq_factor=4 low_freq_factor=1 original_max_position_embeddings=8192"
)
MODELS = ("Llama-3.2-1B", "Qwen3-0.6B")


@pytest.fixture
def user(archive, store_settings, tmp_path):
    for name in MODELS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(CONFIGS[name]))

    with shell(store_settings, tmp_path) as opened:
        yield opened


def test_an_import_keeps_name_and_costs(user, archive, tmp_path):
    folder = tmp_path / "Llama-3.2-1B"
    done = user.types("import", "hf", str(folder), "--length", "1000", "--json")
    document = json.loads(done.stdout)
    assert not faults(document, PublishedImport)
    assert (document["name"], document["model_type"]) == ("Llama-3.2-1B", "llama")
    assert (document["params"], document["blocks"]) == (PARAMS["Llama-3.2-1B"], 16)
    assert document["costs"][0]["kv_cache_bytes"] == 2 * 16 * 2 * 8 * 64 * 1000

    # The same network under another name keeps both names, and the first note.
    user.types("import", "hf", str(folder / "config.json"), "--name", "copy")
    details = archive.architectures.details(document["key"])
    assert details["params"] == PARAMS["Llama-3.2-1B"]
    assert details["tags"] == ["Llama-3.2-1B", "copy", "llama"]
    assert details["note"].startswith("Llama-3.2-1B, a published configuration of llama")
    shown = user.types("arch", "show", document["key"][:8]).stdout
    assert "16 × block 1-16" in shown and "attention 2048 (32 heads, 8 kv heads, base" in shown
    query = "MATCH (l:Layer {op: 'attention'}) RETURN l.rotary_scaling AS scaling, l.kv_heads AS k"
    rows = json.loads(user.types("query", query, "--json").stdout)["rows"]
    assert {(row["scaling"], row["k"]) for row in rows} == {(SCALING, 8)}


def test_a_difference_of_published_models_fits_one_screen(user, tmp_path):
    files = [str(tmp_path / name / "config.json") for name in MODELS]
    lines = user.types("arch", "diff", *files).stdout.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 100
    text = "\n".join(lines)
    assert "  16 × block 1-16\n" in text and "  28 × block 1-28\n" in text
    assert "depth 16 -> 28" in lines
    assert "attention query key norm added: head in blocks 1-16" in lines
    assert "norm epsilon 1e-05 -> 1e-06" in lines
    document = json.loads(user.types("arch", "diff", *files, "--json").stdout)
    changes = {change["name"]: change for change in document["changes"]}
    assert (changes["width"]["before"], changes["width"]["after"]) == (2048, 1024)
    assert user.types("arch", "diff", files[0], files[0]).stdout.endswith("are one network\n")
    drawn = user.types("arch", "draw", files[0]).stdout.splitlines()
    assert len(drawn) <= 50 and any("× 16" in line for line in drawn)


FAULTY = {
    "{": "it is no JSON",
    "[1]": "must hold a JSON object with a model_type",
    '{"model_type": "rwkv"}': "rwkv does not fit",
    '{"model_type": "llama"}': "has no hidden_size",
}


def test_files_that_are_no_configurations_are_refused(user, tmp_path):
    for content, message in FAULTY.items():
        (tmp_path / "config.json").write_text(content)
        done = user.types("import", "hf", str(tmp_path), code=2)
        assert message in done.stderr and len(done.stderr.strip().splitlines()) == 1

    huge = CONFIGS["Llama-3.2-1B"] | {"hidden_size": 2**30, "vocab_size": 2**31 - 1}
    (tmp_path / "config.json").write_text(json.dumps(huge | {"intermediate_size": 2**31 - 1}))
    done = user.types("import", "hf", str(tmp_path), code=2)
    assert "params must be a whole number from 0 to 2^63 - 1" in done.stderr
    rows = user.types("query", "MATCH (a:Architecture) RETURN a.key AS key", "--json").stdout
    assert json.loads(rows)["rows"] == []

    missing = user.types("import", "hf", "missing.json", code=2)
    assert "there is no such file" in missing.stderr


@pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")
def test_classes_and_model_types_by_name():
    code = "\n".join(
        [
            "from archive.errors import UnknownNameError",
            "from archive.exchange.hugging_face.reading import read_config",
            "from archive.trainer.zoo.transformers_names import config_of",
            "designs = []",
            "for name in ('gpt2', 'GPT2LMHeadModel', 'GPT2Config'):",
            "    designs.append(read_config(config_of(name), name).design)",
            "assert designs[0] == designs[1] == designs[2], designs",
            "try:",
            "    config_of('NoSuchModel')",
            "except UnknownNameError as error:",
            "    print(error)",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "NoSuchModel" in done.stdout
