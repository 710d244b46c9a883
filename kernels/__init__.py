"""The operators, one file each, as tile kernels with their float64 references.

    from ascendtile.kernels import run_op, rms_norm_grad
    result = run_op("rms_norm_grad", "llama3-8b", "float16", product="ascend910b3", tiling={"rows": 2})

An operator is one file with an `OPERATOR` (see `operator/`); `operators()` finds it.
"""

if __name__ == "kernels":
    raise ImportError("import ascendtile.kernels: the folder kernels/ is only the source of that package")

from ascendtile._names import public_names

from .attention.gradient import flash_attention_grad
from .attention.op import flash_attention
from .convolution.forward import convolution
from .convolution.op import convolution_backward
from .loss.forward import bce_with_logits
from .loss.op import bce_with_logits_backward
from .matmul.op import matmul
from .norm.batch.op import batch_norm_reduce_backward
from .norm.batch.statistics import batch_norm_statistics
from .norm.group.forward import group_norm
from .norm.group.op import group_norm_backward
from .norm.layer.op import layer_norm
from .norm.rms.forward import rms_norm
from .norm.rms.op import rms_norm_grad
from .operator.operator import Case, Operator
from .operator.parameter import Parameter
from .operator.registry import get_operator, operators
from .orders.same_bits import same_bits
from .quantised.grouped import grouped_matmul
from .quantised.op import quant_matmul
from .running.run_op import OpResult, run_op
from .study.results import Study
from .study.study import precision_study, precision_sweep

__all__ = [
    "Case",
    "OpResult",
    "Operator",
    "Parameter",
    "Study",
    "batch_norm_reduce_backward",
    "batch_norm_statistics",
    "bce_with_logits",
    "bce_with_logits_backward",
    "convolution",
    "convolution_backward",
    "flash_attention",
    "flash_attention_grad",
    "get_operator",
    "group_norm",
    "group_norm_backward",
    "grouped_matmul",
    "layer_norm",
    "matmul",
    "operators",
    "precision_study",
    "precision_sweep",
    "quant_matmul",
    "rms_norm",
    "rms_norm_grad",
    "run_op",
    "same_bits",
]  # fmt: skip

_PARTS = ("aclnn", "chains", "examples", "tutorials", "validation")
__getattr__, __dir__ = public_names(__name__, __all__, _PARTS)
