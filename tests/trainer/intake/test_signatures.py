"""The signatures of the vocabulary are those of the installed PyTorch."""

from importlib import resources

from archive.architecture.aten.signature import parse_signature
from archive.architecture.aten.vocabulary import GROUPS, TORCH
from archive.trainer.intake.signatures import signatures


def test_the_file_is_up_to_date():
    file = resources.files("archive.architecture.aten") / "signatures.txt"
    assert file.read_text(encoding="utf-8").splitlines() == signatures(), (
        "run: python -m archive.trainer.intake.signatures archive/architecture/aten/signatures.txt"
    )


def test_every_word_has_one_group():
    names = [name for names in GROUPS.values() for name in names.split()]
    assert len(names) == len(set(names))
    assert {parse_signature(line).operation for line in signatures()} <= set(TORCH.operations)
