"""`tl.math`: the elementwise functions under the names of triton.language.math, and those of libdevice that it lacks."""

from . import mathematics
from .extra.libdevice import BUILTINS

TRITON = "abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi"
NAMES = TRITON.split()
globals().update({**BUILTINS, **{name: getattr(mathematics, name) for name in NAMES}})
__all__ = [*NAMES, *(name for name in BUILTINS if name not in NAMES)]
