"""The named cases of an operator, from the file `cases.toml` beside its declaration.

    [rms_norm.llama3-8b]
    title = "Llama-3 8B, 2048 tokens"
    sizes = { rows = 2048, cols = 4096 }
    source = "hidden size of the public model configuration"
    options = { ... }  # of the operator, if it has any

A size is a whole number or a list of them. `Operator` checks the names of sizes and options.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli

from ...simulator.errors import UsageError
from .operator import Case

FILE = "cases.toml"
KEYS = {"title", "sizes", "source"}


def read_cases(module: str, name: str) -> dict[str, Case]:
    """Cases by name, in the order of the file. module: `__file__` of the declaration; name: the operator's."""
    path = Path(module).with_name(FILE)
    found = tomli.loads(path.read_text(encoding="utf-8")).get(name, {})
    return {n: _case(f"{path}: {name}.{n}", n, entry) for n, entry in found.items()}


def _case(where: str, name: str, entry: dict[str, Any]) -> Case:
    if set(entry) - {"options"} != KEYS:
        raise UsageError(
            f"{where} has {', '.join(entry)}; a case has title, sizes, source and perhaps options"
        )
    sizes, options = ({n: _value(x) for n, x in entry.get(part, {}).items()} for part in ("sizes", "options"))
    return Case(name, entry["title"], sizes, entry["source"], options)


def _value(x: Any) -> Any:
    return tuple(x) if isinstance(x, list) else x
