"""Importing this imports what torch itself imports with its first operation on meta tensors, some 800 modules.

The process that forks does it once, so that none of its children does.
"""

import torch

from ..pricing.host_ops import record_ops

with record_ops():
    torch.empty(1, device="meta").add(1)
