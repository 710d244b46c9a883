"""The example project that a user can copy, written into a folder."""

from __future__ import annotations

from pathlib import Path

from ....simulator.errors import UsageError
from ....simulator.record.files import naming, write_whole

SOURCE = Path(__file__).resolve().parent.parent / "example"
LEFT_OUT = ("__pycache__", ".pytest_cache", "README.md")  # the page has links to those of other folders


def write_example(folder: Path) -> list[Path]:
    """Write kernel, tests, configuration, baseline and workflow into `folder`, which must be new or empty.

    Gives the files written. Raises `UsageError` if there is something in the folder, or it cannot be written to.
    """
    with naming(folder, "write to"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError("is there, and not an empty folder; give the name of a new one")
        found = [p.relative_to(SOURCE) for p in sorted(SOURCE.rglob("*")) if p.is_file()]
        written = [folder / p for p in found if not set(p.parts) & set(LEFT_OUT)]
        for target in written:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, (SOURCE / target.relative_to(folder)).read_bytes())
        return written
