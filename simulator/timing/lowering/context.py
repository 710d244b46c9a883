"""What all programs of a launch share while they are lowered: costs, buffers, source lines, warnings."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...ir.passes.split_cores import barrier_cores
from ...ir.program import Loc, Op, Program, Region, Value, walk
from ...messages import TIME
from ...products import Product
from ...products.product import WHAT_IF_RATE
from ...record.run import ASSUMED_FIGURES
from ...record.slowing import SCALAR
from ...units.cube_rules import operand_format
from ..costs.cube import CubeCosts, depth_bytes, item_bytes
from ..costs.model import CostModel
from ..costs.provenance import BEST, COMPILED_HAND_OVER, CROSS_CORE_SYNC, channel_grades, pipe_grades
from ..costs.transfers import LINE_BYTES
from ..costs.vector import VectorCosts
from ..engine.machine import Wiring
from ..line_warnings import LineWarnings, dot_messages
from ..placement.allocate import Placement
from ..placement.banks import Banks
from ..placement.l0_tiles import L0Tile
from ..placement.layouts import BLOCK_BYTES
from ..placement.memory_spaces import MemorySpaces
from ..placement.shared_rows.halves import Halves
from ..placement.slots import Slot
from ..placement.strides import OneByOne
from .shared_rows import HalfCosts, PieceCosts

COMPILER = "compiler.rules"
ADDRESS = "scalar.strided_address_cycles_per_element"
DISPATCH = "launch.dispatch_cycles_per_program"
BARRIER = "sync.barrier_cycles"
FLAGS = ("flag", "arrived", "drain")  # first words of the keys of such slots
ALWAYS_USED = (
    "path.gm_to_ub.bytes_per_cycle",
    "path.gm_to_ub.fixed_cycles",
    "path.ub_to_gm.bytes_per_cycle",
    "path.ub_to_gm.fixed_cycles",
    "memory.bandwidth_tb_per_s",
    "l2.bandwidth_tb_per_s",
    "sync.set_flag_cycles",
    "sync.wait_flag_cycles",
    "sync.pipe_queue_depth",
    "scalar.issue_cycles_per_instruction",
    "launch.all_cores_overhead_us",
)


Sizes = tuple[int, int, int]  # rows, columns and depth of a product


class Template(NamedTuple):
    """The fixed part of a dense operation's record."""

    pipe: int
    line: int
    occupancy: float
    latency: float
    instructions: int
    roots: tuple[tuple[int, int], ...]
    scratch: tuple[int, ...]
    scalars: tuple[Value, ...]


class Part(NamedTuple):
    """One L0 tile of a product: where it begins and how large it is (rows, columns, depth), cycles of its loads to L0A and
    L0B and of its Mmad (numbers, or one for each lane)."""

    first: Sizes
    sizes: Sizes
    a_cycles: Any
    b_cycles: Any
    m_cycles: Any

    @property
    def cycles(self) -> tuple[Any, Any, Any]:
        """Of the two loads and of the Mmad."""
        return self.a_cycles, self.b_cycles, self.m_cycles


# How two limits of a transfer are joined: as the largest of them for a large number, as their sum for 1. FIT EX
# matmul_high_performance cases 2 and 3, MTE2 active: 12 and 6 cores that read the same rows of 128 bytes take 1532 and 1459
# cycles a step of 384 rows, one core (case 1) 1380.
QUEUE = 4


class PathRates(NamedTuple):
    """What a transfer takes at least: cycles between two instructions, for each row of one, and for each line of memory;
    `more` for the pieces behind the first one. partial: for each row that is not whole blocks of 32 bytes. block: for
    each row of one block that is turned into fractals, however rows follow each other; 0 where nothing is turned.

    A core has so many requests to memory on the way, each for a line of 512 bytes or for a part of one, that whole lines
    come at the rate of the path: a part takes as long as a line.
    """

    interval: float
    row: float
    line: float
    partial: float = 0.0
    more: float = 0.0
    block: float = 0.0

    @classmethod
    def of(cls, product: Product, name: str) -> PathRates:
        row, partial = f"path.{name}.row_cycles", f"path.{name}.partial_row_cycles"
        return cls(
            product.number(f"path.{name}.issue_interval_cycles"),
            product.number(row) if product.has(row) else 0.0,
            LINE_BYTES / product.number(f"path.{name}.bytes_per_cycle"),
            product.number(partial) if product.has(partial) else 0.0,
        )

    def of_rows(self, bursts: Any, elements: Any, itemsize: int) -> PathRates:
        """For a transfer of so many rows: the unit pads each one that ends inside of a block by itself.

        A row alone ends a tensor, where nothing follows that it would hold up; elements one by one have a rule of their own.
        """
        if self.partial <= self.row:
            return self
        rest = np.remainder(np.multiply(elements, itemsize), np.multiply(np.maximum(bursts, 1), BLOCK_BYTES))
        padded = (np.asarray(bursts) > 1) & (np.asarray(bursts) != elements) & (rest > 0)
        row: Any = np.where(padded, self.partial, self.row)
        return self._replace(row=float(row) if row.ndim == 0 else row)

    def of_blocks(self) -> PathRates:
        """For rows of one block of 32 bytes: each is a transfer of its own, as elements without a pattern are.

        Two boards agree with the interval of 20.6 cycles, on which neither was fitted: 512 of 1024 such rows take 5.9 us
        (asc-guide-splitk, 21 cycles each), 36864 of a core at most 500 us (pypto-skinny, 25). Rows of two blocks were not
        measured, those of four take `row`.
        """
        return self._replace(row=self.block)

    def in_pieces(self, n: int, latency: float) -> PathRates:
        """For a tile that comes or goes in n pieces, each after the one before is there."""
        return self._replace(more=(n - 1) * (self.interval + latency))

    def past_l2(self) -> PathRates:
        """For loads that L2 does not keep: every row asks for its lines itself.

        EX data_copy turns L2 off where all cores read the same: rows of 128 bytes take 7.9 cycles on AIC and 11.6 on AIV;
        lines at 65 and 45.9 bytes a cycle take 7.9 and 11.2.
        """
        return self._replace(row=np.maximum(self.row, self.line))

    def from_memory(self, bursts: Any, amount: Any) -> PathRates | None:
        """For rows shorter than a line that L2 keeps: the first of a line waits for memory, the others find it in L2, so
        that each has its part of what the line takes. None where rows are longer.

        EX data_copy: rows of 128 bytes from memory take 8.3 cycles on AIV and 5.3 on AIC (8.8 and 4.6 here).
        """
        part = np.divide(amount, np.maximum(bursts, 1)) / LINE_BYTES
        waits = np.maximum(np.subtract(self.line, self.row), 0.0) * np.minimum(part, 1.0)
        if np.all(waits == 0) or np.all(part >= 1):
            return None
        return self._replace(row=self.row + waits)


class LoweringPlan:
    """Static side of lowering one program for one product.

    hf32: whether a float32 product without a precision of its own runs in HF32. l0_tile: baseM, baseN, baseK, or None.
    shares_iterations: two Vector cores share the iterations of a loop.
    workspace_copies: of a tile that passes between Cube and Vector cores through global memory.
    one_by_one: accesses that the vendor's compiler makes element by element; None where it does not make the code.
    unit_flag: whether the Cube may write into L0C where the fixpipe has read.
    """

    def __init__(
        self,
        program: Program,
        product: Product,
        spaces: MemorySpaces,
        placement: Placement,
        wiring: Wiring,
        hf32: bool = False,
        l0_tile: tuple[int, int, int] | None = None,
        shares_iterations: bool = False,
        unit_flag: bool = False,
        workspace_copies: int = 1,
        one_by_one: OneByOne | None = None,
    ) -> None:
        self.one_by_one = one_by_one or OneByOne()
        self.compiled = one_by_one is not None
        self.workspace_copies = workspace_copies
        self._workspace: dict[tuple[int, str], Slot] = {}
        self.unit_flag = unit_flag
        self.program = program
        self.shares_iterations = shares_iterations
        self.product = product
        self.spaces = spaces
        self.definitions = spaces.definitions
        self.placement = placement
        self.stage_of = placement.stage_of
        self.wiring = wiring
        self.hf32 = hf32
        self.l0_tile = l0_tile
        model, rows = CostModel(product), placement.rows
        self.costs = VectorCosts(model, self.definitions, self.compiled)
        if placement.pieces.ops:
            self.costs = PieceCosts(model, self.definitions, rows, placement.pieces)
        elif rows:
            self.costs = HalfCosts(model, self.definitions, Halves(rows), self.compiled)
        self.costs.operands.by_blocks = spaces.has_dot and spaces.fixpipe and not self.compiled
        self.costs.place(Banks(product, self.definitions, placement))
        self.lines: dict[tuple[str, int, int, str], int] = {}
        self.pipe_grade = pipe_grades(product, [pipe.name for pipe in wiring.machine.pipes])
        self.channel_grade = channel_grades(product)
        self.warnings = LineWarnings()
        self.templates: dict[int, Template] = {}
        # Line number and occupancy of a record -> the cycles of it that bank conflicts take (see `conflicts.KINDS`).
        self.conflicts: dict[tuple[int, float], tuple[float, float]] = {}
        self.scratch: dict[
            tuple[int, float], Slot
        ] = {}  # likewise: the slot of what the operation needs while it runs
        self.executed: dict[int, int] = {}  # operation -> how often all programs execute it
        self.multiplied: dict[
            int, Any
        ] = {}  # of products that masks cut: what is there of them, see cut_products.py
        self.extra_slots: dict[Any, int] = {}
        self._extra_keys: dict[int, Any] = {}
        self.read_latency = product.number("path.gm_to_ub.fixed_cycles")
        self.late_from_memory = product.number("memory.read_late_cycles")
        self.write_latency = product.number("path.ub_to_gm.fixed_cycles")
        self.read_rates, self.write_rates = (
            PathRates.of(product, "gm_to_ub"),
            PathRates.of(product, "ub_to_gm"),
        )
        self.same_address = product.number("l2.same_address_bytes_per_cycle")
        self.same_row = product.number("l2.same_address_row_cycles")
        self.scalar_read_cycles = product.number("l2.read_latency_cycles")
        if spaces.has_dot:
            self._cube_side(product)
        self.drains = self._drains()

    def _cube_side(self, product: Product) -> None:
        self.cube = CubeCosts(product)
        late = "path.gm_to_l1_nd2nz.latency_cycles"
        self.l1_latency = product.number(late if product.has(late) else "path.gm_to_l1_nd2nz.fixed_cycles")
        self.l1_rates = PathRates.of(product, "gm_to_l1_nd2nz")
        if product.core_model == "split":
            self.l1_rates = self.l1_rates._replace(block=self.l1_rates.interval)
        nd = "path.l0c_to_gm.nz2nd_fixed_cycles"
        self.fixp_latency = product.number(nd if product.has(nd) else "path.l0c_to_gm.fixed_cycles")
        self.fixp_row = PathRates.of(product, "l0c_to_gm").row
        least = "path.l0c_to_gm.min_cycles"
        self.fixp_min = product.number(
            least if product.has(least) else "path.l0c_to_gm.issue_interval_cycles"
        )
        compiled = self.compiled and product.has(COMPILED_HAND_OVER)
        self.hand_over_figure = COMPILED_HAND_OVER if compiled else CROSS_CORE_SYNC
        self.hand_over_cycles = product.number(self.hand_over_figure)
        self.ub_to_l1 = _way(product, "ub_to_l1")
        self.l0c_to_ub = _way(product, "l0c_to_ub")
        self.l1_to_ub = _way(product, "l1_to_ub")
        first = self.placement.engine_slots
        self.l0_halves = tuple(
            Slot([], 0, 0, 0, copies=2, targets=[((n,), ()), ((n + 2,), ())]) for n in (first, first + 1)
        )
        self._parts: dict[int, list[Part]] = {}
        self.tiles: dict[int, tuple[Op, L0Tile]] = {}  # of each product, by operation
        self._after = dict(_neighbours(self.program.body))

    def is_shared(self, v: Value, pipe: int) -> bool:
        """Whether each of two Vector cores moves half of a tile on a pipe of its own."""
        return v.id in self.placement.rows and pipe in (self.wiring.mte2, self.wiring.mte3)

    @property
    def slots(self) -> int:
        """Engine slots in all."""
        return self._buffer_slots + len(self.extra_slots)

    @property
    def _buffer_slots(self) -> int:
        return self.placement.engine_slots + (4 if self.spaces.has_dot else 0)

    def extra_slot(self, key: Any) -> int:
        """Engine slot of something that takes no buffer, such as a flag."""
        slot = self.extra_slots.get(key)
        if slot is None:
            slot = self.extra_slots[key] = self._buffer_slots + len(self.extra_slots)
            self._extra_keys[slot] = key
        return slot

    def workspace(self, op: Op, what: str = "tile") -> Slot:
        """Where tiles of an operation lie in global memory on their way to the other core. what: another word than
        "tile" for what says that one was read there."""
        found = self._workspace.get((op.id, what))
        if found is None:
            numbers = [self.extra_slot(("workspace", op.id, k, what)) for k in range(self.workspace_copies)]
            loop = self.loop_around.get(op.id, -1) if self.workspace_copies > 1 else -1
            found = Slot([], 0, 0, 0, copies=len(numbers), loop=loop, targets=[((n,), ()) for n in numbers])
            self._workspace[op.id, what] = found
        return found

    @functools.cached_property
    def loop_around(self) -> dict[int, int]:
        """The innermost loop of each operation, by their numbers; the inner ones come last."""
        loops = [op for op in self.program.walk() if op.kind in ("for", "while")]
        return {op.id: loop.id for loop in loops for region in loop.regions for op in walk(region)}

    def key_of(self, slot: int) -> Any:
        """What an extra slot stands for; None for a slot of a buffer."""
        return self._extra_keys.get(slot)

    @property
    def flag_slots(self) -> list[int]:
        """Slots of flags, barriers and of what a pipe has to have done before it sets a flag."""
        return [s for s in self._extra_keys if self._is_flag(s)]

    def _is_flag(self, slot: int) -> bool:
        key = self.key_of(slot)
        return key is not None and (key[0] in FLAGS or (key[0] == "second" and self._is_flag(key[1])))

    def _drains(self) -> dict[int, int]:
        """Slot of each pipe whose earlier work something waits for, by pipe."""
        syncs = [op for op in self.program.walk() if op.kind == "sync"]
        pipes = sorted({p for op in syncs for p in drained_pipes(self.wiring, op)})
        return {p: self.extra_slot(("drain", p)) for p in pipes}

    def assume(self, *figures: str) -> None:
        """List those of the figures that are not published."""
        for key in figures:
            if self.product.has(key) and self.product.figure(key).assumed:
                self.costs.model.assumed[key] = None

    def cross_core(self) -> float:
        """Cycles that a flag takes from one core to another."""
        self.assume(CROSS_CORE_SYNC)
        return self.product.number(CROSS_CORE_SYNC)

    def barrier(self) -> float:
        """Cycles from the last core's arrival at a barrier until all go on."""
        found = BARRIER if self.product.has(BARRIER) else CROSS_CORE_SYNC
        self.assume(found)
        return self.product.number(found)

    @property
    def scalar(self) -> int:
        """Pipe of scalar work that belongs to no unit in particular."""
        return self.wiring.scalar if self.wiring.scalar >= 0 else self.wiring.cube_scalar

    def operand(self, op: Op) -> str:
        """Type in which the Cube reads the operands of a product; of two types the wider one, by which both are timed."""
        stored = (op.operand(side).number.name for side in (0, 1))
        return max((operand_format(t, op.attrs["precision"], self.hf32) for t in stored), key=item_bytes)

    def product_parts(self, op: Op) -> list[Part]:
        """L0 tiles of a product, k innermost."""
        found = self._parts.get(op.id)
        if found is None:
            found = self._parts[op.id] = self._cut(op)
        return found

    def kept_operand(self, op: Op) -> int:
        """0 or 1 if that operand of a product is still in L0 from the product right before it, else -1.

        Both take one L0 tile, so that nothing else has come to that half of L0A or L0B in between.
        """
        before = self._after.get(op.id)
        if before is None or len(self.product_parts(op)) > 1 or len(self.product_parts(before)) > 1:
            return -1
        if self.operand(op) != self.operand(before):
            return -1
        return next((k for k in (0, 1) if op.args[k] is before.args[k]), -1)

    def _cut(self, op: Op) -> list[Part]:
        a, b = op.operand(0), op.operand(1)
        (m, k), n = a.shape[-2:], b.shape[-1]
        operand = self.operand(op)
        if self.cube.what_if(operand):
            self.assume(WHAT_IF_RATE)
        pieces = self.placement.pieces.of_product(op)
        tile = self.cube.l0_tile(m // pieces, n, k, operand, self.l0_tile)
        self.tiles[op.id] = (op, tile)
        batch = a.numel // (m * k) * pieces
        m //= pieces
        return batch * [
            self.part_of(op, (i, j, q), (min(tile.m, m - i), min(tile.n, n - j), min(tile.k, k - q)))
            for i in range(0, m, tile.m)
            for j in range(0, n, tile.n)
            for q in range(0, k, tile.k)
        ]

    def part_of(self, op: Op, first: Sizes, sizes: Sizes) -> Part:
        """The L0 tile of a product that begins at `first` and is so large."""
        (m, n, k), operand, window = sizes, self.operand(op), self.spaces.window
        cube, depth = self.cube, depth_bytes(k, item_bytes(operand))
        cycles = cube.startup + cube.switch + cube.mmad_cycles(m, n, k, operand) + cube.barrier_cycles(m, n)
        a_cycles = cube.load_cycles(cube.to_l0a, m, depth, window(op.operand(0)))
        b_cycles = cube.load_cycles(cube.to_l0b, n, depth, window(op.operand(1)))
        more = (
            cube.scale_cycles(path, rows, k, self.spaces.scale_group(op.operand(side)))
            for side, (path, rows) in enumerate(((cube.to_l0a, m), (cube.to_l0b, n)))
        )
        return Part(first, sizes, a_cycles + next(more), b_cycles + next(more), cycles)

    def address_cycles(self, op: Op, elements: int) -> float:
        """Cycles of the scalar unit for the addresses of an access; 0 where its stride is known at compile time."""
        if op.id not in self.one_by_one.by_scalar:
            return 0.0
        self.assume(ADDRESS)
        cycles = elements * self.product.number(ADDRESS)
        self.slow(
            op,
            SCALAR,
            f"{op.kind} with a stride that is known at run time only: the scalar unit works out {elements} addresses "
            "({cycles:.0f} cycles); with the stride as tl.constexpr it does not",
            "make the stride a tl.constexpr parameter",
            cycles=cycles,
        )
        return cycles

    def least_cycles(self, rates: PathRates, bursts: Any, amount: Any, sharers: Any) -> Any:
        """Cycles that a transfer takes however fast the memory is, for each of its programs or all alike.

        The pipe starts one row after the other, and the part of L2 that holds an address serves one core after the other.
        Where one of the two takes as long as the other, each is idle for a time: with few requests on the way, a queue of
        two servers reaches the rate of neither.
        """
        if isinstance(sharers, float) and isinstance(bursts, int) and isinstance(rates.row, int | float):
            return float(max(rates.interval, bursts * rates.row)) + rates.more
        cycles = np.maximum(rates.interval, np.multiply(bursts, rates.row)) + rates.more
        if isinstance(sharers, float):
            return float(cycles) if cycles.ndim == 0 else cycles
        served = np.multiply(bursts, self.same_row) + np.divide(amount, self.same_address)
        return np.where(sharers > 1, (cycles**QUEUE + (served * sharers) ** QUEUE) ** (1 / QUEUE), cycles)

    def line(self, loc: Loc, pipe: int, channel: int = -1, grade: int = BEST, name: str = "") -> int:
        """Number in the trace of a source line together with the grade of the figures of a record: `grade`, that of its
        costs, or that of its pipe or its channel. name: of the operation, if it has one of its own."""
        grade = max(grade, self.pipe_grade[pipe])
        if channel >= 0:
            grade = max(grade, self.channel_grade[channel])
        return self.lines.setdefault((loc.file, loc.line, grade, name), len(self.lines))

    def warn(self, op: Op, text: str, kind: str = TIME, **numbers: float) -> None:
        """See `LineWarnings.add`."""
        self.warnings.add(op, text, kind, **numbers)

    def slow(self, op: Op, sort: str, text: str, cure: str, warned: bool = True, **numbers: float) -> None:
        """See `LineWarnings.slow`."""
        self.warnings.slow(op, sort, text, cure, warned, **numbers)

    def notes(self, waves: int, compiled: bool) -> tuple[str, ...]:
        """Rows that stood in for others, and the figures of this launch that are not published (grade D).

        compiled: whether Triton-Ascend makes the code.
        """
        product = self.product
        used = (*(COMPILER,) * compiled, *ALWAYS_USED)
        keys = [k for k in used if product.has(k) and product.figure(k).assumed]
        if waves > 1 and product.figure(DISPATCH).assumed:
            keys.insert(0, DISPATCH)
        keys = [*(k for k in self.costs.model.assumed if k == CROSS_CORE_SYNC), *keys]
        keys += sorted(
            k for k in self.costs.model.assumed if k != CROSS_CORE_SYNC
        )  # however iterations were lowered
        message = f"{ASSUMED_FIGURES}{', '.join(keys)}"
        return (
            *dot_messages(self.program, self.hf32),
            *self.placement.notes,
            *sorted(self.costs.model.notes),
            *((message,) if keys else ()),
        )


def _neighbours(region: Region) -> Iterator[tuple[int, Op]]:
    """(number of a product, the product before it), where both are in one iteration and no loop is between them."""
    last: Op | None = None
    for op in region.ops:
        for inner in op.regions:
            yield from _neighbours(inner)
            last = None
        if op.kind == "dot":
            if last is not None:
                yield op.id, last
            last = op


def drained_pipes(wiring: Wiring, op: Op) -> tuple[int, ...]:
    """Pipes whose earlier work a set or a barrier waits for."""
    if op.name == "wait":
        return ()
    if op.name == "all":
        return tuple(p for c in barrier_cores(op.attrs["mode"]) for p in wiring.pipes_of(c))
    core = op.attrs["sender"]
    if op.attrs["sender_pipe"] == "ALL":
        return wiring.pipes_of(core)
    return (wiring.pipe(core, op.attrs["sender_pipe"]),)


def _way(product: Product, name: str) -> tuple[float, float]:
    """(fixed cycles, bytes per cycle) of a path that only coupled cores have."""
    if not product.has(f"path.{name}.bytes_per_cycle"):
        return 0.0, 1.0
    return product.number(f"path.{name}.fixed_cycles"), product.number(f"path.{name}.bytes_per_cycle")
