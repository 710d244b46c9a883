"""Element strides of the accesses of a program, as far as a launch's arguments tell them before anything runs.

A load whose innermost elements are not neighbours lands block by block: each element takes the 32 bytes that its transfer
brings. A store whose elements are not neighbours leaves so: the Vector unit spreads them over blocks first, unless they lie
so already. (vllm-project/vllm-ascend issue 17193: a strided access takes 192 bytes an element in UB, six buffers of 32.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ...ir.program import Op, Program, Value
from .layouts import BLOCK_BYTES

Number = int | None  # None: not known before the run
Strides = tuple[Number, ...]


class StaticStrides:
    """Reads the strides of pointer tiles from the operations that make them."""

    def __init__(self, program: Program, arguments: Mapping[str, Any]) -> None:
        self.made: dict[int, Op] = {r.id: op for op in program.walk() for r in op.results if not op.regions}
        numbers = {n: x for n, x in arguments.items() if isinstance(x, int) and not isinstance(x, bool)}
        self.numbers = {v.id: numbers[n] for n, v in program.params.items() if n in numbers}
        self.known: dict[int, Strides] = {}

    def of(self, v: Value) -> Strides:
        """Stride by axis of an integer or pointer tile; all None where it is no sum of products."""
        if v.id not in self.known:
            self.known[v.id] = (None,) * len(v.shape)  # what loops hand back is not followed
            self.known[v.id] = self._read(v)
        return self.known[v.id]

    def number(self, v: Value) -> Number:
        """A scalar whose value the launch knows."""
        if v.id in self.numbers:
            return self.numbers[v.id]
        op = self.made.get(v.id)
        if op is None:
            return None
        if op.kind == "const":
            return int(op.attrs["value"])
        if op.kind in ("splat", "cast", "broadcast", "expand_dims") and op.args[0] is not None:
            return self.number(op.args[0])
        if op.kind == "binary" and op.name in _ARITHMETIC:
            a, b = (self.number(x) for x in op.args if x is not None)
            return None if a is None or b is None else _ARITHMETIC[op.name](a, b)
        return None

    def _read(self, v: Value) -> Strides:
        op = self.made.get(v.id)
        unknown = (None,) * len(v.shape)
        if not v.shape or op is None:
            return unknown
        rule = _RULES.get(op.kind)
        return unknown if rule is None else rule(self, op, v)

    def _binary(self, op: Op, v: Value) -> Strides:
        a, b = (x for x in op.args if x is not None)
        if op.name in ("add", "sub"):
            sign = 1 if op.name == "add" else -1
            return tuple(_sum(x, y, sign) for x, y in zip(self.of(a), self.of(b), strict=True))
        if op.name == "mul":
            for tile, factor in ((a, b), (b, a)):
                by = self.number(factor)
                if by is not None:
                    return tuple(None if s is None else s * by for s in self.of(tile))
        return (None,) * len(v.shape)

    def _addptr(self, op: Op, v: Value) -> Strides:
        a, b = (self.of(x) for x in op.args if x is not None)
        return tuple(_sum(x, y, 1) for x, y in zip(a, b, strict=True))

    def _splat(self, op: Op, v: Value) -> Strides:
        return (0,) * len(v.shape)

    def _arange(self, op: Op, v: Value) -> Strides:
        return (1,)

    def _broadcast(self, op: Op, v: Value) -> Strides:
        inner = _first(op)
        old = self.of(inner)
        return tuple(0 if n == 1 else s for n, s in zip(inner.shape, old, strict=True))

    def _expand(self, op: Op, v: Value) -> Strides:
        old, at = self.of(_first(op)), op.attrs["axis"]
        return (*old[:at], 0, *old[at:])

    def _permute(self, op: Op, v: Value) -> Strides:
        old = self.of(_first(op))
        return tuple(old[a] for a in op.attrs["order"])

    def _same(self, op: Op, v: Value) -> Strides:
        return self.of(_first(op))


def _first(op: Op) -> Value:
    v = op.args[0]
    assert v is not None
    return v


def _sum(x: Number, y: Number, sign: int) -> Number:
    return None if x is None or y is None else x + sign * y


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}
_RULES: dict[str, Callable[[StaticStrides, Op, Value], Strides]] = {
    "binary": StaticStrides._binary,
    "addptr": StaticStrides._addptr,
    "splat": StaticStrides._splat,
    "arange": StaticStrides._arange,
    "broadcast": StaticStrides._broadcast,
    "expand_dims": StaticStrides._expand,
    "permute": StaticStrides._permute,
    "cast": StaticStrides._same,
}


class BlockByBlock(NamedTuple):
    """Bytes in UB of what moves element by element, a block of 32 bytes each: tiles that are loaded so, by value; buffers
    from which tiles are stored so, by operation. woven: tiles of every second element, which come with those between them.
    """

    landing: Mapping[int, int] = MappingProxyType({})
    leaving: Mapping[int, int] = MappingProxyType({})
    woven: frozenset[int] = frozenset()


def block_by_block(program: Program, arguments: Mapping[str, Any], compiled: bool = False) -> BlockByBlock:
    """What moves so: loads, stores and atomics whose rows are not contiguous. compiled: by the vendor's compiler."""
    strides, constant = StaticStrides(program, arguments), StaticStrides(program, {})
    landing, leaving, woven = {}, {}, set[int]()
    for op in program.walk():
        if op.kind not in ("load", "store", "atomic") or not _first(op).shape:
            continue
        pointer = _first(op)
        inner = [s for s, n in zip(strides.of(pointer), pointer.shape, strict=True) if n > 1]
        if not inner or inner[-1] in (None, 0, 1, -1) or _other_way(inner):
            continue
        if compiled and op.kind == "load" and _every_second(op, constant.of(pointer)):
            woven.add(op.results[0].id)
        elif op.kind == "load":
            landing[op.results[0].id] = pointer.numel * BLOCK_BYTES
        elif (
            op.args[2] is None or op.args[2].static.kind != "dense"
        ):  # else one transfer for each element it picks
            leaving[op.id] = pointer.numel * BLOCK_BYTES
    return BlockByBlock(landing, leaving, frozenset(woven))


def _every_second(op: Op, strides: Strides) -> bool:
    """A stride of 2 that is known when compiled, along a whole row of even length, is loaded as a row without gaps, of which
    the Vector unit takes a half (Triton-Ascend's InterleaveOptimization.cpp, which LoadStoreConverter.cpp asks first)."""
    mask, last = op.args[1], len(strides) - 1
    whole = mask is None or (mask.static.kind == "box" and last not in mask.static.axes)
    return strides[last] == 2 and _first(op).shape[last] % 2 == 0 and whole


class OneByOne(NamedTuple):
    """Numbers of the loads and stores that the vendor's compiler makes element by element. by_scalar: those of them whose
    stride is a number of the launch, so that the scalar unit works out each address. rows: elements that move at once of
    accesses whose addresses have no pattern, where more than one does. woven: loads of every second element, see
    `BlockByBlock`.
    """

    strided: frozenset[int] = frozenset()
    by_scalar: frozenset[int] = frozenset()
    rows: Mapping[int, int] = MappingProxyType({})
    woven: frozenset[int] = frozenset()


def one_by_one(program: Program, arguments: Mapping[str, Any]) -> OneByOne:
    """What the compiler makes of accesses whose rows are not contiguous (triton-ascend issue 1673), or have no pattern."""
    found = block_by_block(program, arguments, compiled=True)
    strided = [
        op
        for op in program.walk()
        if op.id in found.leaving or (op.kind == "load" and op.results[0].id in found.landing)
    ]
    compiled = StaticStrides(program, {})
    by_scalar = {op.id for op in strided if None in compiled.of(_first(op))[-1:]}
    woven = {op.id for op in program.walk() if op.kind == "load" and op.results[0].id in found.woven}
    numbers = frozenset(op.id for op in strided)
    return OneByOne(numbers, frozenset(by_scalar), _rows(program, arguments), frozenset(woven))


def _rows(program: Program, arguments: Mapping[str, Any]) -> dict[int, int]:
    """Triton-Ascend loops over the axes without a pattern; those inside of them move at once if their elements are
    neighbours that fill blocks of 32 bytes (third_party/ascend/lib/TritonToUnstructure/UnstructureConversionPass.cpp)."""
    strides, found = StaticStrides(program, arguments), {}
    for op in program.walk():
        if op.kind in ("load", "store") and not _first(op).static.affine_offsets:
            tile = op.results[0] if op.kind == "load" else op.operand(1)
            run = _run(strides.of(_first(op)), tile.shape)
            if run > 1 and run * tile.number.itemsize % BLOCK_BYTES == 0:
                found[op.id] = run
    return found


def _run(strides: Strides, shape: tuple[int, ...]) -> int:
    """Elements of the innermost axes that follow each other in memory."""
    run = 1
    for stride, n in zip(reversed(strides), reversed(shape), strict=True):
        if n > 1 and stride != run:
            break
        run *= n
    return run


def _other_way(strides: list[Number]) -> bool:
    """A transposed tile: its rows are columns in memory, which one transfer brings as rows to be turned."""
    return any(s in (1, -1) for s in strides[:-1])
