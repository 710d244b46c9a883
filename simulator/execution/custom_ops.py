"""Values of operations of the user: their callback is called for one program after another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interpreter.faults import Site
from ..ir.building.custom import filled
from ..ir.program import Op, Value
from ..precision.dtypes import DType
from .context import Context


def custom(at: Context, op: Op, *args: np.ndarray) -> list[np.ndarray]:
    """Results of all programs, (P or 1, *shape) each, as they are held."""
    count = max(x.shape[0] for x in args)
    rows = [_one(at, op, args, p) for p in range(count)]
    return [np.stack([row[k] for row in rows]) for k in range(len(op.results))]


def _one(at: Context, op: Op, args: tuple[np.ndarray, ...], p: int) -> list[np.ndarray]:
    given = [_stored(x[p if x.shape[0] > 1 else 0], v) for x, v in zip(args, op.args, strict=True)]
    positional, keywords = filled(op.attrs["arguments"], given)
    site, program = at.walk.site(op), int(at.walk.programs[p if p < len(at.walk.active) else 0])
    try:
        made = op.attrs["callback"](*positional, **keywords)
    except Exception as e:
        raise site.error(
            f"custom op {op.name!r} in {site.program(program)}: {type(e).__name__}: {e}"
        ) from None
    made = keywords["out"] if made is None else made
    made = made if isinstance(made, tuple | list) else (made,)
    return [_held(op, x, r, site, program) for x, r in _pairs(op, made, site)]


def _pairs(op: Op, made: Any, site: Site) -> Any:
    if len(made) != len(op.results):
        raise site.error(f"custom op {op.name!r} gave {len(made)} results, but `out` has {len(op.results)}")
    return zip(made, op.results, strict=True)


def _stored(x: np.ndarray, v: Value | None) -> Any:
    """A copy for the callback in the type that memory would hold; a scalar as a numpy scalar."""
    assert v is not None
    assert isinstance(v.dtype, DType)
    out = np.array(x, dtype=v.dtype.storage)
    return out if v.shape else out[()]


def _held(op: Op, x: Any, r: Value, site: Site, program: int) -> np.ndarray:
    assert isinstance(r.dtype, DType)
    out = np.asarray(x)
    if out.shape != r.shape:
        raise site.error(
            f"custom op {op.name!r} gave shape {list(out.shape)} in {site.program(program)}, but `out` has "
            f"{list(r.shape)}"
        )
    return out.astype(r.dtype.storage).astype(r.dtype.held)
