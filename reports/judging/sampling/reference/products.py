"""Matrix products: of each box the rows of one operand and the columns of the other."""

from __future__ import annotations

import numpy as np
import torch

from .boxes import Boxes
from .evaluation import BoxEvaluation, Rule
from .graph import ModelOperation, Source
from .simple_rules import aligned


def product(ev: BoxEvaluation, a: Source, b: Source, boxes: Boxes) -> torch.Tensor:
    """Of (..., m, k) and (..., k, n) with the same leading axes."""
    k, rank = a.shape[-1], len(boxes.sizes)

    def make(piece: Boxes) -> torch.Tensor:
        left = ev.value(a, piece.replaced(rank - 1, 0, k))
        right = ev.value(b, piece.replaced(rank - 2, 0, k))
        return left @ right

    elements = k * (boxes.sizes[-1] + boxes.sizes[-2])
    return ev.in_pieces(boxes, elements, make)


def mm(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    given = op.arguments
    return product(ev, given["self"], given["mat2"], boxes)


def addmm(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    given = op.arguments
    a, b = (given[n] for n in (("mat1", "mat2") if op.name == "addmm" else ("batch1", "batch2")))
    out: torch.Tensor = given["beta"] * aligned(ev, given["self"], boxes) + given["alpha"] * product(
        ev, a, b, boxes
    )
    return out


def mv(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """Of a matrix, or for `dot` a vector, with a vector."""
    a = op.arguments["self"]
    b = op.arguments["vec" if op.name == "mv" else "tensor"]
    k = b.shape[0]

    def make(piece: Boxes) -> torch.Tensor:
        rows = piece.with_axes([len(piece.sizes)])
        left = ev.value(a, rows.replaced(len(piece.sizes), 0, k))
        right = ev.value(b, Boxes(np.zeros((1, 1), np.int64), (k,)))
        return left @ right[0]

    return ev.in_pieces(boxes, k * boxes.elements, make)


PRODUCTS: dict[str, Rule] = {
    **dict.fromkeys(("mm", "bmm"), mm),
    **dict.fromkeys(("addmm", "baddbmm"), addmm),
    **dict.fromkeys(("mv", "dot"), mv),
}
