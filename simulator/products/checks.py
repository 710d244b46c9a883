"""Laws between the figures of one product. `contradictions` is the list; each law is a short function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import chain

from ..errors import ProductError
from .figure import Figure, Value
from .spec import DTYPES, OPS, known_keys, needed_by, required_keys, users_of

Figures = Mapping[str, Figure]
C0_BYTES = 32
CUBE_BITS = {"int4": 4, "int8": 8, "uint8": 8, "fp16": 16, "bf16": 16, "hf32": 32, "fp32": 32}
CUBE_BITS |= {
    "e2m1": 4,
    "fp8e4nv": 8,
    "fp8e5": 8,
    "hif8": 8,
}  # formats of no product here, for those of a user


def check(figures: Figures, where: str) -> None:
    """Raise ProductError for the first law that the figures of `where` break."""
    for text in chain(_missing(figures), contradictions(figures)):
        raise ProductError(f"{where}: {text}")


def suggestion(key: str) -> str:
    """' Did you mean ...?' for a key that nobody knows."""
    near = get_close_matches(key, known_keys(), n=3, cutoff=0.6)
    return f"; did you mean {', '.join(near)}?" if near else "; `ascendtile products NAME` lists the keys"


def _missing(figures: Figures) -> Iterator[str]:
    model = figures["product.core_model"].value if "product.core_model" in figures else "split"
    lacking = [key for key in required_keys(str(model)) if key not in figures]
    if lacking:
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        yield (
            f"missing: {users_of(lacking[:5])}{more}; give every figure, or put "
            f'base = "ascend910b3" (or another product) at the top of the file to inherit the rest'
        )


def contradictions(figures: Figures) -> Iterator[str]:
    """One text for each law between figures that does not hold."""
    laws = (_core_counts, _buffers, _banks, _cube_types, _columns, _vector_table, _dtype_lists, _ranges)
    return chain.from_iterable(law(figures) for law in laws)


def _number(figures: Figures, key: str) -> float:
    value = figures[key].value
    if isinstance(value, int | float):
        return value
    raise TypeError(key)


def _names(figures: Figures, key: str) -> tuple[Value, ...]:
    value = figures[key].value
    return value if isinstance(value, tuple) else (value,)


def _core_counts(figures: Figures) -> Iterator[str]:
    names = ("cube_cores", "vector_cores", "aiv_per_aic")
    cube, vector, per = (_number(figures, f"cores.{name}") for name in names)
    if vector != cube * per:
        yield (
            f"cores.vector_cores must be cores.cube_cores x cores.aiv_per_aic = {cube:g} x {per:g} "
            f"= {cube * per:g}, got {vector:g}; change both together"
        )
    if figures["product.core_model"].value == "coupled" and per != 1:
        yield f'cores.aiv_per_aic must be 1 when product.core_model is "coupled", got {per:g}'


def _buffers(figures: Figures) -> Iterator[str]:
    for name in ("ub", "l1", "l0a", "l0b", "l0c"):
        size, unit = _number(figures, f"buffers.{name}"), _number(figures, f"alignment.{name}")
        if size % unit:
            yield f"buffers.{name} must be a multiple of alignment.{name} = {unit:g} bytes, got {size:.0f}"
    block = _number(figures, "alignment.block")
    if _number(figures, "buffers.ub") % block:
        yield f"buffers.ub must be a multiple of alignment.block = {block:g} bytes"
    for name, parts in (("ub", ("ub_reserved_always", "ub_reserved_default")), ("l1", ("l1_reserved",))):
        reserved = sum(_number(figures, f"buffers.{part}") for part in parts)
        if reserved >= (size := _number(figures, f"buffers.{name}")):
            yield f"buffers.{name} = {size:.0f} bytes leaves nothing beside the {reserved:.0f} reserved bytes"
    if "buffers.fb_parts" in figures:
        total = sum(part for part in _names(figures, "buffers.fb_parts") if isinstance(part, int))
        if total != (want := _number(figures, "buffers.fb_total")):
            yield f"buffers.fb_parts add up to {total} bytes, buffers.fb_total says {want:.0f}; change both"


def _banks(figures: Figures) -> Iterator[str]:
    names = ("groups", "banks_per_group", "banks")
    groups, each, banks = (_number(figures, f"ub_banks.{name}") for name in names)
    if (want := groups * each) != banks:
        yield f"ub_banks.banks must be ub_banks.groups x ub_banks.banks_per_group = {want:g}, got {banks:g}"
    repeat, block = _number(figures, "vector.bytes_per_repeat"), _number(figures, "vector.block_bytes")
    if repeat % block:
        yield f"vector.bytes_per_repeat must be a multiple of vector.block_bytes = {block:g}, got {repeat:g}"


def _cube_types(figures: Figures) -> Iterator[str]:
    for dtype in _names(figures, "dtypes.cube_inputs"):
        for table in ("cube.k_per_cycle", "cube.k0"):
            if f"{table}.{dtype}" not in figures:
                yield (
                    f"missing: {table}.{dtype} (tl.dot of {dtype}), which dtypes.cube_inputs lists; give it, or take "
                    f"{dtype} out of dtypes.cube_inputs"
                )


def _columns(figures: Figures) -> Iterator[str]:
    """A fractal is 32 bytes deep (C0)."""
    for dtype, bits in CUBE_BITS.items():
        key = f"cube.k0.{dtype}"
        if key in figures and (given := _number(figures, key)) != (want := C0_BYTES * 8 // bits):
            yield f"{key} must be {want} elements, the {C0_BYTES} bytes by which a fractal is deep, got {given:g}"


def _vector_table(figures: Figures) -> Iterator[str]:
    for op in OPS:
        if not any(f"vector.op.{op}.per_repeat.{dtype}" in figures for dtype in DTYPES):
            key = f"vector.op.{op}.per_repeat"
            yield f"missing: {key} ({needed_by(key)}); give at least one data type"
    for dtype in ("fp16", "fp32"):
        if f"vector.lanes.{dtype}" not in figures:
            yield f"missing: {users_of([f'vector.lanes.{dtype}'])}"


def _dtype_lists(figures: Figures) -> Iterator[str]:
    storage = set(_names(figures, "dtypes.storage"))
    for key in ("dtypes.cube_inputs", "dtypes.vector_arithmetic", "dtypes.vector_cast_only"):
        lacking = [str(dtype) for dtype in _names(figures, key) if dtype != "hf32" and dtype not in storage]
        if lacking:
            yield f"{key} names {', '.join(lacking)}, which dtypes.storage lacks"
    both = set(_names(figures, "dtypes.vector_arithmetic")) & set(_names(figures, "dtypes.vector_cast_only"))
    if both:
        names = ", ".join(sorted(map(str, both)))
        yield f"dtypes.vector_cast_only names {names}, also in dtypes.vector_arithmetic"


def _ranges(figures: Figures) -> Iterator[str]:
    for figure in figures.values():
        low, high, value = figure.low, figure.high, figure.value
        if low is None and high is None:
            continue
        if not isinstance(value, int | float):
            yield f"{figure.key}: low and high are for numbers, the value is {value!r}"
        elif not (value if low is None else low) <= value <= (value if high is None else high):
            yield f"{figure.key}: low <= value <= high must hold, got low {low}, value {value}, high {high}"
