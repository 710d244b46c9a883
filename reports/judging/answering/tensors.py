"""Tensors of torch and arrays of numpy in what an answer holds, takes and returns; torch is not imported for that."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ....simulator.interpreter.tensors import past_torch_modes


def leaves(value: Any) -> Iterator[Any]:
    """What stands in lists, tuples and dicts."""
    return (x for _, x in named_leaves(value))


def named_leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of what stands in lists, tuples and dicts: "0", "1.x"; "" of a value alone."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list | tuple):
        items = list(enumerate(value))
    else:
        yield path, value
        return
    for k, x in items:
        yield from named_leaves(x, f"{path}.{k}" if path else str(k))


def is_torch(x: Any) -> bool:
    """Whether it is a tensor of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def tensors_in(value: Any) -> Iterator[Any]:
    """Tensors of torch in containers."""
    return (x for x in leaves(value) if is_torch(x))


def is_plain(x: Any) -> bool:
    """Whether a tensor of torch is what it looks like: no subclass, nothing of its own in place of a method."""
    torch = sys.modules["torch"]
    own = any(map(callable, vars(x).values())) if hasattr(x, "__dict__") else False
    return type(x) in (torch.Tensor, torch.nn.Parameter) and not own


def address(t: Any) -> int:
    """Of the storage of a tensor of torch; 0 of one without memory."""
    with past_torch_modes():
        try:
            return int(t.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):
            return 0


def class_name(x: Any) -> str:
    """The class of a value with its module."""
    return f"{type(x).__module__}.{type(x).__qualname__}"
