"""What an operator is, where operators are found, and how one is run."""

from .operator import Case, Operator
from .parameter import choice, integer, integers
from .plan import Plan, PlanContext, Step
from .tensors import dtype_of

__all__ = ["Case", "Operator", "Plan", "PlanContext", "Step", "choice", "dtype_of", "integer", "integers"]
