"""Views of number formats: the table of all, the page of one with its codes, and what becomes of a value in it.

max, min: the largest and the smallest positive number. ulp of 1: the distance of 1 to the next number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ....simulator.precision.block_formats import BlockFormat
from ....simulator.precision.code_tables import codes_of
from ....simulator.precision.formats import Format
from ....simulator.precision.rounding import MODES, round_to, to_integer
from ...facts.texts import clean
from ..tables import folding

MOST_CODES = 8  # bits of formats of which all values are shown
ACROSS = 8  # codes in a row of the table


def formats_json(formats: Sequence[Format], blocks: Sequence[BlockFormat]) -> dict[str, object]:
    """All of the catalogue, as the page of each says it without its codes."""
    return {"formats": [_facts(f) for f in formats], "block_formats": [block_json(b) for b in blocks]}


def formats_table(formats: Sequence[Format], blocks: Sequence[BlockFormat]) -> RenderableType:
    """A line each."""
    columns = (("format", 11), (">bits", 4), ("fields", 12), (">bias", 5), (">max", 9), (">min", 9))
    table = folding(*columns, (">ulp of 1", 8), ("codes", 13))
    for f in formats:
        table.add_row(*(Text(cell) for cell in _row(f)))
    others = folding(
        ("block format", 12), ("elements", 9), ("scale", 8), (">block", 6), (">bits an element", 15)
    )
    others.title, others.title_justify = Text("\nblock formats", style="bold"), "left"
    for b in blocks:
        size = "axis" if b.block is None else str(b.block)
        cells = b.name, b.element.name, b.scale.name, size, f"{b.bits_per_element:g}"
        others.add_row(*(Text(cell) for cell in cells))
    return Group(table, others)


def format_json(fmt: Format, given: Sequence[float]) -> dict[str, object]:
    """Fields and figures of one, the value of every code up to 8 bits, and given values by every mode."""
    codes = [_plain(v) for v in fmt.values] if fmt.bits <= MOST_CODES else None
    rounded = [{"value": _plain(x), **{m: _plain(v) for m, v in _by_mode(fmt, x).items()}} for x in given]
    return {**_facts(fmt), "values": codes, "rounded": rounded}


def format_page(fmt: Format, given: Sequence[float]) -> RenderableType:
    """The same to read."""
    facts = folding(("", 18), ("", 0), heads=False)
    for name, text in _said(fmt):
        facts.add_row(Text(name), Text(clean(text)))
    parts: list[RenderableType] = [Text(clean(fmt.name), style="bold"), facts]
    if given:
        parts.append(_rounding_table(fmt, given))
    if fmt.bits <= MOST_CODES:
        parts.append(_codes(fmt))
    return Group(*parts)


def block_json(fmt: BlockFormat, given: Sequence[float] = ()) -> dict[str, object]:
    """A block format: its parts by name and its figures."""
    return {
        "name": fmt.name, "element": fmt.element.name, "scale": fmt.scale.name, "block": fmt.block, "rule": fmt.rule,
        "tensor_scale": fmt.tensor_scale, "bits_per_element": fmt.bits_per_element, "source": fmt.source,
    }  # fmt: skip


def block_page(fmt: BlockFormat, given: Sequence[float] = ()) -> RenderableType:
    """The same to read."""
    facts = folding(("", 18), ("", 0), heads=False)
    rules = {
        "power": "a power of two: that of the largest magnitude of the block",
        "amax": "largest magnitude / largest element",
    }
    whole = "; one FP32 scale for the tensor" if fmt.tensor_scale else ""
    rows = (
        ("elements", f"{fmt.element}, {fmt.element.bits} bits, up to {float(fmt.element.max):g}"),
        ("scales", f"{fmt.scale}, {rules[fmt.rule]}{whole}"),
        ("block", "all along the axis" if fmt.block is None else f"{fmt.block} elements"),
        ("bits an element", f"{fmt.bits_per_element:g}"),
        ("source", fmt.source or "yours"),
    )
    for name, text in rows:
        facts.add_row(Text(name), Text(clean(text)))
    return Group(Text(clean(fmt.name), style="bold"), facts)


def _row(f: Format) -> tuple[str, ...]:
    fields = f"e{f.exponent}m{f.mantissa}" + (" tapered" if f.taper else "")
    specials = [*(["inf"] if f.infinities else []), *([] if f.nan == "none" else [f"NaN {f.nan}"])]
    figures = (f"{float(x):.3g}" for x in (f.max, f.min_subnormal, f.ulp(1.0)))
    return f.name, str(f.bits), fields, _bias(f), *figures, ", ".join(specials)


def _bias(f: Format) -> str:
    return "" if f.taper or f.is_integer else str(f.bias)


def _facts(f: Format) -> dict[str, object]:
    return {
        "name": f.name, "text": f.text, "bits": f.bits, "signed": f.signed, "exponent": f.exponent, "mantissa": f.mantissa,
        "bias": f.bias, "infinities": f.infinities, "nan": f.nan, "subnormals": f.subnormals, "zero": f.zero,
        "saturates": f.saturates, "rounding": f.rounding, "taper": [list(row) for row in f.taper], "max": f.max,
        "min": f.min, "min_normal": f.min_normal, "min_subnormal": f.min_subnormal, "ulp_of_one": float(f.ulp(1.0)),
        "unit_roundoff": f.unit_roundoff, "stored_as": str(f.dtype), "aliases": list(f.aliases), "source": f.source,
    }  # fmt: skip


def _said(f: Format) -> list[tuple[str, str]]:
    """Facts of a page, name and text."""
    fields = f"{int(f.signed)} sign, {f.exponent} exponent, {f.mantissa} mantissa bits"
    if f.taper:
        fields += " at most; prefix and exponent bits: " + ", ".join(f"{p} {max(w, 0)}" for p, w in f.taper)
    nan = {
        "ieee": "under the largest exponent",
        "one": "the largest code",
        "zero": "the code of minus zero",
        "none": "no",
    }
    beyond = "the largest finite value" if f.saturates else "infinity" if f.infinities else "NaN"
    if not f.saturates and not f.infinities and f.nan == "none":
        beyond = "the largest finite value"
    rows = [("fields", fields), ("numbers", f"{float(f.min):g} to {float(f.max):g}")]
    if f.is_float:
        rows += [
            ("bias", _bias(f) or "none: the exponent has a sign"),
            ("smallest", f"{f.min_subnormal:g}, normal from {f.min_normal:g}"),
            ("ulp of 1", f"{float(f.ulp(1.0)):g}; relative error of nearest up to {f.unit_roundoff:g}"),
            ("infinities", "yes" if f.infinities else "no"),
            ("NaN", nan[f.nan]),
            ("too large", f"becomes {beyond}"),
            ("rounding", f.rounding),
        ]
    rows += [("stored as", f"{f.dtype}" if f.stored else "FP32; only units hold it"), ("one line", f.text)]
    return [*rows, ("also called", ", ".join(f.aliases) or "-"), ("source", f.source or "yours")]


def _by_mode(fmt: Format, x: float) -> dict[str, float]:
    if fmt.is_integer:
        return {mode: float(to_integer(np.float64(x), fmt, mode)) for mode in MODES}
    return {mode: float(round_to(np.float64(x), fmt, mode)) for mode in MODES}


def _rounding_table(fmt: Format, given: Sequence[float]) -> Table:
    table = folding((">value", 14), ("mode", 8), (">becomes", 14), (">relative error", 14), ("code", 20))
    table.title, table.title_justify = Text("\nvalues", style="bold"), "left"
    for x in given:
        for at, (mode, value) in enumerate(_by_mode(fmt, x).items()):
            error = f"{(value - x) / x:.3g}" if x and math.isfinite(x) and math.isfinite(value) else ""
            cells = f"{x:.9g}" if at == 0 else "", mode, f"{value:.9g}", error, _code(fmt, value)
            table.add_row(*(Text(cell) for cell in cells))
    return table


def _code(fmt: Format, value: float) -> str:
    """Bits of the fields, up to 16 of them."""
    if fmt.bits > 16 or fmt.is_integer:
        return ""
    bits = f"{int(codes_of(np.array([value], np.float32), fmt)[0]):0{fmt.bits}b}"
    if fmt.taper or not fmt.is_float:
        return bits
    sign, exponent = int(fmt.signed), int(fmt.signed) + fmt.exponent
    return " ".join(part for part in (bits[:sign], bits[sign:exponent], bits[exponent:]) if part)


def _codes(fmt: Format) -> Table:
    """Values by code; without sign, if the other half says the same with a minus."""
    half = fmt.signed and fmt.is_float
    values = fmt.values[: 1 << fmt.magnitude_bits] if half else fmt.values
    table = folding(("code", 4), *((f">+{i}", 8) for i in range(ACROSS)))
    title = (
        f"\nvalues by code, with the sign from {1 << fmt.magnitude_bits:#x} on"
        if half
        else "\nvalues by code"
    )
    table.title, table.title_justify = Text(title, style="bold"), "left"
    for start in range(0, len(values), ACROSS):
        cells = (_short(v) for v in values[start : start + ACROSS])
        table.add_row(Text(f"0x{start:02x}"), *(Text(cell) for cell in cells))
    return table


def _short(x: float) -> str:
    """A value in 8 columns."""
    whole = [f"{x:.0f}"] if float(x).is_integer() else []
    digits = [f"{x:.{n}g}" for n in (4, 3, 2)]
    return next((text for text in whole + digits if len(text) <= 8), digits[-1])


def _plain(x: float) -> float | str:
    """A number that JSON has, or its name."""
    return float(x) if math.isfinite(x) else str(float(x))
