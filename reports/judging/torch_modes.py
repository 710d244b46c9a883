"""Bases of modes that see what torch does. Importing this module imports torch.

Torch's own have no types, and need not be there when types are checked: all of ours derive from these two.
"""

from __future__ import annotations

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """Sees what reaches the dispatcher, in `__torch_dispatch__`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()

    def __init__(self) -> None:
        super().__init__()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Not wrapped by torch's compiler, whose import takes longer than a judgement."""
        return False


class FunctionMode(TorchFunctionMode):
    """Sees functions of torch as they are called, in `__torch_function__`."""

    def __init__(self) -> None:
        super().__init__()
