"""Tables of the operators' pages as data: products and their types, rows of checks, views of many layouts.

A page is a description of one operator: signature, checks in their order with their status codes, mathematics. Rows have the
number that they have in its table of checks, so that the name of a failing test says which row it is.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn

from ..calls import STORAGE, blank, refused, strided, tensor

F16, BF16, F32, F64, I32 = "float16", "bfloat16", "float32", "float64", "int32"
FLOATS = (F32, F16, BF16)
TRAINING, INFERENCE, OTHER = "ascend910a", "ascend310p", "ascend310b"
A2 = ("ascend910b1", "ascend910b2", "ascend910b3", "ascend910b4")
A3 = "ascend910c"
PRODUCTS = (TRAINING, INFERENCE, *A2, A3, OTHER)
FORMATS = {x.name.removeprefix("ACL_FORMAT_"): x for x in aclnn.aclFormat}
PRIVATE = ("NC1HWC0", "NC1HWC0_C04", "FRACTAL_Z", "FRACTAL_NZ", "NDC1HWC0", "FRACTAL_Z_3D")


@dataclass(frozen=True)
class Row:
    """One condition of a table of checks: its number, the arguments that fail it, the status, words of the message."""

    number: str
    change: dict[str, Any]
    status: int
    words: str


def row_names(rows):
    return [f"check {r.number}: {'+'.join(r.change)}-{k}" for k, r in enumerate(rows)]


def check_row(phase_one, good, row):
    """The condition gives its status and its words, in the name of the C function."""
    status, message = refused(phase_one, *{**good, **row.change}.values())
    assert status == row.status, message
    assert row.words in message, message
    assert message.startswith(phase_one.__name__.removesuffix("GetWorkspaceSize") + ": ")
    assert message.endswith("]")
    assert f"[{row.status} ACLNN_ERR_" in message


def check_order(phase_one, good, rows):
    """Of two conditions that fail at once, the earlier one of the table is told."""
    for first, second in itertools.combinations(rows, 2):
        if set(first.change).isdisjoint(second.change) and first.number != second.number:
            status, message = refused(phase_one, *{**good, **second.change, **first.change}.values())
            assert (status, first.words in message) == (first.status, True), (first, second, message)


def status_on(product, phase_one, arguments):
    """Status of phase 1 on a product, and the message."""
    with sim.device(product):
        status = phase_one(*arguments.values())[0]
        return status, aclnn.aclGetRecentErrMsg()


def typed(arguments, dtype):
    """The same call with every tensor in one type."""
    return {
        n: blank(t.shape, dtype, t.format) if isinstance(t, aclnn.aclTensor) else t
        for n, t in arguments.items()
    }


def stretched(shape, dtype=F16):
    """A tensor whose elements all share one place."""
    kind = blank((), dtype).acl_dtype
    memory = aclnn.DeviceMemory(8)
    rank = len(shape)
    return aclnn.aclCreateTensor(shape, rank, kind, [0] * rank, 0, FORMATS["ND"], [1], 1, memory)


def offset(values, dtype=None):
    """Contiguous, five elements into its storage."""
    values = np.asarray(values) if dtype is None else np.asarray(values).astype(STORAGE.get(dtype, dtype))
    flat = np.concatenate([np.full(5, -77), values.reshape(-1).astype(np.float64)]).astype(values.dtype)
    made = tensor(flat)
    return aclnn.aclCreateTensor(
        values.shape, values.ndim, made.acl_dtype, None, 5, FORMATS["ND"], flat.shape, 1, made.data
    )


def transposed(values, dtype=None):
    """The last two axes swapped in memory."""
    values = np.asarray(values) if dtype is None else np.asarray(values).astype(STORAGE.get(dtype, dtype))
    if values.ndim < 2:
        return strided(values)
    made = tensor(np.ascontiguousarray(values.swapaxes(-1, -2)))
    order = (*range(values.ndim - 2), values.ndim - 1, values.ndim - 2)
    strides = [made.strides[k] for k in order]
    return aclnn.aclCreateTensor(
        values.shape,
        values.ndim,
        made.acl_dtype,
        strides,
        0,
        FORMATS["ND"],
        made.shape,
        values.ndim,
        made.data,
    )


LAYOUTS = {"contiguous": tensor, "offset": offset, "strided": strided, "transposed": transposed}
layouts = pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
