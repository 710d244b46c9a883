"""Whose memory is whose in one call, over torch: what launches wrote and from what, and what the host read or made.

Storages are followed by the operations that reach torch's dispatcher, and by launches.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ....simulator.call import Call
from ....simulator.interpreter.program_order.order import directions
from ....simulator.interpreter.tensors import Tensor
from ..cheats.evidence import ReturnedTensor
from ..pricing.names import CREATIONS, UNWRITTEN
from .poison import fill_tensor, unwritten_tensor
from .tensors import address, class_name, is_plain, is_torch, tensors_in
from .untouched import by_form

READING = (
    "numpy",
    "__array__",
    "tolist",
    "item",
    "__dlpack__",
    "untyped_storage",
    "storage",
    "_typed_storage",
)


def read_and_written(call: Call) -> tuple[list[Tensor], list[Tensor]]:
    """Tensors that a launch reads, and that it writes."""
    ways = {n: way for n, way in directions(call.program).items() if call.tensors.get(n) is not None}
    read = [call.tensors[n] for n, way in ways.items() if "in" in way]
    return read, [call.tensors[n] for n, way in ways.items() if "out" in way]


class TorchMemory:
    """Storages of torch. With `watching()` operations are followed.

    values: whether there are any, and memory to fill with a pattern. by_form: whether operations on large tensors are made
    without values, see `untouched.py`.
    """

    def __init__(self, values: bool, by_form: bool) -> None:
        self.values, self.by_form = values, by_form
        self.held: list[Any] = []  # what the answer has before it is called
        self.known: set[int] = set()  # addresses of storages that torch made in sight, or that were given
        self.derived: set[int] = set()  # of inputs, parameters, and what was made of them
        self.written: set[int] = set()  # of those that launches of this call wrote, and what was made of them
        self.kept: list[Any] = []  # so that no address of these is used twice within a call
        self.host_elements = 0
        self.counting = False

    def know(self, tensors: Any) -> None:
        """The answer has these from its beginning."""
        self.held = list(tensors_in(tensors))
        self.known |= set(map(address, self.held))

    def begin(self, given: Any) -> None:
        """A call begins, with these tensors."""
        self.written, self.kept, self.host_elements, self.counting = set(), [], 0, True
        self.derived = set(map(address, (*tensors_in(given), *self.held)))
        self.known |= self.derived

    # ---- what is done ----

    def launched(self, call: Call) -> None:
        """A launch is made: what it takes must be known, what it writes is written by a kernel."""
        read, written = read_and_written(call)
        for t in (*read, *written):
            if is_torch(t.source):
                self._meet(t.source)
            elif t.elements and t.address not in self.known:  # an array of numpy: the host's
                self.host_elements += t.elements
        derived = any(_source_address(t) in self.derived for t in read)
        for t in written:
            self.written.add(_source_address(t))
            self.kept.append(t.source)
            if derived:
                self.derived.add(_source_address(t))

    def _meet(self, tensor: Any) -> None:
        """A tensor that is used. One that torch did not make in sight is the host's work."""
        at = address(tensor)
        if at and at not in self.known:
            self.known.add(at)
            self.host_elements += tensor.numel() if self.counting else 0

    def made(self, name: str, arguments: Any, out: Any) -> None:
        """An operation of torch was done: what comes of it is known, and of a kernel where what it read is."""
        inputs, outputs = list(tensors_in(arguments)), list(tensors_in(out))
        created = name in CREATIONS
        for t in () if created else (*inputs, *(outputs if name.startswith("lift") else ())):
            self._meet(t)
        from_launch, derived = (any(address(t) in s for t in inputs) for s in (self.written, self.derived))
        for t in outputs:
            at = address(t)
            self.known.add(at)
            if created:
                self.derived.discard(at)  # memory that was used before
            elif derived:
                self.derived.add(at)
            if from_launch and not created:
                self.written.add(at)
                self.kept.append(t)
            if self.values and name in UNWRITTEN:
                fill_tensor(t)

    def read(self, name: str, arguments: Any) -> None:
        """A function of torch that hands elements to the host."""
        if self.counting and name in READING:
            self.host_elements += sum(t.numel() for t in tensors_in(arguments[:1]))

    def watching(self) -> AbstractContextManager[None]:
        """A block whose operations are followed."""
        return _modes(self) if "torch" in sys.modules else nullcontext()

    def returned(self, path: str, tensor: Any, inputs: dict[str, Any]) -> ReturnedTensor:
        """What there is to say of a tensor that came back."""
        at = address(tensor)
        return ReturnedTensor(
            path=path,
            kind=class_name(tensor),
            elements=tensor.numel(),
            plain=is_plain(tensor),
            from_launch=at in self.written,
            from_inputs=at in self.derived,
            unwritten=unwritten_tensor(tensor) if self.values else 0,
            of_input=next((n for n, t in inputs.items() if is_torch(t) and at and address(t) == at), None),
        )


def _source_address(t: Tensor) -> int:
    return address(t.source) if is_torch(t.source) else t.address


@contextmanager
def _modes(memory: TorchMemory) -> Iterator[None]:
    from ..torch_modes import DispatchMode, FunctionMode

    class Following(DispatchMode):
        """Tells what reaches the dispatcher."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name, kwargs = str(func).split(".")[1], kwargs or {}
            out = by_form(func, name, args, kwargs) if memory.by_form else func(*args, **kwargs)
            memory.made(name, (*args, *kwargs.values()), out)
            return out

    class Reading(FunctionMode):
        """Tells what hands elements to the host."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            memory.read(getattr(func, "__name__", ""), args)
            return func(*args, **(kwargs or {}))

    with Following(), Reading():
        yield
