"""How operations of the tile program are made: rules of promotion and shape, family by family, and what each entry says."""

from ..operations import OPERATIONS
from . import core_operations, functions

__all__ = ["OPERATIONS", "core_operations", "functions"]
