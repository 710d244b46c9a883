"""Time of one launch: placement, lowering, engine, bounds, and the `Launch` record they make."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from contextlib import closing
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ..call import Call, describe_argument
from ..device import TRITON_ASCEND
from ..errors import AscendtileError, BufferOverflowError
from ..interpreter.backend import AddressBackend, Backend
from ..interpreter.kernel_faults.outside import OutsideAccesses
from ..interpreter.lanes import program_order
from ..interpreter.program_order.order import directions
from ..interpreter.state import DataDependentError
from ..interpreter.two_cores.flags import flag_order, scheduling
from ..ir.passes.split_cores import has_sub_vectors
from ..ir.program import Program
from ..l2.state import LINE_BYTES
from ..launch_cache import Estimate
from ..products import Product
from ..record.later import Later, but, later, whole
from ..record.run import Buffer, Launch, Pipe
from .code_size import further_code_us
from .costs.l2_cache import FirstTouch
from .costs.l2_start import l2_of
from .engine._code import Code
from .engine.engine import REASONS, EngineResult, Machine, ProgramGroup, Trace, simulate
from .engine.layout import code_of
from .engine.machine import Wiring, cold_code_us, launch_overhead_us, wire, with_l2_rate, with_memory_rate
from .fitting import require_places
from .lowered import LoweredLaunch, key_without_engine, recent
from .lowering.context import LoweringPlan
from .lowering.flags import check_barrier
from .lowering.l0_buffers import NAMES as L0_NAMES
from .lowering.l0_buffers import check_products, l0_buffer
from .lowering.loops import LoopLowering
from .lowering.lowering import Lowering, lowered_programs
from .lowering.shared_iterations import shares_iterations
from .lowering.warnings import buffer_messages, grid_messages, padded_products, padded_rows
from .placement.allocate import Placement
from .placement.memory_spaces import UB, MemorySpaces
from .placement.strides import one_by_one
from .results.bounds import bounds_us, written_share
from .results.error_model import with_interval
from .results.line_costs import KINDS, core_conflicts, grade_shares, line_costs
from .results.occupancy import Points, occupancy
from .results.rooflines import core_bytes, roofs
from .results.sensitivity import lifted_cycles
from .results.timeline import launch_timeline, source_texts, timeline_messages, whole_cores
from .trace.scalar_evolution import NotAlikeError

MOST_KEPT = 1 << 20  # bytes of traces that a launch keeps for what is read later
WAITS = [REASONS.index(r) for r in ("data", "buffer", "flag", "issue")]  # what a pipe that has work waits for


def estimate(call: Call, leaves: bool = False) -> Estimate:
    """Time of a launch, without values. leaves: whether to say what it leaves in L2.

    Where many iterations were lowered at once and cannot be, or where one of them fails, it is lowered anew without that: so
    the first failure in the program's order is what is told.
    """
    all_at_once = True
    while True:
        try:
            return _estimate(call, all_at_once, leaves)
        except NotAlikeError as e:
            call.program.one_by_one.add(e.loop)
        except (AscendtileError, OverflowError) as e:
            if not all_at_once or isinstance(e, DataDependentError | BufferOverflowError):
                raise
            all_at_once = False


def _estimate(call: Call, all_at_once: bool, leaves: bool) -> Estimate:
    """all_at_once: whether iterations may be lowered many at once."""
    key = None if leaves else key_without_engine(call, all_at_once)
    if known := recent.recall(key):
        return Estimate(_told(call, known._replace(plan=_on(call.device.product, known.plan))))
    plan = make_plan(call)
    total = call.grid[0] * call.grid[1] * call.grid[2]
    numbers = np.arange(total, dtype=np.int64)
    limit = call.device.step_limit
    order = flag_order(call.program, call.grid, call.arguments, limit)
    apart = order is not None and not order.in_order

    kind = LoopLowering if all_at_once else Lowering
    device = call.device
    outside = OutsideAccesses(device.values) if device.out_of_bounds == "warn" else None
    size = 1 if order is not None and not order.even else total
    with closing(_cache(call)) as touch:
        if size < total:
            touch.guess()
        groups, found_then = lowered_programs(
            call, plan, touch, apart, [numbers[k : k + size] for k in range(0, total, size)],
            lambda part: kind(part, call.grid, AddressBackend(outside), limit),
        )  # fmt: skip
        found = LoweredLaunch(plan, groups, touch, found_then)
        left = _left(call, _told(call, found), touch, leaves)
    if sum(_size(g.trace) for g in groups) <= MOST_KEPT:
        recent.keep(key, found)
    return left


def _told(call: Call, lowered: LoweredLaunch) -> Launch:
    """The launch with what its interpretation showed."""
    out = _finish(call, lowered.plan, lowered.groups, lowered.touch)
    return but(out, warnings=tuple(dict.fromkeys((*out.warnings, *lowered.found))))


def estimate_with_values(
    call: Call, values: Callable[[Program, frozenset[int]], Backend], leaves: bool = False
) -> Estimate:
    """Time and values of a kernel whose control flow or addresses depend on data; writes its tensors.

    values: makes the backend that computes a program, or the part of one core, with the writes (by id) that wait.
    """
    plan = make_plan(call)
    total = call.grid[0] * call.grid[1] * call.grid[2]
    limit = call.device.step_limit
    how = scheduling(call.program, call.grid, call.arguments, limit)
    seed = call.device.atomic_seed
    size = 1 if seed is not None and how.size != total else how.size
    waiting = how.waiting if size > 1 else frozenset()
    order = program_order(call.program, total, seed)
    with closing(_cache(call)) as touch:
        if size < total:
            touch.guess()
        groups, found = lowered_programs(
            call, plan, touch, how.apart, [order[k : k + size] for k in range(0, total, size)],
            lambda part: Lowering(part, call.grid, values(part, waiting), limit),
        )  # fmt: skip
        out = _finish(call, plan, sorted(groups, key=lambda g: int(g.programs[0])), touch)
        out = but(out, warnings=(*out.warnings, *found))
        return _left(call, out, touch, leaves)


def _left(call: Call, launch: Launch, touch: FirstTouch, leaves: bool) -> Estimate:
    return Estimate(launch, touch.ends(call.tensors) if leaves else ())


def make_plan(call: Call) -> LoweringPlan:
    """Buffers and costs. Raises `BufferOverflowError` with the largest block that fits."""
    program, device = call.program, call.device
    spaces, placement = require_places(call)
    vector = spaces.has_vector_work
    shared = vector and shares_iterations(program, device.product)
    wiring = _wired(device.product, program, spaces, placement, shared)
    check_barrier(program, device.product.name, math.prod(call.grid), wiring.machine.cores)
    plan = LoweringPlan(
        program,
        device.product,
        spaces,
        placement,
        wiring,
        device.hf32,
        device.l0_tile,
        shared,
        device.unit_flag,
        device.tiles_under_way,
        one_by_one(program, call.arguments) if device.author == TRITON_ASCEND else None,
    )
    if spaces.has_dot:
        check_products(plan)
    padded_rows(plan)
    buffer_messages(plan)
    return plan


def _wired(
    product: Product, program: Program, spaces: MemorySpaces, placement: Placement, shared: bool
) -> Wiring:
    both = has_sub_vectors(program) or shared
    return wire(product, spaces.has_dot, spaces.has_vector_work, both, alike=bool(placement.rows))


def _on(product: Product, plan: LoweringPlan) -> LoweringPlan:
    """The plan with the engine of another product; the records stay as they are."""
    found = copy(plan)
    found.product = product
    found.wiring = _wired(product, plan.program, plan.spaces, plan.placement, plan.shares_iterations)
    return found


def _cache(call: Call) -> FirstTouch:
    size, ways = call.device.product.integer("l2.size"), directions(call.program)
    return l2_of(size, call.tensors, ways, call.device.l2)


def _finish(call: Call, plan: LoweringPlan, groups: list[ProgramGroup], touch: FirstTouch) -> Launch:
    """The engine runs at once; what its results tell in detail is made when it is read."""
    padded_products(plan)
    product, details, limit = call.device.product, call.device.details, call.device.timeline
    machine = with_memory_rate(plan.wiring.machine, product, touch.write_share, touch.memory_part)
    machine = with_l2_rate(machine, product, written_share(machine, groups))
    wiring = replace(plan.wiring, machine=machine)
    code = code_of(groups)
    result = simulate(machine, groups, limit, details, code=code)
    shown = Later(lambda: _with_whole_cores(machine, groups, result, limit, code))
    used = int((result.core_programs > 0).sum())
    programs = len(result.programs)
    compiled = call.device.author == TRITON_ASCEND
    overhead = launch_overhead_us(product)
    if call.device.cold_code:
        overhead += cold_code_us(product, used * wiring.cores_each, wiring.mixed)
        overhead += further_code_us(product, plan)
    per_us = product.us_to_cycles(1.0)
    kernel, program = call.kernel.source, plan.program
    texts = {file: linecache.getlines(file) for file, *_ in plan.lines}  # as they are now
    no_costs = (), np.zeros(len(plan.lines), np.int32)
    costs = Later(lambda: line_costs(plan, result, used, texts) if details else no_costs)
    launch = Launch(
        kernel=call.kernel.name,
        grid=call.grid,
        constants=call.named_constants,
        arguments=_argument_texts(call),
        cycles=result.cycles,
        time_us=result.cycles / per_us + overhead,
        overhead_us=overhead,
        cores_used=used,
        cores=machine.cores,
        programs=programs,
        instructions=result.instructions_run,
        pipes=later(lambda: _pipes(plan, result, used, groups if limit else None)),
        buffers=later(lambda: _buffers(plan, occupancy(plan, shown(), groups, code))),
        lines=later(lambda: costs()[0]),
        other_cycles=later(lambda: result.cycles - sum(x.cycles for x in costs()[0])),
        bounds=later(lambda: bounds_us(wiring, groups, result.resource_bytes, overhead, per_us)),
        resources=_resources(machine, result, touch),
        warnings=(*call.warnings, *grid_messages(programs, machine.cores), *plan.warnings.messages()),
        notes=(*plan.notes(-(-programs // machine.cores), compiled), *timeline_messages(result, limit)),
        lifted=_lifted(call, plan, wiring, groups, result.cycles, overhead),
        grades=later(lambda: grade_shares(plan, result, used, overhead, per_us)) if details else {},
        timeline=later(lambda: launch_timeline(plan, shown(), groups, costs()[1])) if limit else None,
        roofs=later(lambda: roofs(plan, machine, result, per_us)) if details else {},
        sources=later(lambda: source_texts(kernel, costs()[0], texts)) if limit else (),
        core_cycles=tuple(result.core_cycles.tolist()) if limit else (),
        core_bytes=later(lambda: core_bytes(plan, result, groups)) if limit else {},
        directions=later(lambda: directions(program)) if limit else {},
        compiler=call.device.code_by(),
        l2_left_bytes=float(touch.left_bytes),
        slowing=plan.warnings.slowing(),
    )
    launch = with_interval(launch, product) if details else launch
    return launch if sum(_size(g.trace) for g in groups) <= MOST_KEPT else whole(launch)


def _with_whole_cores(
    machine: Machine, groups: list[ProgramGroup], result: EngineResult, limit: int, code: Code
) -> EngineResult:
    """Which core is slowest is known once all have run: where not all records are kept, the engine runs again for some."""
    if not limit or len(result.timeline) == result.records_run:
        return result
    return simulate(machine, groups, limit, False, code=code, cores=whole_cores(result, limit))


def _resources(machine: Machine, result: EngineResult, touch: FirstTouch) -> dict[str, float]:
    """Bytes that passed, also those that the launch only pushed out of L2."""
    moved = {r.name: float(b) for r, b in zip(machine.resources, result.resource_bytes, strict=True)}
    return moved | {"HBM": moved["HBM"] + LINE_BYTES * touch.pushed_out}


def _size(trace: Trace) -> int:
    """Its bytes, as far as they may be many."""
    return int(sum(x.nbytes for x in (trace.instructions, trace.code, trace.table, trace.cycles)))


def _lifted(
    call: Call,
    plan: LoweringPlan,
    wiring: Wiring,
    groups: list[ProgramGroup],
    cycles: float,
    overhead: float,
) -> dict[str, float]:
    if not call.device.explain:
        return {}
    per_us = call.device.product.us_to_cycles(1.0)
    cycles_without = lifted_cycles(wiring, groups)
    found = {n: c / per_us + overhead for n, c in cycles_without.items()}
    return {**found, "launch": cycles / per_us}


def _argument_texts(call: Call) -> dict[str, str]:
    return {n: describe_argument(x) for n, x in call.arguments.items()}


def _buffers(plan: LoweringPlan, over_time: dict[str, Points]) -> dict[str, Buffer]:
    out = dict(plan.placement.buffers)
    if plan.spaces.has_dot:
        for name in L0_NAMES:
            out[name] = l0_buffer(plan, name)
        if not out[UB].peak_bytes:
            del out[UB]
    return {n: replace(b, held=over_time[n]) if n in over_time else b for n, b in out.items()}


def _pipes(
    plan: LoweringPlan, result: EngineResult, used: int, groups: list[ProgramGroup] | None
) -> dict[str, Pipe]:
    """groups: of the launch, where figures of each core are wanted."""
    total = result.cycles or 1.0
    stalls_too = {
        "dispatch": float(result.core_dispatch.sum()) / used,
        "idle": result.cycles - float(result.core_cycles.sum()) / used,
    }
    cores = [] if groups is None else _by_core(plan, result, groups)
    out = {}
    all_busy, all_stalls = _over_cores(result.busy), _over_cores(result.stalls)
    for name, p in plan.wiring.told:
        busy = all_busy[p] / used
        stalls = {r: x / used for r, x in zip(REASONS, all_stalls[p], strict=True)} | stalls_too
        out[name] = Pipe(busy, busy / total, stalls, *(cores[p] if cores else ()))
    return out


def _by_core(plan: LoweringPlan, result: EngineResult, groups: list[ProgramGroup]) -> list[Any]:
    """Pipe by pipe the last three fields of `Pipe`."""
    conflicts = core_conflicts(plan, result, groups)
    waits = result.stalls[:, :, WAITS].sum(axis=2)
    return [
        (
            _floats(result.busy[:, p]),
            _floats(waits[:, p]),
            dict(zip(KINDS, map(_floats, conflicts[:, p].T), strict=True)) if spec.name == "V" else {},
        )
        for p, spec in enumerate(plan.wiring.machine.pipes)
    ]


def _over_cores(values: np.ndarray) -> Any:
    """Sums over the first axis, each as that of one row of numbers, which is more exact than adding up row by row."""
    return np.ascontiguousarray(np.moveaxis(values, 0, -1)).sum(axis=-1).tolist()


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(values.tolist())
