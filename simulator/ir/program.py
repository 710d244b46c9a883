"""The tile program: what a kernel's source becomes: typed values, operations with their source line, control flow.

A program is a tree: a `Region` holds operations in order; `for`, `while` and `if` operations hold regions. Values are in
single-assignment form; what a loop carries from one iteration to the next are arguments of its body and results of the loop.

Operations (`Op.kind`, with what `Op.name` and `Op.attrs` hold):

    const        attrs value
    program_id, num_programs         attrs axis
    arange       attrs start, end
    splat        a scalar to attrs-free shape of the result
    broadcast, expand_dims(axis), reshape, permute(order)
    unary(name), binary(name), compare(name), select, cast
    addptr       pointer + element offset
    load         pointer, mask or None, other or None; attrs padding: "zero", or "" of a block; "random"
    store        pointer, value, mask or None
    atomic(name) pointer, value, mask or None; for cas also the value expected in memory
    fma          x * y + z with one rounding
    bitcast      the same bits as another type: a view
    slice        attrs axis, start, step; cat(axis): tiles behind each other
    gather       tile, indices along attrs axis
    arg_reduce(name)  attrs axis, first (of equal ones; else the last)
    scan(name)   attrs axis, reverse
    sort         attrs axis, descending
    histogram    tile of integers, mask or none; one bin an element of the result
    reduce(name) attrs axis
    dot          (M, K) tile, (K, N) tile, accumulator or None, all with a batch axis before or none;
                 attrs precision (ieee, hf32, device), asked (keywords of the kernel about it)
    extract_slice, insert_slice, get_element, img2col
                 the tile(s), then the offsets that are values; attrs offsets (None for those), sizes, strides
    alloc        an explicit buffer (buffers.py): what it holds before it is written; attrs space, unique
    move(name)   what a buffer holds after a tile was put there (name: copy, bind...); attrs space, offsets: None, or those
                 of a part as insert_slice has them: what the buffer held, the tile, the offsets that are values
    from_l1      what a buffer in L1 holds, as a tile; subview: a part of what a buffer holds, in place (as extract_slice)
    defined(name) which elements of a value are defined; only where checks/undefined writes it, for a run with values
    float64      what an operation gives without rounding; only where execution/float64 writes it; attrs of, which
    custom(name) an operation of the user: see custom.py; several results
    for          lower, upper, step, initial values...; one region
    while        initial values...; regions condition, body
    if           condition; regions then, else
    assert, print (attrs prefix, hex)
    sub_vec_id   number of the Vector core beside its Cube core
    sync(name)   set, wait: event id if it is a value; attrs sender, receiver, event, sender_pipe, receiver_pipe
                 all: attrs mode, event

What stands in a scope has the attr core: cube or vector (see cores.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ..messages import Message
from ..precision.dtypes import DType
from .types import AnyType, PointerType

Found = TypeVar("Found")


class Loc(NamedTuple):
    """Place in a source file: 1-based line, 0-based column; inside of a helper also the place of its call."""

    file: str
    line: int
    column: int = 0
    helper: str = ""
    caller: Loc | None = None


class Value:
    """One value of the program: a scalar (`shape == ()`), a tile, or a tile of pointers."""

    __slots__ = ("dtype", "id", "is_pointer", "loc", "name", "shape", "static")

    def __init__(self, id: int, dtype: AnyType, shape: tuple[int, ...], loc: Loc, name: str = "") -> None:
        self.id = id
        self.dtype = dtype
        self.is_pointer = isinstance(dtype, PointerType)
        self.shape = shape
        self.loc = loc
        self.name = name
        self.static: Any = None  # filled in by affine.classify

    def __repr__(self) -> str:
        return f"%{self.id}:{self.dtype}{list(self.shape) if self.shape else ''}"

    @property
    def number(self) -> DType:
        """Its element type, where that is no pointer."""
        assert isinstance(self.dtype, DType)
        return self.dtype

    @property
    def numel(self) -> int:
        n = 1
        for s in self.shape:
            n *= s
        return n


class Region:
    """Operations in order, the arguments they start from and the values they hand back."""

    __slots__ = ("args", "ops", "yields")

    def __init__(self) -> None:
        self.args: list[Value] = []
        self.ops: list[Op] = []
        self.yields: list[Value] = []


class Op:
    """One operation. `args` may hold None for an absent optional operand."""

    __slots__ = ("args", "attrs", "id", "kind", "loc", "name", "regions", "results")

    def __init__(
        self,
        id: int,
        kind: str,
        name: str,
        args: tuple[Value | None, ...],
        results: tuple[Value, ...],
        attrs: dict[str, Any],
        loc: Loc,
        regions: tuple[Region, ...] = (),
    ) -> None:
        self.id = id
        self.kind = kind
        self.name = name
        self.args = args
        self.results = results
        self.attrs = attrs
        self.loc = loc
        self.regions = regions

    def operand(self, k: int) -> Value:
        """Operand `k`, of those that are never absent."""
        v = self.args[k]
        assert v is not None
        return v

    def __repr__(self) -> str:
        head = f"{self.kind}.{self.name}" if self.name else self.kind
        out = ", ".join(map(repr, self.results))
        return f"{out} = {head}({', '.join(map(repr, self.args))}) {self.attrs or ''}".strip()


@dataclass
class Program:
    """A compiled kernel: its parameters as values (None where a parameter was a compile-time constant) and its body."""

    name: str
    params: dict[str, Value]
    constants: dict[str, Any]
    body: Region
    value_count: int
    op_count: int
    source: dict[Loc, str] = field(default_factory=dict)
    copies: dict[int, int] = field(default_factory=dict)  # value -> buffers that the kernel asks for
    file: str = ""  # that of the kernel itself; helpers may come from others
    warnings: tuple[Message, ...] = ()  # what the compiler noticed
    buffers: dict[int, Op] = field(default_factory=dict)  # value -> the alloc of the buffer that it is in
    only_elsewhere: dict[str, Loc] = field(
        default_factory=dict
    )  # builtins that no product here can carry out
    placements: dict[Any, Any] = field(
        default_factory=dict, repr=False, compare=False
    )  # buffers, as found so far
    told_ub: set[Any] = field(
        default_factory=set, repr=False, compare=False
    )  # devices and bytes of UB whose line was printed
    one_by_one: set[int] = field(
        default_factory=set, repr=False, compare=False
    )  # loops whose iterations are timed one by one, as far as that is known
    needs: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)  # what they have to hold
    directions: dict[str, str] = field(
        default_factory=dict, repr=False, compare=False
    )  # once they were asked for
    index_arithmetic: frozenset[int] | None = field(
        default=None, repr=False, compare=False
    )  # once it was asked for
    deciding: dict[int, frozenset[int]] | None = field(
        default=None, init=False, repr=False, compare=False
    )  # once it was asked for
    for_checks: dict[Any, Any] = field(
        default_factory=dict, repr=False, compare=False
    )  # what they have asked for
    captured: tuple[tuple[Any, str, Any], ...] = ()  # (function, name, value) read from outside of the kernel
    split_builtins: dict[str, Loc] = field(
        default_factory=dict
    )  # builtins that need split cores, with their places
    roots: dict[int, set[str]] | None = field(
        default=None, init=False, repr=False, compare=False
    )  # of pointers, once they were asked for; a changed copy has its own
    _operations: tuple[Op, ...] = field(default=(), init=False, compare=False)
    _by_kind: dict[str, list[Op]] = field(default_factory=dict, init=False, compare=False)

    @functools.cached_property
    def floats(self) -> dict[str, Loc]:
        """The floating types of its values, each with the first place that makes one."""
        made = ((r.dtype.name, op.loc) for op in self.walk() for r in op.results if r.dtype.is_floating())
        out: dict[str, Loc] = {}
        for name, loc in made:
            out.setdefault(name, loc)
        return out

    @functools.cached_property
    def foreign(self) -> dict[DType, Loc]:
        """The types of its values that are formats beside the vendor's types, each with the first place that makes one."""
        out: dict[DType, Loc] = {}
        for op in self.walk():
            for r in op.results:
                if isinstance(r.dtype, DType) and r.dtype.is_foreign:
                    out.setdefault(r.dtype, op.loc)
        return out

    def once(self, find: Callable[[Program], Found]) -> Found:
        """What a check finds in the program, found when it is first asked for."""
        if find not in self.for_checks:
            self.for_checks[find] = find(self)
        found: Found = self.for_checks[find]
        return found

    def walk(self) -> Iterator[Op]:
        """Every operation, outer before inner, in program order."""
        return iter(self._operations or tuple(walk(self.body)))

    def of_kind(self, kind: str) -> list[Op]:
        """The operations of one kind, in program order."""
        if not self._operations:
            return [op for op in walk(self.body) if op.kind == kind]
        return self._by_kind.get(kind, [])

    def finish(self) -> Program:
        """Called when nothing in the program changes any more: others keep what they have read."""
        self._operations = tuple(_listed(self.body, []))
        self._by_kind, self.roots = {}, None
        for op in self._operations:
            self._by_kind.setdefault(op.kind, []).append(op)
        return self

    def text(self) -> str:
        """Readable dump, one operation a line."""
        return "\n".join(_dump(self.body, 0))


def walk(region: Region) -> Iterator[Op]:
    """Every operation of a region and of the regions inside it, in program order."""
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from walk(inner)


def _listed(region: Region, out: list[Op]) -> list[Op]:
    """As `walk`, appended to a list."""
    for op in region.ops:
        out.append(op)
        for inner in op.regions:
            _listed(inner, out)
    return out


def _dump(region: Region, depth: int) -> Iterator[str]:
    pad = "  " * depth
    for op in region.ops:
        yield f"{pad}{op!r}  # line {op.loc.line}"
        for inner in op.regions:
            yield f"{pad}  ^({', '.join(map(repr, inner.args))})"
            yield from _dump(inner, depth + 2)
            yield f"{pad}  yield {', '.join(map(repr, inner.yields))}"
