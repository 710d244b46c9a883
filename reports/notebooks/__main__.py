"""Executes the notebooks in place: `python -m ascendtile.reports.notebooks [FOLDER]`, in less than a minute.

Needs the extra `notebook` (nbformat, nbclient, ipykernel). With FOLDER the executed copies go there and the originals stay.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NAMES = ("explore_tilings", "study_precision", "study_formats")
SECONDS = 300  # one cell at most


def execute(source: Path, target: Path) -> None:
    """Run every cell of `source` in a fresh kernel and write it with its outputs to `target`.

    Raises `nbclient.exceptions.CellExecutionError` with the traceback of the cell that fails.
    """
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    book: Any = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call, unused-ignore]
    private = Config({"KernelManager": {"transport": "ipc"}})  # no port that others could reach
    NotebookClient(book, timeout=SECONDS, kernel_name="python3", config=private).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)  # when it ran says nothing
    book.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.validate(book)
    nbformat.write(book, target)  # type: ignore[no-untyped-call, unused-ignore]


def main() -> None:
    try:
        import nbclient  # noqa: F401
        import nbformat  # noqa: F401
    except ImportError as error:
        raise SystemExit(f"{error}; install it with: pip install -e '.[notebook]'") from None
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    if not folder.is_dir():
        print(f"error: {folder} is no folder; the executed copies go there: make it first", file=sys.stderr)
        raise SystemExit(2)
    for name in NAMES:
        execute(HERE / f"{name}.ipynb", folder / f"{name}.ipynb")
        print(folder / f"{name}.ipynb")


if __name__ == "__main__":
    main()
