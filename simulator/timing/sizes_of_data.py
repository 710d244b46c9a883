"""What the compile-time sizes of a launch have to do with the lengths of its data, as far as it can be told from outside.

A size may be a length of the data itself (the width of a head), and then another one is another problem. And where a kernel
masks nothing its sizes have to divide the lengths that they cut, or it reaches out of bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..call import Call
from ..interpreter.tensors import Tensor

MASK_OF = {"load": 1, "store": 2, "atomic": 2}  # operand of an access


def has_masks(call: Call) -> bool:
    """Whether any access of the kernel is masked."""
    found = (op.args[k : k + 1] for kind, k in MASK_OF.items() for op in call.program.of_kind(kind))
    return any(mask is not None for args in found for mask in args)


def with_length(call: Call, size: int) -> list[str]:
    """The arguments that have such a length: tensors along an axis, integers that are it."""
    return [name for name, x in call.arguments.items() if size in _lengths(x)]


def to_divide(call: Call, name: str) -> int:
    """What a size in its place has to divide: the largest common divisor of the lengths that it divides now; 0 where it
    divides none."""
    size = call.constants[name]
    others = (x for n, x in call.constants.items() if n != name)
    lengths = [n for x in (*call.arguments.values(), *others) for n in _all_of(x)]
    return math.gcd(*(n for n in lengths if n and n % size == 0))


def _lengths(x: object) -> tuple[int, ...]:
    if isinstance(x, Tensor):
        return x.shape
    return (x,) if isinstance(x, int) and not isinstance(x, bool) else ()


def _all_of(x: object) -> Iterator[int]:
    """And all elements of a tensor."""
    yield from map(abs, _lengths(x))
    if isinstance(x, Tensor):
        yield math.prod(x.shape)
