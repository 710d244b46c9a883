"""Buffers as slots: where each lies, what shares its bytes, what is alive at the peak, what an overflow says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...ir.program import Program, Value
from ...record.run import Buffer, LiveValue
from .memory_spaces import UB


@dataclass
class Slot:
    """One buffer: the values that take turns in it, its life in program positions, its bytes and copies."""

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
    loop: int = -1  # operation whose turns take its copies in turn, where no value tells
    targets: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.size * self.copies


def pack(
    slots: list[Slot],
    apart: Apart | None = None,
    capacity: int = 0,
    disturbs: Callable[[Slot, Slot], bool] | None = None,
) -> None:
    """Offsets: largest first, each at the lowest place that no slot alive at the same time takes.

    apart: which slots one instruction reads together. Of the places half a turn of UB's banks from one of these, and the
    lowest, a slot takes the one at which the fewest meet it.
    disturbs: whether two slots that are never alive together had better not share bytes either; they do where a slot would
    end above `capacity` otherwise.
    """
    placed: list[Slot] = []
    for s in sorted(slots, key=lambda s: (-s.total, s.start, s.end)):
        others = [p for p in placed if alive_together(p, s)]
        if disturbs is not None:
            wider = [p for p in placed if alive_together(p, s) or disturbs(p, s)]
            others = wider if _lowest(s, wider) + s.total <= capacity else others
        s.offset = _lowest(s, others)
        if apart is not None:
            near = [p for p in placed if (id(p), id(s)) in apart.pairs or (id(s), id(p)) in apart.pairs]
            places = {s.offset, *(_lowest(s, others, apart.turn, _half_away(s, p, apart)) for p in near)}
            s.offset = min(places, key=lambda o: (sum(apart.meet(s, o, p) for p in near), o))
        placed.append(s)


def alive_together(a: Slot, b: Slot) -> bool:
    """Whether their lives in the program overlap."""
    return a.start <= b.end and b.start <= a.end


@dataclass(frozen=True)
class Apart:
    """pairs: slots, by identity, that one instruction reads together. turn: bytes after which UB's banks come again; span:
    bytes that a repeat reads."""

    pairs: frozenset[tuple[int, int]]
    turn: int
    span: int

    def meet(self, s: Slot, offset: int, p: Slot) -> bool:
        """Whether `s` at that offset shares a group of banks with `p`, in any copy."""
        turns = range(max(s.copies, p.copies))
        starts = ((offset + k % s.copies * s.size, p.offset + k % p.copies * p.size) for k in turns)
        return any(not self.span <= (a - b) % self.turn <= self.turn - self.span for a, b in starts)


def _half_away(s: Slot, p: Slot, apart: Apart) -> int:
    return (p.offset + apart.turn // 2) % apart.turn


def _lowest(s: Slot, others: list[Slot], turn: int = 1, rest: int = 0) -> int:
    """The lowest free place, of those that leave `rest` when divided by `turn`."""
    offset = rest
    for p in sorted(others, key=lambda p: p.offset):
        if p.offset - offset >= s.total:
            break
        if p.offset + p.total > offset:
            offset = p.offset + p.total
            offset += (rest - offset) % turn
    return offset


def find_clobbers(slots: list[Slot]) -> None:
    """For each copy of a slot: its engine slot, and those of other slots that share bytes with it."""
    for s in slots:
        others = [
            t for t in slots if t is not s and t.offset < s.offset + s.total and s.offset < t.offset + t.total
        ]
        s.targets = [
            (
                (s.number + k,),
                tuple(t.number + c for t in others for c in range(t.copies) if _share(s, k, t, c)),
            )
            for k in range(s.copies)
        ]


def _share(s: Slot, k: int, t: Slot, c: int) -> bool:
    a, b = s.offset + k * s.size, t.offset + c * t.size
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
    peak = max((s.offset + s.total for s in slots), default=0)
    values = [_live_value(s, names) for s in sorted(slots, key=lambda s: -s.total) if s.start <= at <= s.end]
    return Buffer(peak, capacity, tuple(values), tuple(zip(lines, alive, strict=False)))


def _live_value(s: Slot, names: Mapping[int, str]) -> LiveValue:
    named = [v for v in s.values if v.name] or s.values
    v = named[-1] if named else None
    if v is None:
        return LiveValue(s.label, "", 0, (), "", s.size, s.copies, s.offset)
    name = s.label or v.name or names.get(v.id, "temporary")
    return LiveValue(name, v.loc.file, v.loc.line, v.shape, str(v.dtype), s.size, s.copies, s.offset)


def overflow(program: Program, space: str, buffer: Buffer, device: str) -> str:
    need, have = buffer.peak_bytes, buffer.capacity_bytes
    alive = [v for v in buffer.peak if v.bytes]  # constants take nothing
    rows = "\n".join(
        f"    {v.bytes * v.copies:>8} B  {v.name} {list(v.shape)} {v.dtype}"
        f"{f' x {v.copies} copies' if v.copies > 1 else ''}  {_line(program, v)}"
        for v in alive[:6]
    )
    rest = alive[6:]
    if rest:
        rows += f"\n    {sum(v.bytes * v.copies for v in rest):>8} B  in {len(rest)} smaller ones"
    return (
        f"{program.name} on {device}: {space.lower()} overflow, requires {need * 8} bits while {have * 8} bits available "
        f"({need} against {have} bytes). Alive at the peak"
        f"{f' (lines of {program.file})' if program.file else ''}:\n{rows}"
    )


def _line(program: Program, v: LiveValue) -> str:
    """Where a value is made: a line of the kernel's file, or a place in another one that a helper comes from."""
    if not v.line:
        return "no line of its own"
    return f"line {v.line}" if v.file in ("", program.file) else f"{v.file}:{v.line}"
