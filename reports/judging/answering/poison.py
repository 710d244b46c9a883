"""Memory that is asked for unfilled is filled here with a pattern: what still shows it at the end, nobody wrote.

Of floating formats of 16 bits and more the pattern is a NaN that no operation gives; of integers one number, which no result
is by chance. In bytes any number may stand: there all elements must show it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....simulator.interpreter.tensors import past_torch_modes

NOT_A_NUMBER, NUMBER = 0xFF, 0xA5  # each byte


def fill_tensor(t: Any) -> None:
    """All memory of a tensor of torch."""
    import torch

    if t.device.type == "cpu" and t.numel() and t.dtype is not torch.bool:
        whole = torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())
        whole.fill_(_of_tensor(t))


def unwritten_tensor(t: Any) -> int:
    """Elements of a tensor of torch that still show the pattern."""
    import torch

    if t.device.type != "cpu" or not t.numel() or t.dtype is torch.bool:
        return 0
    with past_torch_modes():
        content = t.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return _unwritten(content.reshape(t.numel(), -1), _of_tensor(t))


def _of_tensor(t: Any) -> int:
    return NOT_A_NUMBER if t.dtype.is_floating_point and t.element_size() > 1 else NUMBER


def fill_array(x: Any) -> None:
    """All memory of an array of numpy that was just made."""
    if isinstance(x, np.ndarray) and x.size and x.ndim and x.dtype.kind not in "bO":
        ordered = x.T if x.flags.f_contiguous else x
        ordered.view(np.uint8)[...] = _of_array(x)


def unwritten_array(x: Any) -> int:
    """Elements of an array of numpy that still show the pattern."""
    x = np.ascontiguousarray(x)
    if not x.size or x.dtype.kind in "bO":
        return 0
    return _unwritten(x.reshape(-1).view(np.uint8).reshape(x.size, -1), _of_array(x))


def _of_array(x: Any) -> int:
    return NOT_A_NUMBER if x.dtype.kind in "fcV" and x.itemsize > 1 else NUMBER  # "V": formats of ml_dtypes


def _unwritten(content: np.ndarray, byte: int) -> int:
    count = int((content == byte).all(axis=1).sum())
    return count if content.shape[1] > 1 or (count == len(content) and count > 1) else 0
