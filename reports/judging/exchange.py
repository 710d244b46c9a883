"""Values that processes hand each other: numbers, texts and containers as JSON, tensors beside it as arrays.

    arrays = {}
    message = to_message([x, 3, None], arrays)   # arrays go into a file in memory, see processes/arrays.py
    from_message(message, arrays) == [x, 3, None]

A tensor keeps its strides, so that what the task transposed is transposed there, too. One without an array (`Zeros`) is
made there of zeros that nobody touches. What is read is checked: it may come from an answer.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import as_array
from .sampling.repeated_arrays import RepeatedArrays

MOST_ELEMENTS = 1 << 40
MOST_DEPTH = 16
Arrays = dict[str, np.ndarray]
CONTAINERS = {"list": list, "tuple": tuple}


@dataclass(frozen=True)
class Zeros:
    """A tensor of which only shape, dtype and strides count. kind: "torch" or "numpy"."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def is_tensor(value: Any) -> bool:
    """Whether it is a numpy array or a torch tensor, without importing torch."""
    return isinstance(value, np.ndarray | np.generic) or _is_torch(value)


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


# ---- to a message ----


def to_message(value: Any, arrays: Arrays | None, where: str = "") -> dict[str, Any]:
    """`value` as JSON; its tensors are put into `arrays` under the path of their place, None: only their form is sent."""
    if value is None or isinstance(value, bool | int | str):
        return {"plain": value}
    if isinstance(value, float):
        return {"float": value.hex()}
    if is_tensor(value):
        return {"tensor": _tensor_message(value, arrays, where)}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [to_message(x, arrays, f"{where}.{k}") for k, x in enumerate(value)]}
    if isinstance(value, Mapping):
        return {"dict": {_key(k, where): to_message(x, arrays, f"{where}.{k}") for k, x in value.items()}}
    text = str(value)
    if type(value).__module__ == "torch" and text.startswith("torch."):
        return {"torch": text.removeprefix("torch.")}  # a dtype, a memory format
    if type(value).__name__ == "device":
        return {"plain": text}
    raise UsageError(f"{where or 'value'} is a {type(value).__name__}, which no task hands to an answer")


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise UsageError(f"{where or 'value'} is a dict with the key {key!r:.40}; keys must be texts")
    return key


def _tensor_message(value: Any, arrays: Arrays | None, where: str) -> dict[str, Any]:
    form = form_of(value)
    message = {"kind": form.kind, "dtype": form.dtype, "shape": form.shape, "strides": form.strides}
    if arrays is None:
        return message
    if isinstance(arrays, RepeatedArrays) and (file := arrays.kept(value, where)) is not None:
        return {**message, "repeated": file}
    arrays[where] = _memory(value, form, where)
    return {**message, "array": where}


def form_of(value: Any) -> Zeros:
    """Kind, dtype, shape and strides of a tensor."""
    if _is_torch(value):
        if str(value.layout) != "torch.strided":
            raise UsageError(f"a tensor of layout {value.layout} is no argument of a kernel; make it dense")
        dtype = str(value.dtype).removeprefix("torch.")
        return Zeros("torch", dtype, tuple(value.shape), tuple(value.stride()))
    array = np.asarray(value)
    return Zeros("numpy", array.dtype.name, array.shape, _row_major(array.shape))


def _memory(value: Any, form: Zeros, where: str) -> np.ndarray:
    """The elements from the first to the last one, in the order of memory, as a flat array."""
    if form.kind == "numpy":
        return np.ascontiguousarray(value).reshape(-1)
    flat = value.detach().as_strided((_span(form),), (1,))
    found = as_array(where, flat.resolve_neg().resolve_conj())
    assert found is not None  # torch CPU tensors have one
    return found


def _span(form: Zeros) -> int:
    """Elements of memory from the first to the last one."""
    if 0 in form.shape:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(form.shape, form.strides, strict=True))


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


# ---- from a message ----


def from_message(message: Any, arrays: Mapping[str, np.ndarray], depth: int = 0) -> Any:
    """The value of `to_message`; tensors look into `arrays`. `UsageError`: it is none."""
    if not isinstance(message, dict) or len(message) != 1 or depth > MOST_DEPTH:
        raise UsageError(f"no value of a message: {message!r:.60}")
    ((kind, content),) = message.items()
    if kind == "plain" and (content is None or isinstance(content, bool | int | str)):
        return content
    if kind == "float" and isinstance(content, str):
        return _float(content)
    if kind in CONTAINERS and isinstance(content, list):
        return CONTAINERS[kind](from_message(x, arrays, depth + 1) for x in content)
    if kind == "dict" and isinstance(content, dict):
        return {k: from_message(x, arrays, depth + 1) for k, x in content.items()}
    if kind == "torch" and isinstance(content, str):
        return _torch_name(content)
    if kind == "tensor" and isinstance(content, dict):
        return _tensor(content, arrays)
    raise UsageError(f"no value of a message: {message!r:.60}")


def _float(text: str) -> float:
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        raise UsageError(f"no number: {text[:40]!r}") from None


def _torch_name(name: str) -> Any:
    import torch

    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype | torch.memory_format):
        raise UsageError(f"torch has no dtype {name[:40]!r}")
    return found


def _tensor(content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    form = read_form(content)
    name = content.get("array")
    if isinstance(arrays, RepeatedArrays) and "repeated" in content:
        return arrays.tensor(content["repeated"], form.shape, _torch_name(form.dtype))
    if name is None:
        return zeros(form)
    memory = arrays.get(name) if isinstance(name, str) else None
    if memory is None or memory.ndim != 1 or memory.size != _span(form):
        raise UsageError(f"array {name!r:.40} of a message is not there, or not of its size")
    if form.kind == "numpy":
        if memory.dtype.name != form.dtype:
            raise UsageError(f"array {name!r:.40} is of {memory.dtype}, not {form.dtype}")
        return memory.reshape(form.shape)
    return _torch_tensor(memory, form)


def read_form(content: dict[str, Any]) -> Zeros:
    """What a message says of a tensor, checked."""
    kind, dtype = content.get("kind"), content.get("dtype")
    if kind not in ("torch", "numpy") or not isinstance(dtype, str):
        raise UsageError(f"no tensor of a message: {content!r:.60}")
    shape, strides = (_lengths(content.get(n)) for n in ("shape", "strides"))
    form = Zeros(kind, dtype, shape, strides)
    if len(shape) != len(strides) or _span(form) > MOST_ELEMENTS or math.prod(shape) > MOST_ELEMENTS:
        raise UsageError(
            f"a tensor of shape {list(shape)!r:.60} and strides {list(strides)!r:.60} is no tensor"
        )
    return form


def forms_in(message: Any) -> list[Zeros | None]:
    """Forms of the tensors of a message, those of a dict by its keys in order; None for what is no tensor."""
    ((kind, content),) = message.items()
    if kind == "tensor":
        return [read_form(content)]
    if kind == "dict":
        content = [content[key] for key in sorted(content)]
    return [y for x in content for y in forms_in(x)] if kind in ("dict", *CONTAINERS) else [None]


def _lengths(found: Any) -> tuple[int, ...]:
    if not isinstance(found, list | tuple) or len(found) > 64:
        raise UsageError(f"a shape is a list of numbers, got {found!r:.40}")
    for n in found:
        if type(n) is not int or not 0 <= n <= MOST_ELEMENTS:
            raise UsageError(f"a shape has {n!r:.40} for a length")
    return tuple(found)


def zeros(form: Zeros) -> Any:
    """A tensor of that form whose memory is reserved, not filled."""
    if form.kind == "numpy":
        return np.zeros(form.shape, _numpy_dtype(form.dtype))
    # numpy reserves zeros, torch writes them.
    return _torch_tensor(np.zeros(_span(form) * _torch_name(form.dtype).itemsize, np.uint8), form)


def _numpy_dtype(name: str) -> np.dtype:
    import ml_dtypes

    try:
        return np.dtype(getattr(ml_dtypes, name, name))
    except TypeError:
        raise UsageError(f"numpy has no dtype {name[:40]!r}") from None


def _torch_tensor(memory: np.ndarray, form: Zeros) -> Any:
    import torch

    dtype = _torch_name(form.dtype)
    if memory.nbytes != dtype.itemsize * _span(form):
        raise UsageError(f"an array of {memory.dtype} has elements of another size than {form.dtype}")
    raw = torch.from_numpy(memory.view(np.uint8)) if memory.size else torch.empty(0, dtype=torch.uint8)
    return raw.view(dtype).as_strided(form.shape, form.strides)
