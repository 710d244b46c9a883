"""Operations of torch that a task or an answer calls beside its kernels: recorded with shapes, flops, bytes and lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from .operation import HostOp, HostTensor, classify, counted

__all__ = ["HostOp", "HostTensor", "classify", "counted", "record_ops"]


@contextmanager
def record_ops(file: str | None = None) -> Iterator[list[HostOp]]:
    """Operations of torch inside of the block, in their order; on meta tensors they need neither memory nor time.

    file: whose line is kept of each, the innermost; without, that of the innermost frame outside of torch and this package.
    Nothing is recorded where torch is not imported when the block begins. Of threads that the block starts none is seen.
    """
    ops: list[HostOp] = []
    with _modes(ops, file) if "torch" in sys.modules else nullcontext():
        yield ops


@contextmanager
def _modes(ops: list[HostOp], file: str | None) -> Iterator[None]:
    from .recording import DispatchedOps, FusedOps

    with DispatchedOps(ops, file) as recorder, FusedOps(recorder):
        yield
