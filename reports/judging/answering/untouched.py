"""Operations of torch of which only the form counts: where no values are asked, large tensors are made of zeros that nobody
touches, and nothing is computed with them. What is small is done as it is: sizes and indices may hang on it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..pricing.names import CREATIONS, VIEWS
from .tensors import tensors_in

LARGE = 1 << 20  # elements


def untouched_zeros(shape: Any, strides: Any, dtype: Any) -> Any:
    """A tensor of torch whose memory is reserved, and not filled."""
    import torch

    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    raw = torch.from_numpy(np.zeros(max(1, span) * dtype.itemsize, np.uint8))
    return raw.view(dtype).as_strided(tuple(shape), tuple(strides))


def by_form(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """What an operation gives, without values where it is about large tensors."""
    given = list(tensors_in((list(args), kwargs)))
    most = max((t.numel() for t in given), default=0)
    if name in VIEWS or (name not in CREATIONS and most <= LARGE):
        return func(*args, **kwargs)
    found = _on_meta(func, args, kwargs, name in CREATIONS)
    if found is None or (most <= LARGE and all(t.numel() <= LARGE for t in tensors_in([found]))):
        return func(*args, **kwargs)
    return found


def _on_meta(func: Any, args: Any, kwargs: dict[str, Any], creates: bool) -> Any:
    """Its outputs, made of zeros by the form that it has on meta tensors; None where that cannot be told."""
    import torch
    from torch.utils._pytree import tree_map

    originals: dict[int, Any] = {}

    def to_meta(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        form = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
        originals[id(form)] = (form, x)
        return form

    def to_zeros(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) in originals:  # written in place
            return originals[id(x)][1]
        return (
            untouched_zeros(x.shape, x.stride(), x.dtype)
            if math.prod(x.shape)
            else x.new_empty(x.shape, device="cpu")
        )

    options = {**kwargs, "device": torch.device("meta")} if creates else kwargs
    try:
        return tree_map(to_zeros, func(*tree_map(to_meta, args), **tree_map(to_meta, options)))
    except (RuntimeError, NotImplementedError, TypeError):
        return None
