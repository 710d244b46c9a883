"""Framework switches that end up as a cubeMathType, and what `tl.dot` may ask for.

    framework_mode("convolution", product)                     # 3 on a Cube with FP32, 1 on one without
    framework_mode("matmul", product, allow_hf32=True)         # 3, or 1
    dot_uses_hf32("hf32", ("fp32", "fp32", "fp32"))            # True

Source: Ascend/op-plugin, CalcuOpUtil::GetCubeMathType and op_plugin/utils/OpUtils.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..errors import UsageError
from .cube_math import CubeInputs, cube_inputs_of, format_names, mode_value

# (allow_hf32, FP32 may go down to FP16) -> cubeMathType
SWITCHES: Mapping[tuple[bool, bool], int] = MappingProxyType(
    {(False, False): 0, (False, True): 2, (True, False): 3, (True, True): 1}
)
ALLOW_HF32: Mapping[str, bool] = MappingProxyType(
    {"convolution": True, "matmul": False}
)  # torch.npu defaults
PRECISION_MODES: Mapping[str, bool] = MappingProxyType(  # ACL_PRECISION_MODE -> FP32 may go down to FP16
    {"must_keep_origin_dtype": False, "allow_fp32_to_fp16": True}
)
INPUT_PRECISION: Mapping[str, bool] = MappingProxyType({"ieee": False, "hf32": True, "tf32": True})


def framework_mode(
    operation: str,
    product: CubeInputs,
    allow_hf32: bool | None = None,
    precision_mode: str | None = None,
    cube_math_type: str | int | None = None,
) -> int:
    """cubeMathType that torch_npu passes for "convolution" or "matmul"; None leaves a switch at its default.

    precision_mode: ACL_PRECISION_MODE, by default FP32 may go down where the Cube does not take it. cube_math_type:
    torch_npu.npu.matmul.cube_math_type, which overrides the rest, for matmul only.
    """
    if operation not in ALLOW_HF32:
        raise UsageError(f"operation {operation!r}: known are {', '.join(ALLOW_HF32)}")
    if cube_math_type is not None and operation == "matmul":
        return mode_value(cube_math_type)
    if precision_mode is not None and precision_mode not in PRECISION_MODES:
        raise UsageError(f"precision_mode {precision_mode!r}: known are {', '.join(PRECISION_MODES)}")
    down = "fp32" not in cube_inputs_of(product)
    if precision_mode is not None:
        down = PRECISION_MODES[precision_mode]
    return SWITCHES[ALLOW_HF32[operation] if allow_hf32 is None else allow_hf32, down]


def dot_uses_hf32(input_precision: str, dtypes: Sequence[str]) -> bool:
    """Whether `tl.dot` rounds operands to HF32; dtypes: both operands and the result.

    Ignored unless all three are FP32; "tf32" means HF32 here (triton-lang/triton-ascend, semantic.py, compiler.py).
    """
    if input_precision not in INPUT_PRECISION:
        raise UsageError(f"input_precision {input_precision!r}: known are {', '.join(INPUT_PRECISION)}")
    return INPUT_PRECISION[input_precision] and set(format_names(dtypes)) == {"fp32"}
