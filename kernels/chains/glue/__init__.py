"""Small operators that chains need between the others: activations, sums, a loss with its gradient, moved axes.

They are declared as other operators are, and chains alone find them: the vendor's documents have them under names, types and
checks of their own, which these do not claim to follow.
"""

from __future__ import annotations

from ...operator.operator import Operator
from .elementwise import GELU, RELU, RELU_BACKWARD, SCALED_ADD, SWIGLU
from .moving import PERMUTE, cast_to
from .softmax_loss import SOFTMAX_LOSS

GLUE: dict[str, Operator] = {
    op.name: op for op in (GELU, PERMUTE, RELU, RELU_BACKWARD, SCALED_ADD, SOFTMAX_LOSS, SWIGLU)
}

__all__ = ["GLUE", "cast_to"]
