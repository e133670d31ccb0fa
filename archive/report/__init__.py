"""Report of a study as one HTML file, which opens from disk without a network.

    from archive import report

    text = report.html(store, "my-study")

`contents` reads the archive; `page` draws charts and puts the parts together. Imports the data of
plots and the drawing of networks; no matplotlib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archive.api import Archive

TOP = 5
ROWS = 2000
"""Default numbers of networks with pictures, and of results in the table."""


def html(archive: Archive, study: str, *, top: int = TOP, rows: int = ROWS) -> str:
    """Return the report of a study as an HTML document.

    The document loads nothing, and its Content-Security-Policy lets a browser load nothing: styles
    and the script that sorts the table are in it, named by their hashes. Names in the archive are
    text, never markup.

    Args:
        archive: The archive.
        study: Name of the study.
        top: Number of the best networks with pictures.
        rows: Most results in the table; of more, the best half and others in even steps.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    from archive.report.contents import contents
    from archive.report.page.matters import matters
    from archive.report.page.plots import plots
    from archive.report.page.rendering import render

    read = contents(archive, study, top=top, rows=rows)
    return render(read, [*plots(archive, read), *matters(archive, read)])
