"""Run records as files: one file, a zip with `run.json` and one .npy member per array of the timelines.

So `np.load(path)` opens it too. `record/loading.py` reads it.
"""

from __future__ import annotations

import json
from pathlib import Path

from ascendtile import __version__

from ..errors import UsageError
from ..precision.metrics import ErrorReport
from .archive import MAX_FILE_BYTES, MAX_JSON_BYTES, pack
from .codec import Encoder
from .files import write_whole

FORMAT = "ascendtile-run"
VERSION = 2
NAMES = {"ErrorReport": ErrorReport}


def save_run(run: object, path: str | Path) -> None:
    """Write `run` to `path`: whole, or not at all; a file that was there survives any failure."""
    write_whole(path, run_bytes(run))


def run_bytes(run: object) -> bytes:
    """The content of the file of `run`."""
    encoder = Encoder(NAMES)
    head = {"format": FORMAT, "version": VERSION, "ascendtile": __version__}
    data = json.dumps({**head, "run": encoder.encode(run, type(run))}, allow_nan=False).encode("ascii")
    raw = pack(data, encoder.arrays)
    if len(data) > MAX_JSON_BYTES or len(raw) > MAX_FILE_BYTES:
        raise UsageError(
            f"this run is too large for a record: {len(data)} bytes of text (limit {MAX_JSON_BYTES}), "
            f"{len(raw)} in all (limit {MAX_FILE_BYTES}); keep a shorter timeline (device option timeline)"
        )
    return raw
