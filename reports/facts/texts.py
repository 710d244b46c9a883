"""Numbers and names as the text of a page. Text of a record may be anybody's: nothing of it reaches a terminal raw."""

from __future__ import annotations

import math
from pathlib import PurePath

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

KIB = 1024
LARGEST_INT = 10**300  # as a float; a product of dimensions may be more
LARGEST_SHOWN = 1e15  # beyond that, a count of digits is less readable than an exponent

# What a bound or a pipe stands for, by the last part of its name ("AIV.V" is the pipe V of the core AIV).
MEANINGS = {
    "HBM": "HBM bandwidth",
    "L2": "L2 bandwidth",
    "launch": "launch overhead",
    "buffers": "waiting for a free buffer",
    "flags": "flags between pipes",
    "dispatch": "handing out programs",
    "S": "scalar unit",
    "V": "Vector unit",
    "M": "Cube unit",
    "MTE1": "copying L1 to L0",
    "MTE2": "loading",
    "MTE3": "storing",
    "FIXP": "moving results out of L0C",
}
LAUNCH_BOUND = "launch and handing out programs"
RECORDS = "a record is one step of a pipe: several instructions alike, or none, as where it waits for a flag"
# Where a figure of a product comes from.
GRADES = {"A": "documented", "B": "measured", "C": "third party", "D": "assumed"}
STALLS = {
    "data": "data",
    "buffer": "a free buffer",
    "issue": "the scalar issue",
    "bandwidth": "shared bandwidth",
    "tail": "the program's end",
    "flag": "flags of other cores",
    "dispatch": "the next program",
    "idle": "other cores to end",
}


def clean(text: str, width: int | None = None) -> str:
    """`text` on one line, control characters written as escapes, cut to `width` columns with '..'."""
    flat = "".join(c if c.isprintable() else _escape(c) for c in text)
    if width is None or cell_len(flat) <= width:
        return flat
    return f"{set_cell_size(flat, width - 2)}.."


def _escape(c: str) -> str:
    return " " if c in "\t\n\r" else c.encode("unicode_escape").decode("ascii")


def signed_micros(us: float) -> str:
    """+1.50, -0.250; a difference of times, 0 for what is only the rounding of one"""
    us = 0.0 if abs(us) < 1e-9 else us
    return f"{'-' if us < 0 else '+'}{micros(abs(us))}"


def count(x: float) -> str:
    """65,538; no digits after the point."""
    if abs(x) < LARGEST_SHOWN:
        return f"{x:,.0f}"
    return f"{x if isinstance(x, float) else max(-LARGEST_INT, min(x, LARGEST_INT)):.3g}"


def micros(x: float) -> str:
    """28.8, 64.0, 0.0114, 1,234: three figures or all before the point."""
    return f"{x:,.0f}" if 1000 <= abs(x) < LARGEST_SHOWN else f"{x:#.3g}".rstrip(".")


def percent(x: float) -> str:
    """52 %; of something."""
    shown = f"{100 * x:.0f} %" if abs(x) < 1e3 else f"{100 * x:.2g} %"
    return "0 %" if shown == "-0 %" else shown


def share_text(x: float) -> str:
    """0.012 %, 3.4 %, 52 %: a share that may be small."""
    return f"{100 * x:.2g} %" if 0 < x < 0.0995 else percent(x)


def signed_percent(x: float) -> str:
    """+12 %, -3 %; 0 % for what rounds to it."""
    return f"{'+' if x > 0 and percent(x) != '0 %' else ''}{percent(x)}"


def kib(x: float) -> str:
    """172.0, in KiB."""
    return f"{x / KIB:,.1f}" if abs(x) < LARGEST_SHOWN else f"{x / KIB:.3g}"


def small(x: float) -> str:
    """1.22e-04: an error. Zero, NaN and infinity in a form that fits the column."""
    return "0" if x == 0 else f"{x:.2e}" if math.isfinite(x) else f"{x:g}"


def figure(x: float) -> str:
    """0.502, 12.3, 4.1e+04: errors in ulp, bits."""
    return f"{x:.3g}"


def meaning(name: str) -> str:
    """What a bound or pipe stands for: "HBM bandwidth", "Vector unit (AIV.V)"."""
    found = MEANINGS.get(name.rpartition(".")[2])
    if found is None:
        return clean(name, 40)
    return f"{found} ({clean(name, 30)})" if "." in name else found


def bound_meaning(name: str) -> str:
    """`meaning` of a lower bound: that of the launch has the programs handed out in turn, too."""
    return LAUNCH_BOUND if name == "launch" else meaning(name)


def place(file: str, line: int) -> str:
    """rms_norm_grad.py:42"""
    return clean(f"{PurePath(file).name}:{line}")


def cut(text: str, width: int) -> str:
    """As `clean`; of a place (file.py:42) the name is cut and not the number."""
    name, colon, number = text.rpartition(":")
    kept = len(number) + 1 if colon and number.isdigit() else 0
    return clean(f"{clean(name, max(2, width - kept))}:{number}" if kept else text, width)


class Bar:
    """A share as a bar of `width` columns: blocks where the output can show them, else # and dots."""

    def __init__(self, share: float, width: int = 20, style: str = "") -> None:
        self.share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
        self.width = width
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        full, empty = ("#", ".") if options.ascii_only else ("\u2588", "\u2591")
        filled = round(self.share * self.width)
        yield Text.assemble((full * filled, self.style), (empty * (self.width - filled), "dim"))


ERROR_OF_TILING = "error: mean |error| over mean |result|, of the output where that is largest"
OBJECTIVES = {"time": "time", "error": "error", "ub": "UB peak"}
