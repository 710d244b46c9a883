"""The operations of a model, recorded on tensors without memory. Importing this module imports torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ...torch_modes import DispatchMode
from ..lazy_inputs import aliases
from ..refusals import NotSampledError

MOST_CONSTANT = 1 << 24  # elements of a tensor that the model makes of nothing
ONE_NUMBER = ("zeros", "ones", "full")


class Leaf:
    """A tensor that has elements: an input, a parameter, or a constant of the model."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.shape = tuple(tensor.shape)


class ModelOperation:
    """One operation. func: of torch's dispatcher. name: without its overload ("mm"). arguments: by the names of its
    schema, `ModelResult` or `Leaf` in place of tensors. shapes, dtypes: of what it gives.
    """

    def __init__(self, func: Any, arguments: dict[str, Any], outputs: tuple[torch.Tensor, ...]) -> None:
        self.func = func
        self.name: str = func.overloadpacket.__name__
        self.arguments = arguments
        self.shapes = [tuple(x.shape) for x in outputs]
        self.dtypes = [x.dtype for x in outputs]


class ModelResult:
    """Output `index` of an operation."""

    def __init__(self, operation: ModelOperation, index: int) -> None:
        self.operation, self.index = operation, index

    @property
    def shape(self) -> tuple[int, ...]:
        return self.operation.shapes[self.index]

    @property
    def dtype(self) -> torch.dtype:
        return self.operation.dtypes[self.index]


Source = Leaf | ModelResult


def recorded(model: Callable[..., Any], inputs: list[Any]) -> list[Source]:
    """The outputs of `model(*inputs)` as sources. `NotSampledError`: it does what cannot be followed without elements."""
    recording = _Recording()
    given = [recording.twin(x) if isinstance(x, torch.Tensor) else x for x in inputs]
    try:
        with torch.no_grad(), recording:
            out = model(*given)
    except NotSampledError:
        raise
    except Exception as e:  # whatever a model does with elements that are not there
        raise NotSampledError(
            f"the model cannot be followed without elements: {type(e).__name__}: {e}"
        ) from None
    outputs = list(out) if isinstance(out, tuple | list) else [out]
    if not all(isinstance(x, torch.Tensor) for x in outputs):
        raise NotSampledError("the model gives something else than tensors")
    return [recording.source(x) for x in outputs]


class _Recording(DispatchMode):
    """Carries out operations on twins without memory, and keeps what they are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: dict[int, Source] = {}
        self.kept: list[torch.Tensor] = []  # so that no id is given to another tensor
        self.leaves: dict[int, torch.Tensor] = {}
        self.made: dict[int, torch.Tensor] = {}  # constants, and views of them
        self.seen: dict[int, int] = {}  # storages (by address of the object) -> tensors recorded in them

    def twin(self, x: torch.Tensor) -> torch.Tensor:
        """A tensor without memory for one that has some."""
        if id(x) not in self.leaves:
            made = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
            self.leaves[id(x)] = made
            self._keep(made, Leaf(x.detach()))
            self.kept.append(x)
        return self.leaves[id(x)]

    def source(self, x: torch.Tensor) -> Source:
        return self.sources[id(x)] if id(x) in self.sources else self.sources[id(self.twin(x))]

    def _keep(self, x: torch.Tensor, source: Source) -> None:
        self.sources[id(x)] = source
        self.kept.append(x)
        self.seen[self._storage(x)] = self.seen.get(self._storage(x), 0) + 1

    @staticmethod
    def _storage(x: torch.Tensor) -> int:
        return int(x.untyped_storage()._cdata)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not any(x.device.type == "meta" for x in _tensors((args, kwargs))):
            return self.constant(func, args, kwargs)
        args, kwargs = _changed(args, self._twin_of), _changed(kwargs, self._twin_of)
        before = _changed((args, kwargs), self.source)
        out = func(*args, **kwargs)
        outputs = out if isinstance(out, tuple | list) else (out,)
        made = ModelOperation(
            func, _named(func, *before), tuple(x for x in outputs if isinstance(x, torch.Tensor))
        )
        for k, x in enumerate(x for x in outputs if isinstance(x, torch.Tensor)):
            if id(x) in self.sources:  # changed in place
                self._require_alone(func, x)
                self.sources[id(x)] = ModelResult(made, k)
            else:
                self._keep(x, ModelResult(made, k))
        return out

    def _twin_of(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.device.type == "meta" else self.twin(x)

    def constant(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An operation on tensors of the model alone, or on none; one that changes its state is left out, such as one that
        counts its batches.
        """
        if func._schema.is_mutable and id(args[0]) not in self.made:
            return args[0]
        without = str(kwargs.get("device")) == "meta"  # made beside one that has no elements
        if without and "empty" not in str(func):
            kwargs = {**kwargs, "device": torch.device("cpu")}
        out = _of_one_number(func, args, kwargs)
        if out is None:
            self._require_small(func, (args, kwargs))
            out = func(*args, **kwargs)
            self._require_small(func, out)
        for x in _tensors(out):
            self.made[id(x)] = x
        return self.twin(out) if without and isinstance(out, torch.Tensor) else out

    def _require_small(self, func: Any, values: Any) -> None:
        """Large constants are only viewed."""
        most = max((x.numel() for x in _tensors(values)), default=0)
        if most > MOST_CONSTANT and not aliases(func):
            raise NotSampledError(f"the model makes a constant of {most} elements by {func}")

    def _require_alone(self, func: Any, x: torch.Tensor) -> None:
        if self.seen[self._storage(x)] > 1:
            raise NotSampledError(f"the model changes a tensor in place by {func}, of which it has views")


def _of_one_number(func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """A large constant of one number, in the memory of one element; None for any other."""
    if func.overloadpacket.__name__ not in ONE_NUMBER or math.prod(args[0]) <= MOST_CONSTANT:
        return None
    one: torch.Tensor = func([1] * len(args[0]), *args[1:], **kwargs)
    return one.expand(args[0])


def _tensors(values: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    _changed(values, found.append)
    return found


def _changed(values: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Arguments with each tensor changed."""
    if isinstance(values, torch.Tensor):
        return change(values)
    if isinstance(values, dict):
        return {k: _changed(x, change) for k, x in values.items()}
    if isinstance(values, tuple | list):
        return type(values)(_changed(x, change) for x in values)
    return values


def _named(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments by name, those that were not given as the schema has them."""
    schema = func._schema.arguments
    defaults = {a.name: a.default_value for a in schema if a.has_default_value()}
    return defaults | {a.name: x for a, x in zip(schema, args, strict=False)} | kwargs
