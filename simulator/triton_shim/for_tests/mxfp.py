"""`triton.tools.mxfp`: tensors of the OCP Microscaling formats on the host, as their codes in uint8.

Source: OCP Microscaling Formats (MX) Specification v1.0, 5.3.3 (E2M1) and 5.4.1 (E8M0).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

__all__ = ["MXFP4Tensor", "MXScaleTensor"]

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # by code; 8 more with the sign
BIAS, NAN = 127, 255  # of E8M0


class _Codes:
    """Codes in uint8: those of `data`, a tensor of numbers, or of a tensor of shape `size` that `random` fills."""

    data: torch.Tensor

    def __init__(self, data: torch.Tensor | None = None, size: Any = None, device: Any = None) -> None:
        if data is None and size is None:
            raise ValueError(f"{type(self).__name__} needs data or a size")
        self.device = device if data is None else data.device
        if data is not None:
            self.data = self.encoded(data.float())
        else:
            self.size = size if isinstance(size, tuple) else (size,)

    def encoded(self, values: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def drawn(self, first: int, last: int) -> Any:
        self.data = torch.randint(first, last + 1, self.size, dtype=torch.uint8, device=self.device)
        return self

    def _single(self, dtype: torch.dtype) -> None:
        assert dtype == torch.float32, f"{type(self).__name__} becomes torch.float32, got {dtype}"


class MXFP4Tensor(_Codes):
    """FP4 E2M1: sign, two bits of exponent, one of mantissa; no NaN and no infinity."""

    def random(self) -> MXFP4Tensor:
        """Every code is as likely as any other."""
        return self.drawn(0, 15)  # type: ignore[no-any-return]

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The numbers in torch.float32."""
        self._single(dtype)
        table = torch.tensor([*E2M1, *(-x for x in E2M1)], device=self.data.device)
        return table[self.data.int()]

    def encoded(self, values: torch.Tensor) -> torch.Tensor:
        """Rounded to nearest, ties to the even code; what is beyond 6 is 6, NaN too."""
        middles = torch.tensor([(a + b) / 2 for a, b in pairwise(E2M1)], device=values.device)
        size = values.abs().contiguous()
        below, above = (torch.bucketize(size, middles, right=side) for side in (False, True))
        code = torch.where(below % 2 == 0, below, above)
        code = torch.where(values.isnan(), len(E2M1) - 1, code)
        return (code + 8 * values.signbit()).to(torch.uint8)

    def to_packed_tensor(self, dim: int) -> torch.Tensor:
        """Two codes a byte along `dim`, the first in the low bits; an odd last one beside 0."""
        assert 0 <= dim < self.data.ndim, f"dim is 0 to {self.data.ndim - 1}, got {dim}"
        codes = self.data.movedim(dim, 0)
        packed = codes[0::2].clone()
        packed[: len(codes) // 2] |= codes[1::2] << 4
        return packed.movedim(0, dim).contiguous()

    def unpack_packed_tensor(
        self, packed_tensor: torch.Tensor, dim: int, original_shape: Any
    ) -> torch.Tensor:
        """The codes that were packed, in their original shape."""
        both = torch.stack((packed_tensor & 15, packed_tensor >> 4), dim + 1)
        codes = both.flatten(dim, dim + 1)
        return codes.narrow(dim, 0, original_shape[dim]).contiguous()


class MXScaleTensor(_Codes):
    """Scales in E8M0: powers of two from 2^-127 to 2^127, and NaN."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Every exponent between those of `low` and `high`, positive numbers, is as likely as any other; no NaN."""
        first, last = (None if x is None else self._exponent(x) for x in (low, high))
        return self.drawn(first or 0, NAN - 1 if last is None else last)  # type: ignore[no-any-return]

    def _exponent(self, x: float) -> int:
        code = int(self.encoded(torch.tensor(float(x))))
        if code == NAN:
            raise ValueError(f"a limit of the scales is a positive number, got {x}")
        return code

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The scales in torch.float32."""
        self._single(dtype)
        scale = torch.ldexp(torch.ones_like(self.data, dtype=dtype), self.data.int() - BIAS)
        return torch.where(self.data == NAN, float("nan"), scale)

    def encoded(self, values: torch.Tensor) -> torch.Tensor:
        """The power of two at or below; what is not a positive finite number is NaN."""
        exponent = torch.frexp(values).exponent - 1
        good = values.isfinite() & (values > 0)
        return torch.where(good, (exponent + BIAS).clamp(0, NAN - 1), NAN).to(torch.uint8)
