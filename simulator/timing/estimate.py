"""Time of one launch: placement, lowering, engine, bounds, and the `Launch` record they make."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..call import Call, describe_argument
from ..errors import AscendtileError, BufferOverflowError
from ..interpreter.arguments import runtime_arguments
from ..interpreter.backend import AddressBackend, Backend
from ..interpreter.lanes import program_order
from ..interpreter.program_order.order import directions
from ..interpreter.state import DataDependentError
from ..interpreter.tensors import Tensor
from ..interpreter.two_cores.flags import flag_order, scheduling
from ..ir.passes.split_cores import has_sub_vectors
from ..ir.program import Program
from ..products import Product
from ..record.run import Buffer, Launch, Pipe
from .costs.l2_cache import FirstTouch
from .engine.engine import REASONS, EngineResult, Group, simulate
from .engine.machine import Wiring, launch_overhead_us, wire, with_memory_rate
from .lowering.context import Plan
from .lowering.flags import check_barrier
from .lowering.l0_buffers import NAMES as L0_NAMES
from .lowering.l0_buffers import check_products, l0_buffer
from .lowering.loops import Turns
from .lowering.lowered import Lowered
from .lowering.lowering import Lowering
from .lowering.shared_turns import shares_turns
from .lowering.warnings import buffer_words, grid_words, padded_rows
from .placement.accumulator_inits import BT
from .placement.allocate import Placement
from .placement.fewer_copies import place_with_fewer
from .placement.layouts import Definitions
from .placement.memory_spaces import L0C, L1, UB, Homes
from .placement.strides import block_by_block
from .results.bounds import bounds_us
from .results.line_costs import KINDS, core_conflicts, grade_shares, line_costs
from .results.occupancy import Points, held
from .results.rooflines import core_bytes, roofs
from .results.sensitivity import lifted_cycles
from .results.timeline import launch_timeline, source_texts, timeline_words
from .trace.scalar_evolution import NotAlikeError

MAX_PLACEMENTS = 16  # kept for one program
WAITS = [REASONS.index(r) for r in ("data", "buffer", "flag", "issue")]  # what a pipe that has work waits for


def estimate(call: Call) -> Launch:
    """Time of a launch, without values.

    Where many iterations were lowered at once and cannot be, or where one of them fails, it is lowered anew without that: so
    the first failure in the program's order is what is told.
    """
    together = True
    while True:
        try:
            return _estimate(call, together)
        except NotAlikeError as e:
            call.program.one_by_one.add(e.loop)
        except (AscendtileError, OverflowError) as e:
            if not together or isinstance(e, DataDependentError | BufferOverflowError):
                raise
            together = False


def _estimate(call: Call, together: bool) -> Launch:
    """together: whether iterations may be lowered many at once."""
    plan = make_plan(call)
    total = call.grid[0] * call.grid[1] * call.grid[2]
    numbers, touch = np.arange(total, dtype=np.int64), _cache(call)
    order = flag_order(call.program, call.grid, call.arguments)
    apart = order is not None and not order.in_order
    limit = call.device.step_limit

    def turns(part: Program) -> Turns:
        out = Turns(part, call.grid, AddressBackend(), limit)
        out.together = together
        return out

    walk = Lowered(call.program, apart, turns)
    size = 1 if order is not None and not order.even else total
    groups = [_lower(walk, call, plan, numbers[k : k + size], touch) for k in range(0, total, size)]
    return _finish(call, plan, groups, touch)


def estimate_with_values(call: Call, values: Callable[[Program], Backend]) -> Launch:
    """Time and values of a kernel whose control flow or addresses depend on data; writes its tensors.

    values: makes the backend that computes a program, or the part of one core.
    """
    plan = make_plan(call)
    total = call.grid[0] * call.grid[1] * call.grid[2]
    how = scheduling(call.program, call.grid, call.arguments)
    seed = call.device.atomic_seed
    size = 1 if how.waiting or (seed is not None and how.size != total) else how.size
    touch = _cache(call)
    groups = []
    order = program_order(call.program, total, seed)
    limit = call.device.step_limit
    walk = Lowered(call.program, how.apart, lambda part: Lowering(part, call.grid, values(part), limit))
    for first in range(0, total, size):
        numbers = order[first : first + size]
        groups.append(_lower(walk, call, plan, numbers, touch))
    out = _finish(call, plan, sorted(groups, key=lambda g: int(g.programs[0])), touch)
    return replace(out, warnings=(*out.warnings, *walk.found()))


def make_plan(call: Call) -> Plan:
    """Buffers and costs. Raises `BufferOverflowError` with the largest block that fits."""
    program, device = call.program, call.device
    homes, placement, vector = require_places(call)
    shared = vector and shares_turns(program, device.product)
    wiring = wire(device.product, homes.has_dot, vector, has_sub_vectors(program) or shared)
    check_barrier(program, device.product.name, math.prod(call.grid), wiring.machine.cores)
    plan = Plan(
        program,
        device.product,
        homes,
        placement,
        wiring,
        device.hf32,
        device.l0_tile,
        shared,
        device.unit_flag,
        device.workspace_copies,
    )
    if homes.has_dot:
        check_products(plan)
    padded_rows(plan)
    buffer_words(plan)
    return plan


def require_places(call: Call) -> tuple[Homes, Placement, bool]:
    """As `_place`. Raises `BufferOverflowError` with the largest block that fits."""
    try:
        return _place(call, call.program)
    except BufferOverflowError as e:
        raise _Overflow(e, call) from None


class _Overflow(BufferOverflowError):
    """An overflow with its way out, which is found by trying: only if somebody reads it, a search over tilings does not."""

    def __init__(self, found: BufferOverflowError, call: Call) -> None:
        super().__init__(str(found), found.space, found.need_bytes, found.have_bytes)
        self.call = call

    def __str__(self) -> str:
        return f"{self.args[0]}\n{self.advice}"

    def __reduce__(self) -> tuple[Any, ...]:
        return BufferOverflowError, (str(self), self.space, self.need_bytes, self.have_bytes)

    @functools.cached_property
    def advice(self) -> str:
        return _advice(self.call)


def has_vector_work(program: Program, homes: Homes) -> bool:
    """Whether any tile has to be in UB, be it one of offsets only, or the scalar unit of a vector core has to help."""
    if not homes.has_dot or homes.copied_to_ub or homes.staged or program.split_builtins:
        return True
    for op in program.walk():
        if op.kind == "move" and op.id not in homes.in_place:
            return True
        if any(r.shape and homes.definitions.root(r) is r and homes.home(r) == UB for r in op.results):
            return True  # also indices that are elements, such as those with a remainder
        if op.kind in ("load", "store", "atomic"):
            v = op.results[0] if op.kind == "load" else op.args[1]
            if op.kind != "load" and v is not None and not v.shape:
                return True  # a single element leaves through UB
            root = None if v is None else homes.definitions.root(v)
            if v is not None and v.shape and (root is None or homes.home(root) == UB):
                return True
    return False


def _place(call: Call, program: Program, copies: int | None = None) -> tuple[Homes, Placement, bool]:
    """Homes, placement and whether there is vector work: found once for each program, product and choice of the device."""
    device, blocks = call.device, block_by_block(program, call.arguments)
    copies = copies or device.multibuffer
    banks = _banks(device.product) if device.banks_apart else None
    strided = (tuple(blocks.landing.items()), tuple(blocks.leaving.items()))
    key = (device.product, copies, device.multibuffer_l0c, banks, strided)
    found = program.placements.get(key)
    if found is None:
        homes, limits = _homes(program, device.product)
        l0c = device.multibuffer_l0c
        found = (
            homes,
            place_with_fewer(program, homes, copies, limits, device.product.name, l0c, blocks, banks),
            has_vector_work(program, homes),
        )
        if len(program.placements) >= MAX_PLACEMENTS:
            program.placements.pop(next(iter(program.placements)))
        program.placements[key] = found
    return found


def _homes(program: Program, product: Product) -> tuple[Homes, dict[str, tuple[int, int]]]:
    """Where values live, and capacity and alignment of each buffer that they need."""
    homes = Homes(
        program,
        Definitions(program),
        fixpipe=product.core_model == "split",
        bias_table=product.bt_bytes > 0,
    )
    limits = {UB: (product.ub_bytes, product.integer("alignment.ub"))}
    if homes.has_dot:
        reserved = product.integer("buffers.l1_reserved")
        limits[L1] = (product.l1_bytes - reserved, product.integer("alignment.l1"))
        limits[L0C] = (product.l0c_bytes, product.integer("alignment.l0c"))
    if BT in homes.of_value.values():
        limits[BT] = (product.bt_bytes, product.integer("alignment.bt"))
    for name, capacity in (("L0A", product.l0a_bytes), ("L0B", product.l0b_bytes)):
        if any(op.attrs["space"] == name for op in program.buffers.values()):
            limits[name] = (capacity, product.integer(f"alignment.{name.lower()}"))
    return homes, limits


def _banks(product: Product) -> tuple[int, int] | None:
    """(bytes after which the groups of UB's banks come again, bytes that a repeat reads), if they matter."""
    if product.text("ub_banks.read_read_conflict") == "none":
        return None
    turn = product.integer("ub_banks.groups") * product.integer("ub_banks.row_bytes")
    return turn, product.integer("vector.bytes_per_repeat")


def _advice(call: Call) -> str:
    """The largest value of each compile-time size with which the kernel fits, found by trying."""
    words = []
    for name, x in call.constants.items():
        if isinstance(x, bool) or not isinstance(x, int) or x < 2:
            continue
        best = _largest(call, name, x)
        if best:
            words.append(f"{name} = {best} (now {x})")
    fitting = next((n for n in range(call.device.multibuffer - 1, 0, -1) if _fits(call, {}, n)), 0)
    if fitting:
        words.append(f"multibuffer {fitting if fitting > 1 else 'off'} (then this size fits)")
    return (
        f"The largest that fits: {'; or '.join(words)}."
        if words
        else "No smaller compile-time size makes it fit."
    )


def _largest(call: Call, name: str, now: int) -> int:
    low, high = 0, now  # low fits (0: none found yet), high does not
    probe = now // 2
    while probe > low:
        if _fits(call, {name: probe}):
            low = probe
        else:
            high = probe
        probe = (low + high) // 2
    return low


def _fits(call: Call, changed: dict[str, Any], copies: int | None = None) -> bool:
    try:
        program = call.kernel.program(call.types, {**call.constants, **changed})
        _place(call, program, copies)
    except AscendtileError:
        return False
    return True


def _lower(walk: Lowered, call: Call, plan: Plan, numbers: np.ndarray, touch: FirstTouch) -> Group:
    builder = walk.lower(plan, numbers, touch, runtime_arguments(call.program, call.arguments))
    return Group(trace=builder.trace(plan.slots, plan.flag_slots), programs=numbers)


def _cache(call: Call) -> FirstTouch:
    warm = call.device.warm_l2
    named = call.arguments if warm is True else warm or ()
    resident = [x for n, x in call.arguments.items() if n in named and isinstance(x, Tensor)]
    device = call.device
    return FirstTouch(device.product.integer("l2.size"), resident, device.changed_l2)


def _finish(call: Call, plan: Plan, groups: list[Group], touch: FirstTouch) -> Launch:
    product = call.device.product
    machine = with_memory_rate(plan.wiring.machine, product, touch.write_share)
    wiring = replace(plan.wiring, machine=machine)
    details = call.device.details
    result = simulate(machine, groups, call.device.timeline, details)
    used = int((result.core_programs > 0).sum())
    overhead = launch_overhead_us(product, used, machine.cores)
    per_us = product.us_to_cycles(1.0)
    lines, rank = line_costs(plan, result, used) if details else ((), np.zeros(len(plan.lines), np.int32))
    return Launch(
        kernel=call.kernel.name,
        grid=call.grid,
        constants={n: x for n, x in call.constants.items() if isinstance(x, bool | int | float | str)},
        arguments=_argument_words(call),
        cycles=result.cycles,
        time_us=result.cycles / per_us + overhead,
        overhead_us=overhead,
        cores_used=used,
        cores=machine.cores,
        programs=sum(len(g.programs) for g in groups),
        instructions=result.instructions_run,
        pipes=_pipes(plan, result, used, groups if call.device.timeline else None),
        buffers=_buffers(plan, held(plan, result, groups)),
        lines=lines,
        other_cycles=result.cycles - sum(x.cycles for x in lines),
        bounds=bounds_us(wiring, groups, result.resource_bytes, overhead, per_us),
        resources={r.name: float(b) for r, b in zip(machine.resources, result.resource_bytes, strict=True)},
        warnings=(
            *call.warnings,
            *grid_words(sum(len(g.programs) for g in groups), machine.cores),
            *plan.warnings.words(),
        ),
        notes=(
            *plan.notes(-(-sum(len(g.programs) for g in groups) // machine.cores)),
            *timeline_words(result, call.device.timeline),
        ),
        lifted=_lifted(call, wiring, groups, result.cycles, overhead),
        grades=grade_shares(plan, result, used, overhead, per_us) if details else {},
        timeline=launch_timeline(plan, result, groups, rank) if call.device.timeline else None,
        roofs=roofs(plan, machine, result, per_us) if details else {},
        sources=source_texts(call.kernel.source, lines) if call.device.timeline else (),
        core_cycles=tuple(result.core_cycles.tolist()) if call.device.timeline else (),
        core_bytes=core_bytes(plan, result, groups) if call.device.timeline else {},
        directions=directions(call.program) if call.device.timeline else {},
    )


def _lifted(
    call: Call, wiring: Wiring, groups: list[Group], cycles: float, overhead: float
) -> dict[str, float]:
    if not call.device.explain:
        return {}
    per_us = call.device.product.us_to_cycles(1.0)
    found = {n: c / per_us + overhead for n, c in lifted_cycles(wiring, groups).items()}
    return {**found, "launch": cycles / per_us}


def _argument_words(call: Call) -> dict[str, str]:
    return {n: describe_argument(x) for n, x in call.arguments.items()}


def _buffers(plan: Plan, over_time: dict[str, Points]) -> dict[str, Buffer]:
    out = dict(plan.placement.buffers)
    if plan.homes.has_dot:
        for name in L0_NAMES:
            out[name] = l0_buffer(plan, name)
        if not out[UB].peak_bytes:
            del out[UB]
    return {n: replace(b, held=over_time[n]) if n in over_time else b for n, b in out.items()}


def _pipes(plan: Plan, result: EngineResult, used: int, groups: list[Group] | None) -> dict[str, Pipe]:
    """groups: of the launch, where figures of each core are wanted."""
    total = result.cycles or 1.0
    dispatch = float(result.core_dispatch.sum()) / used
    idle = result.cycles - float(result.core_cycles.sum()) / used
    conflicts = None if groups is None else core_conflicts(plan, result, groups)
    out = {}
    for p, spec in enumerate(plan.wiring.machine.pipes):
        busy = float(result.busy[:, p].sum()) / used
        stalls = {r: float(result.stalls[:, p, k].sum()) / used for k, r in enumerate(REASONS)}
        stalls |= {"dispatch": dispatch, "idle": idle}
        cores: tuple[Any, ...] = ()
        if conflicts is not None:
            cores = _floats(result.busy[:, p]), _floats(result.stalls[:, p, WAITS].sum(axis=1))
            cores += (
                dict(zip(KINDS, map(_floats, conflicts[:, p].T), strict=True)) if spec.name == "V" else {},
            )
        out[plan.wiring.pipe_name(p)] = Pipe(busy, busy / total, stalls, *cores)
    return out


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(map(float, values))
