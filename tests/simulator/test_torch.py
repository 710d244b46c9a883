"""torch CPU tensors are read and written in place, whatever their layout. torch itself is never needed."""

from __future__ import annotations

from typing import Any

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

torch: Any = pytest.importorskip("torch", reason="torch is an optional extra")
pytestmark = pytest.mark.extra("torch")


@pytest.fixture(autouse=True)
def values_only() -> Any:
    with sim.device(time=False):
        yield


@sim.jit
def double(x, out, n, step, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i * step, mask=i < n)
    tl.store(out + i * step, v + v, mask=i < n)


@pytest.mark.parametrize(
    "kind", ["float16", "bfloat16", "float32", "int8", "int32", "int64", "uint8", "bool"]
)
def test_tensors_of_every_type(kind: str) -> None:
    x = torch.arange(7).to(getattr(torch, kind))
    out = torch.zeros(7, dtype=x.dtype)
    double[(2,)](x, out, 7, 1, B=4)
    assert torch.equal(out, x + x)


@pytest.mark.parametrize("kind", ["bfloat16", "float32"])
def test_views(kind: str) -> None:
    base = torch.arange(20, dtype=getattr(torch, kind))
    part, every_third, column = base[4:9], base[::3], base.view(4, 5).T[2]
    for view, step in ((part, 1), (every_third, 3), (column, 5)):
        want, before = view * 2, base.clone()
        double[(1,)](view, view, len(view), step, B=8)
        assert torch.equal(view, want)
        assert int((base != before).sum()) == int((want != want / 2).sum())


def test_gradients_parameters_and_numbers_without_axes() -> None:
    x = torch.nn.Parameter(torch.ones(3))
    out = torch.zeros(3, requires_grad=True)
    double[(1,)](x, out, 3, 1, B=4)
    assert out.tolist() == [2] * 3
    single = torch.tensor(4.0)
    double[(1,)](single, single, 1, 1, B=4)
    assert single.item() == 8


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: torch.zeros(3, device="meta"), "only CPU tensors"),
        (lambda: torch.zeros(3, dtype=torch.complex64), "arrays of complex64 cannot be"),
        (lambda: torch.zeros(3, dtype=torch.float64), "'x' is fp64, which"),
        (lambda: torch.zeros(3).to_sparse(), "cannot be read"),
    ],
    ids=["meta", "complex", "double", "sparse"],
)
def test_tensors_that_cannot_be_used(make: Any, says: str) -> None:
    with pytest.raises(sim.UsageError, match=says):
        double[(1,)](make(), torch.zeros(3), 3, 1, B=4)


@pytest.mark.parametrize(
    ("left", "words"), [(0, "was freed: it has 0 bytes"), (8, "made smaller: it has 8 bytes")]
)
def test_a_tensor_whose_storage_is_gone_is_refused(left: int, words: str) -> None:
    x = torch.ones(6)
    x.untyped_storage().resize_(left)
    with pytest.raises(sim.UsageError, match=f"{words}, shape .* needs 24"):
        double[(1,)](x, torch.ones(6), 6, 1, B=8)


def test_fp8_and_packed_fp4_are_read_in_place() -> None:
    x = torch.arange(4).to(torch.float8_e4m3fn)
    double[(1,)](x, x, 4, 1, B=4)
    assert x.float().tolist() == [0, 2, 4, 6]
    packed = torch.arange(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    double[(1,)](packed, packed, 4, 1, B=4)
    assert packed.view(torch.uint8).tolist() == [0, 2, 4, 6]
