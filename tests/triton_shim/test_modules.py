"""What `install` puts in place and `uninstall` takes back, and what is said of names that are missing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as ours
from ascendtile.simulator import triton_shim

pytestmark = pytest.mark.usefixtures("shim")


def test_words_are_those_of_the_simulator() -> None:
    import triton
    import triton.language as tl
    from triton.language import constexpr, load
    from triton.language.extra.cann import extension

    assert tl is triton.language
    assert (tl.load, load, constexpr) == (ours.load, ours.load, ours.constexpr)
    assert extension.rsqrt_estimate.name == "rsqrt_estimate"
    assert set(ours.__all__) <= set(dir(tl))
    assert tl.insert_slice is extension.insert_slice, (
        "Triton-Ascend 3.2 shows the extension's words in triton.language"
    )
    assert tl.sort is ours.sort
    for name in ("atan2", "finitef", "isfinited", "sort", "flip", "cast"):
        assert getattr(extension, name).name == name


def test_imports_as_scripts_write_them() -> None:
    import triton.runtime.driver as by_module
    from triton.runtime import driver
    from triton.runtime.autotuner import Config
    from triton.runtime.driver import driver as by_name
    from triton.runtime.jit import JITFunction, KernelInterface
    from triton.runtime.libentry import libentry
    from triton.testing import Benchmark, do_bench, perf_report

    assert driver.active is by_module.active is by_name.active
    assert all((Config, JITFunction, KernelInterface, libentry, Benchmark, do_bench, perf_report))


def test_numbers() -> None:
    import triton

    assert [triton.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [triton.next_power_of_2(n) for n in (0, 1, 2, 3, 1000, 1024)] == [0, 1, 2, 4, 1024, 1024]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("from triton.language import frobnicate", ImportError),
        ("from triton.language.extra.libdevice import frobnicate", ImportError),
        ("import triton.frobnicate", ModuleNotFoundError),
        ("import triton.frobnicate.deeper", ModuleNotFoundError),
        ("import triton; triton.frobnicate", AttributeError),
    ],
)
def test_a_missing_name_is_named_with_the_way_out(statement: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"has no 'frobnicate' in ascendtile.*guard the import") as e:
        exec(statement, {})
    if error is ModuleNotFoundError:  # scripts compare it
        assert e.value.name == "triton.frobnicate"


def test_searches_find_nothing_without_an_error() -> None:
    import triton

    assert importlib.util.find_spec("triton") is not None
    assert importlib.util.find_spec("triton.frobnicate") is None
    assert not hasattr(triton, "frobnicate")


def test_a_missing_builtin_is_a_compile_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "missing_builtin.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x):\n    tl.frobnicate(x, 1)\n"
    )
    spec: Any = importlib.util.spec_from_file_location("missing_builtin", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(sim.UsageError) as e:
        module.k.time((1,), sim.shape(4, "float32"))
    assert f"{path}:7:5: tl has no builtin 'frobnicate'" in str(e.value)
    assert str(e.value).splitlines()[-1].strip() == "^"


def test_installing_twice_changes_nothing_and_uninstalling_takes_everything_back() -> None:
    script = (
        "import sys\n"
        "from ascendtile.simulator import triton_shim\n"
        "before = set(sys.modules), list(sys.meta_path)\n"
        "triton_shim.install()\n"
        "first = sys.modules['triton']\n"
        "triton_shim.install()\n"
        "assert sys.modules['triton'] is first\n"
        "with triton_shim.installed():\n"
        "    pass\n"
        "assert sys.modules['triton'] is first\n"
        "triton_shim.uninstall()\n"
        "triton_shim.uninstall()\n"
        "left = {n for n in set(sys.modules) - before[0] if n.partition('.')[0] in ('triton', 'torch_npu')}\n"
        "assert not left and sys.meta_path == before[1], left\n"
    )
    import subprocess

    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_real_triton_is_not_replaced_behind_its_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_shim, "_installed", None)
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))
    with pytest.raises(sim.UsageError, match=r"already imported.*before the first import"):
        triton_shim.install()


def test_unknown_devices_are_refused() -> None:
    with pytest.raises(sim.UsageError, match="a list of 'npu' and 'cuda', got 'cuda'"):
        triton_shim.install("cuda")


def test_the_driver_tells_the_product_in_force() -> None:
    from triton.runtime import driver

    for name in ("ascend910b3", "ascend310p"):
        with sim.device(name) as device:
            found = driver.active.utils.get_device_properties(0)
            assert found["num_aicore"] == device.product.cube_cores
            assert found["num_vectorcore"] == device.product.vector_cores
            assert found["max_shared_mem"] == device.product.ub_bytes
            assert driver.active.get_current_target().arch == device.product.text("product.soc_version")
