"""A program as steps on buffers: its operations after the compiler's rewrites, each at its time."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....ir.operations import OPERATIONS, operation
from ....ir.program import Op, Region, Value
from ..layouts import COLUMN, SCALAR, TILE, VIEWS, fractal_bytes, accumulator_bytes
from ..memory_spaces import FIXP, L0C, L1, UB, VIEW, MemorySpaces
from . import scratch
from .demand import LOOPS, Demand, movable
from .tiles import BROADCAST, CARRIED, COMPARED, INDICES, SCRATCH, WIDENED, Loop, Step, Tile

BITS = {"fp32": 32, "int32": 32, "fp16": 16, "bf16": 16, "int64": 64, "int8": 8, "int1": 1}
FREE = ("const", "program_id", "num_programs", "addptr", "assert", "print", "sync", "sub_vec_id", "alloc")
IN_FP32 = ("log", "rsqrt", "pow", "log2", "log1p")


class Expansion:
    def __init__(self, spaces: MemorySpaces, rows: dict[int, int], motion: bool = True) -> None:
        """rows: value -> axis that the two Vector cores share."""
        self.spaces, self.program, self.definitions = spaces, spaces.program, spaces.definitions
        self.rows = rows
        self.demand = Demand(spaces.program, spaces.definitions)
        self.of: dict[int, Tile] = {}
        self.steps: list[Step] = []
        self.tiles: list[Tile] = []
        self.loops: list[Loop] = []
        self.all_loops: list[Loop] = []
        self.carried: list[tuple[Loop, Tile | None, Tile, Tile | None]] = []
        self.constants = {op.results[0].id: op.attrs["value"] for op in self.program.of_kind("const")}
        self.time = 0
        self.l1: dict[tuple[int, int], Tile] = {}
        self.to_ub: dict[int, Tile] = {}
        self.scratch_of: dict[int, Tile] = {}
        self.done: set[int] = set()
        self.same: dict[int, int] = {}
        self.known = {}
        self.motion = motion
        self.l0c: dict[int, Tile] = {}
        self.sums: dict[int, Tile] = {}
        self.pending: dict[int, Op] = {}
        self.stretched = {
            root.id
            for op in self.program.of_kind("broadcast")
            if (root := self.definitions.root(op.results[0])) is not None and op.operand(0).numel != op.results[0].numel
        }
        self.region(self.program.body)

    # ---- shapes
    def shape(self, v: Value) -> tuple[int, ...]:
        axis = self.rows.get(v.id)
        if axis is None:
            return v.shape
        return (*v.shape[:axis], -(-v.shape[axis] // 2), *v.shape[axis + 1 :])

    # ---- making
    def tile(self, shape, element: str, why: str, op: Op, v: Value | None = None, space: str = UB) -> Tile:
        t = Tile(tuple(shape), element, BITS.get(element) or _bits(element), why, op, space, loops=tuple(self.loops))
        if v is not None:
            t.values.append(v)
        self.tiles.append(t)
        return t

    def step(self, op: Op, reads, writes, over=(), extra: int = 0, why: str = SCRATCH) -> None:
        """extra: bits of scratch."""
        self.time += 1
        writes = list(writes)
        if extra:
            s = self.tile((extra,), "int1", why, op)
            s.carried = True  # never shared in place
            writes.append(s)
            self.scratch_of[op.id] = s
        r = tuple(t for t in reads if t is not None)
        self.steps.append(Step(self.time, op, r, tuple(writes), tuple(t for t in over if t is not None), tuple(self.loops)))

    # ---- regions
    def region(self, region: Region) -> None:
        known, self.known = self.known, dict(self.known)
        for op in region.ops:
            self.one(op)
        self.flush()
        self.known = known

    def flush(self) -> None:
        for op in list(self.pending.values()):
            self.tile_of(op.results[0])

    def one(self, op: Op) -> None:
            if op.id in self.done:
                return
            if movable(op):
                key = self._key(op)
                old = self.known.get(key)
                if old is not None:
                    for r, o in zip(op.results, old.results, strict=True):
                        self.same[r.id] = self.same.get(o.id, o.id)
                        if o.id in self.of:
                            self.of[r.id] = self.of[o.id]
                    return
                self.known[key] = op
            if op.kind in LOOPS:
                self.loop(op)
            elif op.kind == "if":
                self.branch(op)
            elif op.kind in VIEWS or (op.results and all(r.id in self.definitions.folded for r in op.results)):
                for r in op.results:
                    self.view(op, r)
            elif op.kind not in FREE:
                self.plain(op)

    def _key(self, op: Op):
        args = tuple(None if v is None else self.same.get(v.id, v.id) for v in op.args)
        kinds = tuple((r.id in self.demand.full, r.id in self.demand.tiles, str(r.dtype), r.shape) for r in op.results)
        return op.kind, op.name, args, repr(op.attrs), kinds

    def hoist(self, region: Region, op: Op) -> None:
        """What does not change in a loop, before it."""
        if not self.motion:
            return
        here = self.loops[-1].op.id if self.loops else -1
        for o in region.ops:
            if o.kind in LOOPS:
                for inner in o.regions:
                    self.hoist(inner, op)
            elif movable(o) and o.id not in self.done and self.demand.loop_of[o.id] == here:
                self.one(o)
                self.done.add(o.id)

    def view(self, op: Op, r: Value) -> None:
        if r.id in self.demand.full:
            source = self._broadcast_source(r)
            inner = self.tile_of(source)
            t = self.tile(self.shape(r), str(r.dtype), BROADCAST, op, r)
            self.step(op, [inner], [t], extra=scratch.broadcast(self.shape(source), self.shape(r), t.bits))
            self.of[r.id] = t
        elif r.id in self.demand.tiles and op.kind == "splat":
            pass

    def _broadcast_source(self, v: Value) -> Value:
        made = self.definitions.of(v)
        while made is not None and made.kind in VIEWS:
            inner = made.operand(0)
            if made.kind == "broadcast" and inner.numel != v.numel:
                return inner
            made = self.definitions.of(inner)
        return v

    def one_trip(self, op: Op) -> bool:
        if op.kind != "for":
            return False
        low, high, step = (self.constants.get(v.id) for v in op.args[:3])
        return None not in (low, high, step) and low < high <= low + step

    def loop(self, op: Op) -> None:
        first = 3 if op.kind == "for" else 0
        skip = 1 if op.kind == "for" else 0
        if self.one_trip(op):
            body = op.regions[0]
            for arg, init in zip(body.args[skip:], op.args[first:], strict=True):
                t = self.tile_of(init)
                if t is not None:
                    self.of[arg.id] = t
                elif self._dense(arg):
                    self.of[arg.id] = self._filled(op, arg)
            self.region(body)
            for r, y in zip(op.results, body.yields, strict=True):
                t = self.tile_of(y)
                if t is not None:
                    self.of[r.id] = t
            return
        self.flush()
        for inner in op.regions:
            self.hoist(inner, op)
        self.flush()
        carried = []
        for k, r in enumerate(op.results):
            init = op.args[first + k]
            if not self._dense(r):
                carried.append(None)
                continue
            start = self.tile_of(init)
            space = self.spaces.space_of(r)
            t = self.tile(self.shape(r), str(r.dtype), CARRIED, op, r, space if space != FIXP else UB)
            t.carried = True
            if start is None:
                self.step(op, [], [t])
            for inner in op.regions:
                args = inner.args[skip if inner is op.regions[-1] or op.kind == "while" else 0 :]
                if k < len(args):
                    self.of[args[k].id] = t
            self.of[r.id] = t
            carried.append((start, t))
        self.time += 1
        loop = Loop(op, self.time)
        self.loops.append(loop)
        self.all_loops.append(loop)
        for inner in op.regions:
            self.region(inner)
        for c, y in zip(carried, op.regions[-1].yields, strict=True):
            if c is not None:
                self.carried.append((loop, c[0], c[1], self.tile_of(y)))
        self.time += 1
        loop.end = self.time
        self.loops.pop()
        for r in op.results:
            if r.id in self.spaces.copied_to_ub:
                self._from_l0c(op, r)

    def _filled(self, op: Op, v: Value) -> Tile:
        t = self.tile(self.shape(v), str(v.dtype), "tile", op, v)
        self.step(op, [], [t])
        return t

    def branch(self, op: Op) -> None:
        self.flush()
        self.time += 1
        made = []
        for r in op.results:
            if self._dense(r):
                t = self.tile(self.shape(r), str(r.dtype), "tile", op, r)
                self.of[r.id] = t
                made.append((r, t))
        for inner in op.regions:
            self.region(inner)
            for r, y in zip(op.results, inner.yields, strict=True):
                if r.id in self.of:
                    y = self.tile_of(y)
                    self.step(op, [y], [self.of[r.id]], over=[y])
            self.time += 1

    def _dense(self, v: Value) -> bool:
        return bool(v.shape) and not v.is_pointer and v.static.kind == "dense"

    # ---- operands
    def tile_of(self, v: Value | None) -> Tile | None:
        if v is None or not v.shape:
            return None
        while True:
            if v.id in self.pending:
                rows = [i for i in self.pending if i in self.stretched]
                for i in (*rows, v.id):
                    if i in self.pending:
                        self._cast_now(self.pending.pop(i))
            if v.id in self.of:
                return self.of[v.id]
            made = self.definitions.of(v)
            if made is None or not (made.kind in VIEWS or v.id in self.definitions.folded):
                return None
            if made.kind == "splat":
                return None
            v = made.operand(0)

    def plain(self, op: Op) -> None:
        if op.results and all(
            r.static is not None and r.static.kind in ("affine", "box", "pointer", "scalar", "uniform") and r.id not in self.demand.tiles
            for r in op.results
        ):
            return
        kind = op.kind
        if kind in ("load",):
            self._load(op)
        elif kind in ("store", "atomic"):
            self._store(op)
        elif kind == "dot":
            self._dot(op)
        elif kind == "arange":
            r = op.results[0]
            t = self.tile(self.shape(r), str(r.dtype), INDICES, op, r)
            self.step(op, [], [t])
            self.of[r.id] = t
        elif kind in ("binary", "unary", "fma"):
            self._elementwise(op)
        elif kind == "compare":
            self._compare(op)
        elif kind == "select":
            self._select(op)
        elif kind == "cast":
            self._cast(op)
        elif kind == "reduce":
            self._reduce(op)
        else:
            self._other(op)

    def _result(self, op: Op, r: Value) -> Tile:
        t = self.tile(self.shape(r), str(r.dtype), "tile", op, r)
        self.of[r.id] = t
        return t

    def _load(self, op: Op) -> None:
        r = op.results[0]
        if not r.shape:
            return
        space = self.spaces.space_of(r)
        if space in (FIXP, VIEW):
            return
        t = self.tile(self.shape(r) if space == UB else r.shape, str(r.dtype), "tile", op, r, space)
        t.loaded = True
        self.of[r.id] = t
        mask = self.tile_of(op.args[1])
        self.step(op, [], [t])
        if mask is not None and space == UB:
            self.step(op, [t, mask], [t], extra=256)

    def _store(self, op: Op) -> None:
        v = op.args[1]
        t = self.tile_of(v)
        mask = self.tile_of(op.args[2])
        if v is not None and v.shape and t is None:
            t = self._filled(op, v)
        if t is not None and t.space == UB:
            t.stored = True
        self.step(op, [t, mask], [])
        if op.kind == "atomic" and op.attrs.get("result_used") and op.results[0].shape:
            r = self._result(op, op.results[0])
            r.loaded = True
            self.step(op, [], [r])

    def _dot(self, op: Op) -> None:
        ops = []
        for i, v in enumerate(op.args[:2]):
            source = self.spaces.source(v)
            t = self.tile_of(source)
            if source.id in self.spaces.staged:
                if t is None:
                    t = self._filled(op, source)
                t.stored = True
                self.step(op, [t], [])
                t = self.tile(source.shape, str(source.dtype), "tile", op, source, L1)
                t.loaded = True
                self.l1[op.id, i] = t
                self.step(op, [], [t])
            ops.append(t)
        r = op.results[0]
        start = self.tile_of(op.args[2])
        if r.id in self.spaces.added:
            acc = self.tile(r.shape, "fp32", "tile", op, r, L0C)
            self.l0c[r.id] = acc
            self.step(op, ops, [acc])
            self._added(op, r, start)
            return
        if start is not None and start.space == L0C:
            self.step(op, [*ops, start], [])
            self.of[r.id] = start
        else:
            acc = self.tile(r.shape, "fp32", "tile", op, r, L0C)
            self.of[r.id] = acc
            self.step(op, [*ops, start], [acc])
        if r.id in self.spaces.copied_to_ub:
            self._from_l0c(op, r)

    def _added(self, op: Op, r: Value, start: Tile | None) -> None:
        fresh = self.tile(self.shape(r), str(r.dtype), "tile", op, r)
        fresh.loaded = True
        self.to_ub[r.id] = fresh
        self.step(op, [], [fresh])
        total = self.tile(self.shape(r), str(r.dtype), "tile", op, r)
        self.step(op, [start, fresh], [total], over=[start, fresh])
        self.of[r.id] = self.sums[r.id] = total

    def _from_l0c(self, op: Op, r: Value) -> None:
        t = self.tile(self.shape(r), str(r.dtype), "tile", op, r)
        t.loaded = True
        self.to_ub[r.id] = t
        if r.id in self.of:
            self.l0c[r.id] = self.of[r.id]
        self.step(op, [self.of.get(r.id)], [t])
        self.of[r.id] = t

    # ---- vector
    def _operands(self, op: Op, args) -> tuple[list[Tile | None], int]:
        """Tiles read, and bits of scratch for broadcasts that are read as they are."""
        found, extra = [], 0
        for v in args:
            t = self.tile_of(v)
            found.append(t)
            if t is not None and v is not None and v.id not in self.demand.full and self.definitions.form(v) == COLUMN:
                extra += scratch.inlined_column(self.shape(v), t.bits)
        return found, extra

    def _wide(self, op: Op, t: Tile | None, element: str) -> Tile | None:
        if t is None or t.element == element:
            return t
        w = self.tile(t.shape, element, WIDENED, op)
        self.step(op, [t], [w], over=[t] if w.bits <= t.bits else [], extra=768 if t.element == "int1" else 0)
        return w

    def _compute_type(self, op: Op, element: str) -> str:
        if element == "bf16" or (element == "fp16" and op.name in IN_FP32):
            return "fp32"
        if element in ("int8", "uint8"):
            return "fp16"
        if op.kind == "binary" and op.name in ("floordiv", "div", "mod") and element in ("int32", "int16", "uint32"):
            return "fp32"
        return element

    def _elementwise(self, op: Op) -> None:
        r = op.results[0]
        if not r.shape:
            return
        found, extra = self._operands(op, op.args)
        element = str(r.dtype)
        used = self._compute_type(op, element)
        if element == "int1":
            used = "int1"
        wide = [self._wide(op, t, used) for t in found]
        if used != element:
            t = self.tile(self.shape(r), used, WIDENED, op)
            self.step(op, wide, [t], over=wide, extra=extra)
            out = self._result(op, r)
            self.step(op, [t], [out], over=[t] if out.bits <= t.bits else [])
            return
        if op.name in ("sub", "div") and any(t is None for t in found):
            extra += 256
        out = self.tile(self.shape(r), element, "tile", op, r)
        self.of[r.id] = out
        if op.name == "xor":
            a = self.tile(self.shape(r), element, WIDENED, op)
            self.step(op, wide, [a])
            b = self.tile(self.shape(r), element, WIDENED, op)
            self.step(op, wide, [b], over=wide)
            self.step(op, [a, b], [out], over=[a, b])
            return
        self.step(op, wide, [out], over=wide, extra=extra)

    def _compare(self, op: Op) -> None:
        r = op.results[0]
        if not r.shape:
            return
        found, extra = self._operands(op, op.args)
        v = next(a for a in op.args if a is not None)
        element = str(v.dtype)
        if element in ("bf16", ):
            found = [self._wide(op, t, "fp32") for t in found]
        elif element in ("int8", "uint8"):
            found = [self._wide(op, t, "fp16") for t in found]
        elif element in ("uint32", "uint16"):
            found = [self._wide(op, t, "int64") for t in found]
        elif element == "int32" and op.name in ("lt", "gt", "le", "ge"):
            t = self.tile(self.shape(r), element, COMPARED, op)
            self.step(op, found, [t], over=found)
            found = [t, found[1] if found[1] is not None else found[0]]
        out = self._result(op, r)
        self.step(op, found, [out], extra=extra)

    def _select(self, op: Op) -> None:
        r = op.results[0]
        if not r.shape:
            return
        found, extra = self._operands(op, op.args)
        out = self._result(op, r)
        scalars = sum(t is None for t in found[1:])
        self.step(op, found, [out], over=found[1:], extra=256 * (1 + scalars) + extra)

    def _cast(self, op: Op) -> None:
        r, v = op.results[0], op.args[0]
        if not r.shape:
            return
        made = self.definitions.of(v)
        if made is not None and made.kind == "load" and r.number.bits > v.number.bits:
            self.pending[r.id] = op  # computed where it is first read
            return
        self._cast_now(op)

    def _cast_now(self, op: Op) -> None:
        r, v = op.results[0], op.args[0]
        before = self.definitions.of(v)
        if before is not None and before.kind == "cast" and before.operand(0).dtype == r.dtype and r.dtype.is_floating():
            t = self.tile_of(before.operand(0))
            if t is not None:  # two casts that cancel
                self.of[r.id] = t
                return
        t = self.tile_of(v)
        if t is None:
            self._result(op, r)
            self.step(op, [], [self.of[r.id]])
            return
        source, target = str(v.dtype), str(r.dtype)
        middle = _through(source, target)
        if middle:
            t = self._wide(op, t, middle)
        out = self._result(op, r)
        if target == "int1":
            e = self.tile(self.shape(r), "int1", COMPARED, op)
            self.step(op, [t], [e])
            self.step(op, [e], [out], over=[e])
            return
        self.step(op, [t], [out], over=[t] if out.bits < t.bits else [], extra=768 if source == "int1" and not middle else 0)

    def _reduce(self, op: Op) -> None:
        v, r = op.args[0], op.results[0]
        t = self.tile_of(v)
        element = str(v.dtype)
        used = "fp32" if element == "bf16" or (element == "fp16" and op.name in ("sum", "prod")) else element
        t = self._wide(op, t, used)
        shape = self.shape(v)
        bits = BITS.get(used) or _bits(used)
        extra = scratch.reduction(op.name, used, bits, shape, op.attrs["axis"])
        out = self.tile(self.shape(r) or (1,), used, "tile", op, r)
        self.step(op, [t], [out], extra=extra)
        if used != element:
            n = self.tile(out.shape, element, "tile", op, r)
            self.step(op, [out], [n], over=[out])
            out = n
        self.of[r.id] = out

    def _other(self, op: Op) -> None:
        found = [self.tile_of(v) for v in op.args]
        outs = []
        for r in op.results:
            if r.shape and self.spaces.space_of(r) not in (FIXP, VIEW) and not r.is_pointer:
                outs.append(self._result(op, r))
        if outs or any(found):
            self.step(op, found, outs)


def _through(source: str, target: str) -> str:
    ints = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
    if source == "int8" and target in ("int16", "int32", "fp32"):
        return "fp16"
    if (source == "int64" and target == "fp16") or (source in ints and target == "bf16"):
        return "fp32"
    if (source, target) == ("int32", "fp16") or (source in ("int8", "int16") and target == "int64"):
        return "fp32"
    if source == "int1" and target in ints:
        return "fp16"
    return ""


def _bits(element: str) -> int:
    return int("".join(c for c in element if c.isdigit()) or 32) if not element.startswith("fp8") else 8
