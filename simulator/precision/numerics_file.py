"""Files of numerics: what a board was found to do, or what a user assumes, as choices of `numeric_switches.py`.

    product = "ascend910b3"                   # optional: what it was found on
    source = "probe of 2026-11-28"
    date = "2026-11-28"

    [numerics]
    cube_block_k = "fp16=16,fp32=4"
    cube_block_round = "RNE"

`numerics="FILE.toml"` of a device takes one, and so does `{"file": "FILE.toml", "overflow_mode": "saturate"}`, where choices
beside the file go before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli

from ..errors import UsageError
from .numeric_switches import check_numerics

HEADS = ("product", "source", "date")
MOST_BYTES = 1 << 20
FILE = "file"  # the name under which a file stands among choices


class ChosenNumerics(dict[str, str | int]):
    """Checked choices by name. of_file: those that a file made, and `file` is its name."""

    file: str = ""
    of_file: frozenset[str] = frozenset()


def chosen_numerics(given: Mapping[str, Any] | str | Path) -> ChosenNumerics:
    """The choices of a user, of a file, or of both, with every value checked."""
    if isinstance(given, ChosenNumerics):
        return given
    choices = dict(given) if isinstance(given, Mapping) else {FILE: given}
    path = choices.pop(FILE, None)
    own = check_numerics(choices)
    if path is None:
        return ChosenNumerics(own)
    read = read_numerics(path)
    found = ChosenNumerics({**read, **own})
    found.file, found.of_file = Path(path).name, frozenset(read) - frozenset(own)
    return found


def read_numerics(path: str | Path) -> dict[str, str | int]:
    """The choices of a file. `UsageError` names the file and what in it is wrong."""
    table = _table(Path(path))
    unknown = sorted(set(table) - {*HEADS, "numerics"})
    numerics = table.get("numerics")
    if unknown or not isinstance(numerics, dict):
        what = f"{unknown[0]!r} is not known" if unknown else "it has no table [numerics]"
        raise UsageError(
            f"{path}: {what}; a file of numerics has {', '.join(HEADS)} and the table [numerics]"
        )
    for name in HEADS:
        if not isinstance(table.get(name, ""), str):
            raise UsageError(f"{path}: {name} is {table[name]!r}; it must be text")
    try:
        return check_numerics(numerics)
    except UsageError as e:
        raise UsageError(f"{path}: {e}") from None


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UsageError(f"{path}: more than {MOST_BYTES} bytes are no file of numerics")
        return tomli.loads(data.decode("utf-8"))
    except OSError as e:
        raise UsageError(f"numerics: cannot read {path}: {e.strerror}") from None
    except (tomli.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UsageError(f"{path} is no TOML file: {e}") from None


def numerics_text(choices: Mapping[str, Any], **heads: str) -> str:
    """A file of numerics, as text. heads: of HEADS."""
    lines = [f"{name} = {_quoted(heads[name])}" for name in HEADS if name in heads]
    lines += ["", "[numerics]", *(f"{name} = {_value(x)}" for name, x in check_numerics(choices).items())]
    return "\n".join(lines) + "\n"


def _value(x: str | int) -> str:
    return str(x) if isinstance(x, int) else _quoted(x)


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown) + '"'
