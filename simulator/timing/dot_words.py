"""What a Run says about the precision of each matrix product: keywords mean less on Ascend than elsewhere.

Rules of Triton-Ascend: HF32 needs float32 operands and a float32 result; "tf32" is read as "hf32"; `allow_tf32` and
`max_num_imprecise_acc` do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..execution.reading import place
from ..frontend.program import Op, Program
from ..units.cube_rules import operand_format

WITHOUT_EFFECT = ("allow_tf32", "max_num_imprecise_acc")


def dot_words(program: Program, hf32: bool) -> tuple[str, ...]:
    """One note for each product of float32, and for each with a keyword that does not do what it says elsewhere."""
    found = (
        f"{place(op)}: {words}" for op in program.walk() if op.kind == "dot" for words in _words(op, hf32)
    )
    return tuple(dict.fromkeys(found))


def _words(op: Op, hf32: bool) -> Iterator[str]:
    stored = op.args[0].dtype.name  # type: ignore[union-attr]
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
