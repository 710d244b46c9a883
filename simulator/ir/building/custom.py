"""Operations of the user: a class that says on which core and pipe device code runs, and what it does to numpy arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UsageError
from ...precision.dtypes import DType
from ..operations import Context, Operation, Place, Scratch, define
from ..program import Op, Value
from .builder import Builder
from .promotion import KernelError, describe, is_number

PIPES = ("PIPE_V", "PIPE_S", "PIPE_MTE2", "PIPE_MTE3", "PIPE_ALL")
CORES = ("VECTOR", "CUBE_OR_VECTOR")
REGISTERED: dict[str, type] = {}


@dataclass(frozen=True)
class Hole:
    """Place of an operand in the arguments of a callback."""

    number: int


class _Registry:
    """The registered classes as names that a kernel reads from outside: one registered anew compiles its kernels again."""

    @staticmethod
    def lookup(name: str) -> tuple[type] | None:
        return (REGISTERED[name],) if name in REGISTERED else None


def register(op: type) -> type:
    """Make a class known by its `name` (that of the class if it has none); one defined again takes the old one's place."""
    if not inspect.isclass(op):
        raise UsageError(f"register_custom_op decorates a class, got {op!r}")
    for field in ("core", "pipe", "mode"):
        if not hasattr(op, field):
            raise UsageError(f"custom op {op.__name__}: the field {field!r} is missing")
    name = op.__dict__.get("name", op.__name__)
    old = REGISTERED.get(name)
    if old is not None and (old.__module__, old.__qualname__) != (op.__module__, op.__qualname__):
        raise UsageError(f"custom op {name!r} is already registered by {old.__module__}.{old.__qualname__}")
    REGISTERED[name] = op
    return op


def _evaluated(at: Context, op: Op, *args: np.ndarray) -> list[np.ndarray]:
    """Results of all programs, (P or 1, *shape) each, in the host dtype."""
    count = max(x.shape[0] for x in args)
    rows = [_called(at, op, args, p) for p in range(count)]
    return [np.stack([row[k] for row in rows]) for k in range(len(op.results))]


def _called(at: Context, op: Op, args: tuple[np.ndarray, ...], p: int) -> list[np.ndarray]:
    given = [_stored(x[p if x.shape[0] > 1 else 0], v) for x, v in zip(args, op.args, strict=True)]
    positional, keywords = filled(op.attrs["arguments"], given)
    site, program = (
        at.interpreter.site(op),
        int(at.interpreter.programs[p if p < len(at.interpreter.active) else 0]),
    )
    try:
        made = op.attrs["callback"](*positional, **keywords)
    except Exception as e:
        raise site.error(
            f"custom op {op.name!r} in {site.program(program)}: {type(e).__name__}: {e}"
        ) from None
    made = keywords["out"] if made is None else made
    made = made if isinstance(made, tuple | list) else (made,)
    return [_in_host_dtype(op, x, r, site, program) for x, r in _pairs(op, made, site)]


def _pairs(op: Op, made: Any, site: Place) -> Any:
    if len(made) != len(op.results):
        raise site.error(f"custom op {op.name!r} gave {len(made)} results, but `out` has {len(op.results)}")
    return zip(made, op.results, strict=True)


def _stored(x: np.ndarray, v: Value | None) -> Any:
    """A copy for the callback in the type that memory would hold; a scalar as a numpy scalar."""
    assert v is not None
    assert isinstance(v.dtype, DType)
    out = np.array(x, dtype=v.dtype.storage)
    return out if v.shape else out[()]


def _in_host_dtype(op: Op, x: Any, r: Value, site: Place, program: int) -> np.ndarray:
    assert isinstance(r.dtype, DType)
    out = np.asarray(x)
    if out.shape != r.shape:
        raise site.error(
            f"custom op {op.name!r} gave shape {list(out.shape)} in {site.program(program)}, but `out` has "
            f"{list(r.shape)}"
        )
    return out.astype(r.dtype.storage).astype(r.dtype.host_dtype)


@define(Operation("custom", value=_evaluated, rows=("adds",), scratch=Scratch.ALL | Scratch.STATED))
def custom(b: Builder, name: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Emit the operation; its results have the types of what is given as `out`."""
    op = _registered(name)
    b.capture(_Registry, name, op)
    made = _instance(op, name, args, kwargs)
    outs = kwargs.get("out", ())
    outs = outs if isinstance(outs, tuple | list) else (outs,)
    if not outs or not all(isinstance(v, Value) and not v.is_pointer for v in outs):
        raise KernelError(f"custom op {name!r}: `out` must be the tile or tiles that the results look like")
    operands: list[Value] = []
    holes = _with_holes(name, (args, kwargs), operands)
    results = [b.value(v.dtype, v.shape) for v in outs]
    b.emit(
        "custom",
        operands,
        results,
        name=str(name),
        callback=_callback(op, name),
        arguments=holes,
        pipe=_known(name, "pipe", op.pipe, PIPES),  # type: ignore[attr-defined]
        core=_known(name, "core", op.core, CORES),  # type: ignore[attr-defined]
        cycles=_cycles(made, name, operands),
        scratch=sum(_scratch(made, name)),
    )
    return results[0] if len(results) == 1 else tuple(results)


def _registered(name: Any) -> type:
    op = REGISTERED.get(name) if isinstance(name, str) else None
    if op is None:
        have = ", ".join(REGISTERED) or "none so far"
        raise KernelError(
            f"no custom op {name!r} is registered (there are: {have}); decorate a class with register_custom_op"
        )
    return op


def _instance(op: Any, name: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The class with these arguments: its `__init__` checks them and may set further fields."""
    made = op.__new__(op)
    made.arg_type = {}
    if "__init__" in op.__dict__:
        try:
            made.__init__(*args, **kwargs)
        except Exception as e:
            raise KernelError(f"custom op {name!r}: {e}") from None
    return made


def _known(name: Any, field: str, x: Any, allowed: tuple[str, ...]) -> str:
    given = str(getattr(x, "name", x))
    if given not in allowed:
        raise KernelError(f"custom op {name!r}: {field} is {given}; the model has {', '.join(allowed)}")
    return given


def _callback(op: type, name: Any) -> Callable[..., Any]:
    found = op.__dict__.get("callback")
    found = found.__func__ if isinstance(found, staticmethod) else found
    if not callable(found):
        raise KernelError(
            f"custom op {name!r} is device code, which is not run here: give its class a static method `callback` that "
            "takes the same arguments as numpy arrays and returns the results"
        )
    return found


def _with_holes(name: Any, x: Any, operands: list[Value]) -> Any:
    """The arguments with a hole for each value of the program, which goes to `operands`."""
    if isinstance(x, Value):
        if x.is_pointer:
            raise KernelError(f"custom op {name!r} takes tiles and scalars, got {describe(x)}; load before")
        operands.append(x)
        return Hole(len(operands) - 1)
    if isinstance(x, tuple | list):
        return tuple(_with_holes(name, e, operands) for e in x)
    if isinstance(x, dict):
        return {k: _with_holes(name, e, operands) for k, e in x.items()}
    if x is None or is_number(x) or isinstance(x, str | DType):
        return x
    raise KernelError(
        f"custom op {name!r} takes tiles, scalars, numbers and tuples of them, got {describe(x)}"
    )


def filled(x: Any, values: list[Any]) -> Any:
    """Arguments with the holes filled."""
    if isinstance(x, Hole):
        return values[x.number]
    if isinstance(x, tuple):
        return tuple(filled(e, values) for e in x)
    return {k: filled(e, values) for k, e in x.items()} if isinstance(x, dict) else x


def _cycles(made: Any, name: Any, operands: list[Value]) -> float | None:
    """What the class says it takes: a number, or a function of the shapes of the operands, `out` last."""
    cycles = getattr(made, "cycles", None)
    if callable(cycles):
        cycles = cycles(*(v.shape for v in operands))
    if cycles is None:
        return None
    if not is_number(cycles) or not cycles > 0:
        raise KernelError(f"custom op {name!r}: cycles must be a number above 0, got {cycles!r}")
    return float(cycles)


def _scratch(made: Any, name: Any) -> Iterator[int]:
    """Bytes of the `extra_buffers`: one pair of type and number of elements, or several."""
    extra = getattr(made, "extra_buffers", ())
    for pair in [extra] if isinstance(extra, tuple) and extra and isinstance(extra[0], DType) else extra:
        dtype, count = pair
        if not isinstance(dtype, DType) or not isinstance(count, int) or count < 0:
            raise KernelError(
                f"custom op {name!r}: extra_buffers are pairs of a type and a number of elements, got {pair!r}"
            )
        yield dtype.itemsize * count
