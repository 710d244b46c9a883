"""Which bytes of UB, L1 and L0C each tile value gets, and whether all of them fit.

Each dense value lives from its definition to its last use. A value that a loop carries keeps one buffer through the loop;
an elementwise result may take over the buffer of an operand that dies there. A tile that is loaded or stored inside a
loop gets `copies` buffers and keeps them through the loop, so that the next turn's transfer can overlap this turn's
work. Buffers are packed largest first, each at the lowest offset that is free during its life; where there is room they
then move apart (`aliasing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from ...errors import BufferOverflowError
from ...ir.operations import operation
from ...ir.program import Op, Program, Region, Value
from ...record.run import Buffer
from .accumulator_inits import BT
from .aliasing import move_apart, transferred
from .allocate_buffers import explicit_slots
from .layouts import TILE, accumulator_bytes, align, fractal_bytes, table_bytes, tile_bytes
from .lifetimes import Lifetimes
from .memory_spaces import FIXP, L0C, L1, UB, VIEW, Homes
from .scratch import scratch_bytes
from .slots import Apart, Slot, find_clobbers, ledger, overflow, pack
from .strides import BlockByBlock

NONE = BlockByBlock()
WHOLE_TURNS = (
    4  # turns of the banks from which on a buffer is rounded up to whole ones, if its tiles are to keep apart
)
BIAS_IN_L1 = -1  # in place of the number of an operand
MANY = 2**31  # copies: as many as are asked for
UNLIMITED: Mapping[str, int] = {}
INSERTION = "insert_slice"  # may be written into the tile it inserts into


@dataclass(frozen=True)
class Placement:
    """slot_of: value id -> its slot. sum_of: where the sum of a product and its start goes, if not into the product's own
    copy in UB. By operation id: scratch_of its scratch, spread_of the blocks of a strided store.
    buffers: peak against capacity.
    """

    slots: tuple[Slot, ...]
    slot_of: dict[int, Slot]
    scratch_of: dict[int, Slot]
    spread_of: dict[int, Slot]
    ub_copy: dict[int, Slot]
    l1_copy: dict[tuple[int, int], Slot]
    sum_of: dict[int, Slot]
    loop_of: dict[int, int]
    buffers: dict[str, Buffer]
    engine_slots: int
    notes: tuple[str, ...] = ()


class Placer:
    """Assigns buffers for one program."""

    def __init__(
        self,
        program: Program,
        homes: Homes,
        copies: int,
        alignment: dict[str, int],
        l0c: bool = True,
        blocks: BlockByBlock = NONE,
        most: Mapping[str, int] = UNLIMITED,
        banks: tuple[int, int] | None = None,
    ) -> None:
        self.program = program
        self.homes = homes
        self.definitions = homes.definitions
        self.lives = Lifetimes(program, homes.definitions, homes.added)
        self.copies = copies
        # buffer -> the most copies that its tiles may have; a table has one
        self.most = {UB: MANY, L1: MANY, L0C: MANY if l0c else 1, **most}
        self.banks = (
            banks  # turn and span of UB's banks, if tiles that are read together are to keep apart there
        )
        self.alignment = alignment
        self.landing = blocks.landing  # bytes of tiles that arrive element by element, by value
        self.leaving = blocks.leaving  # bytes of buffers from which tiles leave so, by store
        self.spread_of: dict[int, Slot] = {}
        self.ub_copy: dict[int, Slot] = {}
        self.l1_copy: dict[tuple[int, int], Slot] = {}
        self.sum_of: dict[int, Slot] = {}
        self.slot_of: dict[int, Slot] = {}
        self.scratch_of: dict[int, Slot] = {}
        self.slots: list[Slot] = []
        self.loop_of: dict[int, int] = {}
        self.loops: list[Op] = []
        self.tight = False
        self.turns: dict[int, tuple[int, int]] = {}  # of a slot with copies: its life within one turn
        self.near: Apart | None = None

    def run(self, tight: bool = False) -> list[Slot]:
        """All slots, not packed yet. tight: as little UB as the vendor's compiler needs; loads wait for stores then."""
        self.tight = tight
        self.slot_of.update(explicit_slots(self.program, self.homes, self.lives, self.size))
        self._region(self.program.body)
        self._multibuffer(self.program.body, None)
        if tight:
            self._share_with_stores()
        every = [*self.slot_of.values(), *self.scratch_of.values(), *self.crossing]
        live = list({id(s): s for s in every}.values())
        self.near = self._apart()
        return live

    @property
    def crossing(self) -> list[Slot]:
        """Slots of tiles on their way from one unit to another."""
        return [*self.spread_of.values(), *self.ub_copy.values(), *self.l1_copy.values()]

    def _apart(self) -> Apart | None:
        """Tiles of UB that are sources of one vector instruction; larger ones take whole turns of the banks."""
        if self.banks is None:
            return None
        pairs = set()
        for op in self.program.walk():
            if op.kind not in ("binary", "compare", "select"):
                continue
            found = [s for v in op.args if v is not None and (s := self._source(v)) is not None]
            pairs |= {(id(a), id(b)) for a, b in combinations(found, 2) if a is not b}
        for s in {id(s): s for s in self.slot_of.values() if s.space == UB}.values():
            if s.size > WHOLE_TURNS * self.banks[0]:
                s.size = align(s.size, self.banks[0])
        return Apart(frozenset(pairs), *self.banks)

    def _source(self, v: Value) -> Slot | None:
        root = self.definitions.root(v) if v.shape and self.definitions.form(v) == TILE else None
        slot = None if root is None else self.slot_of.get(root.id)
        return slot if slot is not None and slot.space == UB else None

    def size(self, v: Value, space: str) -> int:
        """Bytes of one copy of a value in a buffer, aligned."""
        if space == UB and v.id in self.landing:
            return align(self.landing[v.id], self.alignment[UB])
        measure = {UB: tile_bytes, L0C: accumulator_bytes, BT: table_bytes}.get(space, fractal_bytes)
        return align(measure(v), self.alignment[space])

    def names(self) -> dict[int, str]:
        """Words for values without a name: what made them, and the named value they go into."""
        out: dict[int, str] = {}
        for op in reversed(list(self.program.walk())):
            target = next((r.name or out.get(r.id, "") for r in op.results), "") or (
                "what is stored" if op.kind in ("store", "atomic") else ""
            )
            for v in op.args:
                made = None if v is None or v.name else self.definitions.of(v)
                if made is not None and target:
                    word = made.name or made.kind
                    out[v.id] = f"{word} for {target.split(' for ')[-1]}"  # type: ignore[union-attr]
        return out

    # -- slots -------------------------------------------------------------------------------------------------------

    def _region(self, region: Region) -> None:
        for op in region.ops:
            if op.kind in ("for", "while"):
                self._loop(op)
                continue
            self._if_results(op)
            for inner in op.regions:
                self._region(inner)
            self._plain(op)
            self._scratch(op)
            self._spread(op)
            self._crossings(op)

    def _plain(self, op: Op) -> None:
        if op.kind == "atomic" and not op.attrs["result_used"]:
            return  # nothing comes back
        for r in op.results:
            self.loop_of[r.id] = self.loops[-1].id if self.loops else -1
            if (
                r.id in self.slot_of
                or self.definitions.root(r) is not r
                or self.homes.home(r) in (FIXP, VIEW)
            ):
                continue
            slot = self._taken_over(op, r) or self._new(r)
            slot.values.append(r)
            slot.end = max(slot.end, self.lives.last.get(r.id, self.lives.at[op.id]))
            self.slot_of[r.id] = slot

    def _new(self, v: Value) -> Slot:
        born = self.lives.birth(v)
        space = self.homes.home(v)
        slot = Slot(
            [], born, self.lives.last.get(v.id, born), self.size(v, space), depth=len(self.loops), space=space
        )
        self.slots.append(slot)
        return slot

    def _crossings(self, op: Op) -> None:
        """Places for values that pass between the Cube's buffers and UB."""
        for r in op.results:
            if r.id in self.homes.copied_to_ub:
                at = self.lives.spans.get(op.id, (0, self.lives.at[op.id]))[1]
                end = max(at, self.lives.last.get(r.id, at))
                self.ub_copy[r.id] = Slot(
                    [r], at, end, self.size(r, UB), label=f"{r.name or 'product'} in UB"
                )
        if op.kind == "load" and self.homes.home(op.results[0]) == BT:
            r, at = op.results[0], self.lives.at[op.id]
            size = align(tile_bytes(r), self.alignment[L1])
            name = f"{r.name or 'bias'} in L1"
            end = max(
                at, self.lives.last.get(r.id, at)
            )  # so that operands of the sum need not wait for its place
            self.l1_copy[(op.id, BIAS_IN_L1)] = Slot([r], at, end, size, label=name, space=L1)
        if op.kind == "dot":
            for i, v in enumerate(op.args[:2]):
                source = self.homes.source(v)  # type: ignore[arg-type]
                if source.id in self.homes.staged:
                    at = self.lives.at[op.id]
                    name = f"{source.name or 'operand'} in L1"
                    self.l1_copy[(op.id, i)] = Slot(
                        [source], at, at, self.size(source, L1), label=name, space=L1
                    )

    def _taken_over(self, op: Op, r: Value) -> Slot | None:
        """The buffer of an operand of the same size that dies at this operation."""
        insertion = op.kind == INSERTION
        if not (insertion or operation(op).elementwise) or not r.shape or self.homes.home(r) != UB:
            return None
        for v in op.args[:1] if insertion else op.args:
            root = None if v is None else self.definitions.root(v)
            if root is None or root.id not in self.slot_of or self.definitions.form(v) != TILE:  # type: ignore[arg-type]
                continue
            slot = self.slot_of[root.id]
            if slot.space != UB or slot.label:
                continue
            dies = self.lives.last.get(root.id) == self.lives.at[op.id] == slot.end
            produced = self.definitions.of(root)
            loaded = produced is not None and produced.kind == "load"
            same = tile_bytes(root) == tile_bytes(r) and root.shape == r.shape and root.id not in self.landing
            if dies and same and (self.tight or not (loaded and self.loops)):
                return slot
        return None

    def _scratch(self, op: Op) -> None:
        size = scratch_bytes(op, self.definitions)
        if op.kind == "dot":  # operands that are written out, one after the other
            operands = (self.homes.made_real(v) for v in op.args[:2] if v is not None)
            size = max((tile_bytes(v) for v in operands if v is not None), default=size)
        if size:
            at = self.lives.at[op.id]
            slot = Slot([], at, at, align(size, self.alignment[UB]), label=f"scratch of {op.name or op.kind}")
            slot.values = [op.results[0]] if op.results else []
            self.scratch_of[op.id] = slot

    def _spread(self, op: Op) -> None:
        """The buffer over which the elements of a strided store are spread, unless they lie so already."""
        if op.id not in self.leaving:
            return
        v, at = op.args[1], self.lives.at[op.id]
        root = None if v is None else self.definitions.root(v)
        from_cube = root is not None and self.homes.home(root) != UB and root.id not in self.ub_copy
        if from_cube or (root is not None and root.id in self.landing):
            return
        size = align(self.leaving[op.id], self.alignment[UB])
        slot = self.spread_of[op.id] = Slot([], at, at, size, label=f"blocks of strided {op.kind}")
        slot.values = [v] if v is not None else []
        copies = min(self._copies(self.loops[-1]), self.most[UB]) if self.loops else 1
        if copies > 1:
            slot.copies, slot.loop = copies, self.loops[-1].id
            slot.start, slot.end = self.lives.spans[slot.loop]

    def _if_results(self, op: Op) -> None:
        """A result of an `if` and what its branches yield share one buffer."""
        if op.kind != "if":
            return
        for k, r in enumerate(op.results):
            if self.definitions.root(r) is not r or r.id in self.slot_of:
                continue
            slot = self._new(r)
            slot.start = self.lives.at[op.id]
            slot.values.append(r)
            self.slot_of[r.id] = slot
            self.loop_of[r.id] = self.loops[-1].id if self.loops else -1
            for inner in op.regions:
                self._join_branch(inner.yields[k], inner, slot)

    def _join_branch(self, y: Value, branch: Region, slot: Slot) -> None:
        """Let a branch compute its result straight into the buffer of the `if`."""
        root = self.definitions.root(y)
        produced = None if root is None else self.definitions.of(root)
        if root is None or root.id in self.slot_of or produced not in branch.ops:
            return
        if self.size(root, slot.space) == slot.size:
            slot.values.append(root)
            self.slot_of[root.id] = slot

    def _loop(self, op: Op) -> None:
        first = 3 if op.kind == "for" else 0
        begin, end = self.lives.spans[op.id]
        skip = 1 if op.kind == "for" else 0
        for k, r in enumerate(op.results):
            if r.static.kind != "dense" and (r.shape or r.dtype.is_int()):
                continue
            if r.is_pointer or r.id in self.slot_of:
                continue
            self._carried(op, k, first, skip, begin, end)
        self.loops.append(op)
        for inner in op.regions:
            self._region(inner)
        self.loops.pop()
        self._crossings(op)

    def _carried(self, op: Op, k: int, first: int, skip: int, begin: int, end: int) -> None:
        """One buffer for a carried value: its start (if it dies here), the body's argument, what the body hands back."""
        r, initial = op.results[k], op.args[first + k]
        args = [inner.args[skip + k] for inner in op.regions if len(inner.args) > skip + k]
        root = None if initial is None else self.definitions.root(initial)
        slot = self.slot_of.get(root.id) if root is not None else None
        space = self.homes.home(r)
        size = self.size(r, space)
        alive = root is not None and self.lives.last.get(root.id, -1) > end
        if slot is None or alive or slot.size != size or slot.space != space or slot.label:
            slot = Slot([], begin, end, size, depth=len(self.loops), space=space)
            self.slots.append(slot)
        slot.end = max(slot.end, end, self.lives.last.get(r.id, end))
        for v in (*args, r):
            slot.values.append(v)
            self.slot_of[v.id] = slot
            self.loop_of[v.id] = self.loops[-1].id if self.loops else -1
        self._join_yield(op.regions[-1].yields[k], args[-1], slot, op.regions[-1])

    def _join_yield(self, y: Value, arg: Value, slot: Slot, body: Region) -> None:
        """Let the body write the new value straight into the carried buffer, if the old one is not needed any more."""
        root = self.definitions.root(y)
        if root is None or root.id in self.slot_of:
            return
        produced = self.definitions.of(root)
        if produced is None or produced not in body.ops:
            return
        if slot.space == L0C:  # products are added into the accumulator where it lies
            for v in self.homes.products_from(root, arg) or [root]:
                slot.values.append(v)
                self.slot_of[v.id] = slot
            return
        if produced.kind == INSERTION:
            self._join_insertions(root, arg, slot, body)
            return
        if produced.kind == "dot" and root.id in self.homes.added and slot.space == UB:
            if self._last_in_body(arg, body) <= self.lives.at[produced.id]:
                self.sum_of[root.id] = slot
            return
        if not operation(produced).elementwise or self.homes.home(root) != UB:
            return
        if self._last_in_body(arg, body) <= self.lives.at[produced.id] and tile_bytes(root) == tile_bytes(
            arg
        ):
            slot.values.append(root)
            self.slot_of[root.id] = slot

    def _join_insertions(self, root: Value, arg: Value, slot: Slot, body: Region) -> None:
        """Insertions one after another into the carried tile, each the last use of what the one before made."""
        chain: list[Value] = []
        made = self.definitions.of(root)
        while (
            made is not None and made.kind == INSERTION and made in body.ops and root.id not in self.slot_of
        ):
            into = self.definitions.root(made.args[0])  # type: ignore[arg-type]
            last = -1 if into is None else self._last_in_body(into, body)
            handed_back = any(self.definitions.root(y) is into for y in body.yields)
            if (
                into is None
                or handed_back
                or last > self.lives.at[made.id]
                or tile_bytes(into) != tile_bytes(root)
            ):
                return
            chain.append(root)
            root, made = into, self.definitions.of(into)
        if root is arg:
            for v in chain:
                slot.values.append(v)
                self.slot_of[v.id] = slot

    def _last_in_body(self, arg: Value, body: Region) -> int:
        last = -1
        for op in body.ops:
            if any(v is not None and self.definitions.root(v) is arg for v in op.args) or (
                op.regions
                and any(
                    v is not None and self.definitions.root(v) is arg
                    for o in op.regions
                    for i in o.ops
                    for v in i.args
                )
            ):
                last = self.lives.at[op.id]
        return last

    # -- copies ------------------------------------------------------------------------------------------------------

    def _multibuffer(self, region: Region, loop: Op | None) -> None:
        for op in region.ops:
            inner_loop = op if op.kind in ("for", "while") else loop
            for inner in op.regions:
                self._multibuffer(inner, inner_loop)
            if loop is None:
                continue
            for r in op.results:
                if r.id in self.program.copies:
                    self._copy(r, loop, self.program.copies[r.id])
            if self._copies(loop) < 2:
                continue
            if op.kind == "load":
                self._copy(op.results[0], loop)
            elif op.kind == "store" and op.id not in self.spread_of:
                self._copy(op.args[1], loop)

    def _copies(self, loop: Op) -> int:
        stages = loop.attrs.get("hints", {}).get("num_stages")
        return max(1, int(stages)) if stages else self.copies

    def _copy(self, v: Value | None, loop: Op, asked: int = 0) -> None:
        root = None if v is None or not v.shape else self.definitions.root(v)
        if root is None:
            return
        slot = self.slot_of.get(root.id)
        begin, end = self.lives.spans[loop.id]
        if (
            slot is None
            or slot.label
            or slot.start <= begin
            or any(self.definitions.of(x) is None for x in slot.values)
        ):
            return  # carried, or made before the loop: one buffer
        copies = asked or min(self._copies(loop), self.most.get(slot.space, 1))
        if slot.copies > 1 or copies < 2:
            return
        self.turns[id(slot)] = slot.start, slot.end
        slot.copies = copies
        slot.start, slot.end = begin, end

    def _share_with_stores(self) -> None:
        """Temporaries of a turn that are gone before a stored tile is made take its buffer, both copies in turn.

        (triton-ascend #302, a maintainer: the peak of the buffers alive at one time, times two.)
        """
        doubled = [s for s in self.slots if id(s) in self.turns and s.space == UB]
        plain = [s for s in self.slots if s.copies == 1 and s.space == UB and s.values]
        for t in sorted(plain, key=lambda s: -s.size):
            home = next((s for s in doubled if self._fits_before(t, s)), None)
            if home is not None:
                first, last = self.turns[id(home)]
                self.turns[id(home)] = min(first, t.start), last
                home.values = [*t.values, *home.values]
                self.slot_of.update({v.id: home for v in t.values})

    def _fits_before(self, t: Slot, s: Slot) -> bool:
        first, _ = self.turns[id(s)]
        loops = {self.loop_of.get(v.id, -1) for v in (*t.values, *s.values)}
        return (
            t.size <= s.size and s.start < t.start and t.end < first and len(loops) == 1 and -1 not in loops
        )


def place(
    program: Program,
    homes: Homes,
    copies: int,
    limits: dict[str, tuple[int, int]],
    device: str,
    l0c: bool = True,
    blocks: BlockByBlock = NONE,
    banks: tuple[int, int] | None = None,
    most: Mapping[str, int] = UNLIMITED,
) -> Placement:
    """Buffers of all values. `limits`: buffer -> (capacity in bytes, alignment in bytes); l0c: L0C has copies, too.
    blocks: see `strides.py`. banks: turn and span of UB's banks, if tiles that one instruction reads together are to lie
    half a turn apart; where that does not fit they are packed. most: buffer -> the most copies of its tiles.

    Raises `BufferOverflowError` when the values do not fit.
    """
    alignment = {space: bytes_ for space, (_, bytes_) in limits.items()}
    if banks is not None:
        try:
            return _placed(
                Placer(program, homes, copies, alignment, l0c, blocks, most, banks), limits, device
            )
        except BufferOverflowError:
            pass
    try:
        return _placed(Placer(program, homes, copies, alignment, l0c, blocks, most), limits, device)
    except BufferOverflowError as e:
        if copies == 1 or most.get(UB) == 1:
            raise
        try:
            return _placed(
                Placer(program, homes, copies, alignment, l0c, blocks, most), limits, device, tight=True
            )
        except BufferOverflowError as shared:
            raise (shared if shared.space != e.space else e) from None


def _placed(
    placer: Placer, limits: dict[str, tuple[int, int]], device: str, tight: bool = False
) -> Placement:
    live = placer.run(tight)
    number = 0
    for s in live:
        s.number = number
        number += s.copies
    buffers, names, moved = (
        {},
        placer.names(),
        transferred(placer.program, placer.definitions, placer.slot_of, placer.crossing),
    )
    for space, (capacity, _) in limits.items():
        mine = [s for s in live if s.space == space]
        near = placer.near if space == UB else None
        pack(mine, near)
        lines = placer.lives.lines
        found = ledger(mine, capacity, lines, names)
        if found.peak_bytes > capacity:
            text = overflow(placer.program, space, found, device)
            raise BufferOverflowError(text, space, found.peak_bytes, capacity)
        move_apart(mine, capacity, moved, near)
        find_clobbers(mine)
        if mine or space == UB:
            apart = ledger(mine, capacity, lines, names)
            buffers[space] = replace(apart, peak_bytes=found.peak_bytes, placed_bytes=apart.peak_bytes)
    return Placement(
        tuple(live),
        placer.slot_of,
        placer.scratch_of,
        placer.spread_of,
        placer.ub_copy,
        placer.l1_copy,
        placer.sum_of,
        placer.loop_of,
        buffers,
        number,
    )
