"""Programs that make real data for the operators."""

from ascendtile._names import public_names

__all__ = ["group_norm_backward", "train_tiny"]
__getattr__, __dir__ = public_names(__name__, (), __all__)
