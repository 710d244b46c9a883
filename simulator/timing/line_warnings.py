"""Warnings about source lines: what several operations of a line have in common is said once, with their number."""

from __future__ import annotations

from collections.abc import Iterator

from ..interpreter.faults import place
from ..ir.program import Op, Program
from ..messages import TIME, Message
from ..record.slowing import Slowing
from ..units.cube_rules import operand_format


class LineWarnings:
    """Warnings of a launch in the order in which they came up."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, str, str], dict[int, dict[str, float]]] = {}
        self._slowing: dict[tuple[str, int, str, str], tuple[str, str]] = {}

    def add(self, op: Op, text: str, kind: str = TIME, **numbers: float) -> None:
        """Note `text` for an operation; `{name}` in it stands for the sum of that number over the operations of the line.

        kind: of the message, see `simulator/messages.py`; "" for what is no warning, and only listed as slowing the kernel.
        """
        self._found.setdefault((op.loc.file, op.loc.line, text, kind), {})[op.id] = numbers

    def slow(self, op: Op, sort: str, text: str, cure: str, warned: bool = True, **numbers: float) -> None:
        """`add` for what slows the kernel; sort, cure: see `Slowing`. warned: whether it is a warning, too."""
        kind = TIME if warned else ""
        self.add(op, text, kind, **numbers)
        self._slowing[op.loc.file, op.loc.line, text, kind] = sort, cure

    def __len__(self) -> int:
        """Different warnings so far."""
        return len(self._found)

    def messages(self) -> tuple[Message, ...]:
        """`file:line: text` for each, `; n operations of this line` behind what n operations of the line share.

        In the order of the operations, so that it makes no difference how iterations were lowered.
        """
        return tuple(self._sentence(*key, ops) for key, ops in self._in_order() if key[3])

    def slowing(self) -> tuple[Slowing, ...]:
        """What slows the kernel, in the same order; of warnings the same words."""
        return tuple(
            Slowing(sort, self._text(text, ops), cure, file, line)
            for (file, line, text, kind), ops in self._in_order()
            for sort, cure in filter(None, [self._slowing.get((file, line, text, kind))])
        )

    def _in_order(self) -> list[tuple[tuple[str, int, str, str], dict[int, dict[str, float]]]]:
        return sorted(self._found.items(), key=lambda item: (min(item[1]), item[0][2]))

    def _sentence(
        self, file: str, line: int, text: str, kind: str, ops: dict[int, dict[str, float]]
    ) -> Message:
        where = f"{file}:{line}"
        return Message(f"{where}: {self._text(text, ops)}", kind, where)

    @staticmethod
    def _text(text: str, ops: dict[int, dict[str, float]]) -> str:
        every = list(ops.values())
        if every[0]:
            text = text.format(**{n: sum(x[n] for x in every) for n in every[0]})
        return f"{text}; {len(ops)} operations of this line" if len(ops) > 1 else text


WITHOUT_EFFECT = ("allow_tf32", "max_num_imprecise_acc")


def dot_messages(program: Program, hf32: bool) -> tuple[str, ...]:
    """One note for each product of float32, and for each with a keyword that does not do what it says elsewhere."""
    found = (
        f"{place(op)}: {message}"
        for op in program.walk()
        if op.kind == "dot"
        for message in _messages(op, hf32)
    )
    return tuple(dict.fromkeys(found))


def _messages(op: Op, hf32: bool) -> Iterator[str]:
    stored = op.operand(0).dtype.name
    asked = dict(x.split("=", 1) for x in op.attrs["asked"])
    wanted = asked.get("input_precision", "").lower()
    used = operand_format(stored, op.attrs["precision"], hf32)
    used = "ieee" if used == "fp32" else used
    idle = [f"{name} has no effect on Ascend" for name in WITHOUT_EFFECT if name in asked]
    if stored != "fp32":
        if wanted and wanted != "ieee":
            idle.insert(0, f"{wanted} is ignored: operands are {stored}")
        if idle:
            yield f"dot of {stored}: {'; '.join(idle)}"
        return
    yield f"dot of fp32 runs in {used} precision{_reason(wanted, used, idle)}"


def _reason(wanted: str, used: str, idle: list[str]) -> str:
    if wanted.startswith("tf32"):
        idle.insert(0, f"{wanted} means hf32 here")
    if wanted not in ("", "ieee") and used == "ieee":
        idle.append("hf32 is ignored: the result is not float32")
    if not wanted:
        idle.append("cube_math_type decides, where the kernel says nothing")
    return f" ({'; '.join(idle)})" if idle else ""
