"""The file of a baseline: JSON, sorted, written whole or not at all.

    {"format": "ascendtile-baseline", "version": 1, "tests": {"test_rows.py::test_scale": {"scale": {"cycles": 1466, ...}}}}

It is committed, merged and edited by people: what is read is checked, and every message names the way out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import ascendtile

from ....simulator.errors import UsageError
from ....simulator.products.quantity import show
from ....simulator.record.files import read_whole, write_whole
from .entry import BaselineEntry

__tracebackhide__ = True
FORMAT = "ascendtile-baseline"
VERSION = 1
MOST_BYTES = 64 * 2**20
MERGING = "<<<<<<< "
WRITES = "`pytest --ascendtile-update` writes it anew once the old one is removed"

Baseline = Mapping[str, Mapping[str, BaselineEntry]]  # test -> key -> figures


def read_baseline(path: str | Path) -> Baseline:
    """The figures in a file: by id of the test, and by kernel or label.

    Raises `UsageError` for a file that is not there, is damaged, has conflicts of a merge or is of a newer version.
    """
    return baseline_of(read_whole(path, MOST_BYTES, "a baseline"), str(path))


def baseline_of(raw: bytes, name: str) -> Baseline:
    """The figures in the content of a file. name: of the file, for messages."""
    try:
        return _tests(_parsed(raw))
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def write_baseline(path: str | Path, tests: Baseline) -> None:
    """Write the file; one that was there survives any failure."""
    plain = {test: {key: e.to_json() for key, e in entries.items()} for test, entries in tests.items()}
    data = {"format": FORMAT, "version": VERSION, "tests": {t: x for t, x in plain.items() if x}}
    text = json.dumps(data, indent=1, sort_keys=True, allow_nan=False)
    write_whole(path, f"{text}\n".encode("ascii"))


def _parsed(raw: bytes) -> Any:
    try:
        text = raw.decode("utf-8")
        if any(line.startswith(MERGING) for line in text.splitlines()):
            raise UsageError(
                f"has conflicts of a merge ({MERGING.strip()}): take either side, then run pytest --ascendtile-update"
            )
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_literal)
    except RecursionError:
        raise UsageError(f"is damaged: nested too deep; {WRITES}") from None
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"is damaged, it is not JSON: {error}; {WRITES}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a merge may leave two entries of one name, and either may be the wrong one."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise UsageError(
                f"has two entries {show(name)}: remove both, then run pytest --ascendtile-update"
            )
        found[name] = value
    return found


def _no_literal(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _tests(data: Any) -> Baseline:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UsageError(f"is no baseline: it does not say format {FORMAT!r}")
    version = data.get("version")
    if type(version) is not int or version != VERSION:  # True is 1
        raise UsageError(
            f"has version {show(version)}; this is ascendtile {ascendtile.__version__}, which reads version "
            f"{VERSION}: install the version that wrote it"
        )
    tests = data.get("tests")
    if not isinstance(tests, dict) or not all(isinstance(entries, dict) for entries in tests.values()):
        raise UsageError(f"is damaged: tests is no object of objects; {WRITES}")
    return {t: {k: _entry(x, t, k) for k, x in entries.items()} for t, entries in tests.items()}


def _entry(data: Any, test: str, key: str) -> BaselineEntry:
    return BaselineEntry.from_json(data, f"{show(test)}, {show(key)}:")
