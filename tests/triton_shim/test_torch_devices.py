"""torch on the simulated device: who says "npu" gets the CPU, and events read the simulated time."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator import triton_shim

torch: Any = pytest.importorskip("torch", reason="torch is an optional extra")
pytestmark = [pytest.mark.extra("torch"), pytest.mark.usefixtures("shim")]


@sim.jit
def double(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def test_factories_and_moves() -> None:
    x = torch.zeros(3, device="npu")
    made = (
        x,
        torch.empty(2, device="npu:0"),
        torch.ones(2, device=torch.device("npu", 0)),
        torch.zeros(2).to("npu"),
        torch.zeros(2).to(device="npu:0", dtype=torch.float16),
        torch.zeros(2).npu(),
        x.new_zeros(2, device="npu"),
        torch.zeros(2, pin_memory=True),
        torch.arange(3, device=x.device),
        torch.nn.Linear(2, 2, device="npu").to("npu").npu().weight,
    )
    assert {y.device.type for y in made} == {"cpu"}
    assert x.device == torch.device("npu:0")
    assert isinstance(x.device, torch.device)
    assert x.is_npu
    assert torch.randn(2, generator=torch.Generator(device="npu").manual_seed(0), device="npu").shape == (2,)


def test_a_seed_for_the_device_is_that_of_the_cpu_also_where_cuda_means_it() -> None:
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.npu.manual_seed_all(3)
    assert torch.equal(torch.rand(2), wanted)
    triton_shim.uninstall()
    try:
        with triton_shim.installed(("npu", "cuda")):
            torch.manual_seed(3)  # which seeds every device
            assert torch.equal(torch.rand(2), wanted)
    finally:
        triton_shim.install()  # as the other tests have it


def test_threads_know_the_device_too() -> None:
    import threading
    from concurrent.futures import ThreadPoolExecutor

    class Own(threading.Thread):
        def run(self) -> None:
            self.kind = torch.ones(2, device="npu").device.type

    own = Own()
    own.start()
    own.join()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: torch.zeros(2, device="npu").device.type).result() == own.kind == "cpu"


def test_blocks_and_defaults() -> None:
    with torch.device("npu"):
        assert torch.zeros(2).device.type == "cpu"
    with torch.autocast("npu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    torch.set_default_device("npu")
    assert torch.zeros(2).device.type == "cpu"
    torch.set_default_device(None)


def test_the_device_that_torch_npu_describes() -> None:
    import torch_npu

    assert torch_npu.npu is torch.npu
    with sim.device("ascend310p") as device:
        properties = torch.npu.get_device_properties(0)
        assert properties.vector_core_num == device.product.vector_cores
        assert torch.npu.get_device_name(0) == "Ascend310P3" or "310P" in torch.npu.get_device_name()
    assert (torch.npu.is_available(), torch.npu.device_count(), torch.npu.current_device()) == (True, 1, 0)
    torch.npu.synchronize()
    with torch.npu.stream(torch.npu.Stream()):
        torch.npu.current_stream().synchronize()


@pytest.mark.parametrize("name", ["memory_allocated", "NPUGraph"])
def test_what_is_not_modelled_is_missing(name: str) -> None:
    with pytest.raises(AttributeError, match=f"torch.npu has no '{name}' in ascendtile"):
        getattr(torch.npu, name)


def test_events_read_the_simulated_time() -> None:
    x = torch.ones(1000, device="npu")
    out = torch.empty_like(x)
    start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(sim.UsageError, match="needs both events recorded"):
        start.elapsed_time(end)
    start.record()
    runs = [double[(2,)](x, out, 1000, B=512) for _ in range(3)]
    end.record()
    assert start.elapsed_time(end) == pytest.approx(sum(r.time_us for r in runs) / 1000)
    assert (out == 2).all()


UNDONE = """
import torch
from ascendtile.simulator import triton_shim

before = torch.device, torch.Generator, torch.load, torch.nn.Module.to, torch.cuda.is_available, torch.cuda.Event
with triton_shim.installed(("npu", "cuda")):
    assert torch.zeros(2).cuda().is_cuda and torch.cuda.is_available()
    assert torch.zeros(2, device="cuda").device.type == "cpu"
    torch.set_default_device("cuda")  # a mode of torch above ours
assert torch.zeros(1).device.type == "cpu"
torch.set_default_device(None)
after = torch.device, torch.Generator, torch.load, torch.nn.Module.to, torch.cuda.is_available, torch.cuda.Event
assert after == before and not hasattr(torch, "npu") and not hasattr(torch.Tensor, "npu")
assert not torch.zeros(2).is_cuda
try:
    torch.zeros(2, device="npu")
except RuntimeError:
    pass
else:
    raise AssertionError("npu is still rewritten")
"""


def test_everything_is_undone() -> None:
    subprocess.run([sys.executable, "-c", UNDONE], check=True)


def test_torch_is_imported_only_by_who_asks_for_it() -> None:
    script = (
        "import sys\nfrom ascendtile.simulator import triton_shim\ntriton_shim.install()\nimport triton\n"
        "assert 'torch' not in sys.modules\nimport torch_npu\nassert torch_npu.npu.is_available()\n"
        "import torch\nassert torch.npu is torch_npu.npu\nassert not hasattr(torch.__loader__, 'loaded')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_torch_that_was_there_before(shim: None) -> None:
    with triton_shim.installed():  # inside of another one: nothing changes
        assert torch.zeros(1, device="npu").device.type == "cpu"
    assert torch.zeros(1, device="npu").device.type == "cpu"


@pytest.mark.parametrize("check", [True, False])
def test_tensors_that_nobody_writes_are_marked_where_all_is_checked(check: bool) -> None:
    with sim.device(check=check):
        marked = torch.Tensor(2, 3), torch.Tensor(torch.Size([4])), torch.empty(5), torch.ones(2).new_empty(3)
        given = torch.Tensor([1, 2]), torch.Tensor(torch.ones(3)), torch.nn.Parameter(torch.ones(2))
    if check:
        assert all(x.isnan().all() for x in marked)
    assert not any(x.isnan().any() for x in given)


def test_a_launch_reads_its_tensors_past_the_modes_of_torch() -> None:
    """What a mode is asked takes time and, as torch does it, memory that stays."""
    from torch.overrides import TorchFunctionMode

    asked: list[str] = []

    class Counting(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(str(func))
            return func(*args, **(kwargs or {}))

    tensors = [torch.zeros(10, dtype=t) for t in (torch.float32, torch.bfloat16)]
    with Counting():
        for x in tensors:
            double[(10,)](x, x, 10, B=16)
    assert asked == []
