"""Shapes in a buffer: padded rows, and how an operand of a vector instruction lies beside the result.

The last axis of a tile is padded to a 32-byte block. An operand that is stretched to the result's shape is not copied: the
instruction reads it with stride 0 (rows), or through a block broadcast (columns), or as a scalar.
"""

from __future__ import annotations

from typing import NamedTuple

from ...ir.program import Op, Program, Value
from ...ir.types import PointerType
from ...precision.dtypes import DType

BLOCK_BYTES = 32
FRACTAL = 16  # rows and columns of the Cube's smallest block
TILE, SCALAR, ROW, COLUMN = "tile", "scalar", "row", "column"
BT, FB = "BT", "FB"
# Bytes that a table holds for each column: a bias, or a parameter of the fixpipe, a word of 64 bits (DOC Fixpipe).
TABLES = {BT: 4, FB: 8}
VIEWS = ("splat", "broadcast", "expand_dims", "reshape", "bitcast", "subview", "unpack", "scaled")


def align(n: int, to: int) -> int:
    return -(-n // to) * to


def element_bits(v: Value) -> int:
    """Bits of one element in UB: a mask has one bit, a pointer tile is int64 offsets."""
    if isinstance(v.dtype, PointerType):
        return 64
    assert isinstance(v.dtype, DType)
    return v.dtype.bits


def tile_bytes(v: Value) -> int:
    """Bytes of a tile in UB, rows padded to blocks; a scalar takes none."""
    if not v.shape:
        return 0
    columns, elements, bits = v.shape[-1], v.numel, element_bits(v)
    if columns in (1, elements):
        return align(-(-elements * bits // 8), BLOCK_BYTES)
    return elements // columns * align(-(-columns * bits // 8), BLOCK_BYTES)


def in_fractals(v: Value) -> bool:
    """Whether a tile comes as blocks of 32 bytes, as L1 keeps it (NC1HWC0, FRACTAL_Z, FRACTAL_NZ)."""
    return len(v.shape) > 2 and v.shape[-1] * element_bits(v) == 8 * BLOCK_BYTES


def fractal_bytes(v: Value) -> int:
    """Bytes of a matrix in L1, L0A or L0B: fractals of 16 rows by 32 bytes; of four axes or more, rows of channels."""
    rows, columns = (1, *v.shape)[-2:]
    if len(v.shape) > 3:
        rows = v.numel // columns
    return v.numel // (rows * columns) * align(rows, 16) * align(columns * element_bits(v) // 8, BLOCK_BYTES)


def accumulator_bytes(v: Value) -> int:
    """Bytes of a matrix, or of each of a batch, in L0C: fractals of 16 x 16 elements of four bytes."""
    rows, columns = (1, *v.shape)[-2:]
    return v.numel // (rows * columns) * align(rows, 16) * align(columns, 16) * 4


def table_bytes(v: Value, table: str) -> int:
    """Bytes of a row in one of `TABLES`."""
    return v.numel * TABLES[table]


def buffer_bytes(v: Value, space: str) -> int:
    """Bytes of a value in one of the Cube's buffers."""
    if space in TABLES:
        return table_bytes(v, space)
    return accumulator_bytes(v) if space == "L0C" else fractal_bytes(v)


def padded_elements(v: Value, bits: int) -> int:
    """Elements that an instruction has to pass over, padding included, when an element takes `bits`."""
    if not v.shape or v.shape[-1] == 1:
        return max(1, v.numel)
    per_block = max(1, BLOCK_BYTES * 8 // bits)
    return v.numel // v.shape[-1] * align(v.shape[-1], per_block)


class Operand(NamedTuple):
    """root: the value whose bytes are read (None for a compile-time or register scalar). form: how it is stretched."""

    root: Value | None
    form: str


class Definitions:
    """Who defines each value; what a view looks at."""

    def __init__(self, program: Program) -> None:
        self.by_value: dict[int, Op] = {r.id: op for op in program.walk() for r in op.results}
        self.parameters = {v.id for v in program.params.values()}
        self.folded: set[int] = set()  # results that cost nothing where they are used (memory_spaces.py)
        self.roots: dict[int, Value | None] | None = (
            None  # those found so far, once `folded` does not change any more
        )

    def settle(self) -> None:
        """Nothing is folded any more."""
        self.roots = {}

    def of(self, v: Value) -> Op | None:
        return self.by_value.get(v.id)

    def root(self, v: Value) -> Value | None:
        """The value in a buffer or register behind views; None if the tile is symbolic and has no bytes."""
        if self.roots is None:
            return self._root(v)
        if v.id not in self.roots:
            self.roots[v.id] = self._root(v)
        return self.roots[v.id]

    def _root(self, v: Value) -> Value | None:
        if v.is_pointer or (v.static is not None and v.static.kind in ("affine", "box")):
            return None
        op = self.of(v)
        while op is not None and (op.kind in VIEWS or v.id in self.folded):
            v = op.args[0]  # type: ignore[assignment]
            op = self.of(v)
        if v.static is not None and v.static.kind in ("affine", "box", "uniform"):
            return None
        if not v.shape and (
            v.dtype.is_int() or v.id in self.parameters or (op is not None and op.kind == "const")
        ):
            return None  # lives in a scalar register
        return v

    def scalar_source(self, v: Value) -> Value | None:
        """The scalar behind a tile that repeats it."""
        op = self.of(v)
        while op is not None and op.kind in VIEWS:
            inner = op.args[0]
            assert inner is not None
            v, op = inner, self.of(inner)
        return v if not v.shape else None

    def operand(self, v: Value) -> Operand:
        """How an instruction reads `v`."""
        return Operand(self.root(v), self.form(v))

    def form(self, v: Value) -> str:
        if not v.shape:
            return SCALAR
        op = self.of(v)
        while op is not None and op.kind in VIEWS:
            inner = op.args[0]
            assert inner is not None
            if op.kind == "splat":
                return SCALAR
            if op.kind == "broadcast":
                return _stretched(inner.shape, v.shape)
            if op.kind == "reshape":
                return TILE
            op = self.of(inner)
        return SCALAR if v.static is not None and v.static.kind == "uniform" else TILE


def _stretched(old: tuple[int, ...], new: tuple[int, ...]) -> str:
    if all(n == 1 for n in old):
        return COLUMN
    return COLUMN if old[-1] != new[-1] else ROW
