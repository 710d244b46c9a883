"""What the Cube, the fixpipe and the Vector unit do to values."""

from ascendtile._names import public_names

__all__ = ["cube", "fixpipe", "vector"]
__getattr__, __dir__ = public_names(__name__, (), __all__)
