"""Reads the files of `record/saving.py`.

Files come from anywhere: `load_run` checks every claim before it believes it, every field against its annotation and every
figure against what a run can give (`record/archive.py`, `record/codec.py`, `record/checks.py`), and answers what is
wrong with a `UsageError`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ascendtile import __version__

from ..errors import UsageError
from ..products.quantity import show
from .archive import MAX_FILE_BYTES, TEXT, array_of, unpack
from .checks import check_figures
from .codec import Decoder
from .files import read_whole
from .run import Run, Timeline
from .saving import FORMAT, NAMES, VERSION

READABLE = (1, 2)  # 2 has gaps and their reasons in timelines, and stalls by line
ARRAYS = ("core", "pipe", "program", "record", "line", "start", "end", "done")
INTEGERS = ("core", "pipe", "program", "record", "line")
GAPS = ("gap", "reason", "waited", "bandwidth", "bytes", "name")  # all of them, or none in version 1
GAP_INTEGERS = ("reason", "waited", "name")
WAY_OUT = "records are written by run.save(...) and `ascendtile run --save`"


def load_run(path: str | Path) -> Run:
    """The run that `save_run` wrote to `path`. `UsageError` if there is none, or it is damaged or foreign."""
    try:
        raw = read_whole(path, MAX_FILE_BYTES, "a run record")
    except UsageError as error:
        raise UsageError(f"{error}; {WAY_OUT}") from None
    try:
        return run_from_bytes(raw)
    except UsageError as error:
        raise UsageError(f"{path}: {error}; {WAY_OUT}") from None


def run_from_bytes(raw: bytes) -> Run:
    """The run of a file's content."""
    members = unpack(raw)
    data = _run_data(members.pop(TEXT))

    def array(name: str) -> np.ndarray:
        member = members.pop(f"{name}.npy", None)
        if member is None:
            raise UsageError(f"is not whole: the array {show(name)} is missing or used twice")
        try:
            return array_of(member)
        except UsageError as error:
            raise UsageError(f"has an array {show(name)} that {error}") from None

    try:
        run: Run = Decoder(NAMES, array).decode(data, Run)
    except RecursionError:
        _too_deep()
    if members:
        raise UsageError(f"has a member {show(min(members))} that nothing in it refers to")
    for k, launch in enumerate(run.launches):
        if launch.timeline is not None:
            _check_timeline(launch.timeline, f"launches.{k}.timeline")
    check_figures(run)
    return run


def _run_data(text: bytes) -> Any:
    try:
        data = json.loads(text.decode("ascii"), parse_constant=_no_literal)
    except RecursionError:
        _too_deep()
    except ValueError as error:
        raise UsageError(f"is damaged: {TEXT} is not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UsageError(f"is not a run record: {TEXT} does not say format {FORMAT!r}")
    if type(data.get("version")) is not int or data["version"] not in READABLE:
        raise UsageError(
            f"has version {show(data.get('version'))}, written by ascendtile {show(data.get('ascendtile'))}; "
            f"this is ascendtile {__version__}, which reads versions {READABLE[0]} to {VERSION}"
        )
    return data.get("run")


def _no_literal(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _too_deep() -> NoReturn:
    raise UsageError(f"is not a run record: {TEXT} is nested too deep")


def _check_timeline(t: Timeline, where: str) -> None:
    """The arrays are parallel and of the right kind; `record/checks.py` looks at their figures."""
    missing = [n for n in GAPS if getattr(t, n) is None]
    if missing and len(missing) < len(GAPS):
        raise UsageError(f"{where}: has gaps without {missing[0]}")
    arrays = {n: getattr(t, n) for n in (*ARRAYS, *(() if missing else GAPS))}
    lengths = {n: len(a) for n, a in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"{where}: its arrays must have one length, they have {lengths}")
    for n in (*INTEGERS, *(() if missing else GAP_INTEGERS)):
        if arrays[n].dtype.kind not in "iu":
            raise UsageError(f"{where}.{n} must be of integers, it is {arrays[n].dtype}")
