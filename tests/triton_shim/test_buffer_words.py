"""Kernels that say `triton.extension.buffer.language` run through the stand-ins."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim

SOURCE = """
    import triton
    import triton.language as tl
    import triton.extension.buffer.language as bl
    import triton.language.extra.cann.extension as al

    @triton.jit
    def double_twice(buffer, N: tl.constexpr):
        tensor = bl.to_tensor(buffer, writable=True)
        bl.to_buffer(tensor=tensor * 2.0, bind_buffer=buffer)

    @triton.jit
    def kernel(x_ptr, y_ptr, N: tl.constexpr, WHERE: tl.constexpr):
        offsets = tl.arange(0, N)
        kept = bl.alloc(tl.float32, [N], al.ascend_address_space.L1 if WHERE == "L1" else al.ascend_address_space.UB)
        x = tl.zeros((N,), tl.float32)
        with al.scope(core_mode="vector"):
            for iteration in range(3):
                if iteration == 0:
                    x = tl.load(x_ptr + offsets, mask=offsets < N)
                    bl.to_buffer(tensor=x, bind_buffer=kept)
                else:
                    x = kept.to_tensor()
                double_twice(kept, N)
        tl.store(y_ptr + offsets, bl.to_tensor(kept) + x)
"""


@pytest.fixture(scope="module")
def kernel(shim: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = Path(tmp_path_factory.mktemp("buffers")) / "buffer_kernel.py"
    path.write_text(textwrap.dedent(SOURCE))
    spec = importlib.util.spec_from_file_location("buffer_kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("where", ["UB", "L1"])
def test_a_buffer_in_a_scope_a_loop_a_branch_and_a_helper(kernel: Any, where: str) -> None:
    """Three doublings, and what was read before the last one."""
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    with sim.device("ascend910b3"):
        run = kernel[(1,)](x, y, N=32, WHERE=where)
    np.testing.assert_array_equal(y, 8 * x + 4 * x)
    assert [v.name for v in run.launches[0].buffers[where].peak if v.name == "kept"] == ["kept"]
