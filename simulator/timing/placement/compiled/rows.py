"""Which axis of which tiles the two Vector cores of a core share (TileAndBindSubBlock): half of every tile each."""

from __future__ import annotations

from typing import NamedTuple

from ....ir.program import Op, Value
from ..layouts import VIEWS
from ..memory_spaces import MemorySpaces

Axis = tuple[int, int]  # value, axis


class Axes:
    """Axes of all tiles that run along each other, as classes."""

    def __init__(self, spaces: MemorySpaces) -> None:
        self.spaces = spaces
        self.parent: dict[Axis, Axis] = {}
        self.reduced: set[Axis] = set()
        self.blocked: set[Axis] = set()
        self.transposed = False
        for op in spaces.program.walk():
            self._op(op)

    def find(self, a: Axis) -> Axis:
        while a in self.parent:
            a = self.parent[a]
        return a

    def join(self, a: Axis, b: Axis) -> None:
        x, y = self.find(a), self.find(b)
        if x != y:
            self.parent[x] = y

    def same(self, u: Value | None, v: Value | None) -> None:
        if u is None or v is None or len(u.shape) != len(v.shape):
            return
        for k, (m, n) in enumerate(zip(u.shape, v.shape, strict=True)):
            if m == n and n > 1:
                self.join((u.id, k), (v.id, k))

    def _op(self, op: Op) -> None:
        kind = op.kind
        if kind in ("for", "while"):
            first, skip = (3, 1) if kind == "for" else (0, 0)
            for k, r in enumerate(op.results):
                self.same(op.args[first + k], r)
                for inner in op.regions:
                    if len(inner.args) > skip + k:
                        self.same(inner.args[skip + k], r)
                self.same(op.regions[-1].yields[k], r)
            return
        if kind == "if":
            for k, r in enumerate(op.results):
                for inner in op.regions:
                    self.same(inner.yields[k], r)
            return
        if kind == "expand_dims":
            v, r, axis = op.operand(0), op.results[0], op.attrs["axis"]
            for k in range(len(v.shape)):
                self.join((v.id, k), (r.id, k + (k >= axis)))
        elif kind == "permute":
            for k, o in enumerate(op.attrs["order"]):
                self.join((op.results[0].id, k), (op.operand(0).id, o))
        elif kind in ("reduce", "arg_reduce"):
            self._reduced(op)
        elif kind == "dot":
            self._dot(op)
        elif kind == "reshape":
            self._reshaped(op)
        elif kind == "scan" or kind == "sort":
            self.same(op.operand(0), op.results[0])
            self.reduced.add((op.operand(0).id, op.attrs["axis"]))
        elif kind in ("gather", "cat", "slice", "extract_slice", "insert_slice", "custom", "histogram"):
            for v in (*op.args, *op.results):
                if v is not None:
                    self.blocked.update((v.id, k) for k in range(len(v.shape)))
        else:
            tiles = [v for v in (*op.args, *op.results) if v is not None and v.shape]
            for v in tiles[1:]:
                self.same(tiles[0], v)

    def _reduced(self, op: Op) -> None:
        v, axis = op.operand(0), op.attrs["axis"]
        self.reduced.add((v.id, axis))
        for r in op.results:
            for k in range(len(r.shape)):
                self.join((r.id, k), (v.id, k + (k >= axis)))

    def _dot(self, op: Op) -> None:
        """The product comes by way of global memory, so its rows need not be those of its operands; those are
        contracted."""
        if op.args[2] is not None:
            self.same(op.args[2], op.results[0])

    def _reshaped(self, op: Op) -> None:
        v, r = op.operand(0), op.results[0]
        a = [k for k, n in enumerate(v.shape) if n > 1]
        b = [k for k, n in enumerate(r.shape) if n > 1]
        if [v.shape[k] for k in a] == [r.shape[k] for k in b]:
            for i, j in zip(a, b, strict=True):
                self.join((v.id, i), (r.id, j))
        else:
            self.blocked.update((x.id, k) for x in (v, r) for k in range(len(x.shape)))


class SharedRows(NamedTuple):
    """axis_of: value -> axis of which each Vector core has half; empty where one core does everything, or the kernel shares
    the work itself. why: one core does.
    """

    axis_of: dict[int, int]
    why: str = ""


def shared_rows(spaces: MemorySpaces) -> SharedRows:
    """What the two Vector cores of a program share, by the compiler's rules, unless the kernel gives them their work."""
    if _by_hand(spaces) or not (spaces.has_dot and spaces.fixpipe and spaces.has_vector_work):
        return SharedRows({})
    axes = Axes(spaces)
    reduced, blocked = ({axes.find(a) for a in group} for group in (axes.reduced, axes.blocked))
    leaves = list(_leaves(spaces))
    if not leaves:
        return SharedRows({}, "no tile of theirs is stored or goes to a product")
    chosen: set[Axis] = set()
    for v in leaves:
        axis = _choice(axes, v, chosen, reduced, blocked)
        if axis is None:
            return SharedRows({}, _no_axis(v))
        chosen.add(axes.find((v.id, axis)))
    out: dict[int, int] = {}
    for v in _values(spaces):
        for k in range(len(v.shape)):
            if axes.find((v.id, k)) in chosen:
                if v.id in out:
                    return SharedRows({}, f"two axes of a tile in line {v.loc.line} would be shared")
                out[v.id] = k
    return SharedRows(out)


def _by_hand(spaces: MemorySpaces) -> bool:
    """Whether the kernel says itself which core does what."""
    loops = spaces.program.of_kind("for")
    shared = any(op.attrs.get("hints", {}).get("bind_sub_block") for op in loops)
    return shared or bool(spaces.program.split_builtins)


def _no_axis(v: Value) -> str:
    size = " x ".join(map(str, v.shape))
    return f"no axis of the tile of {size} in line {v.loc.line} is even and runs through all operations up to there"


def _choice(axes: Axes, v: Value, chosen: set[Axis], reduced: set[Axis], blocked: set[Axis]) -> int | None:
    candidates = [
        k for k, n in enumerate(v.shape) if n > 1 and n % 2 == 0 and axes.find((v.id, k)) not in blocked
    ]
    candidates.sort(key=lambda k: (axes.find((v.id, k)) not in chosen, axes.find((v.id, k)) in reduced, k))
    return candidates[0] if candidates and axes.find((v.id, candidates[0])) not in reduced else None


def _leaves(spaces: MemorySpaces):
    for op in spaces.program.walk():
        if op.kind in ("store", "atomic"):
            v = op.operand(1)
            root = spaces.definitions.root(v) if v.shape else None
            if v.shape and (root is None or spaces.space_of(root) == "UB" or root.id in spaces.copied_to_ub):
                yield v
        elif op.kind == "dot":
            for v in op.args[:2]:
                source = spaces.source(v)
                if source.id in spaces.staged:
                    yield source


def _values(spaces: MemorySpaces):
    seen = set()
    for op in spaces.program.walk():
        for inner in op.regions:
            yield from inner.args
        for v in op.results:
            if v.id not in seen:
                seen.add(v.id)
                yield v
