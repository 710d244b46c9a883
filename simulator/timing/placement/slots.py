"""Buffers as slots: what shares their bytes, what is alive at the peak, what an overflow says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...ir.program import Program, Value
from ...record.run import Buffer, LiveValue
from .layouts import tile_bytes
from .memory_spaces import UB

BESIDE = (
    "scratch",
    "broadcast",
    "comparison",
    "indices",
)  # why a buffer is there that no value of the kernel asks for


@dataclass
class Slot:
    """One buffer: the values that it holds one after the other, its life in program positions, its bytes and copies.

    offset: where it begins; offsets: where each copy does, empty if one follows the other. why: what it is there for, in a
    word or two, and line: of the source line that asks for it (0: that of its values).
    """

    values: list[Value]
    start: int
    end: int
    size: int
    copies: int = 1
    offset: int = 0
    number: int = -1
    depth: int = 0
    label: str = ""
    space: str = UB
    loop: int = -1  # operation whose iterations take its copies in turn, where no value tells
    offsets: tuple[int, ...] = ()
    why: str = ""
    line: int = 0
    targets: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.size * self.copies

    def place(self, copy: int) -> int:
        """Where a copy begins."""
        return self.offsets[copy] if self.offsets else self.offset + copy * self.size

    @property
    def top(self) -> int:
        """Behind its last byte."""
        return max(self.offsets, default=self.place(self.copies - 1)) + self.size


def find_clobbers(slots: list[Slot]) -> None:
    """For each copy of a slot: its engine slot, and those of other slots that share bytes with it."""
    spans = [(t, min(t.offsets, default=t.offset), t.top) for t in slots]
    for s, first, last in spans:
        others = [t for t, start, end in spans if start < last and first < end and t is not s]
        s.targets = [
            (
                (s.number + k,),
                tuple(t.number + c for t in others for c in range(t.copies) if _share(s, k, t, c)),
            )
            for k in range(s.copies)
        ]


def _share(s: Slot, k: int, t: Slot, c: int) -> bool:
    a, b = s.place(k), t.place(c)
    return a < b + t.size and b < a + s.size


def ledger(slots: Sequence[Slot], capacity: int, lines: Sequence[int], names: Mapping[int, str]) -> Buffer:
    """Bytes alive after each step (`lines` has the source line of each), and the values alive at the peak."""
    steps = [0] * (len(lines) + 1)
    for s in slots:
        steps[max(0, s.start)] += s.total
        if s.end + 1 < len(steps):
            steps[s.end + 1] -= s.total
    alive = []
    total = 0
    for delta in steps[: len(lines)]:
        total += delta
        alive.append(total)
    at = max(range(len(alive)), key=lambda i: alive[i], default=0)
    peak = max((s.top for s in slots), default=0)
    values = [_live_value(s, names) for s in sorted(slots, key=lambda s: -s.total) if s.start <= at <= s.end]
    return Buffer(peak, capacity, tuple(values), tuple(zip(lines, alive, strict=False)))


def _live_value(s: Slot, names: Mapping[int, str]) -> LiveValue:
    named = [v for v in s.values if v.name] or s.values
    v = named[-1] if named else None
    if v is None:
        return LiveValue(s.label, "", s.line, (), "", s.size, s.copies, s.offset, s.why, s.offsets)
    name = s.label or v.name or names.get(v.id, "temporary")
    place = (s.size, s.copies, s.offset, s.why, s.offsets)
    shape, dtype = (v.shape, str(v.dtype)) if _holds(s, v) else ((), "")
    return LiveValue(name, v.loc.file, s.line or v.loc.line, shape, dtype, *place)


def _holds(s: Slot, v: Value) -> bool:
    """Whether a buffer has the shape of its value: what an operation needs besides may be far larger."""
    return s.why not in BESIDE or s.size <= 2 * tile_bytes(v)


def overflow(program: Program, space: str, buffer: Buffer, device: str) -> str:
    need, have = buffer.peak_bytes, buffer.capacity_bytes
    alive = [v for v in buffer.peak if v.bytes]  # constants take nothing
    rows = "\n".join(
        f"    {v.bytes * v.copies:>8} B  {v.name} {_tile(v)}"
        f"{f' x {v.copies} copies' if v.copies > 1 else ''}  {_line(program, v)}{_why(v)}"
        for v in alive[:6]
    )
    rest = alive[6:]
    if rest:
        rows += f"\n    {sum(v.bytes * v.copies for v in rest):>8} B  in {len(rest)} smaller ones"
    if holes := need - sum(v.bytes * v.copies for v in alive):
        rows += f"\n    {holes:>8} B  in holes between them" if holes > 0 else ""
    return (
        f"{program.name} on {device}: {space.lower()} overflow, requires {need * 8} bits while {have * 8} bits available "
        f"({need} against {have} bytes). Alive at the peak"
        f"{f' (lines of {program.file})' if program.file else ''}:\n{rows}"
    )


def _tile(v: LiveValue) -> str:
    return f"{list(v.shape)} {v.dtype}" if v.dtype else ""


def _why(v: LiveValue) -> str:
    """What a buffer is for, if that is not to hold a value of the kernel, and if its name does not say it."""
    return "" if v.why in ("", "tile", "second copy") or v.why in v.name else f", {v.why}"


def _line(program: Program, v: LiveValue) -> str:
    """Where a value is made: a line of the kernel's file, or a place in another one that a helper comes from."""
    if not v.line:
        return "no line of its own"
    return f"line {v.line}" if v.file in ("", program.file) else f"{v.file}:{v.line}"
