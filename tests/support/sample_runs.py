"""Runs for tests of records and views: one with every field filled in, and whatever hypothesis thinks up."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ascendtile.simulator.messages import KINDS, Message, time_hint
from ascendtile.simulator.precision.metrics import ErrorReport, compare
from ascendtile.simulator.products import load_product
from ascendtile.simulator.record.run import Buffer, Launch, LineCost, LiveValue, Pipe, Run, Timeline

ANY_TEXT = st.text(st.characters(), max_size=30)
WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
NUMBERS = st.floats(width=64) | st.integers(-(2**70), 2**70)


def timeline(length: int = 7) -> Timeline:
    """Arrays of the types that the engine gives."""
    whole = {n: np.arange(length, dtype=np.int32) % 2 for n in ("core", "pipe", "program", "record", "line")}
    start = np.arange(length, dtype=np.float64)
    return Timeline(
        ("MTE2", "V"),
        **whole,
        start=start,
        end=start + 1.5,
        done=start + math.pi,
        complete=False,
        gap=start / 2,
        reason=(np.arange(length) % 4 - 1).astype(np.int8),
        waited=np.arange(length, dtype=np.int32) - 1,
        bandwidth=start / 4,
        bytes=start * 32,
        name=whole["line"],
        reasons=("data", "buffer", "flag", "issue", "bandwidth", "tail"),
        names=("GM to UB from HBM", "add"),
        until=float(length),
    )


def launch(kernel: str = "tile_kernel", **changes: Any) -> Launch:
    """One launch of a kernel of two source lines, whose HBM bound binds."""
    file = "/a/folder/kernels/tile.py"
    alive = LiveValue("x", file, 12, (2, 4096), "fp16", 16384, 2, 0, "tile")
    given: dict[str, Any] = {
        "kernel": kernel,
        "grid": (40, 1, 1),
        "constants": {"COLS": 4096, "MODE": "whole", "NONE": None},
        "arguments": {"x_ptr": "fp16[2048, 4096]", "n": "4096"},
        "cycles": 60000.0,
        "time_us": 38.0,
        "overhead_us": 4.0,
        "cores_used": 40,
        "cores": 40,
        "programs": 40,
        "instructions": 12345,
        "pipes": {
            "AIV.MTE2": Pipe(45000.0, 0.75, {"bandwidth": 30000.0, "data": 0.0}),
            "AIV.V": Pipe(24000.0, 0.4, {"data": 36000.0}),
            "AIV.S": Pipe(0.0, 0.0),
        },
        "buffers": {"UB": Buffer(147456, 196608, (alive,), ((12, 32768), (13, 147456)))},
        "lines": (
            LineCost(
                file,
                13,
                "tl.store(out_ptr + cols, x * 2)",
                40000.0,
                {"AIV.V": 24000.0},
                {"AIV.V": {"data": 9.0}},
            ),
            LineCost(file, 12, "x = tl.load(x_ptr + cols)", 15000.0, {"AIV.MTE2": 45000.0}),
        ),
        "other_cycles": 5000.0,
        "bounds": {"HBM": 28.5, "AIV.V": 13.0, "launch": 4.0},
        "resources": {"HBM": 5e7, "L2": 5e7},
        "warnings": (time_hint("a discrete access", "tile.py:12"),),
        "notes": ("exp on fp16: costed as exp on fp32",),
        "timeline": timeline(),
    }
    return Launch(**{**given, **changes})


def error_report() -> ErrorReport:
    """Of four elements, one of which is NaN on one side: some figures are finite, some are not."""
    return compare(np.float32([1, 2, np.nan, 4]), np.float32([1, 2.5, 3, 4]), "fp32")


def exact_report() -> ErrorReport:
    """No error: infinitely many effective bits."""
    return compare(np.float32([1, 2]), np.float32([1, 2]), "fp32")


def run(**changes: Any) -> Run:
    """A run with every field filled in."""
    given: dict[str, Any] = {
        "name": "tile",
        "product": load_product("ascend910b3", {"buffers.l1": "256KiB"}).to_dict(),
        "options": {"multibuffer": 2, "limits": (1, math.inf), "sum_order": "tree"},
        "launches": (launch(),),
        "errors": {"out": error_report(), "exact": exact_report()},
        "op": "tile",
        "case": "medium",
        "dtype": "float16",
        "cube_math_type": "KEEP_DTYPE",
        "tiling": {"rows": 2, "cols": 4096, "strategy": "whole"},
        "inputs": {"x": "float16 [2048, 4096]"},
        "values_seconds": 0.25,
        "time_seconds": None,
    }
    return Run(**{**given, **changes})


def same(a: Any, b: Any) -> bool:
    """Equal field by field, types included; NaN equals NaN, arrays are compared by type and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Message):
        return repr(a.__reduce__()) == repr(b.__reduce__())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


def _texts(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(ANY_TEXT, values, max_size=3)


@st.composite
def hostile_runs(draw: st.DrawFn) -> Run:
    """Runs that satisfy the types and nothing else."""
    words, numbers = draw(_texts(ANY_TEXT)), draw(st.lists(NUMBERS, min_size=4, max_size=4))
    cycles, time_us, least, busy = numbers
    text = draw(ANY_TEXT)
    lines = tuple(LineCost(k, k_line, v, cycles, {k: busy}) for k_line, (k, v) in enumerate(words.items()))
    value = LiveValue(text, text, draw(WHOLE), (draw(WHOLE),), text, 7, 2, 0)
    one = launch(
        text,
        constants=draw(_texts(_ANYTHING)),
        cycles=cycles,
        time_us=time_us,
        pipes={k: Pipe(busy, least, {v: cycles}) for k, v in words.items()},
        buffers={k: Buffer(draw(WHOLE), draw(WHOLE), (value,)) for k in words},
        lines=lines,
        bounds={k: least for k in words},
        warnings=tuple(Message(w, kind, v, (7,)) for (w, v), kind in zip(words.items(), KINDS, strict=False)),
    )
    product = draw(
        st.sampled_from([{}, {"name": text}, {"figures": words}, {"figures": {"product.name": words}}])
    )
    launches = tuple([one] * draw(st.integers(0, 3)))
    shape = tuple(draw(st.lists(WHOLE, max_size=40)))
    wrong = replace(
        error_report(), shape=shape, max_abs=busy, max_ulp=least, effective_bits=cycles, subnormal=7
    )
    return run(
        name=text,
        op=draw(st.none() | ANY_TEXT),
        product=product,
        tiling=words,
        launches=launches,
        errors={text: wrong},
    )


_ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | _texts(inner),
    max_leaves=6,
)
