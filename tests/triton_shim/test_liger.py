"""The kernels of the liger-kernel package and the torch functions around them, unmodified, against float64.

Each function runs forward and backward on CPU tensors; outputs and gradients are compared with torch's autograd in float64
on the same rounded inputs. A tolerance has a part of the element and a part of the largest element.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

import ascendtile.simulator as sim
from ascendtile.simulator.observers import watch

torch: Any = pytest.importorskip("torch", reason="torch is an optional extra")
pytest.importorskip("packaging", reason="liger-kernel needs it")
pytestmark = pytest.mark.extra("torch")
if find_spec("liger_kernel") is None:
    pytest.skip("liger-kernel is not here: pip install --no-deps liger-kernel", allow_module_level=True)

CASES: dict[str, Any] = import_module(".liger_cases", __package__).CASES
# Of the element, and of the largest element of its tensor.
TOLERANCE = {"float32": (2e-5, 4e-6), "float16": (4e-3, 2e-3), "bfloat16": (3e-2, 1.6e-2)}


def leaves(tensors: dict[str, Any], dtype: Any) -> dict[str, Any]:
    return {n: x.detach().clone().to(dtype).requires_grad_() for n, x in tensors.items()}


def as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("kind", list(TOLERANCE))
@pytest.mark.parametrize("name", list(CASES))
def test_liger(liger: Any, name: str, kind: str) -> None:
    if name == "dyt" and "_ascend" not in liger.LigerDyTFunction.__module__:
        pytest.skip("Liger's default DyT knows the number of cores of GPUs only")
    dtype = getattr(torch, kind)
    generator = torch.Generator().manual_seed(7)
    case = CASES[name](liger, generator)
    given = leaves(case.tensors, dtype)
    exact = leaves({n: x.to(dtype) for n, x in case.tensors.items()}, torch.float64)
    runs: list[sim.Run] = []
    with watch(runs.append):
        got = as_tuple(case.liger(**{n: x.clone() for n, x in given.items()}))
        seeds = [torch.randn(x.shape, generator=generator).to(x.dtype) for x in got]
        torch.autograd.backward(got, [x.clone() for x in seeds])  # some work in place
    want = as_tuple(case.reference(**exact))
    torch.autograd.backward(want, [s.double() for s in seeds])
    assert runs
    assert all(run.cycles > 0 for run in runs)
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        compare(f"output {i}", a, b, kind)
    for n, x in given.items():
        compare(f"gradient of {n}", x.grad, exact[n].grad, kind)


def compare(what: str, got: Any, want: Any, kind: str) -> None:
    relative, absolute = TOLERANCE[kind]
    got, want = got.detach().double(), want.detach()
    limit = relative * want.abs() + absolute * want.abs().max()
    worst = ((got - want).abs() / limit).max().item()
    assert worst <= 1, f"{what}: {worst:.3g} of the tolerance"
