"""Errors of a launch as Triton's callers know them: classes, `__cause__`, arguments that a device cannot take."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.triton_shim import kernel, runtime
from ascendtile.simulator.triton_shim.torch_npu import host_memory

torch = pytest.importorskip("torch")


@kernel.jit
def helper(x):
    return tl.expand_dims(x, 5)


@kernel.jit
def wrong(out, IN_HELPER: tl.constexpr):
    x = helper(tl.arange(0, 8)) if IN_HELPER else tl.program_id(7)
    tl.store(out, x)


@kernel.jit
def fill(out, value, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), value)


@pytest.mark.parametrize(
    ("in_helper", "words"), [(False, "must be 0, 1, or 2 but got 7"), (True, "invalid axis 5")]
)
def test_the_cause_of_an_error_in_the_source_is_what_is_said_without_place(
    in_helper: bool, words: str
) -> None:
    with pytest.raises(runtime.ERRORS["CompilationError"], match=words) as caught:
        wrong[(1,)](np.zeros(8, np.int32), IN_HELPER=in_helper)
    assert words in str(caught.value.__cause__)
    assert str(caught.value.__cause__) == caught.value.error_message
    assert "\n" not in str(caught.value.__cause__)


def test_what_the_vendors_compiler_refuses_is_of_its_class() -> None:
    with pytest.raises(runtime.ERRORS["MLIRCompilationError"], match="ub overflow"):
        fill[(1,)](np.zeros(1 << 20, np.float32), 1.0, B=1 << 20)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_an_integer_beyond_64_bits_is_an_overflow(value: int) -> None:
    with pytest.raises(OverflowError, match="does not fit into 64 bits") as caught:
        fill[(1,)](np.zeros(8, np.int64), value, B=8)
    assert isinstance(caught.value, sim.UsageError)


def test_a_tensor_that_was_asked_of_the_host_is_no_argument(shim: None) -> None:
    for made in (torch.zeros(8, device="cpu"), torch.zeros(8).to("cpu", torch.float16)):
        with pytest.raises(ValueError, match=r"'out' was made with device='cpu'.*\(cpu tensor\?\)"):
            fill[(1,)](made, 1.0, B=8)
        with pytest.raises(ValueError, match="cpu tensor"):
            fill[(1,)](out=made, value=1.0, B=8)


def test_copies_and_results_of_tensors_of_the_host_are_arguments(shim: None) -> None:
    host, device = torch.zeros(8, device="cpu"), torch.ones(8, device="npu")
    assert device.to("cpu") is device
    taken = (
        *(host.npu(), host.to("npu"), host.to(device.device), host.to(device), host.pin_memory(), host + 1),
        *(torch.zeros(8, device=device.device), torch.zeros(8, device=device.device.type), device),
        torch.zeros(8, device="cpu", pin_memory=True),
    )
    for x in taken:
        fill[(1,)](x, 3.0, B=8)
        assert (x == 3).all()
    assert not host.any(), "a copy on the device is memory of its own"
    assert not hasattr(device, host_memory._MARK)
