"""Any record that ascendtile writes, by what is in the file and not by its name: a run, a store of explorations, or JSON."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ...simulator.errors import UsageError
from ...simulator.record.files import naming, read_whole, regular_size

STORE = b"SQLite format 3\x00"
MAX_JSON = 256 * 2**20
WAY_OUT = (
    "a run (`ascendtile run --save`), a store (`ascendtile explore --store`), or JSON of `ascendtile explore --json` or "
    "`ascendtile precision --json` can be shown"
)


def read_record(path: str) -> Any:
    """A Run, a tuple of Explorations, or the JSON of a study. `UsageError` says what is wrong with any other file."""
    from ...simulator.record.loading import load_run

    with naming(path, "read"):
        regular_size(path, "a record")
        with open(path, "rb") as file:
            head = file.read(64)
    if head.startswith(STORE):
        from ...tiling.results.reading import stored_explorations

        return stored_explorations(path)
    if head.lstrip()[:1] == b"{":
        return _of_json(path)
    if head.startswith(b"PK"):
        return load_run(path)
    raise UsageError(f"{path}: is no record of ascendtile; {WAY_OUT}")


def _of_json(path: str) -> Any:
    from ...tiling.results.reading import explorations_of_json

    raw = read_whole(path, MAX_JSON, "JSON of ascendtile")
    with naming(path, "read"):
        try:
            data = json.loads(raw, parse_constant=_no_literal)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"is damaged or no JSON: {str(error)[:120]}") from None
        found = explorations_of_json(data)
        if found is not None:
            return found
        if "rows" in data or "sweep" in data:
            return data
        raise UsageError(f"is JSON of something else; {WAY_OUT}")


def _no_literal(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
