"""What the tasks before a task left: whether it finds its inputs in L2, and its own code.

A profile lists tasks in the order in which they ran, with sizes and types of their tensors but no addresses. A tensor
counts as the one of that size and type that was read or written last. It is still in L2 if no more than L2's bytes were
touched since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..settings import BYTES
from .profile import ProfiledTask, ProfiledTensor

AGAIN, FOUND, AWAY = "l2=loop code=warm", "l2=warm code=cold", "l2=cold code=cold"
UNKNOWN_BYTES = 4  # of an element whose type the tables do not have


def states(tasks: Sequence[ProfiledTask], l2_bytes: int) -> Iterator[str]:
    """For each task the keys of its row: launched again right after itself, or after others with most of its inputs in L2 or
    not."""
    touched, last = 0, dict[tuple[int, str], int]()
    before: object = None
    for task in tasks:
        kernel = (task.type, task.inputs, task.outputs)
        yield AGAIN if kernel == before else _found(task, touched, last, l2_bytes)
        before = kernel
        for tensor in (*task.inputs, *task.outputs):
            touched += _bytes(tensor)
            last[tensor.size, tensor.dtype] = touched


def _found(task: ProfiledTask, touched: int, last: dict[tuple[int, str], int], l2_bytes: int) -> str:
    there = sum(
        _bytes(x) for x in task.inputs if touched - last.get((x.size, x.dtype), -l2_bytes - 1) <= l2_bytes
    )
    return FOUND if 2 * there >= sum(map(_bytes, task.inputs)) else AWAY


def _bytes(tensor: ProfiledTensor) -> int:
    return tensor.size * BYTES.get(tensor.dtype, UNKNOWN_BYTES)
