"""Mutators of JSON data and of arrays."""

from __future__ import annotations

import copy
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .mutators import HOSTILE, NUMBERS, OTHERS, Chance


def places(data: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """(container, key, path) of everything inside."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(items):
        yield data, key, f"{path}.{key}"
        yield from places(value, f"{path}.{key}")


def mutated_json(chance: Chance, data: Any, gently: bool = False) -> Any:
    """A copy with changed values, keys or lists. gently: types stay, so that what reads it goes on."""
    out = copy.deepcopy(data)
    for _ in range(chance.few()):
        kinds: dict[str, list[tuple[Any, Any, str]]] = {}
        for place in places(out):
            kinds.setdefault(re.sub(r"\.\d+|(?<=\.figures)\..*(?=\.)", ".#", place[2]), []).append(place)
        if kinds:  # a field of a rare kind is as likely as one of a long list
            alike = kinds[chance.choice(list(kinds))]
            _change(chance, chance.choice(alike), alike, kinds, gently)
    return out


def _change(chance: Chance, place: Any, alike: list[Any], kinds: dict[str, Any], gently: bool) -> None:
    container, key, _path = place
    old = container[key]
    if not gently and chance.once_in(4):
        new = chance.one_of(*OTHERS, *NUMBERS, *HOSTILE)
    elif chance.once_in(4):
        container_2, key_2, _ = chance.choice(alike if gently else chance.choice(list(kinds.values())))
        new = copy.deepcopy(container_2[key_2])
    else:
        new = _like(chance, old)
    chance.note(f"{place[2][1:]}: {old!r:.80} -> {new!r:.120}")
    container[key] = new
    if not gently and chance.once_in(12) and isinstance(container, dict):
        del container[key]
        chance.note(f"{place[2][1:]} deleted")


def _like(chance: Chance, old: Any) -> Any:
    """A value of the same type."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int | float):
        return near(chance, old)
    if isinstance(old, str):
        return chance.one_of(
            old + chance.choice(HOSTILE), chance.choice(HOSTILE), old[: len(old) // 2], old * 3
        )
    if isinstance(old, list):
        return _listed(chance, old)
    if isinstance(old, dict):
        return _keyed(chance, old)
    return chance.choice((*NUMBERS, *HOSTILE))


def near(chance: Chance, old: float) -> Any:
    """Another number: a neighbour, a multiple, or one at an edge."""
    number = chance.choice(NUMBERS)
    if isinstance(old, float):
        change = (
            old * 1.0000001,
            old / 2,
            old * 3,
            -old,
            math.nextafter(old, math.inf),
            old + 1,
            float(number % 2**63),
        )
        return chance.one_of(*change)
    return chance.one_of(old + 1, old - 1, old * 2, -old, old // 2, number)


def _listed(chance: Chance, old: list[Any]) -> list[Any]:
    at = chance.randrange(len(old) + 1)
    pick = old[at : at + 1]
    return chance.one_of([], old[::-1], old[:at], old[at:], [*old, *pick], [*old[:at], *pick * 20, *old[at:]])


def _keyed(chance: Chance, old: dict[str, Any]) -> dict[str, Any]:
    keys = list(old)
    if not keys:
        return {chance.choice(HOSTILE): chance.choice((*NUMBERS, *HOSTILE))}
    key, other = chance.choice(keys), chance.choice(keys)
    renamed = {chance.choice(HOSTILE) if k == key else k: v for k, v in old.items()}
    swapped = {**old, key: old[other], other: old[key]}
    return chance.one_of(
        {}, renamed, renamed, swapped, {k: v for k, v in old.items() if k != key}, dict(reversed(old.items()))
    )


def as_text(chance: Chance, data: Any) -> bytes:
    """JSON; seldom with a key twice, a literal that is none, or nested without end."""
    text = json.dumps(data)
    if chance.once_in(30):
        text = chance.one_of(
            text.replace("0.0", "NaN", 1), text[:-1] + ', "run": 1}', text.replace("[", "[" * 3000, 1)
        )
        text = chance.one_of(text, text + "}", "\ufeff" + text, text.replace("1", "1" * 5000, 1))
        chance.note(f"odd JSON: {text[:40]!r}")
    return text.encode()


# ---- arrays ----


def mutated_array(chance: Chance, old: np.ndarray, gently: bool = False) -> np.ndarray:
    """Other values, order, length, or type. gently: the type and the length stay."""
    out = old.copy()
    changes: list[Callable[[], np.ndarray]] = [
        lambda: _values(chance, out),
        lambda: out[::-1].copy(),
        lambda: np.sort(out, 0),
    ]
    if not gently:
        changes += [
            lambda: out[: len(out) // 2],
            lambda: np.concatenate([out, out]),
            lambda: out[:0],
            lambda: out[None],
        ]
        changes += [lambda: _typed(chance, out)]
    made = chance.choice(changes)() if out.ndim else _typed(chance, out)
    chance.note(f"array {old.dtype}{old.shape} -> {made.dtype}{made.shape} {made.ravel()[:4]!r}")
    return made


def _values(chance: Chance, out: np.ndarray) -> np.ndarray:
    flat = out.reshape(-1)
    if flat.size and flat.dtype.kind in "iufb":
        at = chance.randrange(flat.size)
        edge = [flat.flat[chance.randrange(flat.size)], 0, 1]
        if flat.dtype.kind == "f":
            edge += [
                np.nan,
                np.inf,
                -np.inf,
                -0.0,
                np.finfo(flat.dtype).max,
                np.finfo(flat.dtype).smallest_subnormal,
            ]
        if flat.dtype.kind in "iu":
            most = np.iinfo(flat.dtype).max
            edge += [most, np.iinfo(flat.dtype).min, min(most, len(flat)), min(most, len(flat) - 1)]
        flat[chance.one_of(slice(at, at + 1), slice(at, None), slice(None))] = chance.choice(edge)
    return out


DTYPES = (
    "f2",
    "f4",
    "f8",
    "i1",
    "i4",
    "i8",
    "u1",
    "u8",
    "?",
    "c8",
    "U3",
    "S2",
    "V2",
    "V3",
    ">f4",
    "M8[s]",
    "f4,i4",
    "3f4",
    "O",
)


def _typed(chance: Chance, out: np.ndarray) -> np.ndarray:
    dtype = np.dtype(chance.choice(DTYPES))
    return (
        np.zeros(out.shape, dtype)
        if dtype.kind in "VMO" or dtype.subdtype
        else out.astype(np.float64).astype(dtype)
    )


def npy(array: np.ndarray) -> bytes:
    """As np.save writes it, objects as pickles, too."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()
