"""What the source says of the cores of a program: who makes each access, which arguments each uses, which tiles pass."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.passes.split_cores import CORES, MEMORY, Cores, SubCores
from ..ir.pointer_roots import pointer_roots
from ..ir.program import Op, Program, Region, Value

FLAGS = {"sync_block_set", "sync_block_wait"}


class CoreUses:
    """Of a program: the core of each access, the arguments of each core, and what uses a tile of the other core."""

    def __init__(self, program: Program) -> None:
        self.cores, roots = Cores(program), pointer_roots(program)
        self.core: dict[int, str] = {}
        self.names: dict[str, set[str]] = {x: set() for x in (*CORES, "written", "read")}
        self.crossing: dict[int, int] = {}  # operation -> who sends
        for op in program.walk():
            core = self.cores.of(op)
            if core:
                self._cross(op, core)
            if op.kind in MEMORY:
                names = roots.get(op.operand(0).id) or {""}
                self.names["read"] |= names if op.kind != "store" else set()
                self.names["written"] |= names if op.kind != "load" else set()
                if core:
                    self.core[op.id] = core
                    self.names[core] |= names

    def sender(self, op: Op, part: str) -> int:
        """Who made the tile that an operation uses; part: as of `Watcher.synced`."""
        return 1 - CORES.index(part) if part else self.crossing[op.id]

    def _cross(self, op: Op, core: str) -> None:
        for v in op.args:
            if v is not None and v.shape and not v.is_pointer and self._maker(v) not in ("", core):
                self.crossing[op.id] = 1 - CORES.index(core)

    def _maker(self, v: Value) -> str:
        """The core that makes a value."""
        if v.id in self.cores.products:
            return "cube"
        op = self.cores.made.get(v.id)
        return "" if op is None else self.cores.of(op)


class _Differing(SubCores):
    """What may differ between the Vector cores of a program: also the old values of atomics."""

    def touches(self, op: Op) -> bool:
        return op.kind == "atomic" or super().touches(op)

    def alike(self, region: Region) -> Iterator[int]:
        """Loads of the same places and stores of the same values to the same places (by id), which both make."""
        for op in region.ops:
            if op.kind in ("load", "store") and not self.touches(op):
                yield op.id
            if not self._steers(op):
                for inner in op.regions:
                    yield from self.alike(inner)


def made_alike(program: Program) -> frozenset[int]:
    """Loads and stores (by id) that both Vector cores of a program make alike."""
    return frozenset(_Differing(program).alike(program.body))


def core_uses(program: Program) -> CoreUses:
    """Of a program, found once."""
    return program.once(CoreUses)


def by_hand(program: Program) -> bool:
    """Whether a kernel orders its cores by itself; else the compiler does."""
    return bool({"scope", *FLAGS} & program.split_builtins.keys())
