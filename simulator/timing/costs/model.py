"""What an instruction costs on a product: cycles its pipe is taken, cycles until the result may be used.

A vector instruction of r repeats takes r * per_repeat cycles (never less than the minimum), and its result may be used
`fixed_cycles` later: independent instructions in a row pay the first part only, dependent ones both. Every figure comes
from the product file; where the table has no row for a case, the nearest documented row is taken and named in `notes`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from ...errors import UsageError
from ...ir.building.core_operations import CASTS
from ...ir.operations import OPERATIONS
from ...precision.dtypes import named
from ...products import Product
from .provenance import BEST, WORST, grade_of

SCALAR_LOOP = "scalar.ub_half_add_cycles_per_element"
SCALAR_LOOP_BY_HAND = "scalar.by_hand_cycles_per_element"
CONFLICT = "per_repeat_conflict"
SINGLE = ("fp16", "fp32")
# What stands in for conversions of a format of so many bits: those of int8 and fp16, those of fp16 and fp32.
WIDENING = {8: "cast_s8_f16", 16: "cast_f16_f32", 32: "cast_f16_f32"}
NARROWING = {8: "cast_other", 16: "cast_f32_f16", 32: "cast_f32_f16"}
WRITE_MEETS_READ = "ub_banks.read_write_conflict_cycles"


class Cost(NamedTuple):
    """occupancy: cycles the pipe is taken. latency: cycles after that until the result may be used.

    group_conflict, bank_conflict: of the occupancy, what sources in one group of UB's banks cost, and what writing to a bank
    that is read does. grade: the worst among the figures it is made of (`provenance.GRADES`).
    """

    occupancy: float
    latency: float
    instructions: int = 1
    group_conflict: float = 0.0
    bank_conflict: float = 0.0
    grade: int = BEST

    def then(self, other: Cost) -> Cost:
        """This and, dependent on it, another, as one record."""
        return Cost(
            self.occupancy + self.latency + other.occupancy,
            other.latency,
            self.instructions + other.instructions,
            self.group_conflict + other.group_conflict,
            self.bank_conflict + other.bank_conflict,
            max(self.grade, other.grade),
        )

    def repeated(self, n: int) -> Cost:
        """This n times as one record, each after the result of the one before."""
        return Cost(
            n * self.occupancy + (n - 1) * self.latency,
            self.latency,
            n * self.instructions,
            n * self.group_conflict,
            n * self.bank_conflict,
            self.grade,
        )

    def stalled(self, cycles: float, grade: int) -> Cost:
        """This with so many cycles more, of a figure of that grade, for writes to banks that are read."""
        return self._replace(
            occupancy=self.occupancy + cycles,
            bank_conflict=self.bank_conflict + cycles,
            grade=max(self.grade, grade),
        )

    def assumed(self) -> Cost:
        """This, where it stands in for a figure that is not published, however well its own figures are known."""
        return self._replace(grade=WORST)


class InstructionRow(NamedTuple):
    """Cycles of a vector operation on a dtype, and the worst grade of these figures."""

    per_repeat: float
    fixed: float
    grade: int


class CostModel:
    """Costs on one product; remembers which rows had to stand in for others."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.notes: dict[str, None] = {}
        self.assumed: dict[str, None] = {}
        self.minimum = product.number("vector.min_instruction_cycles")
        self.partial_mask = product.number("vector.partial_mask_penalty_cycles")
        self.repeat_bytes = product.integer("vector.bytes_per_repeat")
        self.repeat_max = product.integer("vector.repeat_times_max")
        self.scalar_cycles = product.number("scalar.simple_op_cycles")
        self.scalar_element_cycles = product.number(SCALAR_LOOP)
        self.known_rows: dict[tuple[str, str], InstructionRow] = {}
        self._specials: dict[tuple[str, str], str | None] = {}

    def row(self, op: str, dtype: str) -> tuple[float, float]:
        """(cycles per repeat, fixed cycles) of a vector operation on a dtype."""
        return self.graded_row(op, dtype)[:2]

    def graded_row(self, op: str, dtype: str) -> InstructionRow:
        """`row` with the grade of its figures."""
        key = (op, dtype)
        found = self.known_rows.get(key)
        if found is None:
            found = self.known_rows[key] = self._look_up(op, dtype)
        return found

    def _look_up(self, op: str, dtype: str) -> InstructionRow:
        p = self.product
        name, grade = self._instruction(op), BEST
        if name != op and OPERATIONS[op].near:
            grade = WORST
            self.note(f"{op}: no figure is published; costed as the nearest documented row, {name}")
        table, late = f"vector.op.{name}.per_repeat", f"vector.op.{name}.fixed_cycles"
        rows = {t: p.number(f"{table}.{t}") for t in p.tables[table]}
        self._note_assumed(late)
        grade = max(grade, grade_of(p, (late, f"{table}.{dtype}", f"{table}.any")))
        if dtype in rows or "any" in rows:
            return InstructionRow(rows.get(dtype, rows.get("any", 0.0)), p.number(late), grade)
        nearest = _nearest_dtype(dtype, tuple(rows))
        self.note(f"{op} on {dtype}: no figure is published; costed as {name} on {nearest}")
        return InstructionRow(rows[nearest], p.number(late), WORST)

    def _instruction(self, op: str) -> str:
        """The row of an instruction, or of an operation of the tile program."""
        row = (OPERATIONS[op].row if op in OPERATIONS else "") or op
        if not self.product.has(f"vector.op.{row}.fixed_cycles"):
            raise UsageError(
                f"no cost for {op}: neither an instruction of {self.product.name} nor an operation with a row"
            )
        return row

    def _special(self, op: str, table: str, dtype: str, other: float) -> tuple[float, int]:
        """A figure that some operations have beside their row, and its grade; `other` where this one has none."""
        key = (f"{op}.{table}", dtype)
        if key not in self._specials:
            prefix = f"vector.op.{self._instruction(op)}.{table}."
            near = (*_SIMILAR.get(dtype, ()), "any") if table == CONFLICT else ("any",)
            keys = (f"{prefix}{t}" for t in (dtype, *near))
            self._specials[key] = next((k for k in keys if self.product.has(k)), None)
        found = self._specials[key]
        if found is None:
            return other, BEST
        return self.product.number(found), grade_of(self.product, (found,))

    def note(self, text: str) -> None:
        """List it among what the launch assumes."""
        self.notes[text] = None

    def _note_assumed(self, key: str) -> None:
        if self.product.has(key) and self.product.figure(key).assumed:
            self.assumed[key] = None

    def repeats(self, elements: int, bits: int) -> int:
        return max(1, -(-elements * bits // (8 * self.repeat_bytes)))

    def vector(
        self,
        op: str,
        dtype: str,
        elements: int,
        bits: int,
        groups: int = 1,
        conflict: bool = False,
    ) -> Cost:
        """`elements` passed over in instructions of at most 255 repeats, or `groups` instructions of one row each.

        conflict: its sources lie in the same group of UB's banks. Elements that do not fill the last repeat are masked
        out, by a mask that is set once.
        """
        alone, fixed, grade = self.graded_row(op, dtype)
        per_repeat, of_conflict = self._special(op, CONFLICT, dtype, alone) if conflict else (alone, BEST)
        repeats = self.repeats(elements, bits)
        count = max(groups, -(-repeats // self.repeat_max))
        each, of_issue = self._special(op, "issue_cycles", dtype, 0.0)
        busy, free = (max(count * each + repeats * x, count * self.minimum) for x in (per_repeat, alone))
        grade = max(grade, of_conflict, of_issue)
        return Cost(busy + self.masking(elements, bits), fixed, count, busy - free, grade=grade)

    def transposed(self, elements: int, bits: int) -> Cost:
        """A tile transposed in blocks of 16 x 16 elements."""
        per_repeat, fixed, grade = self.graded_row("transpose_5hd", {8: "b8", 16: "b16"}.get(bits, "b32"))
        tiles = -(-elements // 256)
        return Cost(
            max(tiles * per_repeat, self.minimum), fixed, max(1, tiles // self.repeat_max), grade=grade
        )

    def write_conflict_cycles(self, repeats: int) -> float:
        """Cycles of that many repeats that write to a bank which is read at the same moment."""
        if not repeats:
            return 0.0
        self._note_assumed(WRITE_MEETS_READ)
        return repeats * self.product.number(WRITE_MEETS_READ)

    def masking(self, elements: int, bits: int) -> float:
        """Cycles for the mask of a last repeat that elements do not fill (counter mode)."""
        return self.partial_mask if elements * bits % (8 * self.repeat_bytes) else 0.0

    def cast(self, source: str, target: str, elements: int, bits: int) -> Cost:
        """A conversion, counted in the wider type; through FP32 where there is no direct one."""
        if named(source).is_foreign or named(target).is_foreign:
            return self._foreign_cast(source, target, elements, bits)
        direct = CASTS.get((source, target))
        if direct is not None:
            return self.vector(direct, "any", elements, bits)
        first, second = CASTS.get((source, "fp32")), CASTS.get(("fp32", target))
        if first and second:
            return self.vector(first, "any", elements, 32).then(self.vector(second, "any", elements, 32))
        nearest = first or second or "cast_f32_f16"
        self.note(f"cast {source} to {target}: no figure is published; costed as {nearest}")
        return self.vector(nearest, "any", elements, max(bits, 32)).assumed()

    def _foreign_cast(self, source: str, target: str, elements: int, bits: int) -> Cost:
        """From or to a format that no unit here has: each side as the nearest conversion, the other side through FP32."""
        parts = []
        if source not in SINGLE:
            parts.append(
                self._stand_in(source, WIDENING, elements, bits) or self.cast(source, "fp32", elements, 32)
            )
        if target not in SINGLE:
            parts.append(
                self._stand_in(target, NARROWING, elements, bits) or self.cast("fp32", target, elements, 32)
            )
        return functools.reduce(Cost.then, parts).assumed()

    def _stand_in(self, name: str, rows: Mapping[int, str], elements: int, bits: int) -> Cost | None:
        """One conversion of a foreign format; None for a type of the vendor's."""
        t = named(name)
        if not t.is_foreign:
            return None
        row = rows[max(8, t.bits)]
        self.note(f"casts of {name}: no unit here has them; each costed as {row}")
        return self.vector(row, "any", elements, bits)

    def scalar_loop(self, elements: int, compiled: bool = True) -> Cost:
        """Elements one by one on the scalar unit, as the vendor's compiler or the author of a loop moves them."""
        key = SCALAR_LOOP if compiled else SCALAR_LOOP_BY_HAND
        cycles = elements * (self.scalar_element_cycles if compiled else self.product.number(key))
        return Cost(cycles, 0.0, elements, grade=grade_of(self.product, (key,)))


def _nearest_dtype(dtype: str, have: tuple[str, ...]) -> str:
    for other in (*_SIMILAR.get(dtype, ()), "fp32", "fp16", "int16", "b16"):
        if other in have:
            return other
    return have[0]


_SIMILAR: dict[str, tuple[str, ...]] = {
    "int32": ("fp32", "int16"),
    "uint32": ("int32", "fp32", "int16"),
    "int16": ("fp16", "b16"),
    "uint16": ("int16", "fp16"),
    "int8": ("int16", "fp16"),
    "uint8": ("int16", "fp16"),
    "int1": ("int16", "fp16"),
    "fp64": ("fp32",),
}
