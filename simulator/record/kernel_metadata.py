"""What `compiled.metadata` of a launch answers, in the words of Triton-Ascend."""

from __future__ import annotations

import os
from typing import NamedTuple

VARIABLE = "ENABLE_PRINT_UB_BITS"


class KernelMetadata(NamedTuple):
    """name, kernel_name: of the kernel. required_ub_bits: the highest address of UB that is allocated, if
    `ENABLE_PRINT_UB_BITS` asks for it (third_party/ascend/backend/compiler.py of Triton-Ascend), else 0; always 0 for code
    that its compiler did not make."""

    name: str
    kernel_name: str
    required_ub_bits: int


def ub_bits_asked() -> bool:
    """Whether the environment asks for what a kernel takes of UB, in the words that Triton-Ascend takes."""
    return os.environ.get(VARIABLE, "").lower() in ("1", "true")
