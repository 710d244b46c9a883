"""How batch norm and group norm see a tensor (N, C, ...)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Planes:
    """A tensor as (samples, groups, depth, space): `depth` channels of a group, `space` elements of a channel."""

    samples: int
    groups: int
    depth: int
    space: int

    @staticmethod
    def of(shape: tuple[int, ...], groups: int | None = None) -> Planes:
        """A shape (N, C, ...); without groups every channel is one of its own."""
        groups = shape[1] if groups is None else groups
        return Planes(shape[0], groups, shape[1] // max(1, groups), prod(shape[2:]))

    @property
    def channels(self) -> int:
        """Of a sample."""
        return self.groups * self.depth

    @property
    def tasks(self) -> int:
        """Groups of all samples."""
        return self.samples * self.groups
