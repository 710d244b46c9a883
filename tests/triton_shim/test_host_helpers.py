"""`triton._internal_testing` and `triton.tools.mxfp`: helpers of Triton's tests on the host."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="torch is an optional extra")
pytestmark = [pytest.mark.extra("torch"), pytest.mark.usefixtures("shim")]


@pytest.mark.parametrize("name", ["int8", "uint16", "float16", "bfloat16", "bool"])
def test_arrays_come_back_from_tensors(name: str) -> None:
    import triton._internal_testing as helpers

    x = helpers.numpy_random((3, 5), name)
    np.testing.assert_array_equal(x, helpers.numpy_random((3, 5), name))
    assert name in ("bool", "bfloat16", "float16") or x.all()
    tensor = helpers.to_triton(x, "npu", name)
    assert name == "bool" or helpers.torch_dtype_name(tensor.dtype) == name
    np.testing.assert_array_equal(helpers.to_numpy(tensor), x)


def test_limits_of_random_integers() -> None:
    from triton._internal_testing import numpy_random

    x = numpy_random(1000, "int32", low=-2, high=3)
    assert set(x.tolist()) == {-2, -1, 1, 2}


def test_it_is_none_of_the_gpus() -> None:
    import triton._internal_testing as helpers

    asked = [n for n in dir(helpers) if n.startswith("is_")]
    assert "is_cuda" in asked
    assert not any(getattr(helpers, n)() for n in asked)
    assert helpers.get_current_target().backend == "npu"
    assert not helpers.supports_tma()


def test_fresh_knobs_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton._internal_testing import _fresh_knobs_impl

    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    fresh, reset = _fresh_knobs_impl()
    knobs = fresh()
    assert not knobs.compilation.always_compile
    reset()
    assert knobs.compilation.always_compile


def test_fp4_rounds_as_its_format() -> None:
    from triton.tools.mxfp import MXFP4Tensor

    x = np.concatenate((np.linspace(-7, 7, 449), [np.inf, -np.inf])).astype(np.float32)
    got = MXFP4Tensor(torch.from_numpy(x)).to(torch.float32).numpy()
    np.testing.assert_array_equal(got, x.astype(ml_dtypes.float4_e2m1fn).astype(np.float32))


@pytest.mark.parametrize(("shape", "dim"), [((7, 5), 0), ((7, 5), 1), ((4,), 0)])
def test_packed_codes_come_back(shape: tuple[int, ...], dim: int) -> None:
    from triton.tools.mxfp import MXFP4Tensor

    x = MXFP4Tensor(size=shape).random()
    packed = x.to_packed_tensor(dim)
    assert packed.shape[dim] == (shape[dim] + 1) // 2
    assert torch.equal(x.unpack_packed_tensor(packed, dim, shape), x.data)
    with pytest.raises(AssertionError, match="dim is 0"):
        x.to_packed_tensor(len(shape))


def test_scales_are_the_powers_of_two_at_or_below() -> None:
    from triton.tools.mxfp import MXScaleTensor

    for x, code in itertools.chain(
        ((2.0**e * m, e + 127) for e in (-126, -1, 0, 127) for m in (1.0, 1.999)),
        ((x, 255) for x in (0.0, -1.0, float("inf"), float("nan"))),
    ):
        assert MXScaleTensor(torch.tensor([x])).data.tolist() == [code]
    drawn = MXScaleTensor(size=200).random(low=1.0, high=4.0)
    assert set(drawn.to(torch.float32).tolist()) == {1, 2, 4}
