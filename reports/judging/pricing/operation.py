"""One operation of torch: its tensors, products and bytes, and what it does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ....simulator.errors import UsageError
from .names import CREATIONS, MOVES, VIEWS

Kind = Literal["view", "create", "move", "compute"]


class HostTensor(NamedTuple):
    """Shape and dtype ("float32", "int64", "bool", ...) of a tensor that an operation reads or makes."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        """How many it has."""
        out = 1
        for n in self.shape:
            out *= n
        return out


@dataclass(frozen=True)
class HostOp:
    """One operation as torch's dispatcher shows it.

    name: "aten.mm.default". inputs, outputs: its tensors in their order. flops: of products, 2 for a multiplication with its
    addition; 0 of all other operations. bytes: what it reads and writes in device memory at least; 0 of views. line: of the
    file that called it, 1-based; 0 where no line of it did. options: its other arguments in their order, such as the stride
    of a convolution or the axis of a sum: numbers, truth values, texts, None, lists of these; of anything else its text.
    transposed: of a copy whose elements lie in another order than they are read, (planes, rows, columns) of what is read:
    each plane of rows becomes one of columns; else ().
    """

    name: str
    inputs: tuple[HostTensor, ...]
    outputs: tuple[HostTensor, ...]
    flops: int = 0
    bytes: int = 0
    line: int = 0
    options: tuple[Any, ...] = ()
    transposed: tuple[int, ...] = ()

    @property
    def base(self) -> str:
        """Its name without namespace and overload: "mm"."""
        return self.name.split(".")[1] if "." in self.name else self.name

    @property
    def elements(self) -> int:
        """Of all inputs and outputs together."""
        return sum(t.elements for t in (*self.inputs, *self.outputs))

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        inputs, outputs = ([[list(t.shape), t.dtype] for t in side] for side in (self.inputs, self.outputs))
        about = {"flops": self.flops, "bytes": self.bytes, "line": self.line}
        options = [list(x) if isinstance(x, tuple) else x for x in self.options]
        known = {"name": self.name, "inputs": inputs, "outputs": outputs, **about}
        return {**known, "options": options, "transposed": list(self.transposed)}

    @classmethod
    def from_json(cls, data: Any) -> HostOp:
        """Of plain data, which may come from anybody. Raises `UsageError` for what `to_json` does not give."""
        try:
            inputs, outputs = (_tensors(data[side]) for side in ("inputs", "outputs"))
            numbers = {n: _count(data[n]) for n in NUMBERS}
            options = tuple(map(_option, data["options"]))
            sizes = tuple(map(_count, data["transposed"]))
            if len(sizes) not in (0, 3):
                raise ValueError(f"transposed has {len(sizes)} numbers, not 0 or 3")
            name = _text(data["name"])
            return cls(name, inputs, outputs, **numbers, options=options, transposed=sizes)
        except (KeyError, TypeError, ValueError) as e:
            raise UsageError(f"a host operation has {', '.join(FIELDS)}; {e!r}") from None


NUMBERS = "flops", "bytes", "line"
FIELDS = "name", "inputs", "outputs", *NUMBERS, "options", "transposed"
MOST_LETTERS, MOST_LISTED = 200, 64


def _tensors(data: Any) -> tuple[HostTensor, ...]:
    return tuple(HostTensor(tuple(map(_count, shape)), _text(dtype)) for shape, dtype in data)


def _text(x: Any) -> str:
    if not isinstance(x, str) or len(x) > MOST_LETTERS:
        raise ValueError(f"{str(x)[:40]!r} is no name")
    return x


def _count(x: Any) -> int:
    if not isinstance(x, int) or isinstance(x, bool) or not 0 <= x < 1 << 63:
        raise ValueError(f"{str(x)[:40]!r} is no number of at least 0")
    return x


def _option(x: Any) -> Any:
    if isinstance(x, list) and len(x) <= MOST_LISTED:
        return tuple(map(_option, x))
    return x if x is None or isinstance(x, bool | int | float) else _text(x)


def classify(op: HostOp) -> Kind:
    """What an operation does with data of the device.

    "view": another shape of the same memory, or what the host knows of a tensor. "create": a new tensor that depends on no
    other's values (zeros and random numbers are written, `empty` is not). "move": copies, casts, fills. "compute": all else.
    """
    base = op.base
    if base in VIEWS:
        return "view"
    if base in CREATIONS:
        return "create"
    return "move" if base in MOVES else "compute"


def counted(ops: Sequence[HostOp]) -> Mapping[HostOp, int]:
    """Each operation with how often it is called, equal ones together, in the order in which they are met."""
    out: dict[HostOp, int] = {}
    for op in ops:
        out[op] = out.get(op, 0) + 1
    return out
