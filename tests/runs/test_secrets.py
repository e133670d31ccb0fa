"""Secrets are masked, wherever they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.runs.secrets import LEAST_LETTERS, MASK, Secrets, is_secret_name

VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=LEAST_LETTERS)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("WANDB_API_KEY", True),
        ("HF_TOKEN", True),
        ("--api-key", True),
        ("DB_PASSWORD", True),
        ("AWS_SECRET", True),
        ("client.secret", True),
        ("PATH", False),
        ("--keyboard", False),
        ("--tokens", False),
        ("MONKEY", False),
    ],
)
def test_names_that_say_that_a_value_is_a_secret(name, secret):
    assert is_secret_name(name) is secret


@given(VALUES, VALUES, st.text(), st.text())
def test_no_secret_of_environment_and_arguments_stays(token, key, before, after):
    secrets = Secrets.find({"MY_TOKEN": token, "LANG": "C"}, ["--api-key", key, "--lr", "0.1"])
    masked = secrets.mask(f"{before}{token} {key}{after}")
    for secret in (token, key):
        # The mask itself may complete a secret of stars.
        assert secret not in masked or secret in f"{before} {MASK}{after}{MASK}"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://user:hunter2@host/x", f"https://user:{MASK}@host/x"),
        ("postgres://:pw@db and ssh://git@host", f"postgres://:{MASK}@db and ssh://git@host"),
        ("token ghp_0123456789abcdefghij0123", f"token {MASK}"),
        ("hf_abcdefghijklmnopqrstuvwx.", f"{MASK}."),
        ("loss: 0.5 at step 3", "loss: 0.5 at step 3"),
    ],
)
def test_secrets_that_their_form_gives_away(text, masked):
    assert Secrets([]).mask(text) == masked


def test_passwords_of_netrc(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine api.wandb.ai login user password abcdef012345\n")
    (tmp_path / ".netrc").chmod(0o600)
    assert Secrets.find({}).mask("key=abcdef012345") == f"key={MASK}"


def test_the_lines_of_a_secret_are_masked_and_the_folder_of_the_shell_is_none():
    secrets = Secrets.find({"SSH_KEY": "first-line\nsecond-line\n", "PWD": "/home/me/work"})
    assert secrets.mask("a second-line b") == f"a {MASK} b"
    assert secrets.mask("/home/me/work/train.py") == "/home/me/work/train.py"
