"""When each value is used for the last time: execution frees tiles by it, placement assigns buffers by it."""

from __future__ import annotations

from ..precision.dtypes import DType
from .program import Op, Program, Region

COMBINING = ("add", "max", "min")


def last_uses(program: Program) -> dict[int, tuple[int, ...]]:
    """For each operation (by id), the values (by id) of its own region that are not used after it."""
    out: dict[int, tuple[int, ...]] = {}
    _region(program.body, out)
    return out


def _region(region: Region, out: dict[int, tuple[int, ...]]) -> None:
    owned = {v.id for v in region.args}
    for op in region.ops:
        owned.update(r.id for r in op.results)
    kept = {v.id for v in region.yields}
    last: dict[int, int] = {}
    for op in region.ops:
        for vid in read_by(op):
            last[vid] = op.id
        for r in op.results:
            last.setdefault(r.id, op.id)
        for inner in op.regions:
            _region(inner, out)
    by_op: dict[int, list[int]] = {}
    for vid, op_id in last.items():
        if vid in owned and vid not in kept:
            by_op.setdefault(op_id, []).append(vid)
    out.update((op_id, tuple(vids)) for op_id, vids in by_op.items())


def read_by(op: Op) -> set[int]:
    """Values that an operation and everything inside it reads."""
    used = {v.id for v in op.args if v is not None}
    for inner in op.regions:
        used.update(v.id for v in inner.yields)
        for o in inner.ops:
            used |= read_by(o)
    return used


def mark_atomics(program: Program) -> None:
    """Note on each atomic whether its old values are used, and whether it is `locked`.

    Memory itself adds and compares elements of up to 32 bits. Of 64 they are loaded, combined and stored back under a lock
    (AscendNPU-IR, lib/Dialect/HIVM/Transforms/HIVMDecomposeOp.cpp, AtomicStoreOpLowering).
    """
    atomics = program.of_kind("atomic")
    used: set[int] = set()
    for op in program.walk() if atomics else ():
        used.update(v.id for v in op.args if v is not None)
        for inner in op.regions:
            used.update(v.id for v in inner.yields)
    for op in atomics:
        dtype = op.results[0].dtype
        op.attrs["result_used"] = op.results[0].id in used
        op.attrs["locked"] = op.name in COMBINING and isinstance(dtype, DType) and dtype.bits == 64
