"""`archive arch draw`, run as a user runs it."""

import io
import json
import sys
import xml.etree.ElementTree as ET

import pytest
import resvg_py
from click.testing import CliRunner

from archive.architecture import codec
from archive.cli.main import archive as command
from archive.cli.main import main
from archive.errors import ArchiveError
from tests.support.networks.nets import TINY_CNN

CELL = "|nor_conv_3x3~0|+|none~0|avg_pool_3x3~1|+|skip_connect~0|none~1|nor_conv_1x1~2|"


def draw(*arguments):
    return CliRunner().invoke(
        command, ["--home", "unused", "arch", "draw", *arguments], catch_exceptions=False
    )


def test_a_picture_as_text_svg_and_png(tmp_path):
    net = tmp_path / "net.json"
    net.write_text(codec.to_json(TINY_CNN))
    asked = ("--sizes", "--params", "--input", "3x8x8", "--outputs", "4")
    lines = draw(str(net), *asked).stdout.splitlines()
    # 3 x 8 x 9 weights and 8 x 2 of the normalisation; 8 x 4 x 4 x 16 and 32; 16 x 4 and 4 biases.
    assert [line.split()[1] for line in lines] == [
        "input",
        "conv3",
        "max-pool",
        "fc",
        "softmax",
        "output",
    ]
    notes = ["8×8×8 · 232 params", "8×4×4", " 16 · 2,080 params", " 4 · 68 params"]
    assert [line.endswith(note) for line, note in zip(lines[1:5], notes, strict=True)] == [True] * 4
    assert "params" not in draw(str(net), "--sizes").stdout
    for name, start in (("net.svg", b"<svg"), ("net.png", b"\x89PNG")):
        path = tmp_path / name
        described = json.loads(
            draw(str(net), "-o", str(path), "--theme", "dark", *asked, "--json").stdout
        )
        assert path.read_bytes().startswith(start)
        assert described["file"] == str(path) and described["bytes"] == path.stat().st_size
        assert described["key"] == TINY_CNN.key
        with pytest.raises(ArchiveError, match=f"{name} exists: .* --force"):
            draw(str(net), "-o", str(path))

    texts = "".join(ET.parse(tmp_path / "net.svg").getroot().itertext())
    assert "conv3" in texts and "8×8×8 · 232 params" in texts
    assert "prefers-color-scheme" not in texts


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_lines_become_ascii_on_a_stream_without_them(monkeypatch, encoding):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as end:
        main(["--home", "unused", "arch", "draw", CELL])

    out.flush()
    lines = out.buffer.getvalue().decode("ascii").splitlines()
    assert end.value.code == 0
    assert [line.split()[-1] for line in lines[:2]] == ["input", "nor_conv_3x3"] and lines[
        0
    ].startswith("@-")
    with pytest.raises(SystemExit) as end:
        main(["--home", "unused", "arch", "diff", CELL, CELL.replace("none~0", "skip_connect~0")])

    out.flush()
    assert end.value.code == 0 and " -> " in out.buffer.getvalue().decode("ascii")


def test_what_cannot_be_drawn_says_why(tmp_path, monkeypatch):
    with pytest.raises(ArchiveError, match=r"a picture is a \.svg or a \.png, got net\.gif"):
        draw(CELL, "-o", "net.gif")

    with pytest.raises(ArchiveError, match="nasbench201 has no sizes to show"):
        draw(CELL, "--sizes")

    real = resvg_py.svg_to_bytes
    monkeypatch.setattr(
        resvg_py, "svg_to_bytes", lambda **options: real(**options, skip_system_fonts=True)
    )
    with pytest.raises(ArchiveError, match="a PNG needs a font"):
        draw(CELL, "-o", str(tmp_path / "net.png"))

    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ArchiveError, match=r"a PNG needs resvg: pip install 'nas-archive\[png\]'"):
        draw(CELL, "-o", str(tmp_path / "net.png"))

    assert list(tmp_path.iterdir()) == []
