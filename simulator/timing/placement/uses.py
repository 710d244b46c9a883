"""Who reads each value, and what the Cube sees behind views of it."""

from __future__ import annotations

from ...ir.program import Op, Program, Region, Value
from .layouts import BLOCK_BYTES, VIEWS, Definitions, element_bits
from .windows import Window, window_of

WINDOWS = ("extract_slice", "img2col")


def looks_through(op: Op) -> bool:
    """Whether the Cube reads the operand of an operation in place of its result: views, and matrices transposed."""
    order = op.attrs["order"] if op.kind == "permute" else ()
    return op.kind in (*VIEWS, "from_l1") or (
        op.kind == "permute" and (order[:-2] == tuple(range(len(order) - 2)) or is_fractal(op))
    )


def broadcasts(op: Op) -> bool:
    """Whether a view has more elements than what it looks at: as an operand of a product it has to be written out."""
    inner = op.args[0] if op.kind in ("splat", "broadcast") else None
    return inner is not None and inner.numel != op.results[0].numel


def is_fractal(op: Op) -> bool:
    """Whether a permutation says that columns of 32 bytes are the blocks of a row: (..., blocks, rows, C0) as (..., rows,
    blocks, C0). L1 keeps matrices that way (NZ), so that a tile that comes so (NC1HWC0, FRACTAL_Z) is one already. Of three
    axes the first counts matrices of a batch, which have no common blocks.
    """
    order, r = op.attrs["order"], op.results[0]
    if len(order) < 4 or r.is_pointer or r.shape[-1] * element_bits(r) != 8 * BLOCK_BYTES:
        return False
    others = (*order[:-2], order[-1])
    return order[-1] == len(order) - 1 and others == tuple(sorted(others))


def is_window(op: Op) -> bool:
    """Whether LoadData3D can take it: a slice at constant places, of whole rows of channels (the last axis); `img2col`."""
    if op.kind == "img2col":
        return True
    if op.kind != "extract_slice" or len(op.args) != 1 or len(op.results[0].shape) < 3:
        return False
    full = op.args[0]
    assert full is not None
    return bool(op.attrs["sizes"][-1] == full.shape[-1])


class Uses:
    """Readers of all values of a program, views looked through.

    windows: slices that the path to L0 takes. written_out: operations that broadcast an operand of a product.
    """

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.users: dict[int, list[tuple[Op, int]]] = {}
        self.windows: set[int] = set()
        self.written_out: set[int] = set()

    def find_broadcast(self, program: Program) -> None:
        """Tiles that exist only as a scalar or a row, and that products read."""
        for v in (v for op in program.walk() if op.kind == "dot" for v in op.args[:2]):
            made = None if v is None else self.definitions.of(v)
            while made is not None and looks_through(made) and not broadcasts(made):
                made = None if made.args[0] is None else self.definitions.of(made.args[0])
            if made is not None and broadcasts(made):
                self.written_out.add(made.id)

    def collect(self, region: Region) -> None:
        """Who reads each value, views looked through."""
        for op in region.ops:
            for i, v in enumerate(op.args):
                if v is not None:
                    self.users.setdefault(v.id, []).append((op, i))
            for inner in op.regions:
                self.collect(inner)

    def readers(self, v: Value) -> list[tuple[Op, int]]:
        """Operations that read a value, seen through views, and which of their arguments it is."""
        out: list[tuple[Op, int]] = []
        for op, i in self.users.get(v.id, []):
            if self.sees_through(op) and not op.results[0].is_pointer:
                out.extend(self.readers(op.results[0]))
            else:
                out.append((op, i))
        return out

    def sees_through(self, op: Op) -> bool:
        """`looks_through`, or a window that the path to L0 takes."""
        if op.id in self.written_out:
            return False
        return looks_through(op) or (op.kind in WINDOWS and op.results[0].id in self.windows)

    def source(self, v: Value) -> Value:
        """The value behind views and transposes (the Cube reads either way)."""
        op = self.definitions.of(v)
        while op is not None and self.sees_through(op):
            assert op.args[0] is not None
            v = op.args[0]
            op = self.definitions.of(v)
        return v

    def operands(self, product: Op) -> list[Value]:
        """What a product reads beside what it is added to: two tiles, and behind them the scales of their elements."""
        tiles = [product.operand(0), product.operand(1)]
        scaled = [
            made for v in tiles if (made := self.definitions.of(v)) is not None and made.kind == "scaled"
        ]
        return [*tiles, *(made.operand(1) for made in scaled)]

    def scale_group(self, v: Value) -> int:
        """How many elements of its depth share a scale; 0 for an operand without scales."""
        made = self.definitions.of(v)
        return made.attrs["group"] if made is not None and made.kind == "scaled" else 0

    def window(self, v: Value) -> Window | None:
        """How the rows of an operand that goes to L0 through LoadData3D lie in L1; None if they are a part of the tile."""
        op = self.definitions.of(v)
        while op is not None and self.sees_through(op):
            found = window_of(op)
            if found is not None:
                return found
            assert op.args[0] is not None
            op = self.definitions.of(op.args[0])
        return None

    def products_from(self, v: Value, start: Value) -> list[Value]:
        """The products that make `v` out of `start`, each added to the one before, last first; empty if it is no such.

        Loops that carry the sum on may lie between.
        """
        chain: list[Value] = []
        made = self.definitions.of(v)
        while made is not None:
            if made.kind == "dot":
                chain.append(made.results[0])
                before = made.args[2]
            else:
                inner, before = self._summed_in(made, v)
                if not inner:
                    return []
                chain += inner
            if before is None:
                return []
            if before is start:
                return chain
            v, made = before, self.definitions.of(before)
        return []

    def _summed_in(self, loop: Op, v: Value) -> tuple[list[Value], Value | None]:
        """The products of a loop that one of its results is a sum of, and what that started from."""
        if loop.kind != "for":
            return [], None
        k = next(i for i, r in enumerate(loop.results) if r is v)
        body = loop.regions[0]
        return self.products_from(body.yields[k], body.args[1 + k]), loop.args[3 + k]
