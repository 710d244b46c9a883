"""What an accumulator in L0C starts from, since nothing but a product, zeros and the bias table gets into it.

zero     tl.zeros: the first Mmad does not read L0C
bias     a row that was loaded for nothing else, the same for all rows of the tile: GM to L1, MTE1 to the bias table (BT),
         from where the first Mmad takes it (DOC Mmad: bias from BT; FP16 becomes FP32 on the way)
kept     what a product left there before
other    anything else: the sum starts from zero, the product goes to UB, and the Vector unit adds
"""

from __future__ import annotations

from ...ir.program import Op, Value
from .layouts import BT, ROW, VIEWS
from .uses import Uses

ZERO, BIAS, KEPT, OTHER = "zero", "bias", "kept", "other"
BIAS_TYPES = ("fp32", "fp16", "int32")
WIDENED = ("fp32",)  # what a row of FP16 becomes on its way into the table


def start_of(uses: Uses, v: Value, space: str, bias_table: bool) -> str:
    """Which of these a tile is that an accumulator starts from. space: where what it looks at lives.

    bias_table: whether there is one.
    """
    root = uses.definitions.root(v)
    if root is None:
        return ZERO if _is_zero(uses, v) else OTHER
    if space in ("L0C", BT):
        return KEPT if space == "L0C" else BIAS
    return BIAS if bias_table and bias_load(uses, v) is not None else OTHER


def bias_load(uses: Uses, v: Value) -> Op | None:
    """The load of the row that a tile repeats, if it is one for the bias table."""
    root = uses.definitions.root(v)
    if root is None or len(v.shape) != 2 or uses.definitions.form(v) != ROW:
        return None
    made = uses.definitions.of(root)
    if made is not None and made.kind == "cast" and root.dtype.name in WIDENED:
        made = uses.definitions.of(made.args[0])  # type: ignore[arg-type]
    if made is None or made.kind != "load" or made.attrs.get("core") == "vector":
        return None
    row = made.results[0]
    whole = row.numel == v.shape[-1] and row.dtype.name in BIAS_TYPES
    return made if whole and _only_starts(uses, row) else None


def _only_starts(uses: Uses, row: Value) -> bool:
    """Whether a row is read as the start of sums only."""
    readers = uses.readers(row)
    for op, i in readers:
        if op.kind == "cast" and op.results[0].dtype.name in WIDENED and row.dtype.name == "fp16":
            if not _only_starts(uses, op.results[0]):
                return False
        elif not (op.kind == "dot" and i == 2) and not (op.kind == "for" and i >= 3 and _sums(uses, op, i)):
            return False
    return bool(readers)


def _sums(uses: Uses, loop: Op, i: int) -> bool:
    """Whether what a loop carries from that argument on is a sum of products."""
    body = loop.regions[0]
    return bool(uses.products_from(body.yields[i - 3], body.args[i - 2]))


def _is_zero(uses: Uses, v: Value) -> bool:
    op = uses.definitions.of(v)
    while op is not None and op.kind in VIEWS and op.args[0] is not None:
        op = uses.definitions.of(op.args[0])
    return op is not None and op.kind == "const" and op.attrs["value"] == 0
