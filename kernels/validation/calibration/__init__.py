"""Figures of a product fitted to measured times: to a profile of a user's own board, or to all sources but one.

profile, mapping, ..._types  a profile, and which op of ours predicts an operator of the vendor
rows                         a file as rows that predictors know
figures, sensitivity, fit    how times depend on figures, and the figures that suit the times
calibrating, results         `calibrate`, and what it found
product_file                 the product file that comes of it
crossing                     each source left out once (`ascendtile validate --cross`)
"""

from .calibrating import calibrate
from .crossing import CrossValidation, cross_validate
from .results import Calibration, Errors, FittedFigure

__all__ = ["Calibration", "CrossValidation", "Errors", "FittedFigure", "calibrate", "cross_validate"]


def __dir__() -> list[str]:
    return __all__
