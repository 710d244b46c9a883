"""Names that Triton's own test suites use beside the language: kernels from other text, knobs, hooks, types by name."""

from __future__ import annotations

import importlib
import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, UsageError
from ascendtile.simulator.precision import dtypes as ty

pytestmark = pytest.mark.usefixtures("shim")


def combined(out_ptr: Any, x_ptr: Any, y_ptr: Any) -> None:
    tl.store(out_ptr, tl.load(x_ptr) + tl.load(y_ptr))


@pytest.fixture
def template() -> Any:
    import triton

    return triton.JITFunction(combined)


def _with(kernel: Any, operator: str) -> None:
    kernel._unsafe_update_src(kernel.src.replace(") + tl", f") {operator} tl"))


def test_a_kernel_is_that_of_its_new_source(template: Any) -> None:
    x, y, out = (np.full(1, n, np.float32) for n in (6, 3, 0))
    text = template.src
    for operator, result in (("+", 9), ("/", 2), ("-", 3)):
        template._unsafe_update_src(text)
        _with(template, operator)
        template[(1,)](out, x, y)
        assert out.tolist() == [result]
        assert f") {operator} tl.load" in template.src
    template._unsafe_update_src(text.replace("+", "@"))
    line = combined.__code__.co_firstlineno + 1
    with pytest.raises(CompileError, match=rf"test_names_of_suites.py:{line}(.|\n)*load\(x_ptr\) @ tl"):
        template[(1,)](out, x, y)


def test_the_key_of_a_kernel_changes_with_what_it_does(template: Any) -> None:
    text, keys = template.src, []
    for operator in "+-+":
        template._unsafe_update_src(text)
        _with(template, operator)
        keys.append(template.cache_key)
    assert keys[0] == keys[2] != keys[1]


def test_the_key_of_a_kernel_is_that_of_its_statements_whatever_their_layout(template: Any) -> None:
    text, key = template.src, template.cache_key
    for other in (text.replace("(out_ptr, ", "(  out_ptr,\n        "), text.replace("\n", "  # a note\n", 1)):
        template._unsafe_update_src(other)
        assert template.src != text
        assert template.cache_key == key
    template._unsafe_update_src("\n".join(" " * 4 + line for line in text.splitlines()))
    assert template.cache_key == key


def test_a_hook_sees_the_arguments_of_each_launch(template: Any) -> None:
    seen = []
    template.add_pre_run_hook(lambda *args, **kwargs: seen.append((len(args), sorted(kwargs))))
    one = np.ones(1, np.float32)
    template[(1,)](one, one, y_ptr=one)
    assert seen == [(2, ["y_ptr"])]


def test_a_result_that_must_be_used(tmp_path: Any) -> None:
    path = tmp_path / "unused.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.must_use_result('Keep it.')\n@triton.jit\n"
        "def cube(x):\n    return x * x * x\n\n\n@triton.jit\ndef kernel(out):\n    cube(tl.load(out))\n"
    )
    spec = importlib.util.spec_from_file_location("unused", path)
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(CompileError, match=r"The result of cube is not being used\. Keep it\."):
        module.kernel[(1,)](np.ones(1, np.float32))


def test_knobs_live_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import triton

    knobs = triton.knobs
    monkeypatch.delenv("TRITON_PRINT_AUTOTUNING", raising=False)
    monkeypatch.setenv("TRITON_HOME", "/somewhere")
    assert knobs.cache.dir == "/somewhere/.triton/cache"
    with knobs.autotuning.scope(), knobs.cache.scope(), knobs.runtime.scope():
        knobs.autotuning.print, knobs.cache.dir, knobs.runtime.jit_cache_hook = True, "/there", print
        assert (os.environ["TRITON_PRINT_AUTOTUNING"], knobs.autotuning.print) == ("1", True)
        assert knobs.cache.knobs["dir"] == "/there"
        assert knobs.runtime.copy().jit_cache_hook is print
        assert knobs.cache.reset().home_dir != "/somewhere"
    assert "TRITON_PRINT_AUTOTUNING" not in os.environ
    assert (knobs.autotuning.print, knobs.runtime.jit_cache_hook) == (False, None)
    assert knobs.cache.dir == "/somewhere/.triton/cache"


def test_types_by_name() -> None:
    import triton

    tl = triton.language
    named = tl.dtype.SINT_TYPES + tl.dtype.UINT_TYPES + tl.dtype.FP_TYPES + tl.dtype.OTHER_TYPES
    assert {tl.dtype(name) for name in named} == set(ty.EVERY.values())
    assert tl.dtype.STANDARD_FP_TYPES == ["fp16", "bf16", "fp32", "fp64"]
    for t in ty.EVERY.values():
        assert eval(repr(t), {"triton": triton}) is t
        assert tl.str_to_ty(triton.runtime.jit.type_canonicalisation_dict[t.long_name]) is t
    assert tl.str_to_ty("*kfp16") == tl.pointer_type(tl.float16, const=True)
    assert tl.str_to_ty("constexpr", 3) == tl.constexpr_type(3)
    with pytest.raises(KeyError, match="i9"):
        tl.str_to_ty("i9")


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
)
def test_mantissa_and_bias_are_those_of_the_format(name: str) -> None:
    from triton.runtime.jit import type_canonicalisation_dict

    t, limits = ty.EVERY[type_canonicalisation_dict[name]], ml_dtypes.finfo(name)
    assert (t.fp_mantissa_width, t.exponent_bias) == (limits.nmant, 1 - limits.minexp)


def test_a_reinterpreted_tensor_is_read_as_its_new_type() -> None:
    from triton.runtime.jit import TensorWrapper

    from ascendtile.simulator.interpreter.tensors import as_array

    x = np.array([-1, 2], np.int16)
    found = as_array("x", TensorWrapper(x, ty.uint16))
    assert found is not None
    assert found.tolist() == [65535, 2]
    assert np.shares_memory(found, x)
    for t, message in (
        (ty.int8, "elements of 2 bytes"),
        (ty.float8e5, "cannot be read as fp8e5, which has 1"),
    ):
        with pytest.raises(UsageError, match=message):
            as_array("x", TensorWrapper(x, t))


def test_gather_along_rows() -> None:
    from triton.language.extra.kernels import gather_2d_simd

    generator = np.random.default_rng(0)
    src = generator.standard_normal((6, 16), np.float32)
    index = generator.integers(0, 16, (6, 8), np.int32)
    out = np.zeros((6, 8), np.float32)
    gather_2d_simd[(2,)](src, index, out, *src.shape, 8, XBLOCK=4, XBLOCK_SUB=2)
    np.testing.assert_array_equal(out, np.take_along_axis(src, index, 1))


def test_allocators_and_errors_are_there() -> None:
    import triton
    from triton.compiler.errors import MLIRCompilationError
    from triton.runtime._allocation import NullAllocator

    triton.set_allocator(NullAllocator())
    assert issubclass(CompileError, MLIRCompilationError)
    with pytest.raises(UsageError, match="no allocator is set"):
        NullAllocator()(8, 8, None)
