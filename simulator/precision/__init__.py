"""Number formats, rounding, error metrics and acceptance rules."""

from ascendtile._names import public_names

__all__ = ["acceptance", "block_formats", "cast_table", "cube_math", "formats", "metrics", "rounding"]
__getattr__, __dir__ = public_names(__name__, (), __all__)
