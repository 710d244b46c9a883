"""How every part of lowering makes records: what holds a value now, which programs are active, and how bytes move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ...errors import OutOfBoundsError
from ...interpreter.flat_pointers import FlatMemory
from ...interpreter.interpreter import Interpreter
from ...interpreter.regions import AccessRegion, check
from ...interpreter.tensors import Tensor
from ...interpreter.values import Affine, Pointers
from ...ir.program import Loc, Op, Value
from ...record.slowing import DISCRETE
from .. import cures
from ..costs.l2_cache import FirstTouch
from ..costs.model import Cost
from ..costs.provenance import BEST, grade_of
from ..costs.transfers import boxed, line_requests, sharers, traffic
from ..placement.layouts import BLOCK_BYTES, align, in_fractals
from ..placement.slots import Slot
from ..trace.builder import TraceBuilder
from ..trace.recorder import Recorder
from ..trace.tree import GlobalAccess, Instruction, Path
from .context import ADDRESS, LoweringPlan, PathRates
from .sub_cores import pair_of

_NOTHING: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


class Target(NamedTuple):
    """In place of a channel: what memory gives or takes, and what L2 does, is known when all accesses are."""

    path: Path
    access: GlobalAccess | None
    share: np.ndarray | None = None


class Moved(NamedTuple):
    """What a core moves in one transfer. half: whether the other Vector core moves as much of the same tile."""

    amount: Any
    bursts: Any
    half: bool


class LoweringContext(Interpreter):
    """Lowers some programs to records. `plan` is what all programs of a launch share: costs, buffers, lines."""

    plan: LoweringPlan
    recorder: Recorder
    first_number: int

    def prepare(self, plan: LoweringPlan, numbers: np.ndarray, touch: FirstTouch) -> None:
        """Begin a trace. numbers: lanes; a program has two where it tells its Vector cores apart."""
        self.plan = plan
        programs = numbers[: len(numbers) // self.subs]
        self.record_to(TraceBuilder(programs, touch, pair_of(plan, self.subs, self.total)))
        self.first_number = int(numbers[0])
        self.touch = touch
        self.current: dict[int, int] = {}
        self.iteration_counts: dict[Any, int] = {}
        self.pending = 0
        self.pending_loc = Loc("", 0)
        self.last_region: tuple[Any, ...] | None = None
        self.last_active = numbers
        self.last_columns: np.ndarray = numbers - numbers[0]

    def record_to(self, builder: TraceBuilder) -> None:
        """Put records there.

        Where programs do not follow each other, or have two Vector cores apart, what they access is touched at once.
        """
        plan, numbers = self.plan, builder.numbers
        shared = plan.wiring.mte3 if plan.shares_iterations else -1
        self.recorder = Recorder(builder, self.subs, plan.drains, shared)
        cores = plan.wiring.machine.cores
        many = int(numbers[-1]) // cores > int(numbers[0]) // cores
        waves = many and builder.pair is None and bool((np.diff(numbers) == 1).all())
        builder.touch.in_waves(cores if waves else 0)

    def count(self, op: Op) -> None:
        """Note that the active programs execute it, for `roofs.py`."""
        self.plan.executed[op.id] = self.plan.executed.get(op.id, 0) + len(self.active)

    def symbolic_done(self, op: Op) -> None:
        self.pending += 1
        self.pending_loc = op.loc

    def flush(self, cube: bool = False) -> None:
        """The scalar operations since the last record, as one record on the unit of the next record."""
        if self.pending:
            wiring = self.plan.wiring
            pipe = wiring.cube_scalar if cube or wiring.scalar < 0 else wiring.scalar
            cycles = self.pending * self.plan.costs.model.scalar_cycles
            self.pending = 0
            self.add(pipe, self.pending_loc, occupancy=cycles, instructions=0)

    # -- slots ----------------------------------------------------------------------------------------------------------

    def roots_of(self, *values: Value | None) -> tuple[tuple[int, int], ...]:
        """(value id, slot number before any write) of what an instruction reads."""
        placed = self.plan.placement.slot_of
        roots = (self.plan.definitions.root(v) for v in values if v is not None)
        found = {r.id: placed[r.id].number for r in roots if r is not None and r.id in placed}
        return tuple(found.items())

    def slots_at(self, roots: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        """Engine slots that hold those values now."""
        current = self.current
        return tuple([current.get(i, number) for i, number in roots])

    def slots_of(self, *values: Value | None) -> tuple[int, ...]:
        return self.slots_at(self.roots_of(*values))

    def target(self, v: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(slot, clobbered slots) of a value that is being defined."""
        slot = self.plan.placement.slot_of.get(v.id)
        if slot is None:
            return _NOTHING
        writes, clobbers = self.copy_of(slot, self.plan.placement.loop_of.get(v.id, -1))
        self.current[v.id] = writes[0]
        return writes, clobbers

    def repeat(self, op: Op) -> None:
        """An operation that the compiler makes once with an equal one before it: its results lie where those do."""
        for r in op.results:
            first = self.current.get(self.plan.placement.repeated[r.id])
            if first is not None:
                self.current[r.id] = first

    def copy_of(self, slot: Slot, loop: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The copy of a buffer that is written now, and the slots that this clobbers.

        loop: id of the operation whose iterations take one copy after the other, or another count of `iteration_counts`.
        """
        return slot.targets[self.iteration_counts.get(loop, 0) % slot.copies if slot.copies > 1 else 0]

    @contextmanager
    def in_stage(self, later: int) -> Iterator[None]:
        """Records of a stage so many after that of the operation."""
        self.recorder.stage += later
        try:
            yield
        finally:
            self.recorder.stage -= later

    # -- records --------------------------------------------------------------------------------------------------------

    def add(
        self,
        pipe: int,
        loc: Loc,
        *,
        occupancy: Any,
        channel: Any = -1,
        grade: int = BEST,
        half: bool = False,
        **what: Any,
    ) -> None:
        """A record of the active programs. channel: its number, or a `Target`. half: see `Wiring.channel`. what: fields of
        `Instruction`."""
        wiring = self.plan.wiring
        if isinstance(channel, Target):
            (memory, l2), (line, _) = channel.path
            number = wiring.channel(memory, half)
            path = channel.path._replace(channels=(number, wiring.channel(l2, half)))
            what.update(path=path, access=channel.access, share=channel.share)
        else:
            number, line = wiring.channel(channel, half), self.plan.line(loc, pipe, channel, grade)
        x = Instruction(pipe, line, occupancy, channel=number, **what)
        self.recorder.add(x, self.active_or_none())

    def target_of(
        self,
        op: Op,
        pipe: int,
        channels: tuple[int, int],
        access: GlobalAccess | None,
        share: np.ndarray | None = None,
    ) -> Target:
        """Where a transfer goes whose channel is known when all accesses are."""
        return Target(self.path(op, pipe, channels), access, share)

    def path(self, op: Op, pipe: int, channels: tuple[int, int]) -> Path:
        """The channels of a transfer, from memory and from L2, and the lines of both."""
        one, other = (self.plan.line(op.loc, pipe, channel) for channel in channels)
        return Path(channels, (one, other))

    def active_or_none(self) -> np.ndarray | None:
        active = self.active
        if len(active) == self.recorder.programs:
            return None
        if active is not self.last_active:
            self.last_active, self.last_columns = active, active - self.first_number
        return self.last_columns

    def fixed(
        self, op: Op, pipe: int, cycles: float, latency: float, reads: Any, writes: Any, clobbers: Any,
        grade: int = BEST,
    ) -> None:  # fmt: skip
        """One instruction of a fixed cost."""
        line, active = self.plan.line(op.loc, pipe, grade=grade), self.active_or_none()
        self.recorder.add_fixed(pipe, line, cycles, latency, 1, reads, writes, clobbers, active)

    def computed(self, op: Op, cost: Cost, reads: Any, writes: Any, clobbers: Any) -> None:
        """Work of the Vector unit on tiles, as one instruction."""
        pipe = self.plan.wiring.vector
        self.fixed(op, pipe, cost.occupancy, cost.latency, reads, writes, clobbers, cost.grade)

    def made_real(self, loc: Loc, v: Value, slot: Slot) -> None:
        """A tile, which may be a view or a formula, is written into a buffer by the Vector unit."""
        cost = self.plan.costs.made_real(v)
        self.add(
            self.plan.wiring.vector,
            loc,
            occupancy=cost.occupancy,
            latency=cost.latency,
            instructions=cost.instructions,
            grade=cost.grade,
            reads=self.slots_of(v),
            writes=(slot.number,),
            clobbers=slot.targets[0][1],
        )

    def written_out(self, op: Op, v: Value) -> tuple[int, ...]:
        """A tile that is a view or a formula is written to scratch, from where it is stored."""
        slot = self.plan.placement.scratch_of[op.id]
        self.made_real(op.loc, v, slot)
        return (slot.number,)

    # -- global memory --------------------------------------------------------------------------------------------------

    def load_tile(
        self,
        op: Op,
        pointer: Pointers,
        mask: Any,
        pipe: int,
        channels: tuple[int, int],
        rates: PathRates,
        latency: float,
    ) -> tuple[tuple[int, ...], Any]:
        """A tile from global memory; gives its slots and how many of its elements come. channels: see `load_box`."""
        r = op.results[0]
        writes, clobbers = self.target(r)
        what = {"writes": writes, "clobbers": clobbers, "latency": latency}
        if not isinstance(pointer.offsets, Affine) or not boxed(mask):
            self.discrete(op, r, "load", pipe, channels[0], rates.interval, **what)
            return writes, r.numel
        bursts, elements = self.load_box(op, pointer, mask, pipe, channels, rates, **what)
        self.check_bursts(op, r, bursts, elements)
        return writes, elements

    def load_box(
        self,
        op: Op,
        pointer: Pointers,
        mask: Any,
        pipe: int,
        channels: tuple[int, int],
        rates: PathRates,
        **what: Any,
    ) -> tuple[Any, Any]:
        """A regular load; gives its bursts and its elements. channels: from memory and from L2."""
        r = op.results[0]
        amount, bursts, elements = self.traffic(pointer.tensor, pointer.offsets, mask, itemsize(r))
        access, share, many = self.source(op, pointer, mask, amount)
        moved, rates = (
            self.moved(r, pipe, pointer.offsets, amount, bursts),
            rates.of_rows(bursts, elements, itemsize(r)),
        )
        if rates.block and r.shape[-1] * itemsize(r) <= BLOCK_BYTES and not in_fractals(r):
            moved, rates = moved._replace(bursts=np.divide(elements, r.shape[-1])), rates.of_blocks()
        what.update(self.least_in(op, rates, pointer, mask, moved, many))
        target = self.target_of(op, pipe, channels, access, share)
        late = self.plan.late_from_memory
        self.add(pipe, op.loc, channel=target, amount=moved.amount, half=moved.half, late=late, **what)
        return bursts, elements

    def moved(self, v: Value, pipe: int, offsets: Affine, amount: Any, bursts: Any) -> Moved:
        """What one core moves of a regular access: all of it, or half of the tile's rows."""
        if not self.plan.is_shared(v, pipe):
            return Moved(amount, bursts, False)
        cut = offsets.strides[self.plan.placement.rows[v.id]] != 1  # else each core has a part of all bursts
        return Moved(amount / 2, np.minimum(bursts, np.maximum(bursts / 2, 1)) if cut else bursts, True)

    def addresses(self, op: Op, v: Value) -> None:
        """Those that the scalar unit works out before the elements of an access can move."""
        cycles = self.plan.address_cycles(op, v.numel)
        if cycles:
            self.fixed(
                op, self.plan.scalar, cycles, 0.0, (), (), (), grade=grade_of(self.plan.product, (ADDRESS,))
            )

    def discrete(
        self, op: Op, v: Value, what: str, pipe: int, channel: int, interval: float, **more: Any
    ) -> None:
        """Addresses that are no regular pattern: one transfer for each element, or for each run of neighbours.

        interval: cycles between two of them. more: latency and slots.
        """
        run, half = op.attrs.get("run", 1), self.plan.is_shared(v, pipe)
        n, size = v.numel // run, align(run * itemsize(v), BLOCK_BYTES)
        things = "elements" if run == 1 else f"rows of {run} elements"
        text = f"discrete {what}: {n} {things}, one transfer of {size} bytes each"
        self.plan.slow(op, DISCRETE, text, cures.DISCRETE)
        n = -(-n // 2) if half else n
        more.update(occupancy=n * interval, amount=n * size, instructions=n, half=half)
        self.add(pipe, op.loc, channel=channel, **more)

    def region_of(self, tensor: Tensor, offsets: Any, mask: Any) -> AccessRegion:
        """Where an affine access of all programs touches its tensor. Asked more than once about each access."""
        known = self.last_region
        if known is None or any(
            [a is not b for a, b in zip(known, (tensor, offsets, mask, self.active), strict=False)]
        ):
            region = AccessRegion(tensor, offsets, mask, len(self.active))
            known = self.last_region = (tensor, offsets, mask, self.active, region)
        region = known[4]
        assert isinstance(region, AccessRegion)
        return region

    def traffic(self, tensor: Tensor, offsets: Affine, mask: Any, itemsize: int) -> tuple[Any, Any, Any]:
        """(bytes on the way, bursts, elements) of a regular access."""
        return traffic(offsets, itemsize, self.region_of(tensor, offsets, mask))

    def least_in(
        self, op: Op, rates: PathRates, pointer: Pointers, mask: Any, moved: Moved, sharers: Any
    ) -> dict[str, Any]:
        """The least cycles of a regular load. `slow`: those if memory gives it, where they differ."""
        amount, rows = moved.amount, moved.bursts
        if op.attrs.get("cache") == ".cv":
            region = self.region_of(pointer.tensor, pointer.offsets, mask)
            lines = line_requests(pointer.offsets, itemsize(op.results[0]), region) / (1 + moved.half)
            return {"occupancy": self.plan.least_cycles(rates.past_l2(), lines, amount, sharers)}
        alone = self.plan.one_by_one
        gaps = op.id in alone.woven and pointer.offsets.strides[-1] != 1  # to L1
        if gaps or op.id in alone.strided:  # each element a transfer of its own
            rates = rates._replace(row=np.maximum(rates.row, rates.interval))
        found, slower = self.plan.least_cycles(rates, rows, amount, sharers), rates.from_memory(rows, amount)
        slow = None if slower is None else self.plan.least_cycles(slower, rows, amount, sharers)
        return {"occupancy": found, "slow": slow}

    def cores_alike(self, region: AccessRegion) -> Any:
        """For each program how many cores read the same as it, at the same time."""
        return sharers(region.starts, self.active, self.plan.wiring.machine.cores)

    def source(
        self, op: Op, pointer: Pointers, mask: Any, amount: Any
    ) -> tuple[GlobalAccess | None, np.ndarray | None, Any]:
        """Where a load reads, or the part of it that memory gives; and for each program how many cores read the same."""
        if isinstance(pointer.tensor, FlatMemory):
            return None, self._share_of_flat(op, pointer, mask), 1.0
        region, inside = self.checked_region(op, pointer, mask, "load", self.active)
        many = self.cores_alike(region)
        if not inside:
            return None, np.ones(1), many
        if op.attrs.get("cache") == ".cv":
            self.touch.past(float(np.broadcast_to(amount, len(self.active)).sum()))
            return None, np.ones(1), many
        return GlobalAccess(pointer.tensor, region, False), None, many

    def _share_of_flat(self, op: Op, pointer: Pointers, mask: Any) -> np.ndarray:
        out = np.ones(len(self.active))
        try:
            for index, p, m in self.known.pieces(pointer, mask, self.active, "load", self.site(op)):
                numbers = self.active if index is None else self.active[index]
                region, inside = self.checked_region(op, p, m, "load", numbers)
                if inside:
                    out[slice(None) if index is None else index] = self.touch.share(p.tensor, region)
        except OutOfBoundsError as e:
            self.backend.left_out(op, e)
        return out

    def checked_region(
        self, op: Op, pointer: Pointers, mask: Any, what: str, numbers: np.ndarray
    ) -> tuple[AccessRegion, bool]:
        """Where an affine access touches its tensor, and whether it lies in it; if not that is an error as with values."""
        region = (
            self.region_of(pointer.tensor, pointer.offsets, mask)
            if numbers is self.active
            else AccessRegion(pointer.tensor, pointer.offsets, mask, len(numbers))
        )
        programs = numbers if self.subs == 1 else numbers % self.total
        try:
            check(pointer.tensor, region, programs, what, self.site(op))
        except OutOfBoundsError as e:
            self.backend.left_out(op, e)
            return region, False
        return region, True

    def way_out(self, op: Op, pointer: Pointers, mask: Any, channels: tuple[int, int], pipe: int) -> Any:
        """Channel of a store: into L2, or at memory's pace where it pushes out what was changed before."""
        if not isinstance(pointer.offsets, Affine) or isinstance(pointer.tensor, FlatMemory):
            return channels[0]
        region, inside = self.checked_region(op, pointer, mask, op.kind, self.active)
        if not inside:
            return channels[0]
        return self.target_of(op, pipe, channels, GlobalAccess(pointer.tensor, region, True))

    def check_bursts(self, op: Op, v: Value, bursts: Any, elements: Any) -> None:
        many = bursts if isinstance(bursts, int) else int(bursts.max())
        if many <= 1:
            return
        all_elements = elements if isinstance(elements, int) else int(elements.max())
        if many > 1 and many == all_elements and v.numel > 1:
            text = (
                f"{op.kind} of {list(v.shape)} is strided: {many} elements move as {many} blocks of 32 bytes"
            )
            self.plan.slow(op, DISCRETE, text, cures.STRIDED)

    def fill(self, op: Op, r: Value, elements: Any, slots: tuple[int, ...]) -> None:
        """Masked-out elements are filled by the Vector unit after a partial load.

        The record reads the slot and stands before its users on the Vector pipe, so it delays them. It does not count as
        the slot's writer: programs that load whole tiles skip it, and a skipped writer would hold back their next load.
        """
        if isinstance(elements, int) and elements == r.numel:
            return
        partial = np.broadcast_to(np.asarray(elements) < r.numel, len(self.active))
        if partial.any():
            cost = self.plan.costs.filled(r)
            self.add(
                self.plan.wiring.vector,
                op.loc,
                occupancy=cost.occupancy + cost.latency,
                instructions=cost.instructions,
                grade=cost.grade,
                reads=slots,
                partial=partial,
            )


def itemsize(v: Value) -> int:
    """Bytes of an element."""
    return v.number.itemsize


def tile_size(v: Value) -> int:
    """Bytes of a tile without padding."""
    return v.numel * itemsize(v)
