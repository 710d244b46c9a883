"""What all walks of a launch share: costs, buffers, source lines, warnings."""

from __future__ import annotations

from typing import NamedTuple

from ..frontend.program import Loc, Program, Value
from ..products import Product
from .cost import CostModel
from .geometry import Definitions
from .place import Placement
from .vector_cost import VectorCosts


class Template(NamedTuple):
    """The fixed part of a dense operation's record."""

    pipe: int
    line: int
    occupancy: float
    latency: float
    instructions: int
    roots: tuple[tuple[int, int], ...]
    scratch: tuple[int, ...]
    scalars: tuple[Value, ...]


class Plan:
    """Static side of lowering one program for one product."""

    def __init__(
        self, program: Program, product: Product, definitions: Definitions, placement: Placement
    ) -> None:
        self.program = program
        self.product = product
        self.definitions = definitions
        self.placement = placement
        self.costs = VectorCosts(CostModel(product), definitions)
        self.lines: dict[tuple[str, int], int] = {}
        self.warnings: dict[str, None] = {}
        self.templates: dict[int, Template] = {}
        self.read_latency = product.number("path.gm_to_ub.fixed_cycles")
        self.read_interval = product.number("path.gm_to_ub.issue_interval_cycles")
        self.write_latency = product.number("path.ub_to_gm.fixed_cycles")
        self.write_interval = product.number("path.ub_to_gm.issue_interval_cycles")
        self.scalar_read_cycles = product.number("l2.read_latency_cycles")

    def line(self, loc: Loc) -> int:
        """Number of a source line in the trace."""
        return self.lines.setdefault((loc.file, loc.line), len(self.lines))

    def warn(self, loc: Loc, text: str) -> None:
        self.warnings[f"{loc.file}:{loc.line}: {text}"] = None

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.costs.model.notes)
