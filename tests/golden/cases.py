"""The launches of the golden file: a name, the device they run on, and the work that makes them.

Names stay: a case that goes or comes is a line in the commit that says why. Everything is drawn from the name, so that a
case does not depend on the others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ascendtile.kernels import run_op
from ascendtile.kernels.operator.operator import Operator
from ascendtile.kernels.operator.registry import operators
from ascendtile.kernels.tutorials import attention, dropout, matmul, softmax, vector_add
from ascendtile.simulator.products import load_product, product_names
from ascendtile.simulator.record.run import Launch, Run

from ..support import kernels as plain
from ..support import loop_kernels as loops
from . import kernels as own

Arrays = dict[str, np.ndarray]
Result = tuple[Arrays, Sequence[Launch]]
HOME = "ascend910b3"
SPLIT = ("ascend910b1", "ascend910b4", "ascend910c")
COUPLED = ("ascend910a", "ascend310p", "ascend310b")


@dataclass(frozen=True)
class Case:
    """work() gives the arrays whose values count and the launches; switches are those of `sim.device`."""

    name: str
    work: Callable[[], Result]
    product: str = HOME
    switches: dict[str, Any] = field(default_factory=dict)


def seeded(name: str) -> np.random.Generator:
    """Numbers that depend on the name alone."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def normal(name: str, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Standard normal numbers."""
    return seeded(name).standard_normal(shape).astype(dtype)


def _operator(op: str, case: str, dtype: str, product: str, values: bool = False, **what: Any) -> Case:
    def work() -> Result:
        result = run_op(op, case=case, dtype=dtype, values=values, errors=False, **what)
        return result.outputs, result.launches

    said = [
        f"{k}={'.'.join(f'{a}-{b}' for a, b in x.items()) if isinstance(x, dict) else x}"
        for k, x in what.items()
    ]
    return Case(
        "/".join(["op", op, case, dtype, product, *said, *(["values"] if values else [])]), work, product
    )


def types_on(op: Operator, product: str) -> tuple[str, ...]:
    """Data types that the operator runs on the product; none where it is not offered."""
    return tuple(op.architectures.get(load_product(product).integer("product.npu_arch"), ()))


def _operators() -> Iterator[Case]:
    for op in operators().values():
        names = list(op.cases)
        for case in names:
            yield _operator(op.name, case, "float16", HOME)
        for case in names[:2] if "float32" in op.dtypes else ():
            yield _operator(op.name, case, "float32", HOME)
        for product in product_names():
            for dtype in types_on(op, product):
                yield _operator(op.name, "tiny", dtype, product, values=True)
            if product != HOME and types_on(op, product):
                yield _operator(op.name, names[0], "float16", product)
        yield from _tilings(op)


def _tilings(op: Operator) -> Iterator[Case]:
    """Every named setting of every knob, one at a time, where the smallest case takes it."""
    for knob in op.parameters:
        for choice in knob.choices or ():
            yield _operator(op.name, "tiny", "float16", HOME, values=True, tiling={knob.name: choice})
        if knob.name in ("buffers", "cores") and not knob.choices:
            yield _operator(op.name, next(iter(op.cases)), "float16", HOME, tiling={knob.name: 1})


def _modes() -> Iterator[Case]:
    for product in (HOME, "ascend910a", "ascend310p"):
        for op in ("matmul", "convolution", "convolution_backward"):
            for mode in ("KEEP_DTYPE", "ALLOW_FP32_DOWN_PRECISION", "USE_FP16", "USE_HF32"):
                if product == HOME or mode != "USE_HF32":
                    yield _operator(op, "tiny", "float32", product, values=True, cube_math_type=mode)


def _kernel(name: str, kernel: Any, grid: int, arrays: Arrays, product: str = HOME, **rest: Any) -> Case:
    """One launch of a kernel on copies of the arrays."""
    constants = {k: x for k, x in rest.items() if k != "switches"}

    def work() -> Result:
        mine = {k: x.copy() for k, x in arrays.items()}
        return mine, kernel[(grid,)](**mine, **constants).launches

    said = [f"{k}={x}" for k, x in constants.items()]
    return Case("/".join([name, product, f"grid={grid}", *said]), work, product, rest.get("switches", {}))


def _loops() -> Iterator[Case]:
    moves = ("offset", "pointer", "product", "stride", "wide", "discrete", "odd", "own_start")
    for move in moves:
        for mask in ("none", "end", "band"):
            for store, branch in (
                ("none", "none"),
                ("store", "turn"),
                ("atomic", "program"),
                ("scalar", "all"),
            ):
                name = f"loop/{move}/{mask}/{store}/{branch}"
                arrays = {"x_ptr": normal(name, 40_000), "out_ptr": np.zeros(20_000, np.float32)}
                sizes = (
                    {"n": 700, "iterations": 9, "stride": 1000}
                    if mask != "none"
                    else {"n": 9999, "iterations": 9, "stride": 1000}
                )
                modes = {"MASK": mask, "STORE": store, "MOVE": move, "BRANCH": branch, "BLOCK": 64}
                yield _kernel(name, loops.one_loop, 3, arrays, **sizes, **modes)
    for even in (True, False):
        for rows in (3, 11):
            arrays = {"x_ptr": normal(f"rows{rows}", 64 * 300), "out_ptr": np.zeros(64, np.float32)}
            sizes = {"M": 61, "N": 290, "rows": rows, "iterations": 4, "EVEN": even, "BM": 8, "BN": 64}
            yield _kernel("loop/rows_and_columns", loops.rows_and_columns, 3, arrays, **sizes)
        for bias in (True, False):
            for product in (HOME, *COUPLED):
                m, n, k = (64, 96, 80) if even else (60, 90, 70)
                arrays = {
                    "a_ptr": normal("a", m, k, dtype=np.float16),
                    "b_ptr": normal("b", k, n, dtype=np.float16),
                }
                arrays["c_ptr"] = np.zeros((m, n), np.float16)
                k_block = 16 if even else 32
                sizes = {
                    "M": m,
                    "N": n,
                    "K": k,
                    "EVEN": even,
                    "BIAS": bias,
                    "BM": 32,
                    "BN": 32,
                    "BK": k_block,
                }
                yield _kernel("loop/product", loops.product, 2, arrays, product, **sizes)
    for back in (True, False):
        yield _kernel(
            "loop/in_place",
            loops.in_place,
            2,
            {"x_ptr": normal("in", 4096)},
            iterations=6,
            BLOCK=256,
            BACK=back,
        )


def _plain() -> Iterator[Case]:
    x = normal("plain", 100_000)
    out = np.zeros_like(x)
    for product in (HOME, *SPLIT, *COUPLED):
        for block in (1024, 4096):
            arrays = {"x_ptr": x, "y_ptr": x, "out_ptr": out}
            yield _kernel("add", plain.add, -(-100_000 // block), arrays, product, n=100_000, BLOCK=block)
            yield _kernel(
                "strided_sum",
                plain.strided_sum,
                7,
                {"x_ptr": x, "out_ptr": out},
                product,
                n=90_000,
                BLOCK=block,
            )
        for form in ("twice", "four_times"):
            two = {"x_ptr": x, "out_ptr": out}
            block = {"twice": 512, "four_times": 2048}[form]
            yield _kernel("stencil", plain.stencil, 5, two, product, n=block * 20, BLOCK=block)
            yield _kernel("peek_then_read", plain.peek_then_read, 5, two, product, n=block * 20, BLOCK=block)
    for length in (3, 12):
        two = {"x_ptr": x, "out_ptr": out}
        yield _kernel("chain", plain.chain, 4, two, LENGTH=length, BLOCK=512)
        yield _kernel("fan", plain.fan, 4, two, LENGTH=length, BLOCK=512)
    yield _kernel(
        "copy_iterations", plain.copy_iterations, 40, {"x_ptr": x, "out_ptr": out}, iterations=4, BLOCK=512
    )
    for multibuffer in (True, False):
        two = {"x_ptr": x, "out_ptr": out}
        yield _kernel("strided_sum", plain.strided_sum, 7, two, n=90_000, BLOCK=2048, multibuffer=multibuffer)


def _mixed() -> Iterator[Case]:
    f16, f32 = np.float16, np.float32
    for product in (HOME, *SPLIT, *COUPLED):
        for epilogue in (0, 1):
            arrays = {
                "a": normal("a", 256, 48, dtype=f16),
                "b": normal("b", 48, 64, dtype=f16),
                "c": np.zeros((256, 64), f32),
            }
            yield _kernel(
                "product", own.product_then_exp, 4, arrays, product, EPILOGUE=epilogue, M=64, N=64, K=48
            )
        for causal in (0, 1):
            arrays = {n: normal(n, 128, 32, dtype=f16) for n in ("q", "k", "v")} | {
                "out": np.zeros((128, 32), f32)
            }
            yield _kernel("scores", own.scores, 4, arrays, product, n=128, CAUSAL=causal, M=32, N=64, D=32)
        integers = {
            "a": seeded("a").integers(-9, 9, (64, 64)).astype(np.int8),
            "c": np.zeros((64, 32), np.int32),
        }
        integers = {"a": integers["a"], "b": integers["a"][:, :32].copy(), "c": integers["c"]}
        yield _kernel("integer_product", own.integer_product, 2, integers, product, M=32, N=32, K=64)
    for product in (HOME, *SPLIT):
        square = {"a": normal("a", 3, 16, 16), "b": normal("b", 16, 16) * f32(0.2)}
        square |= {n: np.zeros((3, 16, 16), f32) for n in ("out", "hop", "back")}
        for count in (1, 6):
            yield _kernel("ping_pong", own.ping_pong, 3, square, product, count=count, M=16)
        arrays = {"a": normal("a", 128, 32), "b": normal("b", 32, 32), "c": np.zeros((128, 32), f32)}
        yield _kernel(
            "halves", own.halves, 4, arrays | {"hop": np.zeros((128, 32), f32)}, product, M=32, N=32, K=32
        )


def _data() -> Iterator[Case]:
    index = seeded("index").integers(0, 8, 16).astype(np.int32)
    table = {"x": normal("table", 8, 200), "index": index, "out": np.zeros((16, 200), np.float32)}
    numbers = {"x": seeded("collatz").integers(1, 99, 12).astype(np.int32), "out": np.zeros(12, np.int32)}
    spread = {"x": normal("x", 5000), "index": seeded("at").integers(0, 5000, 1024).astype(np.int32)}
    for product in (HOME, "ascend910b1", *COUPLED):
        for add in (0, 1):
            yield _kernel("rows_by_index", own.rows_by_index, 16, table, product, N=200, ADD=add, BLOCK=256)
        yield _kernel(
            "gathered", own.gathered, 4, spread | {"out": np.zeros(1024, np.float32)}, product, BLOCK=256
        )
        yield _kernel("until_done", own.until_done, 12, numbers, product)
        work = {"x": normal("t", 2048), "out": np.zeros(2048, np.float32), "count": np.zeros(1, np.int32)}
        yield _kernel("tickets", own.tickets, 8, work, product, BLOCK=256)
        words = [
            "sum",
            "rows",
            "scan",
            "sort",
            "turn",
            "where",
            "compare",
            "divide",
            "cast",
            "random",
            "flip",
            "log",
        ]
        for what in words:
            tile = {"x": normal(what, 64, 64), "out": np.zeros((64, 64), np.float32)}
            yield _kernel("many_words", own.many_words, 4, tile, product, WHAT=what, M=16, N=64)


def _lessons() -> Iterator[Case]:
    n = lambda name, *shape: normal(name, *shape, dtype=np.float16)  # noqa: E731
    work: dict[str, Callable[[], tuple[Any, Run]]] = {
        "vector_add": lambda: vector_add.add(n("x", 30_000), n("y", 30_000)),
        "softmax": lambda: softmax.softmax(n("x", 100, 300)),
        "matmul": lambda: matmul.matmul(n("a", 200, 100), n("b", 100, 150), "leaky_relu"),
        "dropout": lambda: dropout.dropout(n("x", 10_000), 0.5, 3),
        "attention": lambda: attention.attention(*(n(k, 2, 128, 64) for k in "qkv"), causal=True),
    }
    for name, do in work.items():
        for product in (HOME, "ascend910b1", "ascend910a"):
            yield Case(f"tutorial/{name}/{product}", partial(_lesson, do), product)


def _lesson(do: Callable[[], tuple[Any, Run]]) -> Result:
    out, *_, run = do()
    return {"out": np.asarray(out)}, run.launches


def all_cases() -> dict[str, Case]:
    """Every case by its name."""
    makers = (_operators, _modes, _loops, _plain, _mixed, _data, _lessons)
    out: dict[str, Case] = {}
    for make in makers:
        for case in make():
            assert case.name not in out, case.name
            out[case.name] = case
    return out
