"""Files that the product itself makes, from which inputs are changed: the same bytes in every process."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ascendtile.simulator import load_run
from ascendtile.simulator.record.archive import unpack
from ascendtile.simulator.record.saving import run_bytes

from ..support import sample_runs
from .judge import alone_in

OPERATORS = {
    "rms": ("rms_norm_grad", "--case", "tiny"),
    "matmul": ("matmul", "--size", "m=32", "n=32", "k=32", "--explain"),
    "bce": ("bce_with_logits", "--case", "tiny", "--no-values"),
}
SWEEP = (
    "matmul",
    "--size",
    "m=96",
    "n=64",
    "k=128",
    "--dtype",
    "float16",
    "--space",
    "block_m=16,48",
    "block_n=32,64",
    "block_k=64",
    "group=1",
)


@cache
def records() -> tuple[bytes, ...]:
    """Run records: one with every field, and those of `ascendtile run --save`."""
    made = [sample_runs.run()]
    for name, arguments in OPERATORS.items():
        with tempfile.TemporaryDirectory() as folder, alone_in(Path(folder) / "x") as bench:
            path = bench.folder / f"{name}.run"
            told = bench.command("run", *arguments, "--save", path)
            assert told.status == 0, told.err
            made.append(load_run(path))
    return tuple(run_bytes(replace(run, values_seconds=0.5, time_seconds=0.25)) for run in made)


@cache
def members(number: int) -> tuple[Any, dict[str, bytes]]:
    """The data of the record's run.json, and its arrays."""
    found = unpack(records()[number])
    return json.loads(found.pop("run.json")), found


@cache
def sweep() -> tuple[bytes, str, str]:
    """A store, what `explore --json` said, and its CSV."""
    with tempfile.TemporaryDirectory() as folder, alone_in(Path(folder) / "x") as bench:
        path = bench.folder / "s.sqlite"
        told = bench.command("explore", *SWEEP, "--store", path, "--json")
        table = bench.command("explore", *SWEEP, "--store", path, "--export", "csv")
        assert told.status == table.status == 0
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA journal_mode=DELETE")
        db.close()
        return path.read_bytes(), told.out, table.out


@cache
def study() -> str:
    """What `precision --json` said."""
    with tempfile.TemporaryDirectory() as folder, alone_in(Path(folder) / "x") as bench:
        return bench.command("precision", "matmul", "--size", "m=16", "n=16", "k=32", "--json").out
