"""Tasks on text: documents, packed sequences, budgets in tokens, bits per byte."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from archive import spaces
from archive.architecture.decoders import costs
from archive.constraints import parse
from archive.errors import TrainingError, UnknownNameError, UsageError
from archive.spaces.constrained import constrain
from archive.trainer.datasets import documents
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.evaluate import evaluate
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.train import train
from archive.trainer.protocols.base import shorten
from archive.trainer.proxies.measurement import check_recipe
from archive.trainer.tasks import known_costs, registry, text
from archive.trainer.tasks.file_access import FileAccess, reference_of

PYDOC = registry.get("pydoc-topics")


@pytest.fixture
def file(tmp_path):
    rows = [{"text": f"document {number}. " * 40} for number in range(30)]
    path = tmp_path / "notes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_sequences_follow_each_other_with_separators():
    inputs, targets = documents.pack([b"abc", b"de"], 3)
    # abc, 0, de, 0: six bytes are predicted.
    assert inputs.tolist() == [[97, 98, 99], [0, 100, 101]]
    assert targets.tolist() == [[98, 99, 0], [100, 101, 0]]
    assert documents.count_sequences([b"abc", b"de"], 3) == 2
    assert documents.count_sequences([b"abc", b"de"], 4) == 1


def test_no_document_is_in_two_parts():
    texts = [bytes([65 + number % 26]) * (10 + number) for number in range(60)]
    parts = documents.split(texts, 0)
    assert sorted([*parts.train, *parts.valid, *parts.test]) == sorted(texts)
    total = sum(map(len, texts))
    for part in (parts.valid, parts.test):
        assert 0.1 <= sum(map(len, part)) / total < 0.15

    assert documents.split(texts[::-1], 0) == parts
    copies = documents.split([b"copied"] * 30 + texts, 0)
    assert sum(b"copied" in part for part in copies) == 1
    assert documents.split(texts, 1) != parts


def test_forms_of_files(tmp_path):
    marked = tmp_path / "marked.txt"
    assert documents.read_documents(marked, b"one\n<|endoftext|>\n\n<|endoftext|>two") == [
        b"one", b"two",
    ]  # fmt: skip
    paragraph = b"a line of text\n" * 20 + b"\n"
    pieces = documents.read_documents(marked, paragraph * 60)
    assert len(pieces) > 3
    assert all(piece.endswith(b"text") for piece in pieces)
    assert documents.read_documents(marked, b"x" * 10_000) != []


def test_a_file_is_a_task(file):
    task = registry.get(f"text:{file}")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert task.protocol().name == f"text/{digest[:12]}"
    assert task.suitable_spaces() == ("decoder",)
    splits = task.load()
    assert splits.train.inputs.shape == (task.protocol().train, 128)
    assert splits.valid.targets.dtype == np.int64
    for variant in ("", "/8M", "/1.5e12flops", "/muon", "/8M/muon/mup", "/mup+morph"):
        name = task.protocol().name + variant
        assert task.protocol(name).name == name
        FileAccess((file.parent.resolve(),)).check(str(file.resolve()), name)

    assert reference_of(task.name) == (str(file), "")
    file.write_text(file.read_text() + "\n")
    with pytest.raises(TrainingError, match="has changed since the task was named"):
        task.load()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"short", r"leaves 0 sequences of 128 bytes to train.*needs more text"),
        (b"nul \0 byte" * 1000, "bytes of value 0: it is no text"),
        (b'{"text": 3}\n', r'line 1 must be \{"text": "…"\}'),
        (b'{"text": ' + b"[" * 100_000, r'line 1 must be \{"text": "…"\}'),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path, content, message):
    path = tmp_path / "bad.jsonl" if content.startswith(b"{") else tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        registry.get(f"text:{path}")

    with pytest.raises(UsageError, match=r'must name a file, got a folder: .*\{"text": "…"\} of'):
        registry.get(f"text:{tmp_path}")

    # Neither ends.
    os.mkfifo(tmp_path / "pipe")
    for endless in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(UsageError, match="it is no regular file"):
            registry.get(f"text:{endless}")

    with pytest.raises(UsageError, match="cannot read"):
        registry.get(f"text:{tmp_path / 'missing'}")


def test_a_budget_is_a_number_of_tokens():
    default = PYDOC.protocol()
    assert default.tokens == 245_760
    larger = PYDOC.protocol(f"{default.name}/8M")
    assert larger.tokens == pytest.approx(8_000_000, rel=0.01)
    assert replace(larger, name=default.name, epoch_steps=default.epoch_steps) == default
    assert PYDOC.protocol(f"{default.name}/2M+morph").inherited_epochs == 2
    # 8000k would be a second name for 8M.
    unknown = ["/246k", "/8X", "/0M", "/long", "/8000k", "/1000M", f"/{'9' * 5000}G", "/٣M"]
    unknown += [
        "/mup/muon",
        "/1.0e12flops",
        "/10e12flops",
        "/1e+12flops",
        "/8M/1e12flops",
        "/muon/8M",
        # Less than half a step an epoch.
        "/10k",
        "/1k/muon",
    ]
    for name in unknown:
        with pytest.raises(UnknownNameError):
            PYDOC.protocol(default.name + name)


def test_a_budget_in_operations_gives_small_networks_more_tokens():
    name = f"{PYDOC.protocol().name}/1.5e12flops"
    protocol = PYDOC.protocol(name)
    assert protocol.as_dict()["flops"] == 1.5e12
    tokens = []
    for network in spaces.get("decoder").initial_pool()[:4]:
        sized = PYDOC.protocol_of(network, protocol)
        spent = 6 * costs.flops_per_token(network, 128) * sized.tokens
        # Within half a step of 2,048 tokens an epoch.
        step = 6 * costs.flops_per_token(network, 128) * 2048 * sized.epochs
        assert abs(spent - 1.5e12) <= step / 2
        short = PYDOC.protocol_of(network, shorten(PYDOC.protocol(f"{name}+morph")))
        assert short.tokens == pytest.approx(sized.tokens / 5, rel=0.2)
        tokens.append(sized.tokens)

    assert len({*tokens}) > 1
    with pytest.raises(UsageError, match="10 epochs of one step of this network take"):
        PYDOC.protocol_of(network, PYDOC.protocol(f"{PYDOC.protocol().name}/1e6flops"))


def test_a_batch_size_leaves_the_tokens_of_the_budget():
    default = PYDOC.protocol()
    for size in (1, 8, 64):
        assert Hyperparameters(batch_size=size).protocol_of(default).tokens == default.tokens

    with pytest.raises(UsageError, match="batch_size must be at most the 192 sequences"):
        Hyperparameters(batch_size=1000).protocol_of(default)

    digits = registry.DIGITS.protocol()
    assert Hyperparameters(batch_size=8).protocol_of(digits) == replace(digits, batch=8)


def test_proxies_refuse_every_budget_of_a_text():
    for variant in ("", "/1e12flops"):
        with pytest.raises(UsageError, match="trains on text"):
            check_recipe(PYDOC.protocol(PYDOC.protocol().name + variant))


def test_variants_of_a_protocol():
    default = PYDOC.protocol()
    protocol = PYDOC.protocol(f"{default.name}/8M/muon/mup")
    assert (protocol.optimiser, protocol.network) == ("muon", {"base_width": 64})
    assert protocol.tokens == PYDOC.protocol(f"{default.name}/8M").tokens
    assert PYDOC.protocol(f"{default.name}/muon").tokens == default.tokens
    assert PYDOC.protocol(f"{default.name}/1e12flops/mup+morph").optimiser == "adamw"


def test_the_rules_of_the_protocol_never_change():
    choices = json.dumps(text.RULES.as_dict(), sort_keys=True)
    digest = hashlib.sha256(choices.encode()).hexdigest()[:12]
    assert digest == "52a3fe0470b2", "a changed rule is a new protocol"


def test_bits_per_byte_of_a_uniform_law():
    part = Batches.of(PYDOC.load().valid, torch.device("cpu"))

    class Uniform(torch.nn.Module):
        def forward(self, tokens):
            return torch.zeros(*tokens.shape, 256)

    loss, bits = evaluate(Uniform(), part, PYDOC)
    assert bits == pytest.approx(8.0)
    assert loss == pytest.approx(math.log(256))


def test_a_training_learns_and_has_exact_costs():
    space = spaces.get("decoder", widths=[16], heads=[2], kv_heads=[1], states=[4], max_blocks=1)
    network = space.initial_pool()[0]
    protocol = replace(PYDOC.protocol(), epochs=2, epoch_steps=6, batch=8)
    outcome = train(network, PYDOC, protocol)
    curve = outcome.curve["valid_bits_per_byte"]
    assert curve[-1] < curve[0] < 8
    assert outcome.metrics["tokens"] == 2 * 6 * 8 * 128
    assert outcome.metrics["params"] == costs.params(network)
    assert outcome.metrics["kv_cache_bytes"] == costs.kv_cache_bytes(network, 128)
    assert outcome.metrics["test_bits_per_byte"] < 8
    again = train(network, PYDOC, protocol)
    assert again.metrics == outcome.metrics


def test_constraints_hold_before_training():
    space = spaces.get("decoder")
    known = known_costs.of_task(PYDOC, PYDOC.protocol().name)
    assert [*known] == ["params", "flops", "flops_per_token", "kv_cache_bytes"]
    bounds = [parse("params<=200k"), parse("kv_cache_bytes<=32KiB")]
    within = constrain(space, bounds, known)
    rng = np.random.default_rng(0)
    for _ in range(5):
        network = within.sample(rng)
        assert costs.params(network) <= 200_000
        assert costs.kv_cache_bytes(network, 128) <= 2**15

    other = spaces.get("decoder", vocabulary=300).initial_pool()[0]
    assert np.isnan(known["params"]([other])).all()
