"""Launches of GroupNormBackward: the kernels of a tiling, and how sums of channels become dgamma and dbeta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....simulator.precision.dtypes import float32
from ...operator.layout import up
from ...operator.plan import PlanContext, Step, bank_switches
from ...operator.tensors import Knobs, Tensor, dtype_of, part_of
from ...shared.sums import REPEAT, zero_fill_step
from ..planes import Planes
from .chain import chain_steps
from .choice import GroupTensors, kernel_of, stays_in_l2, strip_of_sums
from .cube import cube_sums_steps
from .tiles import resident, shared_dx, shared_sums, streamed, sum_rows, vectors

TRAINING = 1001  # the architecture on which the vendor composes the gradient of other kernels
SUM_TILE = 4096  # elements of a tile of sum_rows


@dataclass(frozen=True)
class Sums:
    """Where a kernel puts the sums of channels, and the launches before and after it."""

    dgamma: Tensor | None
    dbeta: Tensor | None
    per_row: int
    atomic: bool
    before: tuple[Step, ...]
    after: tuple[Step, ...]


def make_steps(given: GroupTensors, view: Planes, tiling: dict[str, Any], context: PlanContext) -> list[Step]:
    """All launches of a tiling."""
    if tiling["strategy"] == "vendor" and context.product.integer("product.npu_arch") == TRAINING:
        return chain_steps(given, view, context)
    kernel = kernel_of(view, tiling)
    if kernel in ("shared", "cube"):
        return _apart(_shared_steps(given, view, tiling, context), tiling)
    rows = tiling["parts"] if kernel == "vectors" else view.samples
    sums = _place(given, view, rows, tiling, context)
    make = {"resident": _resident_step, "streamed": _streamed_step, "vectors": _vectors_step}[kernel]
    return _apart([*sums.before, make(given, view, tiling, sums), *sums.after], tiling)


def _apart(steps: Sequence[Step], tiling: Knobs) -> list[Step]:
    """The launches with tiles placed as the knob `banks` says."""
    return [replace(step, switches={**step.switches, **bank_switches(tiling)}) for step in steps]


def _place(given: GroupTensors, view: Planes, rows: int, tiling: Knobs, context: PlanContext) -> Sums:
    """The outputs themselves where one row holds all sums, or else a workspace (2, rows, C) in FP32.

    two_phase: a row for each sample (or part). pairwise: two samples add to a row, whose result does not depend on their
    order. atomic: all add to one row.
    """
    cores = context.product.vector_cores
    per_row = {"two_phase": 1, "pairwise": 2, "atomic": rows}[tiling["combine"]] if rows > 1 else 1
    rows, atomic = -(-rows // per_row), per_row > 1
    wanted = [t for t in (given.dgamma, given.dbeta) if t is not None]
    if not wanted:
        return Sums(None, None, 1, False, (), ())
    if rows == 1 and (not atomic or dtype_of(wanted[0]) == float32):
        fills = tuple(zero_fill_step(t, cores) for t in wanted) if atomic else ()
        return Sums(given.dgamma, given.dbeta, per_row, atomic, fills, ())
    spaces = [
        None if t is None else context.tensor((rows, view.channels), float32)
        for t in (given.dgamma, given.dbeta)
    ]
    fills = tuple(zero_fill_step(t, cores) for t in spaces if t is not None) if atomic else ()
    return Sums(
        spaces[0], spaces[1], per_row, atomic, fills, (_sum_step(given, spaces, rows, view, tiling, cores),)
    )


def _sum_step(
    given: GroupTensors, spaces: Sequence[Tensor | None], rows: int, view: Planes, tiling: Knobs, cores: int
) -> Step:
    """Strips of channels over the cores, whole repeats of 64; of few rows wide ones, since a launch costs what it wakes."""
    least = min(SUM_TILE // 8 // rows // REPEAT, 4) * REPEAT
    cols = max(least, min(up(-(-view.channels // cores), REPEAT), 4 * REPEAT))
    arguments = {
        "dgamma_ptr": spaces[0],
        "dbeta_ptr": spaces[1],
        "dgamma_out": given.dgamma,
        "dbeta_out": given.dbeta,
        "rows": rows,
        "channels": view.channels,
        "ROWS": min(rows, max(1, SUM_TILE // cols)),
        "COLS": cols,
        "multibuffer": tiling["buffers"],
    }
    return Step(sum_rows, min(cores, -(-view.channels // cols)), arguments)


def _inverse(view: Planes) -> float:
    return 1.0 / (view.depth * view.space)


def _common(given: GroupTensors, view: Planes, tiling: Knobs, sums: Sums) -> dict[str, Any]:
    """What resident, streamed and vectors all take."""
    return {
        **given.pointers(),
        "dgamma_ptr": sums.dgamma,
        "dbeta_ptr": sums.dbeta,
        "channels": view.channels,
        "inverse": _inverse(view),
        "D": view.depth,
        "ATOMIC": sums.atomic,
        "multibuffer": tiling["buffers"],
    }


def _resident_step(given: GroupTensors, view: Planes, tiling: Knobs, sums: Sums) -> Step:
    own = {"tasks": view.tasks, "per_row": sums.per_row, "S": view.space, "FORM": tiling["form"]}
    tile = {"ALL": view.groups, "GROUPS": tiling["groups"]}
    return Step(resident, tiling["cores"], {**_common(given, view, tiling, sums), **own, **tile})


def _streamed_step(given: GroupTensors, view: Planes, tiling: Knobs, sums: Sums) -> Step:
    share = -(-view.tasks // tiling["cores"])
    own = {"tasks": view.tasks, "tasks_per_core": share, "groups": view.groups, "per_row": sums.per_row}
    tile = {"S": view.space, "ROWS": tiling["rows"], "COLS": tiling["cols"], "FORM": tiling["form"]}
    return Step(streamed, tiling["cores"], {**_common(given, view, tiling, sums), **own, **tile})


def _vectors_step(given: GroupTensors, view: Planes, tiling: Knobs, sums: Sums) -> Step:
    parts, blocks = tiling["parts"], view.groups // tiling["groups"]
    share = -(-blocks // (tiling["cores"] // parts))
    own = {"samples": view.samples, "samples_per_part": -(-view.samples // parts), "parts": parts}
    tile = {"ALL": view.groups, "GROUPS": tiling["groups"], "SAMPLES": tiling["rows"]}
    shared = _common(given, view, tiling, sums)
    return Step(vectors, tiling["cores"], {**shared, **own, **tile, "blocks_per_core": share})


def _shared_steps(
    given: GroupTensors, view: Planes, tiling: dict[str, Any], context: PlanContext
) -> list[Step]:
    """Sums of channels by one launch, or by several with the Cube; dx by a second one, dgamma and dbeta by a third."""
    parts, on_cube = tiling["parts"], tiling["strategy"] == "cube"
    each = 1 if on_cube else parts  # rows of sums of a sample
    rows = each * view.samples
    workspace = context.tensor((2, rows, view.channels), float32)
    blocks = -(-view.depth // tiling["rows"])
    units = view.tasks * blocks * parts
    chunks = -(-view.space // tiling["cols"])
    common = {
        **{n: x for n, x in given.pointers().items() if n not in ("gamma_ptr", "dx_ptr")},
        "sums_ptr": workspace,
        "units": units,
        "units_per_core": -(-units // tiling["cores"]),
        "blocks": blocks,
        "parts": parts,
        "span": -(-chunks // parts) * tiling["cols"],
        "planes": view.samples * view.channels,
        "S": view.space,
        "ROWS": tiling["rows"],
        "COLS": tiling["cols"],
        "multibuffer": tiling["buffers"],
    }
    if on_cube:
        steps = cube_sums_steps(given, workspace, view, tiling, context)
    else:
        steps = [Step(shared_sums, tiling["cores"], {**common, "D": view.depth, "FORM": tiling["form"]})]
    in_l2 = stays_in_l2(view, dtype_of(given.x).itemsize, context.product)
    if given.dx is not None:
        own = {"gamma_ptr": given.gamma, "dx_ptr": given.dx, "groups": view.groups, "inverse": _inverse(view)}
        warm = {"l2": {"dy": "warm", "x": "warm", "*": "cold"}} if in_l2 else {}
        width = strip_of_sums(view.depth, each, context.ub_bytes)
        sizes = {"PARTS": each, "D": view.depth, "WIDTH": width}
        steps.append(Step(shared_dx, tiling["cores"], {**common, **own, **sizes}, warm))
    if given.dgamma is not None or given.dbeta is not None:
        halves = [part_of(workspace, 1), part_of(workspace, 0)]  # sums of dy * xh, and of dy
        steps.append(_sum_step(given, halves, rows, view, tiling, context.product.vector_cores))
    return steps
