"""The operators, one file each, as tile kernels with their float64 references.

    from ascendtile.kernels import run_op, rms_norm_grad
    result = run_op("rms_norm_grad", "llama3-8b", "float16", product="ascend910b3", tiling={"rows": 2})

An operator is one file with an `OPERATOR` (see `operator.py`); `operators()` finds it.
"""

if __name__ == "kernels":
    raise ImportError("import ascendtile.kernels: the folder kernels/ is only the source of that package")

from ascendtile._names import public_names

from .batch_norm_reduce_backward import batch_norm_reduce_backward
from .batch_norm_statistics import batch_norm_statistics
from .bce_with_logits import bce_with_logits
from .bce_with_logits_backward import bce_with_logits_backward
from .convolution import convolution
from .convolution_backward import convolution_backward
from .group_norm import group_norm
from .group_norm_backward import group_norm_backward
from .layer_norm import layer_norm
from .matmul import matmul
from .operator import Case, Operator
from .parameter import Parameter
from .registry import get_operator, operators
from .rms_norm import rms_norm
from .rms_norm_grad import rms_norm_grad
from .running import OpResult, run_op
from .study import precision_study
from .study_bench import Study
from .study_sweep import precision_sweep

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
    "get_operator",
    "group_norm",
    "group_norm_backward",
    "layer_norm",
    "matmul",
    "operators",
    "precision_study",
    "precision_sweep",
    "rms_norm",
    "rms_norm_grad",
    "run_op",
]

_PARTS = ("aclnn", "examples", "tutorials", "validation")
__getattr__, __dir__ = public_names(__name__, __all__, _PARTS)
