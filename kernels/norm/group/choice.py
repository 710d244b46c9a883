"""Tilings of GroupNormBackward: what fits, which strategy pays, and what the vendor's tiling would take."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....simulator.errors import UsageError
from ....simulator.products import Product
from ...operator.layout import even_part, up
from ...operator.plan import PlanContext
from ...operator.tensors import Knobs, Tensor
from ..planes import Planes

BLOCK = 16  # elements to which a row of a tile is padded at most
MARGIN_BYTES = 4096  # of UB, for sums of channels and what belongs to a group
# What an iteration of a loop, a group and two more launches cost, in elements of a core's share, and what an element costs
# that is read twice, by one launch or by two, beside one that is read once: fitted to the simulator's own times.
ITERATION_ELEMENTS = 660
# Of streamed and shared, in the same unit: a block of channels (its sums leave, its gamma comes), the sums of a row of a
# tile, and how much more a tile takes whose rows are no whole repeats of 64, added up piece by piece: fitted likewise.
BLOCK_ELEMENTS, ROW_ELEMENTS = 2000, 120
REPEAT, UNEVEN = 64, 1.2
NARROWEST = 256  # columns to which rows that would fit whole are cut, so that a tile has more channels
GROUP_ELEMENTS = 3700
LAUNCH_ELEMENTS = 48_000
TWICE = 1.45
# By bytes of an element; the second launch finds dy and x in L2 where they fit there together. In L2: of launches in a loop,
# where the first one finds a part of them there, too (sdxl-320 and sd-unet-960 in float32 take what 1.61 and 1.44 tell).
TWICE_APART, TWICE_IN_L2 = {2: 1.38, 4: 2.65}, {2: 1.49, 4: 1.55}
UNITS_PER_CORE = 4
NAME = "group_norm_backward"


@dataclass(frozen=True)
class GroupTensors:
    """Inputs and the outputs that are wanted (None: not)."""

    dy: Tensor
    x: Tensor
    mean: Tensor
    rstd: Tensor
    gamma: Tensor | None
    dx: Tensor | None
    dgamma: Tensor | None
    dbeta: Tensor | None

    def pointers(self) -> dict[str, Any]:
        names = ("dy", "x", "mean", "rstd", "gamma", "dx")
        return {f"{n}_ptr": getattr(self, n) for n in names}


def resident_bytes(view: Planes, groups: int, itemsize: int, copies: int) -> int:
    """UB bytes of a tile of whole groups, at most (checked against the placement by a test).

    dy, x and dx in their own type, `copies` each; three FP32 tiles (an FP32 tile is computed on where it was loaded) and, of
    16-bit tiles, half of two for the first steps of the sums; per channel its sums and what they are made of.
    """
    elements = groups * view.depth * up(view.space, BLOCK)
    each = (3 * itemsize * copies if copies > 1 else itemsize) + (16 if itemsize == 2 else 12)
    return elements * each + groups * up(view.depth, BLOCK) * 48 + MARGIN_BYTES


def tile_bytes(itemsize: int, copies: int) -> int:
    """UB bytes per element of a tile of streamed and shared, at most: as above, two FP32 tiles."""
    return (3 * itemsize * copies if copies > 1 else 4) + 8


def vector_bytes(itemsize: int, copies: int) -> int:
    """UB bytes per element of a tile of vectors, at most."""
    return (3 * itemsize * copies if copies > 1 else 4) + 20


VENDOR_LINE_BYTES = 28  # UB bytes per channel of a tile of one sample in vectors, with one copy
SUM_BYTES = 24  # UB bytes per channel of a tile of vectors: two accumulators, gamma, the sums of a tile


def choose(view: Planes, itemsize: int, knobs: Knobs, context: PlanContext) -> dict[str, Any]:
    """Every knob: as given, or by the rules here.

    strategy auto: vectors where S is 1 and a group fits; else of resident (if a group fits by `resident_bytes`),
    streamed and shared the one whose busiest core has the least work. The other knobs: see the functions of the
    strategies.
    """
    cores = context.cores(knobs["cores"])
    if knobs["strategy"] == "vendor":
        return vendor_tiling(view, itemsize, knobs, context.product, cores)
    if knobs["strategy"] == "vectors" and view.space != 1:
        raise UsageError(
            f"{NAME}: strategy vectors is for HxW = 1; here HxW is {view.space}: take resident, streamed, shared or auto"
        )
    wanted = knobs["strategy"]
    if wanted == "auto" and view.space == 1 and _vectors_fit(view, itemsize, knobs, context.ub_bytes):
        wanted = "vectors"
    in_l2 = functools.partial(stays_in_l2, view, itemsize, context.product)
    shared = functools.partial(_shared, twice=(TWICE_IN_L2 if in_l2() else TWICE_APART)[itemsize])
    makers: dict[str, Callable[..., Choice | None]]
    makers = {
        "resident": _resident,
        "streamed": functools.partial(_streamed, in_l2=in_l2),
        "shared": shared,
        "vectors": _vectors,
        "cube": _cube,
    }
    names = ("resident", "streamed", "shared") if wanted == "auto" else (wanted,)
    found = [makers[n](view, itemsize, knobs, context.ub_bytes, cores) for n in names]
    _, best = min((x for x in found if x is not None), key=lambda x: x[0])
    return {**knobs, **best}


Choice = tuple[float, dict[str, Any]]
InL2 = Callable[[int], bool]  # whether so many groups at a time stay in L2 from one sweep to the next


def _resident(view: Planes, itemsize: int, knobs: Knobs, ub: int, cores: int) -> Choice | None:
    """groups of a tile: a divisor of the groups of a sample, so that the busiest core has the least work."""
    fits = [
        g
        for g in range(1, view.groups + 1)
        if view.groups % g == 0 and resident_bytes(view, g, itemsize, knobs["buffers"]) <= ub
    ]
    if knobs["groups"]:
        fits = [max(g for g in range(1, knobs["groups"] + 1) if view.groups % g == 0)]
    elif not fits:
        if knobs["strategy"] == "auto":
            return None
        fits = [1]
    size = view.depth * up(view.space, BLOCK)

    def work(groups: int) -> float:
        iterations = -(-(view.tasks // groups) // cores)
        return iterations * (groups * size + ITERATION_ELEMENTS) + groups * size

    groups = min(fits, key=work)
    tiles = view.tasks // groups
    # No more than keep the number of iterations: a launch costs what it wakes.
    used = -(-tiles // -(-tiles // cores))
    tiling = {"strategy": "resident", "groups": groups, "rows": view.depth, "cols": view.space, "parts": 1}
    return work(groups), {**tiling, "cores": used}


def _tiles(view: Planes, itemsize: int, knobs: Knobs, ub: int) -> list[tuple[int, int]]:
    """(channels, elements of S) of the tiles to choose from: rows as wide as fit, or cut so that there are more of them."""
    budget = max(BLOCK, (ub - MARGIN_BYTES) // tile_bytes(itemsize, knobs["buffers"]))

    def rows(cols: int) -> int:
        most = max(1, budget // up(cols, BLOCK))
        return min(view.depth, knobs["rows"] or even_part(view.depth, most))

    if knobs["cols"]:
        widths = [min(view.space, knobs["cols"])]
    else:
        parts = (view.space // k for k in range(2, view.space // NARROWEST + 1) if view.space % k == 0)
        widths = [even_part(view.space, budget // BLOCK * BLOCK), *(n for n in parts if n <= budget)]
    return [(rows(cols), cols) for cols in widths]


def _tile_work(rows: int, cols: int, twice: float) -> float:
    """A tile in both sweeps, in elements that are read once."""
    wide = up(cols, BLOCK) * (UNEVEN if cols % REPEAT else 1.0)
    return twice * rows * wide + ROW_ELEMENTS * rows + 2 * ITERATION_ELEMENTS


def _streamed(view: Planes, itemsize: int, knobs: Knobs, ub: int, cores: int, in_l2: InL2) -> Choice:
    share = -(-view.tasks // cores)
    twice = TWICE if in_l2(min(cores, view.tasks)) else max(TWICE, TWICE_APART[itemsize])

    def work(tile: tuple[int, int]) -> float:
        blocks, chunks = -(-view.depth // tile[0]), -(-view.space // tile[1])
        return share * (blocks * (chunks * _tile_work(*tile, twice) + BLOCK_ELEMENTS) + GROUP_ELEMENTS)

    rows, cols = tile = min(_tiles(view, itemsize, knobs, ub), key=work)
    tiling = {"strategy": "streamed", "groups": 1, "rows": rows, "cols": cols, "parts": 1}
    return work(tile), {**tiling, "cores": -(-view.tasks // share)}


def strip_of_sums(depth: int, parts: int, ub: int) -> int:
    """Channels of a group whose sums shared and cube add up at once: all where their tiles take half of UB at most."""
    # Two tiles of FP32, twice, and half of each to add it up; what becomes of them.
    most = ub // 2 // (parts * 24 + 32)
    return depth if depth <= most else max(BLOCK, even_part(depth, most // BLOCK * BLOCK))


def stays_in_l2(view: Planes, itemsize: int, product: Product, tasks: int | None = None) -> bool:
    """Whether L2 still holds dy and x of so many groups (None: all) when what read them is over: oldest leave first."""
    tasks = view.tasks if tasks is None else tasks
    return 2 * tasks * view.depth * view.space * itemsize <= product.number("l2.size")


def _shared(view: Planes, itemsize: int, knobs: Knobs, ub: int, cores: int, twice: float) -> Choice:
    """parts: spans of S, as many as give every core UNITS_PER_CORE units."""

    def shared(rows: int, cols: int) -> Choice:
        blocks, chunks = -(-view.depth // rows), -(-view.space // cols)
        wanted = -(-UNITS_PER_CORE * cores // (view.tasks * blocks))
        parts = -(-chunks // -(-chunks // min(chunks, knobs["parts"] or wanted)))
        units = view.tasks * blocks * parts
        share = -(-units // cores)
        work = share * (-(-chunks // parts) * _tile_work(rows, cols, twice) + BLOCK_ELEMENTS)
        work += LAUNCH_ELEMENTS + -(-share // (blocks * parts)) * GROUP_ELEMENTS
        tiling = {"strategy": "shared", "groups": 1, "rows": rows, "cols": cols, "parts": parts}
        return work, {**tiling, "cores": -(-units // share), "combine": "two_phase"}

    return min((shared(*tile) for tile in _tiles(view, itemsize, knobs, ub)), key=lambda x: x[0])


def _cube(view: Planes, itemsize: int, knobs: Knobs, ub: int, cores: int) -> Choice:
    """The launch of dx as in shared; the sums of channels are the Cube's, in the form that it has."""
    work, tiling = _shared(view, itemsize, knobs, ub, cores, TWICE)
    return work, {**tiling, "strategy": "cube", "form": "sums"}


def _vectors_fit(view: Planes, itemsize: int, knobs: Knobs, ub: int) -> bool:
    each = vector_bytes(itemsize, knobs["buffers"]) + SUM_BYTES
    return up(view.depth, BLOCK) * each + MARGIN_BYTES <= ub


def _vectors(view: Planes, itemsize: int, knobs: Knobs, ub: int, cores: int) -> Choice:
    """groups of a tile: a divisor of the groups of a sample; parts: cores that share the samples of a group."""
    each, width = vector_bytes(itemsize, knobs["buffers"]), up(view.depth, BLOCK)
    divisors = [g for g in range(1, view.groups + 1) if view.groups % g == 0]
    most = knobs["groups"] or max(1, (ub - MARGIN_BYTES) // ((each + SUM_BYTES) * width))
    groups = max(g for g in divisors if g <= most)
    blocks = view.groups // groups
    parts = min(view.samples, knobs["parts"] or max(1, cores // blocks))
    per_part = -(-view.samples // parts)
    parts = -(-view.samples // per_part)
    fit = ((ub - MARGIN_BYTES) // (groups * width) - SUM_BYTES) // each
    rows = min(per_part, knobs["rows"] or even_part(per_part, max(1, fit)))
    share = -(-blocks // max(1, cores // parts))
    tiling = {"strategy": "vectors", "groups": groups, "rows": rows, "cols": view.depth, "parts": parts}
    combine = "two_phase" if knobs["combine"] == "pairwise" else knobs["combine"]
    return 0.0, {**tiling, "cores": parts * -(-blocks // share), "combine": combine, "form": "xhat"}


# -- what the vendor's tiling takes (hicann/ops-nn, norm/group_norm_grad/op_host/group_norm_grad_tiling.cpp) ---------------


def vendor_mode(view: Planes, itemsize: int, ub: int) -> tuple[int, int]:
    """(mode, columns of a tile): 5 for S = 1, 0 a group resident, 1 one channel, 2 channels in ping-pong, 3 parts of one.

    A tile takes three tensors of 4 bytes an element, or 6 in 16 bits (landing and working copy); rows are rounded up to
    `e` elements; gamma, dgamma and dbeta of the group and 1 KiB are set aside, and rows to realign where S is uneven.
    """
    each, e = (4, 8) if itemsize == 4 else (6, 16)
    reserve = 1024 + up(view.depth, e) * each * 3
    extra = 0 if view.space % 8 == 0 or view.depth == 1 else 2 * up(view.space, e) * 4
    if view.space == 1:
        return 5, 1
    if (ub - reserve - extra) // (up(view.depth * view.space, e) * each * 3) > 0:
        return 0, view.space
    channels = (ub - reserve) // (up(view.space, e) * each * 3)
    if channels:
        return min(channels, 2), view.space
    return 3, (ub - reserve) // (3 * each) // (e * 8) * (e * 8)


def vendor_tiling(view: Planes, itemsize: int, knobs: Knobs, product: Product, cores: int) -> dict[str, Any]:
    """The knobs of the kernel that does as the vendor's mode does; groups are dealt out in equal runs.

    Of mode 5 a group that does not fit whole goes in runs of channels.
    """
    mode, cols = vendor_mode(view, itemsize, product.ub_bytes)
    share = -(-view.tasks // cores)
    common = {
        "combine": "pairwise",
        "form": "xhat",
        "parts": 1,
        "groups": 1,
        "cores": -(-view.tasks // share),
    }
    rows = view.depth if mode == 0 else 1
    if mode == 5 and up(view.depth, BLOCK) * VENDOR_LINE_BYTES > product.ub_bytes:
        rows = _tiles(view, itemsize, {**knobs, "rows": None, "cols": 1}, product.ub_bytes)[0][0]
    elif mode == 5:
        wide = {**knobs, "strategy": "vectors", "rows": 1, "groups": 1, "buffers": 1}
        return {
            **knobs,
            **_vectors(view, itemsize, wide, product.ub_bytes, cores)[1],
            "buffers": 1,
            "banks": "packed",
            "strategy": "vendor",
        }
    return {
        **knobs,
        **common,
        "strategy": "vendor",
        "rows": rows,
        "cols": cols,
        "buffers": 2 if mode == 2 else 1,
        "banks": "packed",
    }


def kernel_of(view: Planes, tiling: Knobs) -> str:
    """Which kernel a tiling is for; the vendor's modes are told apart by their tile."""
    if tiling["strategy"] != "vendor":
        return str(tiling["strategy"])
    if view.space == 1 and tiling["cols"] == view.depth:
        return "vectors"
    whole = tiling["rows"] == view.depth and tiling["cols"] == view.space
    return "resident" if whole else "streamed"
