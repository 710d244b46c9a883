"""The formats that have a name, and the text and files in which a user writes others."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import tomli

from ...errors import UsageError
from .format import FLAGS, WHOLE, Format, check_kinds

MOST_BYTES = 64 * 1024  # of a file that describes one format
_YES_NO = {"yes": True, "no": False, "true": True, "false": False}
_KEYS = (*WHOLE, *FLAGS, "nan", "rounding")  # what one line may say
_FILE_KEYS = ("name", *_KEYS, "taper", "source")
_PLAIN = re.compile(r"e(\d{1,2})m(\d{1,2})")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def _load() -> dict[str, Format]:
    rows = tomli.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    return {name: _catalogued(name, row) for name, row in rows.items()}


def _catalogued(name: str, row: Mapping[str, Any]) -> Format:
    own = row.get("dtype")
    dtype = np.dtype(getattr(ml_dtypes, own, own)) if own else None
    lists = {
        "aliases": tuple(row.get("aliases", ())),
        "taper": tuple((p, w) for p, w in row.get("taper", ())),
    }
    return Format(**{**row, **lists, "dtype": dtype}, name=name)


FORMATS: dict[str, Format] = _load()
FP16, BF16, FP32, HF32, TF32, FP64 = (FORMATS[n] for n in ("fp16", "bf16", "fp32", "hf32", "tf32", "fp64"))
INT8, INT16, INT32, INT64 = (FORMATS[f"int{bits}"] for bits in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (FORMATS[f"uint{bits}"] for bits in (8, 16, 32, 64))
BOOL = FORMATS["bool"]

_BY_NAME = {alias: f for f in FORMATS.values() for alias in (f.name, *f.aliases)}
_BY_DATA = {(f.exponent, f.mantissa, tuple(f.changes.items())): f for f in FORMATS.values() if not f.taper}
_OWN: dict[str, Format] = {}  # of files and of Python, in this process


class UnknownFormatError(UsageError):
    """Nothing in the catalogue has the name."""


def get_format(which: object) -> Format:
    """The Format that `which` names.

    A Format; a name (fp16, float16, torch.float16, e4m3, hif8); one line, NAME or eXmY with changes, such as
    "e4m3:bias=11,infinities=no,nan=zero,subnormals=no,saturates=yes"; the path of a TOML file (`read_format`); or a dtype
    of numpy, ml_dtypes or torch, also one whose only field is named as a format.
    """
    if isinstance(which, Format):
        return _known(which)
    if isinstance(which, os.PathLike):
        return read_format(which)
    name = which if isinstance(which, str) else _dtype_name(which)
    found = _BY_NAME.get(name.removeprefix("torch.").lower()) or _OWN.get(name)
    if found is None and name.endswith(".toml"):
        return read_format(name)
    return found or _of_text(name)


def _known(fmt: Format) -> Format:
    """The same: a name is that of one format, so that what is stored under it can be read."""
    taken = _BY_NAME.get(fmt.name) or _OWN.setdefault(fmt.name, fmt)
    if taken is not fmt and taken != fmt:
        raise UsageError(
            f"two formats of the name {fmt.name!r}, {taken.text} and {fmt.text}: give one of them another name"
        )
    return fmt


def _dtype_name(which: object) -> str:
    if isinstance(which, np.dtype):
        return which.names[0] if which.names and len(which.names) == 1 else which.name
    if isinstance(which, type):
        return which.__name__
    return str(which)


# ---- one line


@lru_cache(maxsize=1024)
def _of_text(text: str) -> Format:
    """The format of `eXmY`, or of a name or eXmY with changes behind a colon."""
    base, colon, changes = text.partition(":")
    plain = _PLAIN.fullmatch(base.lower())
    known = _BY_NAME.get(base.lower()) or _OWN.get(base)
    if known is None and plain is None:
        raise UnknownFormatError(f"unknown number format {text!r}: known are {', '.join(FORMATS)}")
    fields: dict[str, Any] = (
        {"exponent": known.exponent, "mantissa": known.mantissa, **known.changes} if known else {}
    )
    if plain:
        fields |= {"exponent": int(plain[1]), "mantissa": int(plain[2])}
    if known and known.taper and colon:
        raise UsageError(f"format {text!r}: {known} is tapered; write its rows in a file to change it")
    made = Format(**(fields | _changes(text, changes if colon else "")))
    return _BY_DATA.get((made.exponent, made.mantissa, tuple(made.changes.items())), made)


def _changes(text: str, changes: str) -> dict[str, Any]:
    pairs = [part.strip().partition("=") for part in changes.split(",")] if changes else []
    keys = [key for key, _, _ in pairs]
    if len(set(keys)) < len(keys):
        raise UsageError(
            f"format {text!r}: {', '.join(sorted(k for k in set(keys) if keys.count(k) > 1))} said twice"
        )
    return _checked(f"format {text!r}", {key: _read(key, value) for key, _, value in pairs}, _KEYS)


def _read(key: str, text: str) -> object:
    if key in FLAGS:
        return _YES_NO.get(text.lower(), text)
    return int(text) if key in WHOLE and re.fullmatch(r"[+-]?\d{1,6}", text) else text


def _checked(where: str, fields: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Fields of the right kinds, or an error that says what each takes."""
    for key, value in fields.items():
        if key not in keys:
            raise UsageError(f"{where}: no field {key!r}; there are {', '.join(keys)}")
        check_kinds(where, {key: value})
    return fields


# ---- a file


def read_format(path: str | os.PathLike[str]) -> Format:
    """The format of a TOML file: `name`, `exponent`, `mantissa` and what else differs from IEEE 754, as in Format.

        name = "mine"
        exponent = 4
        mantissa = 3
        bias = 9
        infinities = false
        nan = "one"          # ieee, one, zero, none
        source = "where the rules stand"

    `taper` is a list of [prefix, exponent bits]. From then on `get_format` knows the name in this process.
    """
    file = Path(path)
    rows = _parse(file)
    fields = _checked(str(file), rows, _FILE_KEYS)
    missing = [key for key in ("name", "exponent", "mantissa") if key not in fields]
    if missing:
        raise UsageError(
            f"{file}: {', '.join(missing)} missing; a format has a name, exponent and mantissa bits"
        )
    made = Format(**{**fields, "taper": _rows(file, fields.get("taper", []))})
    return _register(file, made)


def _parse(file: Path) -> dict[str, Any]:
    try:
        if (size := file.stat().st_size) > MOST_BYTES:
            raise UsageError(f"{file}: {size} bytes; a file of one format has at most {MOST_BYTES}")
        return tomli.loads(file.read_text(encoding="utf-8"))
    except OSError as e:
        raise UsageError(f"{file}: cannot be read: {e.strerror}") from None
    except (tomli.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UsageError(f"{file}: is no TOML: {e}") from None


def _rows(file: Path, rows: object) -> tuple[tuple[str, int], ...]:
    ok = isinstance(rows, list) and all(
        isinstance(r, list) and len(r) == 2 and isinstance(r[0], str) and type(r[1]) is int for r in rows
    )
    if not ok:
        raise UsageError(f'{file}: taper is {rows!r}; it takes rows [prefix, exponent bits], as ["01", 2]')
    assert isinstance(rows, list)
    return tuple((prefix, width) for prefix, width in rows)


def _register(file: Path, made: Format) -> Format:
    if not _NAME.fullmatch(made.name):
        raise UsageError(
            f"{file}: name {made.name!r}: a letter, then letters, digits, '_', '.' and '-', at most 64"
        )
    taken = _BY_NAME.get(made.name.lower()) or _OWN.get(made.name)
    if (taken is not None and taken != made) or _PLAIN.fullmatch(made.name):
        raise UsageError(f"{file}: the name {made.name!r} is that of another format; give it one of its own")
    return _OWN.setdefault(made.name, made)
