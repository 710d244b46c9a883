"""Index arithmetic as a reader of the kernel knows it: `pid * stride`."""

from __future__ import annotations

from ...ir.definitions import makers
from ...ir.program import Op, Program, Value

SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "shl": "<<",
    "floordiv": "//",
    "mod": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
}
_SHAPES = ("splat", "broadcast", "expand_dims", "reshape", "permute")
MOST = 60  # characters of an operand; a longer one is left out


def expression(program: Program, op: Op) -> str:
    """What an addition, a product, a sum or a cast computes, by the names of its operands."""
    made, _ = makers(program.walk())
    if op.kind != "binary" and op.kind != "addptr":
        inner = _short(made, op.operand(0), "")
        call = {"cast": f"to({op.results[0].dtype})", "scan": "cumsum()"}.get(op.kind, f"{op.name}()")
        return f"{inner}.{call}"
    sign = SIGNS.get(op.name, "+")
    return f" {sign} ".join(_short(made, v, sign) for v in op.args if v is not None)


def _short(made: dict[int, Op], v: Value, around: str) -> str:
    text = _operand(made, v, around)
    return text if len(text) <= MOST else "..."


def _operand(made: dict[int, Op], v: Value, around: str) -> str:
    """around: the sign of the expression that it is a part of."""
    op = made.get(v.id)
    if v.name or op is None:
        return v.name or "..."
    if op.kind in _SHAPES or op.kind == "cast":
        return _operand(made, op.operand(0), around)
    if op.kind == "const":
        return f"{op.attrs['value']:,}" if isinstance(op.attrs["value"], int) else str(op.attrs["value"])
    if op.kind == "binary" and op.name in SIGNS:
        sign = SIGNS[op.name]
        a, b = (_operand(made, x, sign) for x in (op.operand(0), op.operand(1)))
        return f"{a} {sign} {b}" if around == "+" and sign in "+*" else f"({a} {sign} {b})"
    text = _BUILTINS.get(op.kind, "...")
    return text.format(**op.attrs)


_BUILTINS = {
    "program_id": "program_id({axis})",
    "num_programs": "num_programs({axis})",
    "arange": "arange({start}, {end})",
    "load": "a loaded number",
    "addptr": "a pointer",
}
