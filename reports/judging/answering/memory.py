"""Whose memory is whose in one call: what launches wrote, what nobody wrote, and what the host read or made by itself.

`TorchMemory` follows storages of torch by the operations that reach its dispatcher. Numpy has no such place: `ArrayMemory`
compares memory, and values where arrays were copied.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np

from ....simulator.call import Call
from ....simulator.execution.float64.launching import outputs_of
from ....simulator.interpreter.tensors import past_torch_modes
from ..cheats.evidence import ReturnedTensor
from ..pricing.names import CREATIONS

# Bytes of memory that was asked for unfilled: NaN in every format of 16 bits and more, and a number that nothing gives.
POISON = 0xFF
WHOLE_POISON = 0xA5
UNFILLED = (
    "empty",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "empty_like",
    "empty_permuted",
    "resize_",
)
READING = (
    "numpy",
    "__array__",
    "tolist",
    "item",
    "__dlpack__",
    "untyped_storage",
    "storage",
    "_typed_storage",
    "data_ptr",
)
SAMPLED = 256


class TorchMemory:
    """Storages of torch. values: whether there are any to poison. With `watching()` operations are followed."""

    def __init__(self, values: bool) -> None:
        self.values = values
        self.known: set[int] = set()  # addresses of storages that torch made in sight, or that were given
        self.written: set[int] = set()  # of those that launches of this call wrote, and what was made of them
        self.kept: list[Any] = []  # so that no address is used twice within a call
        self.host_elements = 0
        self.counting = False

    # ---- one call ----

    def begin(self, given: Any) -> None:
        """A call begins, with these tensors."""
        self.written, self.kept, self.host_elements, self.counting = set(), [], 0, True
        self.know(given)

    def know(self, tensors: Any) -> None:
        """These are no work of the host."""
        for t in tensors_in(tensors):
            self.known.add(_address(t))

    def launched(self, call: Call) -> None:
        """A launch is made: what it takes must be known, what it writes is written by a kernel."""
        for t in call.tensors.values():
            if is_torch(t.source):
                self._meet(t.source)
            elif t.elements:
                self._meet_memory(t.source, t.address, t.elements)
        for t in outputs_of(call).values():
            if is_torch(t.source):
                self.written.add(_address(t.source))
                self.kept.append(t.source)

    def _meet(self, tensor: Any) -> None:
        at = _address(tensor)
        if at and at not in self.known:
            self.known.add(at)
            self.host_elements += tensor.numel() if self.counting else 0

    def _meet_memory(self, source: Any, address: int, elements: int) -> None:
        """An array of numpy where tensors are torch's: the host's, unless it lies in a tensor that is known."""
        if address not in self.known:
            self.host_elements += elements if self.counting else 0

    # ---- what torch does ----

    def made(self, name: str, arguments: Any, out: Any) -> None:
        """An operation was done: what comes of it is known, and of a kernel where what it read is."""
        inputs, outputs = list(tensors_in(arguments)), list(tensors_in(out))
        if name not in CREATIONS:
            for t in inputs:
                self._meet(t)
        from_launch = any(_address(t) in self.written for t in inputs)
        for t in outputs:
            at = _address(t)
            if at not in self.known and name.startswith("lift"):
                self._meet(t)
            self.known.add(at)
            if from_launch:
                self.written.add(at)
                self.kept.append(t)
            if self.values and name in UNFILLED:
                _poison(t)

    def read(self, name: str, arguments: Any) -> None:
        """A function of torch that hands elements to the host."""
        if self.counting and name in READING:
            self.host_elements += sum(t.numel() for t in tensors_in(arguments[:1]))

    def watching(self) -> AbstractContextManager[None]:
        """A block whose operations are followed."""
        return _modes(self) if "torch" in sys.modules else nullcontext()

    def returned(self, path: str, tensor: Any, inputs: dict[str, Any]) -> ReturnedTensor:
        """What there is to say of a tensor that came back."""
        at = _address(tensor)
        of_input = next((n for n, t in inputs.items() if is_torch(t) and at and _address(t) == at), None)
        return ReturnedTensor(
            path=path,
            kind=f"{type(tensor).__module__}.{type(tensor).__qualname__}",
            elements=tensor.numel(),
            plain=is_plain(tensor),
            from_launch=at in self.written or not tensor.numel(),
            unwritten=_unwritten(tensor) if self.values else 0,
            of_input=of_input,
        )


class ArrayMemory(TorchMemory):
    """Arrays of numpy: memory of launches, and values where it was copied."""

    def __init__(self, values: bool) -> None:
        super().__init__(values)
        self.given: list[np.ndarray] = []
        self.outputs: list[np.ndarray] = []

    def begin(self, given: Any) -> None:
        self.outputs, self.host_elements, self.counting = [], 0, True
        self.given = [x for x in leaves(given) if isinstance(x, np.ndarray)]

    def know(self, tensors: Any) -> None:
        """What an answer holds from its beginning is known in every call."""
        self.kept += [x for x in leaves(tensors) if isinstance(x, np.ndarray)]

    def launched(self, call: Call) -> None:
        sources = [*self.given, *self.kept, *self.outputs]
        written = outputs_of(call)
        for name, t in call.tensors.items():
            x = t.source
            if (
                name not in written
                and isinstance(x, np.ndarray)
                and not _known_array(x, sources, self.values)
            ):
                self.host_elements += x.size
        self.outputs += [t.source for t in written.values() if isinstance(t.source, np.ndarray)]

    def returned(self, path: str, tensor: Any, inputs: dict[str, Any]) -> ReturnedTensor:
        of_input = next((n for n, x in inputs.items() if np.may_share_memory(x, tensor)), None)
        from_launch = any(np.may_share_memory(x, tensor) for x in self.outputs)
        return ReturnedTensor(
            path=path,
            kind=f"{type(tensor).__module__}.{type(tensor).__qualname__}",
            elements=tensor.size,
            plain=type(tensor) is np.ndarray or isinstance(tensor, np.generic),
            from_launch=from_launch or not tensor.size or (self.values and _values_of(tensor, self.outputs)),
            unwritten=_poisoned(tensor) if self.values else 0,
            of_input=of_input,
        )

    @contextmanager
    def _unfilled(self) -> Iterator[None]:
        real = {n: getattr(np, n) for n in ("empty", "empty_like")}

        def filling(make: Any) -> Any:
            def made(*args: Any, **kwargs: Any) -> Any:
                out = make(*args, **kwargs)
                if isinstance(out, np.ndarray) and out.size and out.ndim and out.dtype.kind not in "bO":
                    out.view(np.uint8)[...] = _poison_byte(out)
                return out

            return made

        for n, make in real.items():
            setattr(np, n, filling(make))
        try:
            yield
        finally:
            for n, make in real.items():
                setattr(np, n, make)

    def watching(self) -> AbstractContextManager[None]:
        return self._unfilled() if self.values else nullcontext()


def _known_array(x: np.ndarray, sources: list[np.ndarray], values: bool) -> bool:
    """Whether it lies in one of these, holds a number only, or whose values all stand in one of these."""
    if any(np.may_share_memory(x, y) for y in sources) or x.dtype.kind not in "fV" or not values:
        return True
    return _values_of(x, sources)


def _values_of(x: np.ndarray, sources: list[np.ndarray]) -> bool:
    """Whether values of `x`, a sample of them, all stand in these arrays, as their dtype has them; a constant does."""
    flat = x.reshape(-1)[:: max(1, x.size // SAMPLED)]
    if not x.size or np.all(flat.view(np.uint8).reshape(flat.size, -1) == flat[:1].view(np.uint8)):
        return x.size == 0 or x.dtype.kind == "f"
    wanted = flat.astype(np.float64)
    with np.errstate(all="ignore"):
        held = [y.astype(x.dtype).astype(np.float64).reshape(-1) for y in sources if y.size]
    return bool(held) and bool(np.isin(wanted, np.concatenate([*held, [0.0]])).all())


# ---- tensors ----


def leaves(value: Any, path: str = "") -> Iterator[Any]:
    """What stands in lists, tuples and dicts."""
    for _, x in named_leaves(value, path):
        yield x


def named_leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of what stands in lists, tuples and dicts: "0", "1.x"; "" of a value alone."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list | tuple)
        else None
    )
    if items is None:
        yield path, value
        return
    for k, x in items:
        yield from named_leaves(x, f"{path}.{k}" if path else str(k))


def is_torch(x: Any) -> bool:
    """Whether it is a tensor of torch, without importing that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_plain(x: Any) -> bool:
    """Whether a tensor of torch is what it looks like: no subclass, nothing of its own in place of a method."""
    torch = sys.modules["torch"]
    own = any(map(callable, vars(x).values())) if hasattr(x, "__dict__") else False
    return type(x) in (torch.Tensor, torch.nn.Parameter) and not own


def tensors_in(value: Any) -> Iterator[Any]:
    """Tensors of torch in containers."""
    return (x for x in leaves(value) if is_torch(x))


def _address(t: Any) -> int:
    with past_torch_modes():
        try:
            return int(t.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):  # a tensor without memory
            return 0


def _poison_byte(x: Any) -> int:
    """Of an array: ml_dtypes' formats have the kind "V"."""
    return POISON if x.dtype.kind in "fcV" and x.itemsize > 1 else WHOLE_POISON


def _poison(t: Any) -> None:
    """Fill memory that was asked for unfilled; one number in integers, which no result is by chance."""
    import torch

    if t.device.type != "cpu" or not t.numel() or t.dtype is torch.bool:
        return
    bytes_of = torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())
    floating = t.dtype.is_floating_point and t.element_size() > 1
    bytes_of.fill_(POISON if floating else WHOLE_POISON)


def _unwritten(t: Any) -> int:
    """Elements that still are what `_poison` filled in; of bytes only if all of them are."""
    import torch

    if t.device.type != "cpu" or not t.numel() or t.dtype is torch.bool or not t.dtype.itemsize:
        return 0
    with past_torch_modes():
        x = t.detach().contiguous().reshape(-1).view(torch.uint8).numpy().reshape(t.numel(), -1)
    floating = t.dtype.is_floating_point and t.element_size() > 1
    return _filled(x, POISON if floating else WHOLE_POISON)


def _poisoned(x: Any) -> int:
    x = np.ascontiguousarray(x)
    if not x.size or x.dtype.kind == "b":
        return 0
    return _filled(x.reshape(-1).view(np.uint8).reshape(x.size, -1), _poison_byte(x))


def _filled(x: np.ndarray, byte: int) -> int:
    count = int((x == byte).all(axis=1).sum())
    return count if x.shape[1] > 1 or (count == len(x) and count > 1) else 0


@contextmanager
def _modes(memory: TorchMemory) -> Iterator[None]:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Following(TorchDispatchMode):  # type: ignore[no-untyped-call]
        """Tells what reaches the dispatcher."""

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Not wrapped by torch's compiler, whose import takes longer than a judgement."""
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            memory.made(str(func).split(".")[1], (*args, *(kwargs or {}).values()), out)
            return out

    class Reading(TorchFunctionMode):
        """Tells what hands elements to the host."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            memory.read(getattr(func, "__name__", ""), args)
            return func(*args, **(kwargs or {}))

    with ExitStack() as modes:
        modes.enter_context(Following())  # type: ignore[no-untyped-call]
        modes.enter_context(Reading())
        yield
