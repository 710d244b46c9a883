"""Inputs of a task whose large tensors are filled lazily. Importing this module imports torch.

    with lazy_inputs(seed) as made:
        inputs = task.get_inputs()       # torch.rand(4096, 393216) takes 20 ms and 4 MB
    made.of(inputs[0])                   # the file whose values it repeats, see `repeated.py`

Fillers (rand, randn, randint, ...) of large tensors make repeated memory with values of the distribution that is asked for.
What is done to them element by element (`* 2 - 1`, `.half()`, `> 0`) is done to one period. Views are views, as ever.
Anything else is computed, where it is small enough; beyond that the inputs are refused, so that neither time nor memory
runs away.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ..torch_modes import DispatchMode
from .refusals import NotSampledError
from .repeated import PERIOD, RepeatedMemory, ValueFile

LARGE = 1 << 22  # elements from which a tensor is filled lazily
MOST_COMPUTED = 1 << 26  # elements of an operation on tensors that are not


class Repeated:
    """The large tensors that repeat a file, by address."""

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[RepeatedMemory]] = {}

    def tensor(self, shape: tuple[int, ...], values: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
        """A contiguous tensor that repeats `values`, (PERIOD,); zeros that nobody touches for None."""
        file = None if values is None else value_file(values)
        return self.mapped(shape, file, dtype)

    def mapped(self, shape: tuple[int, ...], file: ValueFile | None, dtype: torch.dtype) -> torch.Tensor:
        """A contiguous tensor that repeats a file."""
        memory = RepeatedMemory(math.prod(shape), np.dtype(f"u{dtype.itemsize}"), file)
        self._known[memory.address] = weakref.ref(memory)
        return torch.from_numpy(memory.array()).view(dtype).view(shape)

    def of(self, tensor: torch.Tensor) -> RepeatedMemory | None:
        """The memory of a tensor that is all of a repeated one in its order; None for any other."""
        found = self._known.get(tensor.data_ptr())
        memory = None if found is None else found()
        if memory is None or tensor.numel() != memory.elements or not tensor.is_contiguous():
            return None
        return memory if tensor.element_size() == memory.dtype.itemsize else None

    def values(self, tensor: torch.Tensor) -> torch.Tensor:
        """One period of such a tensor, (PERIOD,)."""
        memory = self.of(tensor)
        assert memory is not None
        if memory.file is None:
            return torch.zeros(PERIOD, dtype=tensor.dtype)
        return torch.from_numpy(memory.file.values.copy()).view(tensor.dtype)


def value_file(values: torch.Tensor) -> ValueFile:
    """The file of one period, (PERIOD,)."""
    return ValueFile(
        np.asarray(values.contiguous().view(torch.uint8).numpy().view(f"u{values.dtype.itemsize}"))
    )


@contextmanager
def lazy_inputs(seed: int) -> Iterator[Repeated]:
    """Tensors that are filled inside come from `seed`; large ones lazily. `NotSampledError`: one operation is too large."""
    made = Repeated()
    state = torch.get_rng_state()
    torch.manual_seed(seed % (1 << 63))
    try:
        with LazyFilling(made):
            yield made
    finally:
        torch.set_rng_state(state)


class LazyFilling(DispatchMode):
    """Carries out operations on large tensors by one period, and refuses those that would take long."""

    def __init__(self, made: Repeated) -> None:
        super().__init__()
        self.made = made

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name in FILLERS:
            return self.filled(func, name, args, kwargs)
        tensors = [x for x in tensors_of((args, kwargs)) if x.numel() >= LARGE]
        if not tensors or aliases(func):
            return func(*args, **kwargs)
        if is_elementwise(func) and all(self.made.of(x) is not None for x in tensors):
            found = self.by_period(func, name, args, kwargs, tensors)
            if found is not None:
                return found
        if name in LIKE:
            return self.filled(func, name, args, kwargs)
        require_small(func, tensors)
        return func(*args, **kwargs)

    def filled(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """What a filler gives: of a large tensor one period, and that repeated."""
        named = {a.name: x for a, x in zip(func._schema.arguments, args, strict=False)} | kwargs
        like = named.get("self")
        size = named.get("size", like.shape if isinstance(like, torch.Tensor) else None)
        if size is None or math.prod(size) < LARGE or str(named.get("device") or "cpu") == "meta":
            return func(*args, **kwargs)
        if not _row_major(named, like):
            require_small(func, [torch.empty(tuple(size), device="meta")])
            return func(*args, **kwargs)
        if name not in UNFILLED:
            values = _one_period(name, named, like)
            return self.made.tensor(tuple(size), values, values.dtype)
        dtype = named.get("dtype") or (
            like.dtype if isinstance(like, torch.Tensor) else torch.get_default_dtype()
        )
        return self.unfilled(name, tuple(size), dtype)

    def unfilled(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A large tensor of zeros, or of memory that nobody fills."""
        return self.made.tensor(shape, None, dtype)

    def by_period(
        self, func: Any, name: str, args: Any, kwargs: Any, large: list[torch.Tensor]
    ) -> torch.Tensor | None:
        """The result of an operation on tensors of one shape, element by element; None if others are among them."""
        shape, ids = large[0].shape, {id(x) for x in large}
        small = [x for x in tensors_of((args, kwargs)) if id(x) not in ids]
        if any(x.shape != shape for x in large) or any(x.numel() != 1 for x in small):
            return None
        period = lambda x: self.made.values(x) if id(x) in ids else x.reshape(()) if x.ndim else x  # noqa: E731
        kwargs = {k: v for k, v in kwargs.items() if k != "memory_format"}
        out = func(*_mapped(args, period), **_mapped(kwargs, period))
        if not func._schema.is_mutable:
            return self.made.tensor(tuple(shape), out, out.dtype)
        changed: torch.Tensor = args[0]
        memory = self.made.of(changed)
        assert memory is not None
        memory.fill(value_file(out))
        return changed


LIKE = (
    *(f"{n}_like" for n in ("rand", "randn", "randint", "zeros", "ones", "full", "empty")),
    *(f"new_{n}" for n in ("zeros", "ones", "full", "empty", "empty_strided")),
)
FILLERS = (
    *("rand", "randn", "randint", "zeros", "ones", "full", "empty", "empty_strided", "normal", "bernoulli"),
    *LIKE,
)
UNFILLED = (
    "zeros",
    "empty",
    "empty_strided",
    "zeros_like",
    "empty_like",
    "new_zeros",
    "new_empty",
    "new_empty_strided",
)
IN_PLACE = ("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "fill_", "zero_")


def is_elementwise(func: Any) -> bool:
    """Whether each element of the result comes from those at its place."""
    name = func.overloadpacket.__name__
    return torch.Tag.pointwise in func.tags or name in ("_to_copy", "clone", *IN_PLACE)


def aliases(func: Any) -> bool:
    """Whether an operation gives a view, and touches no element."""
    returns = func._schema.returns
    return any(r.alias_info is not None and not r.alias_info.is_write for r in returns) or not returns


def tensors_of(values: Any) -> Iterator[torch.Tensor]:
    """Tensors among arguments and lists of them."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, dict):
        yield from tensors_of(tuple(values.values()))
    elif isinstance(values, tuple | list):
        for x in values:
            yield from tensors_of(x)


def require_small(func: Any, tensors: list[torch.Tensor]) -> None:
    """Refuse to compute what would take long."""
    most = max((x.numel() for x in tensors), default=0)
    if most > MOST_COMPUTED:
        raise NotSampledError(
            f"{func} on {most} elements is neither a filler nor elementwise, and more than the {MOST_COMPUTED} that are "
            "computed beside sampled values"
        )


def _row_major(named: dict[str, Any], like: Any) -> bool:
    """Whether a filler's tensor has its elements in their order."""
    strides = named.get("stride")
    if strides is not None:
        size = named["size"]
        return list(strides) == [math.prod(size[k + 1 :]) for k in range(len(size))]
    kept = isinstance(like, torch.Tensor) and "size" not in named
    return (not kept or like.is_contiguous()) and named.get("memory_format") in (
        None,
        torch.preserve_format,
        torch.contiguous_format,
    )


NO_VALUES = ("self", "size", "stride", "device", "layout", "pin_memory", "memory_format", "requires_grad")


def _one_period(name: str, named: dict[str, Any], like: Any) -> torch.Tensor:
    """As many elements of a filler's distribution as a period has."""
    base = name.removesuffix("_like").removeprefix("new_")
    if base in ("normal", "bernoulli"):
        raise NotSampledError(f"torch.{name} of large tensors is not filled lazily")
    plain = {k: v for k, v in named.items() if k not in NO_VALUES}
    if isinstance(like, torch.Tensor):
        plain["dtype"] = plain.get("dtype") or like.dtype
    leading = (plain.pop("low", 0), plain.pop("high")) if base == "randint" else ()
    found: torch.Tensor = getattr(torch, base)(*leading, size=(PERIOD,), **plain)
    return found


def _mapped(values: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(values, torch.Tensor):
        return change(values)
    if isinstance(values, dict):
        return {k: _mapped(v, change) for k, v in values.items()}
    if isinstance(values, tuple | list):
        return type(values)(_mapped(x, change) for x in values)
    return values
