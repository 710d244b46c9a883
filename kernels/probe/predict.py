"""What our units give for an experiment under a configuration, without a launch: the same functions that a launch calls.

predict(experiment, numerics_of(choices))["out"]      # bits, as the result file of a board has them
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...simulator.precision.dtypes import DType, bfloat16, float16, float32, int32
from ...simulator.units import vector
from ...simulator.units.cube import mmad
from ...simulator.units.vector import Numerics
from .experiment import Experiment, Words, words_of

_TYPES: dict[str, DType] = {"fp32": float32, "fp16": float16, "bf16": bfloat16, "int32": int32}
_ADD, _DIVIDE = vector.in_one_pass("add", np.add), vector.in_one_pass("div", np.divide)
_ROOT = vector.rounded(np.sqrt)
_COARSE = {
    "coarse_reciprocal": vector.estimate(lambda x: 1 / x),
    "coarse_rsqrt": vector.estimate(lambda x: 1 / np.sqrt(x)),
}


def predict(experiment: Experiment, numerics: Numerics) -> Words:
    """Bits of the output of an experiment."""
    compute = _products if experiment.kernel == "dot_chain" else _KERNELS[experiment.kernel]
    with np.errstate(all="ignore"):
        values = compute(experiment, numerics)
    return words_of(values, experiment.output.dtype).reshape(experiment.output.words.shape)


def _products(experiment: Experiment, numerics: Numerics) -> np.ndarray:
    a, b = (x.values for x in experiment.inputs.values())
    rules = numerics.cube.with_switches({"operand": experiment.operand, **_accumulator(experiment, numerics)})
    on_grid = experiment.operand != "hf32"
    acc: np.ndarray = np.zeros(experiment.output.words.shape, np.float32)
    for step in range(a.shape[1]):
        acc = mmad(a[:, step], b[:, step], acc, rules=rules, on_grid=on_grid)
    return acc


def _accumulator(experiment: Experiment, numerics: Numerics) -> dict[str, Any]:
    """FP16 products alone accumulate in FP16."""
    return {"accumulator": numerics.cube.accumulator if experiment.operand == "fp16" else None}


def _stored_products(experiment: Experiment, numerics: Numerics) -> np.ndarray:
    """Sums that every accumulator of 24 bits holds, cast on their way out."""
    a, b = (x.values for x in experiment.inputs.values())
    rules = numerics.cube.with_switches({"operand": experiment.operand, **_accumulator(experiment, numerics)})
    acc = mmad(a[None], b[None], rules=rules, on_grid=True)
    return vector.cast(acc, float32, _TYPES[experiment.output.dtype], numerics)


def _operands(experiment: Experiment, numerics: Numerics) -> list[np.ndarray]:
    """Values as the Vector unit reads them, with an axis of one program."""
    return [
        vector.flushed(np.atleast_2d(x.values), _TYPES[x.dtype], numerics) for x in experiment.inputs.values()
    ]


def _elementwise(compute: Callable[..., np.ndarray]) -> Callable[[Experiment, Numerics], np.ndarray]:
    """Of a function of the type of its result, the numerics and the operands."""

    def apply(experiment: Experiment, numerics: Numerics) -> np.ndarray:
        return compute(_TYPES[experiment.output.dtype], numerics, *_operands(experiment, numerics))

    return apply


def _cast(mode: str) -> Callable[[Experiment, Numerics], np.ndarray]:
    """Casts look at operands as they are."""

    def apply(experiment: Experiment, numerics: Numerics) -> np.ndarray:
        (x,) = experiment.inputs.values()
        source, target = _TYPES[x.dtype], _TYPES[experiment.output.dtype]
        return vector.cast(np.atleast_2d(x.values), source, target, numerics, mode)

    return apply


def _row_sum(experiment: Experiment, numerics: Numerics) -> np.ndarray:
    (x,) = _operands(experiment, numerics)
    return vector.reduce("sum", x, 0, float32, numerics)


def _atomic(experiment: Experiment, numerics: Numerics) -> np.ndarray:
    """Added in memory, in the type of memory: no rule of the units takes part."""
    (x,) = experiment.inputs.values()
    return np.asarray(experiment.output.values + x.values)


_KERNELS: dict[str, Callable[[Experiment, Numerics], np.ndarray]] = {
    "dot_store": _stored_products,
    "cast": _cast(""),
    "cast_toward_zero": _cast("TRUNC"),
    "add": _elementwise(_ADD),
    "divide": _elementwise(_DIVIDE),
    "whole_quotient": _elementwise(vector.rounded(vector.truncated_division)),
    "fused": _elementwise(lambda t, numerics, x, y, z: vector.fma(x, y, z, t, numerics)),
    "root": _elementwise(_ROOT),
    "exponential": _elementwise(vector.exp),
    "logarithm": _elementwise(vector.log),
    **{name: _elementwise(compute) for name, compute in _COARSE.items()},
    "row_sum": _row_sum,
    "add_atomically": _atomic,
}
