"""What the Vector unit is asked: casts, subnormal values, overflow, sums, and how near its functions are."""

from __future__ import annotations

import numpy as np

from .assumed import assumed_vectors
from .experiment import BoardTensor, Experiment, empty, of_words, operand

CAST_ELEMENTS, MEASURED = 128, 2048
SUM_LENGTHS = (512, 1024)
_MOST = float(np.finfo(np.float32).max)


def _padded(values: list[float], count: int = CAST_ELEMENTS) -> np.ndarray:
    assert len(values) <= count
    return np.array([*values, *[1.0] * (count - len(values))], np.float32)


def _cast_values(places: int, largest: float) -> list[float]:
    """Around the grid of a type with `places` stored bits, at its end and below FP32's smallest normal number."""
    unit = 2.0**-places
    near = [1 + (n + f) * unit for n in (0, 1, 2) for f in (0.0, 0.25, 0.5, 0.5 + 2.0**-6, 0.75)]
    near += [2 - unit / 2, 2 - unit / 4]
    tops = [
        largest,
        largest * (1 + unit / 4),
        largest * (1 + unit / 2),
        largest * (1 + unit * 0.75),
        float("inf"),
    ]
    ends = [x for x in tops if x <= _MOST or x == float("inf")]
    return [s * x for x in (*near, *ends) for s in (1.0, -1.0)] + [float("nan")]


def cast_bf16() -> Experiment:
    values = _cast_values(7, 255 * 2.0**120)
    words = [v.word for v in assumed_vectors() if v.experiment == "cast_bf16"]
    words += [0x00400000, 0x00010000, 0x80018000, 0x00800000, 0x807FFFFF]
    held = np.array([*np.array(values, np.float32).view(np.uint32), *words], np.uint32)
    held = np.concatenate([held, np.full(CAST_ELEMENTS - len(held), 0x3F800000, np.uint32)])
    return _unary("cast_bf16", "cast", of_words(held, "fp32"), "bf16")


def cast_fp16(toward_zero: bool = False) -> Experiment:
    values = [*_cast_values(10, 65504.0), 65535.0, 65536.0, 70000.0, -70000.0, 1e30, -1e30]
    values += [2.0**-24, 2.0**-25, 3 * 2.0**-25, 1023 * 2.0**-24, 2.0**-14, -(2.0**-20), 2.0**-15 + 2.0**-25]
    assumed = [v.word for v in assumed_vectors() if v.experiment == "cast_toward_zero_fp16"]
    values += map(float, np.array(assumed, np.uint32).view(np.float32))
    kernel = "cast_toward_zero" if toward_zero else "cast"
    return _unary(f"{kernel}_fp16", kernel, operand(_padded(values), "fp32"), "fp16")


def cast_int32() -> Experiment:
    values = [
        0.5,
        1.5,
        -1.5,
        2.0**31,
        -(2.0**31),
        2.0**31 + 512,
        2.0**32 + 512,
        -(2.0**31) - 512,
        1e10,
        -1e10,
    ]
    return _unary("cast_int32", "cast", operand(_padded(values, 16), "fp32"), "int32")


def _unary(name: str, kernel: str, x: BoardTensor, dtype: str) -> Experiment:
    n = x.words.size
    return Experiment(name, kernel, {"x": x}, {"out": empty((n,), dtype)}, {"N": n})


def _binary(name: str, kernel: str, x: BoardTensor, y: BoardTensor) -> Experiment:
    n = x.words.size
    return Experiment(name, kernel, {"x": x, "y": y}, {"out": empty((n,), x.dtype)}, {"N": n})


# The smallest normal number, and half of the end.
_TINY = {"fp32": (2.0**-126, 2.0**127), "fp16": (2.0**-14, 2.0**15)}


def add_ends(dtype: str) -> Experiment:
    """Sums whose operands or results are subnormal, and sums beyond the range."""
    least, great = _TINY[dtype]
    pairs = [
        (1.5 * least, -least), (0.5 * least, 0.75 * least), (0.5 * least, least), (0.25 * least, -0.5 * least),
        (least, least), (great, great), (-great, -great), (np.inf, 1), (-np.inf, 1), (np.inf, -np.inf), (np.nan, 1),
        (great, 1),
    ]  # fmt: skip
    x, y = (_padded([float(p[i]) for p in pairs], 16) for i in (0, 1))
    return _binary(f"add_ends_{dtype}", "add", operand(x, dtype), operand(y, dtype))


def fused_fp32() -> Experiment:
    """Where the product is rounded, the sum cancels what it lost."""
    random = np.random.default_rng(3)
    x, y = (random.uniform(1, 2, 128).astype(np.float32) for _ in range(2))
    z = -(x * y)
    given = {n: operand(v, "fp32") for n, v in (("x", x), ("y", y), ("z", z))}
    return Experiment("fused_fp32", "fused", given, {"out": empty((128,), "fp32")}, {"N": 128})


def sums_fp32(length: int) -> Experiment:
    """Rows of which no two orders of additions that are asked about give the same sums."""
    random = np.random.default_rng(length)
    x = random.integers(1, 64, (8, length)) * 2.0 ** random.integers(-12, 13, (8, length))
    x *= random.choice([1.0, -1.0], x.shape)
    x[0] = 1
    x[0, 0] = 2.0**24
    out = {"out": empty((8,), "fp32")}
    return Experiment(f"row_sums_{length}", "row_sum", {"x": operand(x, "fp32")}, out, {"N": length}, (8,))


def atomic_fp32() -> Experiment:
    """What a sum in memory is rounded to: ties and quarters of the last place."""
    held = np.array([2.0**24, 2.0**24 + 2, -(2.0**24), 2.0**23 + 1] * 16, np.float32)
    x = np.repeat(np.array([1, 3, -1, 0.75, 1.5, -3, 0.5, 0.25], np.float32), 8)
    out = {"out": operand(held, "fp32")}
    return Experiment("atomic_fp32", "add_atomically", {"x": operand(x, "fp32")}, out, {"N": 64})


def coarse(kernel: str) -> Experiment:
    random = np.random.default_rng(9)
    x = np.concatenate([[1, 2, 3, 4, 128, 1.2017815, 3.9551935], random.uniform(0.1, 100, 249)])
    return _unary(f"{kernel}_fp32", kernel, operand(x.astype(np.float32), "fp32"), "fp32")


def measured(kernel: str) -> Experiment:
    """Arguments of a function all over its usual range."""
    random = np.random.default_rng(11)
    low, high = {"exponential": (-80, 80), "root": (1e-3, 1e6)}.get(kernel, (1e-6, 1e6))
    spread = random.uniform(low, high, MEASURED // 2), random.uniform(0.5, 2, MEASURED // 2)
    x = operand(np.concatenate(spread).astype(np.float32), "fp32")
    if kernel != "divide":
        return _unary(f"{kernel}_fp32", kernel, x, "fp32")
    y = operand(random.uniform(0.5, 1000, MEASURED).astype(np.float32), "fp32")
    return _binary("divide_fp32", kernel, x, y)


def whole_quotients() -> Experiment:
    """Integers of up to 31 bits, among them quotients that FP32 would round."""
    random = np.random.default_rng(13)
    y = random.integers(1, 2**12, MEASURED)
    q = random.integers(1, 2**18, MEASURED)
    x = q * y - random.integers(0, 2, MEASURED)
    return _binary("whole_quotient_int32", "whole_quotient", operand(x, "int32"), operand(y, "int32"))
