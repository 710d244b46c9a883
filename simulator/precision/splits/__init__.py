"""FP32 products from narrower ones: the modes (without numpy, for start-up), and what they make of numbers (`slices`)."""

from .modes import MOST_INT8_TERMS, SPLITS, Split

__all__ = ["MOST_INT8_TERMS", "SPLITS", "Split"]
