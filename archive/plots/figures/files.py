"""Figures as files: the same figure gives the same bytes, with one release of matplotlib."""

from __future__ import annotations

import io
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from archive.errors import SettingsError, UsageError
from archive.plots.figures.style import MISSING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FileFormat = Literal["png", "svg", "pdf"]
FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
DPI = 150
"""Pixels per inch, of PNG and of marks that are drawn as pixels."""

# Without the time of writing.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def check_format(path: Path) -> FileFormat:
    """Return the format of a file by its suffix, and check that figures can be drawn.

    Raises:
        SettingsError: matplotlib is not installed.
        UsageError: The suffix is of another format.
    """
    suffix = path.suffix.lower().removeprefix(".")
    form = next((name for name in FORMATS if name == suffix), None)
    if form is None:
        raise UsageError(
            "a plot is a file ending in "
            f"{', '.join('.' + ending for ending in FORMATS)}, got {str(path)!r}"
        )

    if find_spec("matplotlib") is None:
        raise SettingsError(MISSING)

    return form


def render(figure: Figure, form: str, dpi: int = DPI) -> bytes:
    """Return the content of an image file of a figure.

    Args:
        figure: The figure.
        form: `png`, `svg` or `pdf`.
        dpi: Pixels per inch.

    Raises:
        UsageError: The format is another one.
    """
    if form not in FORMATS:
        raise UsageError(f"a plot is written as {', '.join(FORMATS)}, got {form!r}")

    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "archive"}), warnings.catch_warnings():
        # A name may have letters that the font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph ", UserWarning)
        figure.savefig(content, format=form, dpi=dpi, metadata=_METADATA[form])

    return content.getvalue()
