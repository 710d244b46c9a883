"""Builds the tile program: one method per operation, with its type and shape rule.

The builtins of the language (`language/`) call these methods; a method takes `Value`s or Python numbers and returns a
`Value` (or a Python number, where all operands are compile-time constants). Rules are Triton's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import in_triton
from ...messages import Message, note
from ...precision import dtypes as ty
from ...precision.dtypes import DType
from ..operations import NAMED, OPERATIONS
from ..program import Loc, Op, Region, Value
from ..types import AnyType, PointerType
from .promotion import (
    BITWISE,
    COMPARISON,
    DOT_TYPES,
    OF_BOOLEANS,
    KernelError,
    Number,
    Operand,
    axis_of,
    broadcast_shape,
    can_multiply,
    check_broadcast,
    check_constant,
    check_shape,
    check_signs,
    computes_in_single,
    describe,
    element_of,
    float_constant,
    fold,
    grid_axis,
    integer_constant,
    is_number,
    is_pointer,
    pointee,
    promoted,
    shifted_as,
    target,
    types_of,
)

# Operations after which the elements are still those of their operand.
SAME_ELEMENTS = ("broadcast", "expand_dims", "permute", "reshape", "slice", "splat")
# (builder, jit function, arguments) -> what the function returns; its operations go to the builder's region.
HelperCompiler = Callable[["Builder", Any, Sequence[Any]], Any]


class Builder:
    """Appends operations to the current region of one program.

    compile_helper: the compiler's way to compile a jit function that a kernel gives to a builtin.
    """

    def __init__(self, compile_helper: HelperCompiler | None = None) -> None:
        self._compile_helper = compile_helper
        self.region = Region()
        self._loc = Loc("<kernel>", 0)
        self.scope: Any = None  # what is compiled now: a function, and
        self.node: Any = None  # a node of it whose place was not asked so far
        self.by_lane = False  # whether a condition may be one of each element, see frontend/lanes.py
        self.core = ""  # of the scope that is being compiled: cube, vector, or none
        self.split_builtins: dict[str, Loc] = {}
        self._values = 0
        self._ops = 0
        self.contents: dict[
            str, Any
        ] = {}  # names of the scope being compiled; buffers.py keeps what buffers hold there
        self.buffer_names: dict[str, str] = {}  # a buffer's key -> its name in the kernel
        self.only_elsewhere: dict[str, Loc] = {}  # builtins that no product here can carry out
        self._buffers = 0
        self.copies: dict[int, int] = {}  # value -> buffers that the kernel asks for
        self.captured: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self.made: dict[int, Op] = {}  # value -> what makes it
        self.warnings: dict[Message, None] = {}

    def compile_helper(self, fn: Any, args: Sequence[Any]) -> Any:
        """Compile a jit function at this place; the value is what it returns."""
        assert self._compile_helper is not None
        return self._compile_helper(self, fn, args)

    @property
    def loc(self) -> Loc:
        """Where the node stands that is compiled now; most nodes make nothing, and it is not asked."""
        if self.node is not None:
            self._loc, self.node = self.scope.place(self.node), None
        return self._loc

    @loc.setter
    def loc(self, loc: Loc) -> None:
        self._loc, self.node = loc, None

    # -- values and operations ---------------------------------------------------------------------------------------

    def value(self, dtype: AnyType, shape: Sequence[int] = (), name: str = "") -> Value:
        self._values += 1
        return Value(self._values - 1, dtype, tuple(shape), self.loc, name)

    @property
    def value_count(self) -> int:
        return self._values

    @property
    def op_count(self) -> int:
        return self._ops

    @property
    def has_buffers(self) -> bool:
        """Whether the kernel makes buffers of its own."""
        return self._buffers > 0

    def new_buffer(self, prefix: str) -> str:
        """A key that no other buffer of the program has."""
        self._buffers += 1
        return f"{prefix}{self._buffers}"

    def note_split_builtin(self, name: str) -> None:
        """Remember a builtin that only products with split cores have, and where it was first called."""
        self.split_builtins.setdefault(name, self.loc)

    def capture(self, owner: Any, name: str, x: Any) -> bool:
        """Remember a constant read from outside of the kernel: `owner.lookup(name)` says later whether it still is `x`.

        Gives whether it is the first time.
        """
        key = (id(owner), name)
        new = key not in self.captured
        self.captured[key] = (owner, name, x)
        return new

    def warn(self, text: str) -> None:
        """Remember a note about the current line."""
        self.warnings[note(text, f"{self.loc.file}:{self.loc.line}")] = None

    def emit(
        self,
        kind: str,
        args: Sequence[Value | None],
        results: Sequence[Value],
        name: str = "",
        regions: Sequence[Region] = (),
        **attrs: Any,
    ) -> Op:
        known = name if kind in NAMED else kind
        if known not in OPERATIONS:
            raise KernelError(
                f"there is no operation {known}; `define` it (simulator/README.md, Add a builtin)"
            )
        if self.core:
            attrs.setdefault("core", self.core)
        op = Op(self._ops, kind, name, tuple(args), tuple(results), attrs, self.loc, tuple(regions))
        self._ops += 1
        self.region.ops.append(op)
        return op

    def emit_one(
        self, kind: str, args: Sequence[Value | None], dtype: AnyType, shape: Sequence[int], **kw: Any
    ) -> Value:
        """`emit` for one result of that type and shape, which is given."""
        out = self.value(dtype, shape)
        self.made[out.id] = self.emit(kind, args, (out,), **kw)
        return out

    def const(self, value: Number, dtype: DType | None = None) -> Value:
        """A scalar constant of the program; its type is Triton's for that Python number unless given."""
        if not is_number(value):
            raise KernelError(f"expected a tile, a scalar or a number here, got {describe(value)}")
        try:
            dtype = dtype or ty.of_constant(value)
            known: Number = (
                float_constant(float(value), dtype) if dtype.is_floating() else integer_constant(value, dtype)
            )
        except OverflowError as e:
            raise KernelError(str(e)) from None
        return self.emit_one("const", (), dtype, (), value=known)

    def to_value(self, x: Operand, like: DType | None = None) -> Value:
        if isinstance(x, Value):
            return x
        if not is_number(x):
            raise KernelError(f"expected a tile, a scalar or a number here, got {describe(x)}")
        return self.const(x, like)

    # -- programs and creation ---------------------------------------------------------------------------------------

    def program_id(self, axis: int) -> Value:
        return self.emit_one("program_id", (), ty.int32, (), axis=grid_axis("program_id", axis))

    def num_programs(self, axis: int) -> Value:
        return self.emit_one("num_programs", (), ty.int32, (), axis=grid_axis("num_programs", axis))

    def arange(self, start: int, end: int) -> Value:
        for what, x in (("start", start), ("end", end)):
            if isinstance(x, bool) or not isinstance(x, int):
                advice = (
                    "; a tile cannot take its size from data: take a tl.constexpr size and mask the rest"
                    if isinstance(x, Value)
                    else ""
                )
                raise KernelError(f"arange: {what} must be a compile-time integer, got {describe(x)}{advice}")
        if end <= start:
            raise KernelError(f"arange: end must be above start, got start {start} and end {end}")
        return self.emit_one("arange", (), ty.int32, (end - start,), start=start, end=end)

    def full(self, shape: Sequence[int], value: Operand, dtype: DType) -> Value:
        if isinstance(value, Value) and value.shape:
            raise KernelError(f"full needs a scalar to fill with, got {describe(value)}")
        return self.splat(self.cast(value, dtype), check_shape(shape))

    def splat(self, x: Value, shape: Sequence[int]) -> Value:
        return x if tuple(shape) == x.shape else self.emit_one("splat", (x,), x.dtype, shape)

    # -- shapes ------------------------------------------------------------------------------------------------------

    def broadcast_to(self, x: Operand, shape: Sequence[int]) -> Value:
        v = self.to_value(x)
        if v.shape == shape:
            return v
        shape = check_shape(shape)
        if v.shape == shape:
            return v
        if v.shape == ():
            return self.splat(v, shape)
        if len(v.shape) != len(shape):
            raise KernelError(
                f"cannot broadcast a tile of rank {len(v.shape)} {list(v.shape)} to rank {len(shape)} {list(shape)}; "
                "add axes with x[:, None] or tl.expand_dims"
                f"{in_triton(f'Cannot broadcast, rank mismatch: {list(v.shape)}, {list(shape)}')}"
            )
        check_broadcast(v.shape, shape)
        return self.emit_one("broadcast", (v,), v.dtype, shape)

    def expand_dims(self, x: Value, axis: int) -> Value:
        rank = len(x.shape) + 1
        axis = axis_of(axis, rank)
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        return self.emit_one("expand_dims", (x,), x.dtype, shape, axis=axis)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        shape = check_shape(shape)
        n = 1
        for s in shape:
            n *= s
        if n != x.numel:
            raise KernelError(
                f"reshape: {list(x.shape)} has {x.numel} elements but {list(shape)} needs {n}; "
                "the two products must be equal"
            )
        return x if shape == x.shape else self.emit_one("reshape", (x,), x.dtype, shape)

    def permute(self, x: Value, order: Sequence[int]) -> Value:
        order = tuple(axis_of(a, len(x.shape)) for a in order)
        if sorted(order) != list(range(len(x.shape))):
            raise KernelError(f"permute: {list(order)} is no permutation of the axes of {list(x.shape)}")
        return self.emit_one("permute", (x,), x.dtype, [x.shape[a] for a in order], order=order)

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def cast(self, x: Operand, dtype: DType | PointerType) -> Value:
        if not isinstance(x, Value):
            if isinstance(dtype, PointerType):
                raise KernelError("a number cannot become a pointer")
            return self.const(x, dtype)
        if x.dtype is dtype or x.dtype == dtype:
            return x
        if x.is_pointer or isinstance(dtype, PointerType):
            return self._pointer_cast(x, dtype)
        return self.emit_one("cast", (x,), dtype, x.shape)

    def _pointer_cast(self, x: Value, dtype: DType | PointerType) -> Value:
        """Between pointers, and between pointers and integers of 64 bits: the address is kept."""
        if x.is_pointer and isinstance(dtype, DType):
            if not dtype.is_int() or dtype.bits != 64:
                raise KernelError(
                    f"a pointer can be cast to a pointer or an integer of 64 bits, not to {dtype}"
                )
        elif not x.is_pointer and not (x.dtype.is_int() and not x.dtype.is_bool()):
            raise KernelError(f"cannot cast {x.dtype} to {dtype}: an address is an integer")
        elif not x.is_pointer and x.dtype.bits != 64:  # type: ignore[union-attr]
            x = self.cast(x, ty.int64)
        return self.emit_one("cast", (x,), dtype, x.shape)

    def cast_with(
        self, x: Operand, dtype: DType, rounding: str, overflow: str, random: Value | None = None
    ) -> Value:
        """A cast with a rounding mode, "" for the usual one, or a rule for values that do not fit.

        overflow: saturate, wrap (integers), inf_nan (floats). random: of STOCHASTIC, a tile of 32 bits for each element.
        """
        v = self.to_value(x)
        if v.is_pointer:
            raise KernelError(f"cannot cast {v.dtype} to {dtype}")
        args = (v,) if random is None else (v, random)
        return self.emit_one("cast", args, dtype, v.shape, rounding=rounding, overflow=overflow)

    def bitcast(self, x: Operand, dtype: DType) -> Value:
        """The same bits read as another type of the same width."""
        v = self.to_value(x)
        source = element_of(v) if not v.is_pointer else None
        if source is None or source.bits != dtype.bits:
            raise KernelError(f"a bitcast keeps the width: {describe(v)} cannot be read as {dtype}")
        if source == dtype or (source.is_int() and dtype.is_int()):
            return self.cast(v, dtype)
        return self.emit_one("bitcast", (v,), dtype, v.shape)

    def binary(self, name: str, a: Operand, b: Operand) -> Operand:
        """`a op b` with Triton's promotion and broadcasting; folded where both are Python numbers."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            folded: Number = fold(name, a, b)
            return folded
        if is_pointer(a) or is_pointer(b):
            return self._pointer_arithmetic(name, a, b)
        dtype = self._common_type(a, b, name)
        if computes_in_single(dtype) and name not in (*BITWISE, "floordiv"):
            return self.cast(self.binary(name, *(self.single(x, dtype) for x in (a, b))), dtype)
        keeps_sign = shifted_as(a, dtype) if name == "shr" else None
        if dtype.kind == "float" and (name in BITWISE or name == "floordiv"):
            what = "integers or booleans" if name != "floordiv" else "integers; divide with / and round down"
            words = in_triton(f"invalid operands of type, unexpected type {dtype}")
            raise KernelError(f"'{name}' needs {what}, got {types_of(a, b)}{words}")
        if dtype.kind == "bool" and name in ("add", "sub", "mul") and (self._loaded(a) or self._loaded(b)):
            dtype = ty.int8
        elif dtype.kind == "bool":
            name = self._boolean(name)
        a, b = self.same_shape(self._operand(a, keeps_sign or dtype), self._operand(b, keeps_sign or dtype))
        out = self.emit_one("binary", (a, b), keeps_sign or dtype, a.shape, name=name)
        return self.cast(out, dtype)

    def _loaded(self, x: Operand) -> bool:
        """Whether it is booleans from memory: the compiler loads them as int8, so sums of them count."""
        if not isinstance(x, Value) or x.dtype != ty.int1:
            return False
        op = self.made.get(x.id)
        while op is not None and op.kind in SAME_ELEMENTS:
            op = self.made.get(op.operand(0).id)
        return op is not None and op.kind == "load"

    def counted(self, x: Value) -> Value:
        """Booleans from memory as the int8 that they are added as; any other value as it is."""
        return self.cast(x, ty.int8) if self._loaded(x) else x

    def _boolean(self, name: str) -> str:
        """The logical operation that arithmetic on booleans is."""
        if name not in OF_BOOLEANS:
            raise KernelError(f"'{name}' of booleans has no meaning; cast with .to(tl.int32)")
        return OF_BOOLEANS[name]

    def invert(self, x: Value) -> Operand:
        """Every bit flipped."""
        if not isinstance(x.dtype, DType) or x.dtype.is_floating():
            words = in_triton(f"unexpected type {x.dtype}")
            raise KernelError(f"`~` needs integers or booleans, got {describe(x)}{words}")
        return self.binary("xor", x, self.const(-1, x.dtype))

    def compare(self, name: str, a: Operand, b: Operand) -> Operand:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return COMPARISON[name](a, b)
        if is_pointer(a) or is_pointer(b):
            a, b = (self.cast(x, ty.int64) if isinstance(x, Value) else x for x in (a, b))
        dtype = self._common_type(a, b, name)
        if computes_in_single(dtype):
            return self.compare(name, *(self.single(x, dtype) for x in (a, b)))
        a, b = self.same_shape(self._operand(a, dtype), self._operand(b, dtype))
        return self.emit_one("compare", (a, b), ty.int1, a.shape, name=name)

    def unary(self, name: str, x: Operand, dtype: DType | None = None) -> Value:
        v = self.to_value(x)
        if v.is_pointer:
            raise KernelError(f"'{name}' of a pointer has no meaning")
        if name == "abs" and v.dtype.is_int() and not v.dtype.is_int_signed():  # type: ignore[union-attr]
            return v
        if name == "neg" and v.dtype.is_bool():
            words = in_triton("unexpected type int1")
            raise KernelError(
                f"the sign of a boolean has no meaning; cast with .to(tl.int32), or use `not`{words}"
            )
        if computes_in_single(v.dtype):
            return self.cast(self.unary(name, self.cast(v, ty.float32), dtype), dtype or v.dtype)
        return self.emit_one("unary", (v,), dtype or v.dtype, v.shape, name=name)

    def fma(self, x: Operand, y: Operand, z: Operand) -> Value:
        """x * y + z with one rounding, in the common type of the three."""
        given = (x, y, z)
        types = [element_of(v) for v in given if isinstance(v, Value) and not v.is_pointer]
        if not types or any(is_pointer(v) for v in given):
            raise KernelError(
                f"fma needs a tile or scalar of the program, got {', '.join(map(describe, given))}"
            )
        dtype = functools.reduce(promoted, types)
        if computes_in_single(dtype):
            return self.cast(self.fma(*(self.single(v, dtype) for v in given)), dtype)
        shape = functools.reduce(broadcast_shape, (v.shape for v in given if isinstance(v, Value)))
        return self.emit_one(
            "fma", [self._stretch(self._operand(v, dtype), shape) for v in given], dtype, shape
        )

    def select(self, condition: Operand, a: Operand, b: Operand) -> Value:
        c = self.to_value(condition)
        if c.dtype != ty.int1:
            self.warn(
                f"tl.where with a condition of {c.dtype}, which Triton deprecates and will refuse: write a comparison with 0"
            )
            c = self.to_bool(c)
        if is_pointer(a) or is_pointer(b):
            return self._select_pointers(c, a, b)
        dtype = self._common_type(self.to_value(a) if not isinstance(b, Value) else a, b, "where")
        va, vb = self.same_shape(self._operand(a, dtype), self._operand(b, dtype))
        if c.shape != va.shape:
            c, va = self.same_shape(c, va)
            c, vb = self.same_shape(c, vb)
        return self.emit_one("select", (c, va, vb), dtype, va.shape)

    def _select_pointers(self, c: Value, a: Operand, b: Operand) -> Value:
        if not isinstance(a, Value) or not isinstance(b, Value) or a.dtype != b.dtype:
            raise KernelError(
                f"where: both sides must be pointers to one type, got {types_of(a, b)}; cast one"
            )
        a, b = self.same_shape(a, b)
        c, a = self.same_shape(c, a)
        c, b = self.same_shape(c, b)
        return self.emit_one("select", (c, a, b), a.dtype, a.shape)

    def to_bool(self, x: Operand) -> Value:
        v = self.to_value(x)
        if v.dtype == ty.int1:
            return v
        out = self.compare("ne", v, 0)
        assert isinstance(out, Value)
        return out

    def _pointer_arithmetic(self, name: str, a: Operand, b: Operand) -> Value:
        if is_pointer(b) and name == "add":
            a, b = b, a
        if not is_pointer(a) or is_pointer(b) or name not in ("add", "sub"):
            raise KernelError(f"a pointer takes + or - with integers only, got {types_of(a, b)}")
        offset = self.to_value(b)
        if not offset.dtype.is_int() or offset.dtype.is_bool():
            raise KernelError(f"a pointer offset must be an integer (elements), got {offset.dtype}")
        if name == "sub":
            negative = self.binary("sub", 0, offset)
            assert isinstance(negative, Value)
            offset = negative
        pointer = self.to_value(a)
        pointer, offset = self.same_shape(pointer, offset)
        return self.emit_one("addptr", (pointer, offset), pointer.dtype, pointer.shape)

    def _common_type(self, a: Operand, b: Operand, name: str) -> DType:
        if is_pointer(a) or is_pointer(b):
            raise KernelError(f"'{name}' of pointers has no meaning, got {types_of(a, b)}")
        division = name in ("div", "mod", "floordiv")
        if isinstance(a, Value) and isinstance(b, Value):
            out = promoted(element_of(a), element_of(b), division)
            check_signs(element_of(a), element_of(b), out, division)
        else:
            v, n = (a, b) if isinstance(a, Value) else (b, a)
            assert isinstance(v, Value)
            if not is_number(n):
                raise KernelError(f"'{name}' needs tiles or numbers, got {describe(n)}")
            assert not isinstance(n, Value)
            out = ty.promote_with_constant(element_of(v), n, division)
            check_constant(n, out)
        if out.is_foreign and out.is_int() and name != "where":
            raise KernelError(
                f"'{name}' of {out}: the units cast and multiply it only; cast it with .to(tl.int8)"
            )
        if name == "div" and out.is_int():
            return ty.float32
        return out

    def single(self, x: Operand, dtype: DType) -> Value:
        """An operand of arithmetic on a foreign type, for which no unit has any: it is done in FP32, as with BF16."""
        if isinstance(x, Value):
            return self.cast(self.cast(x, dtype), ty.float32)
        return self.const(float_constant(float(x), dtype), ty.float32)

    def _operand(self, x: Operand, dtype: DType) -> Value:
        return self.cast(x, dtype) if isinstance(x, Value) else self.const(x, dtype)

    def same_shape(self, a: Value, b: Value) -> tuple[Value, Value]:
        if a.shape == b.shape:
            return a, b
        shape = broadcast_shape(a.shape, b.shape)
        return self._stretch(a, shape), self._stretch(b, shape)

    def _stretch(self, x: Value, shape: tuple[int, ...]) -> Value:
        while x.shape and len(x.shape) < len(shape):
            x = self.expand_dims(x, 0)
        return self.broadcast_to(x, shape)

    # -- memory ------------------------------------------------------------------------------------------------------

    def load(
        self,
        pointer: Value,
        mask: Operand | None,
        other: Operand | None,
        cache: str = "",
        padding: str | None = None,
        volatile: bool = False,
    ) -> Value:
        """padding: of a block ("zero", ""), or "random": what is masked out holds without `other`; None: Triton's rule."""
        element = pointee(pointer, "load")
        if isinstance(element, PointerType):  # a table of pointers holds addresses
            addresses = self.load(self.cast(pointer, PointerType(ty.int64)), mask, other, padding=padding)
            return self.cast(addresses, element)
        pointer, m = self._with_mask(pointer, mask, "load")
        if other is not None and mask is None:
            raise KernelError("load: `other` is the value of masked-out elements and needs a `mask`")
        o = None if other is None else self.broadcast_to(self.cast(other, element), pointer.shape)
        hints: dict[str, Any] = {"cache": cache} if cache else {}
        hints |= {"volatile": True} if volatile else {}
        if padding is not None and m is not None and o is None:
            hints["padding"] = padding
        return self.emit_one("load", (pointer, m, o), element, pointer.shape, **hints)

    def store(self, pointer: Value, value: Operand, mask: Operand | None) -> None:
        element = target(pointer, "store")
        if isinstance(element, PointerType):
            pointer, value, element = (
                self.cast(pointer, PointerType(ty.int64)),
                self.cast(value, ty.int64),
                ty.int64,
            )
        v = self.cast(value, element)
        if v.shape != pointer.shape:
            if v.shape and not pointer.shape:
                raise KernelError(
                    f"store: the pointer is a scalar but the value has shape {list(v.shape)}; "
                    "add an offset tile to the pointer"
                )
            v = self.broadcast_to(v, pointer.shape)  # never the pointer: its lanes would store to one element
        pointer, m = self._with_mask(pointer, mask, "store")
        if v.shape != pointer.shape:
            v = self.broadcast_to(v, pointer.shape)
        self.emit("store", (pointer, v, m), ())

    def atomic(
        self, name: str, pointer: Value, value: Operand, mask: Operand | None, sem: str = "acq_rel"
    ) -> Value:
        element = self._atomic_type(name, pointer)
        v = self.cast(value, element)
        pointer, v = self.same_shape(pointer, v)
        pointer, m = self._with_mask(pointer, mask, f"atomic_{name}")
        if v.shape != pointer.shape:
            v = self.broadcast_to(v, pointer.shape)
        return self.emit_one("atomic", (pointer, v, m), element, pointer.shape, name=name, sem=sem)

    def compare_and_swap(
        self, pointer: Value, expected: Operand, value: Operand, sem: str = "acq_rel"
    ) -> Value:
        """Atomic with a fourth operand: what memory must hold for `value` to be put there."""
        element = self._atomic_type("cas", pointer)
        shape = pointer.shape
        for x in (expected, value):
            shape = broadcast_shape(shape, x.shape) if isinstance(x, Value) else shape
        pointer = self._stretch(pointer, shape)
        e, v = (self._stretch(self.cast(x, element), shape) for x in (expected, value))
        return self.emit_one("atomic", (pointer, v, None, e), element, shape, name="cas", sem=sem)

    def _atomic_type(self, name: str, pointer: Value) -> DType:
        element = target(pointer, f"atomic_{name}")
        if element.is_foreign:
            raise KernelError(
                f"atomic_{name} on {element}: memory has no atomic operation on codes of a format; combine in tl.float32 "
                "and store the result, or let one program add up what the others stored"
            )
        if name in ("and", "or", "xor") and element.is_floating():
            words = in_triton("the operand must be signless-integer-like")
            raise KernelError(
                f"atomic_{name} needs a pointer to integers or booleans, got {pointer.dtype}{words}"
            )
        if name == "add" and element.is_bool():
            raise KernelError("atomic_add to booleans has no meaning; use atomic_or or atomic_xor")
        return element

    def _with_mask(self, pointer: Value, mask: Operand | None, what: str) -> tuple[Value, Value | None]:
        if mask is None or mask is True:
            return pointer, None
        m = self.to_bool(mask)
        if m.shape != pointer.shape:
            if m.shape and not pointer.shape:
                raise KernelError(f"{what}: the mask has shape {list(m.shape)} but the pointer is a scalar")
            pointer, m = self.same_shape(pointer, m)
        return pointer, m

    # -- matrix products ---------------------------------------------------------------------------------------------

    def dot(
        self,
        a: Value,
        b: Value,
        acc: Value | None,
        precision: str,
        asked: Sequence[str] = (),
        acc_format: DType | None = None,
        **more: Any,
    ) -> Value:
        """(M, K) x (K, N) [+ acc], or each of B such products of (B, M, K) and (B, K, N).

        precision: ieee, hf32 or device. asked: what the kernel said of precision beyond that, for the Run. acc_format: the
        format of the accumulator, None for the usual one. more: further attributes.
        """
        for what, v in (("first", a), ("second", b)):
            if not isinstance(v, Value) or len(v.shape) not in (2, 3) or v.is_pointer:
                raise KernelError(
                    f"dot: the {what} operand must be a tile with two axes, or three for a batch, got {describe(v)}"
                )
        if not can_multiply(element_of(a), element_of(b)):
            raise KernelError(
                f"dot: both operands must have one of the types {', '.join(DOT_TYPES)}, or one or both a narrower floating "
                f"format, got {types_of(a, b)}; cast one of them"
            )
        if len(a.shape) != len(b.shape) or a.shape[:-2] != b.shape[:-2]:
            raise KernelError(
                f"dot: {list(a.shape)} and {list(b.shape)} must have the same batch axis, or both none"
            )
        if a.shape[-1] != b.shape[-2]:
            words = f"lhs last dimension {a.shape[-1]} must equal rhs penultimate dimension {b.shape[-2]}"
            raise KernelError(
                f"dot: the inner sizes differ: {list(a.shape)} has {a.shape[-1]} columns, "
                f"{list(b.shape)} has {b.shape[-2]} rows{in_triton(words)}"
            )
        dtype = ty.int32 if a.dtype.is_int() else ty.float32
        if acc_format is not None and not (
            acc_format.is_floating() and acc_format.bits <= 32 and a.dtype.is_floating()
        ):
            raise KernelError(
                f"dot: acc_format is {acc_format}; products of {a.dtype} add up in int32, those of floats in any floating "
                "format up to 32 bits"
            )
        if acc_format not in (None, dtype):
            more["acc_format"] = acc_format
        shape = (*a.shape[:-1], b.shape[-1])
        if acc is not None and (acc.dtype != dtype or acc.shape != shape):
            raise KernelError(
                f"dot: the accumulator must be a {dtype} tile of shape {list(shape)}, got {describe(acc)}"
            )
        return self.emit_one(
            "dot", (a, b, acc), dtype, shape, precision=precision, asked=tuple(asked), **more
        )

    # -- reductions --------------------------------------------------------------------------------------------------

    def reduce(self, name: str, x: Operand, axis: int | None, keep_dims: bool) -> Value:
        v = self.to_value(x)
        if v.shape == ():
            return v
        if v.is_pointer:
            raise KernelError(f"'{name}' of pointers has no meaning")
        if v.dtype == ty.int1:
            name = "xor" if name == "sum" else OF_BOOLEANS.get(name, name)
        if computes_in_single(v.dtype):
            return self.cast(self.reduce(name, self.cast(v, ty.float32), axis, keep_dims), v.dtype)
        return self.along("reduce", v, v.dtype, axis, keep_dims, name=name)

    def along(
        self, kind: str, v: Value, dtype: AnyType, axis: int | None, keep_dims: bool, **attrs: Any
    ) -> Value:
        """An operation that takes an axis away; without `axis` that of all elements in one."""
        rank = len(v.shape)
        v, axis = (self.reshape(v, (v.numel,)), 0) if axis is None else (v, axis_of(axis, rank))
        rest = [n for k, n in enumerate(v.shape) if k != axis]
        out = self.emit_one(kind, (v,), dtype, rest, axis=axis, **attrs)
        if not keep_dims:
            return out
        return self.expand_dims(out, axis) if out.shape else self.splat(out, (1,) * rank)
