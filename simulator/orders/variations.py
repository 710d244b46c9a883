"""What is compared: one thing made in several ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .launches import LaunchSequence


@dataclass(frozen=True)
class Configuration:
    """One way to make the outputs. launches: makes them from inputs by name; each time from the beginning."""

    name: str
    launches: Callable[[Mapping[str, np.ndarray]], LaunchSequence]


@dataclass(frozen=True)
class Variations:
    """What is compared: inputs of the largest configuration by name, of which each takes what it needs.

    given: names of inputs whose values are not varied. doubts: places -> why nothing is proven there. advice: for pairs of
    configurations that differ. laws, notes: see `SameBits`.
    """

    name: str
    inputs: Mapping[str, np.ndarray]
    configurations: Sequence[Configuration]
    given: frozenset[str] = frozenset()
    laws: Sequence[str] = ()
    notes: Sequence[str] = ()
    doubts: Mapping[str, str] = field(default_factory=dict)
    advice: Callable[[Sequence[tuple[str, str]]], Sequence[str]] = field(default=lambda differing: ())
