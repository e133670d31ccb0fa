"""`archive bench transfer`: options that exclude each other, and unknown names."""

import pytest

from archive.cli import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quick"], "write --matrix --quick"),
        (["--target", "transnas-object"], "write --matrix --target transnas-object"),
        (["--matrix", "--target", "transnas-object~0.005"], "did you mean transnas-object~0.003"),
        (["--matrix", "--quick", "--target", "nb201-cifar10"], "unknown target of the matrix 'nb201-cifar10'"),
        (["--matrix", "--scenario", "searched"], "got --scenario searched"),
        (["--scenario", "serched"], "unknown scenario 'serched': did you mean searched"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.setenv("ARCHIVE_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as ended:
        main.main(["bench", "transfer", *arguments])
    lines = capsys.readouterr().err.strip().splitlines()
    assert (ended.value.code, len(lines)) == (2, 1)
    assert message in lines[0]
    assert not (tmp_path / "home" / "bench").exists()
