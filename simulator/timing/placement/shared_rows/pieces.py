"""Loops with Cube and Vector work that the vendor's compiler cuts once more: `tile_mix_vector_loop`, `tile_mix_cube_loop`.

Numbers in brackets are those of the compiler's rules (5.9): AscendNPU-IR, TileCubeVectorLoop.cpp of HIVM's Transforms.
What its software pipeliner makes of a loop, a part for the Cube and one for the Vector cores, does its work in so many
pieces, one after the other, before the other part follows: the buffers of a piece are smaller, and each has the fixed times
of its instructions. The Vector part is cut along the axis that its two cores share, before they share it. The products of a
part of the Cube are cut by rows, and only where their results are too large for L0C. What a loop carries stays whole.

Read in the source: which loops, products and tiles are cut. Assumed: that the pieces of a part do not overlap. Of a number
of rows that is no multiple the source makes a smaller last piece; here the loop stays as it is, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ....ir.program import Op, Program, Value
from ..layouts import BLOCK_BYTES, FRACTAL, accumulator_bytes, element_bits
from ..memory_spaces import L0C, UB, MemorySpaces
from ..stages import Stages
from .rows import SharedRows

BOOL_BITS = 8  # a tile of bools has to be whole bytes, others whole blocks


class Pieces(NamedTuple):
    """vector, cube: pieces of the Vector part and of the Cube part. axis_of: value -> axis of which a piece has a part.

    loops: whose Vector part is cut. ops: operations in them. made: what these give. whole: what is handed to the next
    iteration. products: that are done in pieces. operands: of these, that come to L1 in pieces. notes: what is cut, and what
    is not and why.
    """

    vector: int = 1
    cube: int = 1
    axis_of: Mapping[int, int] = {}
    loops: frozenset[int] = frozenset()
    ops: frozenset[int] = frozenset()
    made: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()
    products: frozenset[int] = frozenset()
    operands: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    def of_vector(self, op: Op, v: Value) -> int:
        """Pieces of a tile that an operation of the Vector part moves."""
        return self.vector if op.id in self.ops and v.id in self.axis_of else 1

    def of_product(self, op: Op) -> int:
        """Pieces of the rows of a product."""
        return self.cube if op.id in self.products else 1

    def of_operand(self, v: Value) -> int:
        """Pieces in which a tile comes to L1."""
        return self.cube if v.id in self.operands else 1


class _Cut(NamedTuple):
    """name: of the option. n: its value. loops: that hand tiles between Cube and Vector cores."""

    name: str
    n: int
    loops: list[Op]

    def note(self, what: str, op: Op, why: str) -> str:
        where = f"the {what} in line {op.loc.line}"
        return (
            f"{self.name}={self.n} has no effect on {where}: {why}"
            if why
            else f"{self.name}={self.n} cuts {where}"
        )

    def nowhere(self, why: str) -> str:
        return f"{self.name}={self.n} has no effect: {why}"


def cut_loops(
    spaces: MemorySpaces,
    stages: Mapping[int, Stages],
    found: SharedRows,
    halved: bool,
    asked: tuple[int, int],
    l0c_bytes: int,
    pipelined: bool,
) -> Pieces:
    """What is cut of a program.

    asked: pieces of the Vector part and of the Cube part. found: the axis of the Vector part. halved: its two cores share
    it. stages: of loops, where they are known. pipelined: the software pipeliner is on, which
    `limit_auto_multi_buffer_only_for_local_buffer` switches off.
    """
    if asked == (1, 1):
        return Pieces()
    loops = (
        []
        if not (pipelined and spaces.fixpipe)
        else [op for op in spaces.program.of_kind("for") if _mixed(spaces, op)]
    )
    vector = _Cut("tile_mix_vector_loop", asked[0], loops)
    cube = _Cut("tile_mix_cube_loop", asked[1], loops)
    if not loops:
        why = _NO_LOOP if pipelined else "limit_auto_multi_buffer_only_for_local_buffer is on"
        return Pieces(notes=tuple(cut.nowhere(why) for cut in (vector, cube) if cut.n > 1))
    of_vector, said = _vector(spaces, found, 1 + halved, vector) if vector.n > 1 else (Pieces(), [])
    products, more = _products(spaces, stages, cube, l0c_bytes) if cube.n > 1 else ([], [])
    return of_vector._replace(
        cube=cube.n,
        products=frozenset(op.id for op in products),
        operands=frozenset(_operands(spaces, loops, products)),
        notes=(*said, *more),
    )


_NO_LOOP = "no loop hands tiles between Cube and Vector cores"


def _mixed(spaces: MemorySpaces, loop: Op) -> bool:
    """Whether a product in the loop's body goes to the Vector cores or comes from them, and the loop stays one (6.1)."""
    return not _one_trip(spaces.program, loop) and any(_hands_over(spaces, op) for op in loop.regions[0].ops)


def _hands_over(spaces: MemorySpaces, op: Op) -> bool:
    to_vector = any(r.id in spaces.copied_to_ub or r.id in spaces.added for r in op.results)
    return to_vector or (op.kind == "dot" and any(v.id in spaces.staged for v in _sources(spaces, op)))


def _sources(spaces: MemorySpaces, dot: Op) -> list[Value]:
    """Both operands of a product."""
    return [spaces.source(dot.operand(i)) for i in (0, 1)]


def _one_trip(program: Program, loop: Op) -> bool:
    known = {
        op.results[0].id: op.attrs["value"] for op in program.of_kind("const") if not op.results[0].shape
    }
    low, high, step = (known.get(v.id) for v in loop.args[:3] if v is not None)
    return low is not None and high is not None and step is not None and low < high <= low + step


# -- the Vector part ---------------------------------------------------------------------------------------------------


def _vector(spaces: MemorySpaces, found: SharedRows, cores: int, cut: _Cut) -> tuple[Pieces, list[str]]:
    if not found.axis_of:
        return Pieces(), [cut.nowhere(found.why or "the kernel itself gives its Vector cores their work")]
    whys = {loop.id: _whole(spaces, found.axis_of, loop, cores, cut.n) for loop in cut.loops}
    loops = [loop for loop in cut.loops if not whys[loop.id]]
    ops = [op for loop in loops for op in loop.regions[0].ops]
    roots = (spaces.definitions.root(y) for loop in loops for y in loop.regions[0].yields if y.shape)
    made = Pieces(
        vector=cut.n,
        axis_of=found.axis_of,
        loops=frozenset(loop.id for loop in loops),
        ops=frozenset(op.id for op in ops),
        made=frozenset(r.id for op in ops for r in op.results),
        whole=frozenset(v.id for v in roots if v is not None),
    )
    return made, [cut.note("loop", loop, whys[loop.id]) for loop in cut.loops]


def _whole(spaces: MemorySpaces, axis_of: Mapping[int, int], loop: Op, cores: int, n: int) -> str:
    """Why the Vector part of a loop is not cut."""
    for op in loop.regions[0].ops:
        if op.regions:
            return f"a loop or a branch is in it (line {op.loc.line})"
        for v in (r for r in op.results if r.id in axis_of and _in_ub(spaces, r)):
            rows = v.shape[axis_of[v.id]]
            if rows % (cores * n):
                return f"the {rows} rows of a tile in line {op.loc.line} are no multiple of {cores * n}"
            bits, unit = v.numel // n * element_bits(v), 8 * BLOCK_BYTES
            unit = BOOL_BITS if element_bits(v) == 1 else unit
            if bits % unit:
                return (
                    f"a piece of a tile in line {op.loc.line} would have {bits} bits, no multiple of {unit}"
                )
    return ""


def _in_ub(spaces: MemorySpaces, v: Value) -> bool:
    """Whether the Vector unit has the elements of a value in UB."""
    there = spaces.space_of(v) == UB or v.id in spaces.copied_to_ub
    return there and v.static.kind == "dense" and spaces.definitions.root(v) is v


# -- the Cube part -----------------------------------------------------------------------------------------------------


def _products(
    spaces: MemorySpaces, stages: Mapping[int, Stages], cut: _Cut, l0c_bytes: int
) -> tuple[list[Op], list[str]]:
    """Those that are cut, by parts of the Cube: what it does between two hand-overs."""
    done: list[Op] = []
    notes = []
    for loop in cut.loops:
        stage_of = stages[loop.id].of_op if loop.id in stages else {}
        inner = next((op for op in loop.regions[0].ops if op.regions), None)
        if inner is not None:
            notes.append(cut.note("loop", loop, f"a loop or a branch is in it (line {inner.loc.line})"))
            continue
        products = [op for op in loop.regions[0].ops if op.kind == "dot"]
        for stage in sorted({stage_of.get(op.id, 0) for op in products}):
            mine = [op for op in products if stage_of.get(op.id, 0) == stage]
            why = _as_they_are(spaces, mine, cut.n, l0c_bytes)
            done += [] if why else mine
            notes.append(cut.note("product", mine[0], why))
    return done, notes


def _as_they_are(spaces: MemorySpaces, products: Iterable[Op], n: int, l0c_bytes: int) -> str:
    """Why the products of a part of the Cube are not cut."""
    for op in products:
        start = op.args[2]
        if start is not None and spaces.space_of(spaces.definitions.root(start) or start) == L0C:
            return f"the product in line {op.loc.line} is added to what lies in L0C"
        rows = op.results[0].shape[-2]
        if rows % (n * FRACTAL):
            return f"the {rows} rows of the product in line {op.loc.line} are no multiple of {n * FRACTAL}"
    total = sum(accumulator_bytes(op.results[0]) for op in products)
    return f"it takes {total} of the {l0c_bytes} bytes of L0C" if total <= l0c_bytes else ""


def _operands(spaces: MemorySpaces, loops: list[Op], products: list[Op]) -> Iterator[int]:
    """Left operands that are loaded or sent in the loop, for nothing but these products."""
    cut = {op.id for op in products}
    every = spaces.program.of_kind("dot")
    others = {v.id for op in every for i, v in enumerate(_sources(spaces, op)) if i or op.id not in cut}
    for loop in loops:
        ops = loop.regions[0].ops
        made = {r.id for op in ops for r in op.results}
        here = {_sources(spaces, op)[0].id for op in ops if op.id in cut}
        yield from (here & (made | spaces.staged)) - others
