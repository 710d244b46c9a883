"""What an operator has as data beside its declaration: named cases in `cases.toml`, knobs and options in `knobs.toml`.

    [rms_norm.llama3-8b]                              # of cases.toml
    title = "Llama-3 8B, 2048 tokens"
    sizes = { rows = 2048, cols = 4096 }              # a size is a whole number or a list of them
    source = "hidden size of the public model configuration"
    options = { ... }                                 # of the operator, if it has any

    [rms_norm.tiling]                                 # of knobs.toml, or [rms_norm.options]
    rows = { low = 1, help = "rows of a tile" }       # the fields of `Parameter`; kind is "choice" with choices, else "int"

`Operator` checks the names of sizes and options.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli

from ...simulator.errors import UsageError
from .operator import Case
from .parameter import Parameter

KEYS = {"title", "sizes", "source"}


def read_cases(module: str, name: str) -> dict[str, Case]:
    """Cases by name, in the order of the file. module: `__file__` of the declaration; name: the operator's."""
    path = Path(module).with_name("cases.toml")
    return {n: _case(f"{path}: {name}.{n}", n, entry) for n, entry in _read(path).get(name, {}).items()}


def read_parameters(module: str, name: str, family: str = "tiling") -> tuple[Parameter, ...]:
    """Knobs (family "tiling") or options ("options") in the order of the file; module and name as for cases."""
    path = Path(module).with_name("knobs.toml")
    entries = _read(path)[name][family]
    return tuple(_parameter(f"{path}: {name}.{family}.{n}", n, entry) for n, entry in entries.items())


def _read(path: Path) -> dict[str, Any]:
    return tomli.loads(path.read_text(encoding="utf-8"))


def _case(where: str, name: str, entry: dict[str, Any]) -> Case:
    if set(entry) - {"options"} != KEYS:
        raise UsageError(
            f"{where} has {', '.join(entry)}; a case has title, sizes, source and perhaps options"
        )
    sizes, options = (_values(entry.get(part, {})) for part in ("sizes", "options"))
    return Case(name, entry["title"], sizes, entry["source"], options)


def _parameter(where: str, name: str, entry: dict[str, Any]) -> Parameter:
    kind = "choice" if "choices" in entry else "int"
    try:
        return Parameter(**{"name": name, "kind": kind, "default": None, **_values(entry)})
    except TypeError as error:
        raise UsageError(f"{where}: {error}") from None


def _values(entry: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples."""
    return {n: tuple(x) if isinstance(x, list) else x for n, x in entry.items()}
