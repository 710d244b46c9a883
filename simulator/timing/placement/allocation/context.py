"""What is given and what is found while the values of a program get their buffers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ....ir.program import Op, Value
from ..layouts import align, buffer_bytes, tile_bytes
from ..memory_spaces import L0C, L1, UB
from ..needs import Needs
from ..slots import Slot
from ..stages import Stages
from ..strides import BlockByBlock

MANY = 2**31  # copies: as many as are asked for


class Choice(NamedTuple):
    """What a launch chooses.

    copies: of tiles that are loaded or stored in a loop; most: buffer -> the most copies that its tiles may have.
    pieces: those of the Vector part and of the Cube part of a loop, if the compiler's pipeliner parts them (`pipelined`).
    l0c: whether an accumulator has them, too. copied: buffers in which the vendor's compiler makes them.
    blocks: what moves element by element. banks: period and span of UB's banks, if tiles that are read together are to keep
    apart there. sub_blocks: whether the two Vector cores of a core may share the rows of a program; None where it has one.
    tiles: iterations of a mixed loop that are under way at once, if its stages may run apart (stages.py).
    """

    copies: int
    l0c: bool = True
    blocks: BlockByBlock = BlockByBlock()
    banks: tuple[int, int] | None = None
    most: Mapping[str, int] = MappingProxyType({})
    sub_blocks: bool | None = True
    tiles: int = 1
    copied: tuple[str, ...] = (UB, L1)
    pieces: tuple[int, int] = (1, 1)
    pipelined: bool = True

    def most_in(self, space: str) -> int:
        """The most copies of a tile; a table has one."""
        one = {UB: MANY, L1: MANY, L0C: MANY if self.l0c else 1}
        return self.most.get(space, one.get(space, 1))


class Allocation:
    """Buffers of one program. tight: as little UB as the vendor's compiler needs; loads wait for stores then.

    slot_of: value -> its slot. sum_of: where the sum of a product and its start goes, if not into the product's own copy in
    UB. By operation: scratch_of, spread_of its scratch and the blocks of a strided store. loops: those around what is
    placed just now. iteration: of a slot with copies, its life within one iteration.
    """

    def __init__(self, needs: Needs, choice: Choice, alignment: Mapping[str, int], tight: bool) -> None:
        self.needs, self.choice, self.alignment, self.tight = needs, choice, alignment, tight
        self.spaces, self.definitions, self.lives = needs.spaces, needs.definitions, needs.lives
        self.spread_of: dict[int, Slot] = {}
        self.ub_copy: dict[int, Slot] = {}
        self.l1_copy: dict[tuple[int, int], Slot] = {}
        self.sum_of: dict[int, Slot] = {}
        self.slot_of: dict[int, Slot] = {}
        self.scratch_of: dict[int, Slot] = {}
        self.slots: list[Slot] = []
        self.loop_of: dict[int, int] = dict(needs.loop_of)
        self.loops: list[Op] = []
        self.iteration: dict[int, tuple[int, int]] = {}

    @property
    def in_transit(self) -> list[Slot]:
        """Slots of tiles on their way from one unit to another."""
        return [*self.spread_of.values(), *self.ub_copy.values(), *self.l1_copy.values()]

    @property
    def every(self) -> list[Slot]:
        """All slots, each once."""
        slots = (*self.slot_of.values(), *self.scratch_of.values(), *self.in_transit)
        return list({id(s): s for s in slots}.values())

    @property
    def loop(self) -> int:
        """The innermost loop around what is placed just now, -1 for none."""
        return self.loops[-1].id if self.loops else -1

    def size(self, v: Value, space: str) -> int:
        """Bytes of one copy of a value in a buffer, aligned; in UB those of one Vector core."""
        if space == UB:
            return align(self._bytes_in_ub(v), self.alignment[UB])
        return align(buffer_bytes(v, space), self.alignment[space])

    def _bytes_in_ub(self, v: Value) -> int:
        landing = self.choice.blocks.landing
        if v.id in landing:
            return self.of_one_core(v, landing[v.id])
        return tile_bytes(self.needs.halves.value(v))

    def of_one_core(self, v: Value, size: int) -> int:
        """What one Vector core has of bytes that are the same for each element of a tile."""
        return size * self.needs.halves.value(v).numel // v.numel

    def new(self, v: Value, space: str, start: int, end: int) -> Slot:
        """A buffer for a value, and for others that join it."""
        why = "stride padding" if space == UB and v.id in self.choice.blocks.landing else "tile"
        slot = Slot([], start, end, self.size(v, space), depth=len(self.loops), space=space, why=why)
        self.slots.append(slot)
        return slot

    def join(self, slot: Slot, values: Iterable[Value]) -> None:
        """Values whose bytes are those of a slot."""
        for v in values:
            slot.values.append(v)
            self.slot_of[v.id] = slot

    def stages(self, loop: int) -> Stages | None:
        """Those of a loop that run apart."""
        return self.needs.stages.get(loop) if self.choice.tiles > 1 else None

    def copies(self, loop: Op) -> int:
        """Of a tile that is loaded or stored in a loop: what its hint or else the launch asks for."""
        stages = loop.attrs.get("hints", {}).get("num_stages")
        return max(1, int(stages)) if stages else self.choice.copies
