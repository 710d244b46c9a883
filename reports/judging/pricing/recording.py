"""Modes of torch that record operations. Importing this module imports torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from ..torch_modes import DispatchMode, FunctionMode
from .names import OVERWRITING, PICKING, UNWRITTEN
from .operation import MOST_LISTED, HostOp, HostTensor, classify

OF_ATTENTION: Callable[..., int] = sdpa_flop_count
ATTENTION = "aten.scaled_dot_product_attention.default"
_REPORTS = Path(__file__).resolve().parents[2]
# Folders whose files call on behalf of somebody: torch's, and those of this package.
OF_OTHERS = tuple(f"{x}/" for x in (Path(torch.__file__).parent, _REPORTS, _REPORTS.parent / "simulator"))


class DispatchedOps(DispatchMode):
    """Appends to `ops` what reaches the dispatcher, and lets it run."""

    def __init__(self, ops: list[HostOp], file: str | None) -> None:
        super().__init__()
        self.ops, self.file, self.silent = ops, file, False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if not self.silent:
            flops = _flops(func, args, kwargs, out)
            self.keep(str(func), (*args, *kwargs.values()), list(_leaves([out])), flops)
        return out

    def keep(self, name: str, arguments: Sequence[Any], outputs: list[Any], flops: int) -> None:
        """Record one operation of these arguments, tensors among them."""
        inputs = list(_leaves(arguments))
        options = tuple(_option(x) for x in arguments if next(_leaves([x]), None) is None)
        op = HostOp(
            name, tuple(map(_described, inputs)), tuple(map(_described, outputs)), flops, options=options
        )
        sizes = _transposed(inputs[-1], outputs[0]) if classify(op) == "move" and inputs and outputs else ()
        moved = _bytes(op, inputs, outputs)
        self.ops.append(replace(op, bytes=moved, line=_line(self.file), transposed=sizes))


class FusedOps(FunctionMode):
    """Records attention as the one kernel that a vendor has for it, not as the operations that torch makes of it."""

    def __init__(self, recorder: DispatchedOps) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, recorder = kwargs or {}, self.recorder
        if func is not torch.nn.functional.scaled_dot_product_attention or recorder.silent:
            return func(*args, **kwargs)
        recorder.silent = True
        try:
            out = func(*args, **kwargs)
        finally:
            recorder.silent = False
        arguments = (*args, *kwargs.values())
        recorder.keep(ATTENTION, arguments, [out], _attention_flops(list(_leaves(arguments))))
        return out


def _attention_flops(tensors: list[Any]) -> int:
    """Of all pairs of query and key: what a causal mask leaves out is counted, as a fixed size of the work."""
    q, k, v = (tuple(t.shape) for t in tensors[:3])
    batch = q[:-2]
    flat = [(max(1, torch.Size(batch).numel()), 1, *x[-2:]) for x in (q, k, v)]
    return int(OF_ATTENTION(*flat))


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    """Tensors among values and lists of them."""
    for x in values:
        if isinstance(x, torch.Tensor):
            yield x
        elif isinstance(x, list | tuple):
            yield from _leaves(x)


def _option(x: Any) -> Any:
    """An argument as plain data; of a dtype, a device or a generator its text."""
    if isinstance(x, list | tuple):
        return tuple(_option(y) for y in x[:MOST_LISTED])
    return x if x is None or isinstance(x, bool | int | float) else str(x)


def _described(t: Any) -> HostTensor:
    return HostTensor(tuple(t.shape), str(t.dtype).removeprefix("torch."))


def _flops(func: Any, args: Any, kwargs: Any, out: Any) -> int:
    count = flop_registry.get(func.overloadpacket)
    return 0 if count is None else int(count(*args, **kwargs, out_val=out))


def _bytes(op: HostOp, inputs: list[Any], outputs: list[Any]) -> int:
    """What is read once and written once. Of a table from which elements are picked, as many as are given are read."""
    if classify(op) == "view" or op.base in UNWRITTEN:
        return 0
    read = inputs[1:] if op.base in OVERWRITING else inputs
    written = sum(_held(t) for t in outputs)
    most = written if op.base in PICKING else None
    return written + sum(_held(t) if most is None else min(_held(t), most) for t in read)


def _transposed(x: Any, out: Any) -> tuple[int, ...]:
    """Planes, rows and columns of a copy that is written along another axis than it is read; () of any other."""
    if x.shape != out.shape or not x.numel() or _held(x) < x.numel() * x.element_size():
        return ()
    read, written = _innermost(x), _innermost(out)
    if read == written or None in (read, written):
        return ()
    rows, columns = int(x.shape[written]), int(x.shape[read])
    return x.numel() // (rows * columns), rows, columns


def _innermost(t: Any) -> int | None:
    """The axis along which elements are neighbours; None where there is none of more than one."""
    axes = [k for k, n in enumerate(t.shape) if n > 1]
    return min(axes, key=lambda k: int(t.stride(k)), default=None)


def _held(t: Any) -> int:
    """Bytes of different elements: an axis of stride 0 repeats one."""
    out = int(t.element_size())
    for n, stride in zip(t.shape, t.stride(), strict=True):
        out *= n if stride or not n else 1
    return out


def _line(file: str | None) -> int:
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name == file if file else not name.startswith(OF_OTHERS):
            return int(frame.f_lineno)
        frame = frame.f_back
    return 0
