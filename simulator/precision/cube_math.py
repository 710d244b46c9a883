"""cubeMathType: which format the Cube computes in, for convolution backward and for matmul.

    resolve_convolution(product, ("fp32",) * 3, "USE_HF32").operand      # "hf32"
    resolve_matmul(("fp16", "int8"), ("fp32", "fp32"), 0).status         # 161002: that Cube has no FP32

A product counts only by what its Cube takes (figure dtypes.cube_inputs). The tables are those of the vendor's source,
hicann/ops-nn: conv/convolution_backward/op_api and matmul/common/op_host/op_api (matmul_util.cpp, cube_util.cpp); where
its documents differ from it, the source wins. Grades: D documented, I inferred, A assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from ..errors import UsageError
from .formats import get_format
from .splits import MOST_INT8_TERMS, SPLITS, Split

PARAM_INVALID = 161002  # ACLNN_ERR_PARAM_INVALID

MODES: Mapping[str, int] = MappingProxyType(
    {
        "KEEP_DTYPE": 0,
        "ALLOW_FP32_DOWN_PRECISION": 1,
        "USE_FP16": 2,
        "USE_HF32": 3,
        "USE_FP32_ADD": 4,  # matmul only: grouped FP32 accumulation
    }
)
ERROR = "err"
NOT_VENDORS = "modes that split FP32 operands are ours, for matmul, convolution and convolution_backward"
GROUPED_MIN_K = 2048  # matmul/mat_mul_v3/op_host/op_tiling: shorter K is not split by mode 4

# Entry: Cube operand format by mode. First key: whether the Cube takes FP32. Second: promoted input type.
CONVOLUTION: Mapping[bool, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        False: {"fp32": (ERROR, "fp16", "fp16", ERROR), "fp16": ("fp16",) * 4},
        True: {
            "fp32": ("fp32", "hf32", "fp16", "hf32"),
            "fp16": ("fp16",) * 4,
            "bf16": ("bf16", "bf16", "fp16", "bf16"),
        },
    }
)

# The same for matmul, modes 0 to 4.
MATMUL: Mapping[bool, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        False: {"fp32": (ERROR, "fp16", "fp16", ERROR, ERROR), "fp16": ("fp16",) * 5},
        True: {
            "fp32": ("fp32", "hf32", "fp16", "hf32", "fp32"),
            "fp16": ("fp16",) * 5,
            "bf16": ("bf16",) * 5,
        },
    }
)

# Matmul on a Cube with FP32: what the source logs. Key: operand types and mode.
MATMUL_WARNINGS: Mapping[tuple[frozenset[str], int], str] = MappingProxyType(
    {
        (frozenset({"fp32", "bf16"}), 2): "BF16 operand converted to FP16",
        (frozenset({"fp16"}), 3): "mode ignored: FP16 operands stay FP16",
        (frozenset({"bf16"}), 2): "mode ignored: BF16 operands stay BF16",
        (frozenset({"bf16"}), 3): "mode ignored: BF16 operands stay BF16",
    }
)

# Convolution backward: what FIXP writes, by what the Cube multiplies; a Vector cast to the tensor's type follows.
# gradBias is a Vector ReduceSum of the original gradOutput: the mode has no effect on it.
CONVOLUTION_OUTPUTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "grad_input": {"fp16": "fp16", "bf16": "bf16", "fp32": "fp32"},
        "grad_weight": {"fp16": "fp32", "bf16": "fp32", "fp32": "fp32"},
    }
)

# Rounding of HF32 operands by kernel (D): the 3D convolution backward kernels leave the mode bit alone, matmul v3 sets
# it. Assumed for 1D and 2D convolution backward, whose kernels are closed. A 1x1 convolution lowered to matmul is matmul.
HF32_ROUND: Mapping[str, str] = MappingProxyType({"convolution": "RINT", "matmul": "ROUND"})


class HasFigures(Protocol):
    """What this module needs of a Product."""

    def texts(self, key: str) -> tuple[str, ...]:
        """A figure that holds several words."""


CubeInputs = HasFigures | Iterable[str]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a mode means for given inputs on a given Cube.

    compute: type of the operands in memory (fp16, bf16, fp32), "" if the call is refused. hf32: the Cube rounds FP32
    operands to HF32, by `hf32_round`. outputs: (result, type that FIXP writes) pairs. status: 0 or 161002. grouped: K is
    split over cores and the partial sums are added in a fixed order. split: how FP32 operands are cut into slices of
    `compute`, for modes that are ours (splits.py).
    """

    compute: str
    hf32: bool = False
    outputs: tuple[tuple[str, str], ...] = ()
    status: int = 0
    warning: str | None = None
    reason: str = ""
    grade: str = "D"
    grouped: bool = False
    hf32_round: str = "RINT"
    split: Split | None = None

    @property
    def operand(self) -> str:
        """What is multiplied: fp16, bf16, hf32 or fp32 as the Cube reads it, or a split such as fp16x3."""
        if self.split is not None:
            return self.split.name.lower()
        return "hf32" if self.hf32 else self.compute

    @property
    def ok(self) -> bool:
        return self.status == 0

    def output(self, result: str = "out") -> str:
        """Type that FIXP writes for `result`: out (matmul), grad_input or grad_weight."""
        found = dict(self.outputs).get(result)
        if found is None:
            raise UsageError(
                f"no Cube output {result!r} here; there are {', '.join(dict(self.outputs)) or 'none'}"
            )
        return found


def mode_value(mode: str | int) -> int:
    """0 to 4 for a name; numbers pass, in range or not: the operator refuses those with a status."""
    if isinstance(mode, int):
        return mode
    if mode not in MODES:
        raise UsageError(f"unknown cubeMathType {mode!r}: known are {', '.join(MODES)}")
    return MODES[mode]


def promoted(dtypes: Iterable[str]) -> str:
    """Equal types stay; FP16 with BF16 gives FP32, and so does anything with FP32."""
    kinds = set(dtypes)
    return kinds.pop() if len(kinds) == 1 else "fp32"


def resolve_convolution(
    product: CubeInputs,
    dtypes: Sequence[str],
    mode: str | int,
    rank: int = 2,
    *,
    bf16_mode2: str = "convert",
    groups: int = 1,
    grad_weight: str | None = None,
    supported: bool = True,
) -> Resolution:
    """Convolution backward of `rank` spatial axes; dtypes of gradOutput, input and weight.

    product: a Product, or what its Cube takes, such as ("fp16", "int8"). bf16_mode2: "convert" as the source does, or
    "reject" as the current document says. grad_weight: its type if it is asked for; with groups > 1 it has rules of its
    own in 3D. supported: False where the product lacks the operator.
    """
    if bf16_mode2 not in ("convert", "reject"):
        raise UsageError(f"bf16_mode2 {bf16_mode2!r}: known are convert, reject")
    if mode in SPLITS:
        return refused(NOT_VENDORS)
    inputs, kinds, value = cube_inputs_of(product), format_names(dtypes), mode_value(mode)
    common = promoted(kinds)
    if not supported:
        return refused("the product does not support convolution backward")
    if rank not in (1, 2, 3) or (rank == 3 and "fp32" not in inputs):
        return refused(f"convolution backward of {rank} spatial axes is not supported on this product")
    grouped_fp32 = (
        groups > 1 and rank == 3 and grad_weight is not None and format_names([grad_weight]) == ("fp32",)
    )
    if grouped_fp32 and (value == MODES["USE_FP16"] or common != "fp32"):
        return refused("3D gradWeight in FP32 with groups > 1 takes FP32 inputs only, and no USE_FP16")
    cell = _cell(CONVOLUTION, inputs, kinds, common, value)
    if isinstance(cell, Resolution):
        return cell
    warning = None
    if common == "bf16" and value == MODES["USE_FP16"]:
        if bf16_mode2 == "reject":
            return refused("BF16 inputs with USE_FP16 are not supported (current document)")
        warning = "BF16 inputs converted to FP16: the range shrinks to 65504"
    return _resolved(cell, inputs, "convolution", warning)


def resolve_matmul(
    product: CubeInputs,
    dtypes: Sequence[str],
    mode: str | int,
    k: int | None = None,
    *,
    supported: bool = True,
) -> Resolution:
    """Matmul of two operands. k: length of the sum, which decides whether mode 4 groups; None means long enough."""
    if mode in SPLITS:
        return refused(NOT_VENDORS)
    inputs, kinds, value = cube_inputs_of(product), format_names(dtypes), mode_value(mode)
    if not supported:
        return refused("the product does not support matmul")
    cell = _cell(MATMUL, inputs, kinds, promoted(kinds), value)
    if isinstance(cell, Resolution):
        return cell
    warning = MATMUL_WARNINGS.get((frozenset(kinds), value)) if "fp32" in inputs else None
    grouped = value == MODES["USE_FP32_ADD"] and cell == "fp32" and (k is None or k >= GROUPED_MIN_K)
    return _resolved(cell, inputs, "matmul", warning, _matmul_output(inputs, kinds, cell, value), grouped)


def resolve_split(product: CubeInputs, dtypes: Sequence[str], mode: str, k: int | None = None) -> Resolution:
    """A mode of `SPLITS` for operands of these types: FP32 sums of products of slices.

    k: length of the sum, which INT32 limits. Refused where no operand is FP32, or the Cube does not take the slices.
    """
    inputs, kinds, split = cube_inputs_of(product), format_names(dtypes), SPLITS[mode]
    if set(kinds) - {"fp16", "bf16", "fp32"} or promoted(kinds) != "fp32":
        return refused(f"a split is of FP32 operands, and these are {', '.join(kinds)}")
    if split.slices not in inputs:
        return refused(
            f"slices are {split.slices}, and the Cube of this product takes {', '.join(sorted(inputs))} only"
        )
    terms = max(map(len, split.groups)) * (k or 0)
    if split.slices == "int8" and terms > MOST_INT8_TERMS:
        return refused(f"sums of {terms} products of INT8 slices, and INT32 holds {MOST_INT8_TERMS} of them")
    return Resolution(
        split.slices, outputs=(("out", "fp32"),), reason=f"computes in {mode}", grade="A", split=split
    )


def resolve_format(dtypes: Sequence[str], mode: str | int) -> Resolution:
    """Operands of one number format that is no element type of the vendor's: multiplied as they are, a what-if.

    The Cube adds and writes FP32 (assumed). A cubeMathType says nothing of them, and only KEEP_DTYPE is taken.
    """
    kinds = format_names(dtypes)
    if len(set(kinds)) > 1:
        return refused(f"operands are {' and '.join(kinds)}: those in a number format are all in that one")
    if mode not in ("KEEP_DTYPE", MODES["KEEP_DTYPE"]):
        types = "FP32" if mode in SPLITS else "FP32, FP16 and BF16"
        return refused(f"{mode} is for {types}: {kinds[0]} operands are multiplied as they are")
    return Resolution(kinds[0], outputs=(("out", "fp32"),), reason=f"computes in {kinds[0]}", grade="A")


def _matmul_output(inputs: frozenset[str], kinds: Sequence[str], cell: str, mode: int) -> str:
    """cube_util.cpp, SetMmSupportDType: a Cube without FP32 casts the operands, the output keeps the type of the first."""
    if "fp32" not in inputs:
        return kinds[0]
    keeps_fp32 = mode == MODES["USE_FP32_ADD"] or cell == "hf32"
    return "fp32" if keeps_fp32 else cell


def _cell(
    table: Mapping[bool, Mapping[str, tuple[str, ...]]],
    inputs: frozenset[str],
    kinds: Sequence[str],
    common: str,
    mode: int,
) -> str | Resolution:
    """The entry of a truth table, or the refusal that stands there."""
    unknown = sorted(set(kinds) - {"fp16", "bf16", "fp32"})
    if unknown:
        return refused(f"unsupported type {', '.join(unknown)}: the Cube computes fp16, bf16 and fp32 here")
    if "bf16" in kinds and "bf16" not in inputs:
        return refused(
            "bf16 is an unsupported type on this product: its Cube takes " + ", ".join(sorted(inputs))
        )
    row = table["fp32" in inputs][common]
    if not 0 <= mode < len(row):
        return refused(f"cubeMathType {mode} is outside 0 to {len(row) - 1}")
    if row[mode] == ERROR:
        return refused(
            f"cubeMathType {mode} needs FP32 operands, which the Cube of this product does not take"
        )
    return row[mode]


def _resolved(
    cell: str,
    inputs: frozenset[str],
    kernel: str,
    warning: str | None,
    output: str | None = None,
    grouped: bool = False,
) -> Resolution:
    compute = "fp32" if cell == "hf32" else cell
    hf32 = cell == "hf32" and "hf32" in inputs
    outputs: tuple[tuple[str, str], ...] = (("out", output or compute),)
    if kernel == "convolution":
        outputs = tuple((result, types[compute]) for result, types in CONVOLUTION_OUTPUTS.items())
    reason, grade = f"computes in {cell}", "D"
    if cell == "hf32" and not hf32:
        reason, grade = "the Cube takes FP32 but no HF32: computes in fp32", "A"
    return Resolution(
        compute=compute,
        hf32=hf32,
        outputs=outputs,
        warning=warning,
        reason=reason,
        grade=grade,
        grouped=grouped,
        hf32_round=HF32_ROUND[kernel],
    )


def refused(reason: str) -> Resolution:
    """A call that is refused as a wrong parameter."""
    return Resolution(compute="", status=PARAM_INVALID, reason=reason)


def cube_inputs_of(product: CubeInputs) -> frozenset[str]:
    """Formats that the Cube takes."""
    if isinstance(product, str):
        raise UsageError(
            f"cube inputs {product!r}: give a Product or several names, such as ('fp16', 'int8')"
        )
    return frozenset(product if isinstance(product, Iterable) else product.texts("dtypes.cube_inputs"))


def format_names(dtypes: Iterable[str]) -> tuple[str, ...]:
    """Canonical names: float16 becomes fp16."""
    names = tuple(get_format(dtype).name for dtype in dtypes)
    if not names:
        raise UsageError("no input types given")
    return names
