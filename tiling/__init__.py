"""Tiling spaces and their exploration."""

if __name__ == "tiling":
    raise ImportError("import ascendtile.tiling: the folder tiling/ is only the source of that package")


from .best import best_tilings
from .difference import Difference, difference
from .explore import Interrupted, explore
from .results.exploration import Exploration
from .shapes import Shapes, explore_shapes
from .space.declared import tunable
from .space.space import Rule, Space, choices, divisors, integers, multiples, powers_of_two
from .what_if import Variants, what_if

__all__ = [
    "Difference",
    "Exploration",
    "Interrupted",
    "Rule",
    "Shapes",
    "Space",
    "Variants",
    "best_tilings",
    "choices",
    "difference",
    "divisors",
    "explore",
    "explore_shapes",
    "integers",
    "multiples",
    "powers_of_two",
    "tunable",
    "what_if",
]


def __dir__() -> list[str]:
    return __all__
