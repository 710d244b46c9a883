"""How operations of the tile program are made: rules of promotion and shape, family by family, and what each entry says."""

from . import core_operations, functions

__all__ = ["core_operations", "functions"]
