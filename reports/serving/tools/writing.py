"""Files of a request, in an empty folder of its own."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path


@contextlib.contextmanager
def written(files: Mapping[str, str], below: Path | None = None) -> Iterator[Path]:
    """A folder with the files, made `below`; gone afterwards. Names have been checked: none has a folder in it."""
    with tempfile.TemporaryDirectory(prefix="ascendtile-", dir=below) as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_bytes(text.encode("utf-8", "surrogatepass"))
        yield folder
