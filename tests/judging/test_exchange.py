"""Values between processes: they come back as they were, and what is none is refused."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from ascendtile.reports.judging.exchange import from_message, to_message
from ascendtile.simulator.errors import UsageError


def there_and_back(value):
    arrays = {}
    return from_message(json.loads(json.dumps(to_message(value, arrays))), arrays)


@pytest.mark.parametrize(
    "value",
    [None, True, 3, -(2**70), 0.1, float("inf"), "text", [1, [2.5, None]], (1, (2,)), {"a": [1], "b": {}}],
    ids=str,
)
def test_plain_values_come_back_equal(value):
    found = there_and_back(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4)], ids=str)
def test_arrays_come_back_with_their_bits(dtype, shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    found = there_and_back([x, x.T])
    for a, b in zip(found, (x, x.T), strict=True):
        assert (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())


def test_without_arrays_only_the_form_is_sent():
    message = to_message([np.ones((2, 3), np.float16), 5], None)
    found = from_message(json.loads(json.dumps(message)), {})
    assert found[0].shape == (2, 3)
    assert not found[0].any()
    assert found[1] == 5


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, {3}, lambda: 0], ids=["object", "key", "set", "function"]
)
def test_what_no_task_hands_over_is_refused(value):
    with pytest.raises(UsageError):
        to_message(value, {})


TENSOR = {"kind": "numpy", "dtype": "float32", "shape": [2], "strides": [1], "array": "x"}


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {},
        {"plain": []},
        {"plain": 1, "list": []},
        {"float": "one"},
        {"list": {}},
        {"unknown": 1},
        {"tensor": {}},
        {"tensor": {**TENSOR, "array": "y"}},
        {"tensor": {**TENSOR, "shape": [3]}},
        {"tensor": {**TENSOR, "shape": [-1]}},
        {"tensor": {**TENSOR, "shape": [True]}},
        {"tensor": {**TENSOR, "shape": [2, 2]}},
        {"tensor": {**TENSOR, "shape": [1 << 50]}},
        {"tensor": {**TENSOR, "dtype": "float64"}},
        {"tensor": {**TENSOR, "kind": "other"}},
        {"tensor": {**TENSOR, "dtype": "no_such", "array": None}},
    ],
    ids=str,
)
def test_messages_that_lie_are_refused(message):
    with pytest.raises(UsageError):
        from_message(message, {"x": np.zeros(2, np.float32)})


def test_a_nest_without_end_is_refused():
    message = {"plain": 1}
    for _ in range(100):
        message = {"list": [message]}
    with pytest.raises(UsageError):
        from_message(message, {})


@pytest.mark.extra("torch")
def test_tensors_keep_strides_and_bits():
    import torch

    x = torch.arange(24.0).reshape(2, 3, 4)
    views = [x, x.transpose(0, 2), x[:, 1:, ::2], x[0].expand(5, 3, 4), x.to(torch.bfloat16), x > 3, x[:0]]
    for found, wanted in zip(there_and_back(views), views, strict=True):
        assert found.dtype == wanted.dtype
        assert torch.equal(found, wanted)
        assert found.stride() == wanted.stride() or not wanted.numel()


@pytest.mark.extra("torch")
def test_parameters_dtypes_and_devices_come_as_what_they_hold():
    import torch

    weight = torch.nn.Linear(2, 3).weight
    found = there_and_back([weight, torch.float16, torch.device("cpu"), torch.Size([2])])
    assert torch.equal(found[0], weight)
    assert found[1:] == [torch.float16, "cpu", (2,)]


@pytest.mark.extra("torch")
def test_of_torchs_names_only_dtypes_are_looked_up():
    with pytest.raises(UsageError, match="no dtype 'load'"):
        from_message({"torch": "load"}, {})
