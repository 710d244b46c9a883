"""A product: all figures of one device, frozen and checked. It knows no file and converts no user input."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from ..errors import ProductError
from .checks import check, suggestion
from .figure import Figure, Value
from .reading import read_record


@dataclass(frozen=True, eq=False, repr=False)
class Product:
    """One device. `figures_by_key` maps "buffers.ub" and the like to Figures; `sources` explains source ids.

    Equal when name, figures and sources are equal. The hash is that of `fingerprint`.
    """

    name: str
    figures_by_key: Mapping[str, Figure]
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check(self.figures_by_key, self.name)
        object.__setattr__(self, "figures_by_key", MappingProxyType(dict(self.figures_by_key)))
        object.__setattr__(self, "sources", MappingProxyType(dict(self.sources)))

    # ---- figures by key ----

    def figure(self, key: str) -> Figure:
        """The figure `key`, with unit, source and grade."""
        found = self.figures_by_key.get(key)
        if found is None:
            raise ProductError(f"{self.name} has no figure {key!r}{suggestion(str(key))}")
        return found

    def value(self, key: str) -> Value:
        """The bare value of `key`, in the unit of the figure."""
        return self.figure(key).value

    def number(self, key: str) -> float:
        """`value`, for a key that holds a number."""
        value = self.value(key)
        if not isinstance(value, int | float):
            raise ProductError(f"{self.name}: {key} is not a number but {value!r}")
        return value

    def integer(self, key: str) -> int:
        """`value`, for a key that holds a whole number."""
        value = self.value(key)
        if not isinstance(value, int):
            raise ProductError(f"{self.name}: {key} is not a whole number but {value!r}")
        return value

    def text(self, key: str) -> str:
        """`value`, for a key that holds a text."""
        value = self.value(key)
        if not isinstance(value, str):
            raise ProductError(f"{self.name}: {key} is not a text but {value!r}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """`value`, for a key that holds a tuple of texts, such as dtypes.storage."""
        value = self.value(key)
        if not isinstance(value, tuple):
            raise ProductError(f"{self.name}: {key} is not a list but {value!r}")
        return tuple(str(item) for item in value)

    def has(self, key: str) -> bool:
        """Whether this product has a figure `key`."""
        return key in self.figures_by_key

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of the file."""
        return tuple(self.figures_by_key)

    def figures(self, prefix: str = "") -> tuple[Figure, ...]:
        """All figures whose key starts with `prefix`, in the order of the file."""
        return tuple(figure for key, figure in self.figures_by_key.items() if key.startswith(prefix))

    def assumed(self) -> tuple[Figure, ...]:
        """The figures that nobody published for this product: grade D."""
        return tuple(figure for figure in self.figures_by_key.values() if figure.assumed)

    @cached_property
    def tables(self) -> Mapping[str, tuple[str, ...]]:
        """Key without its last part -> the last parts, such as the dtypes of vector.op.add.per_repeat."""
        out: dict[str, tuple[str, ...]] = {}
        for key in self.figures_by_key:
            table, _, last = key.rpartition(".")
            out[table] = (*out.get(table, ()), last)
        return out

    # ---- the figures that everybody reads ----

    @property
    def title(self) -> str:
        """The vendor's name of the product."""
        return self.text("product.name")

    @property
    def core_model(self) -> str:
        """ "split" (AIC and AIV apart) or "coupled" (one core has both units)."""
        return self.text("product.core_model")

    @cached_property
    def ub_bytes(self) -> int:
        """Unified Buffer of one Vector unit."""
        return self.integer("buffers.ub")

    @cached_property
    def l1_bytes(self) -> int:
        """L1 buffer of one Cube core."""
        return self.integer("buffers.l1")

    @cached_property
    def l0a_bytes(self) -> int:
        """L0A, left operand of the Cube."""
        return self.integer("buffers.l0a")

    @cached_property
    def l0b_bytes(self) -> int:
        """L0B, right operand of the Cube."""
        return self.integer("buffers.l0b")

    @cached_property
    def l0c_bytes(self) -> int:
        """L0C, accumulators of the Cube."""
        return self.integer("buffers.l0c")

    @cached_property
    def bt_bytes(self) -> int:
        """Bias table; 0 where there is none."""
        return self.integer("buffers.bt")

    @cached_property
    def cube_cores(self) -> int:
        """Cube units on one die."""
        return self.integer("cores.cube_cores")

    @cached_property
    def vector_cores(self) -> int:
        """Vector units on one die that go with a Cube."""
        return self.integer("cores.vector_cores")

    @cached_property
    def aiv_per_aic(self) -> int:
        """Vector units per Cube unit."""
        return self.integer("cores.aiv_per_aic")

    @cached_property
    def aicore_mhz(self) -> float:
        """Clock of the AI Core."""
        return self.number("clock.aicore_mhz")

    # ---- derived: the only place that ties the clock to time and bandwidth ----

    def cycles_to_us(self, cycles: float) -> float:
        """Microseconds of a number of AI Core cycles."""
        return cycles / self.aicore_mhz

    def us_to_cycles(self, us: float) -> float:
        """AI Core cycles in a number of microseconds."""
        return us * self.aicore_mhz

    @cached_property
    def hbm_bytes_per_cycle(self) -> float:
        """Memory bandwidth of the die, bytes per AI Core cycle, all cores together."""
        return self.number("memory.bandwidth_tb_per_s") * 1e6 / self.aicore_mhz

    @cached_property
    def l2_bytes_per_cycle(self) -> float:
        """L2 bandwidth of the die, bytes per AI Core cycle, all cores together."""
        return self.number("l2.bandwidth_tb_per_s") * 1e6 / self.aicore_mhz

    # ---- identity ----

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of all keys and values; sources and grades do not count."""
        values = {key: figure.value for key, figure in self.figures_by_key.items()}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    @cached_property
    def record(self) -> dict[str, object]:
        """`to_dict`, made once: every run on this product refers to it. Not to be changed."""
        return self.to_dict()

    def to_dict(self) -> dict[str, object]:
        """Plain JSON data that `Product.from_dict` turns back into an equal product."""
        figures = {key: figure.to_dict() for key, figure in self.figures_by_key.items()}
        return {"name": self.name, "sources": dict(self.sources), "figures": figures}

    @classmethod
    def from_dict(cls, data: object) -> Product:
        """The product that `to_dict` wrote, checked as a file is."""
        return cls(*read_record(data))

    def __reduce__(self) -> tuple[object, ...]:
        return (Product, (self.name, dict(self.figures_by_key), dict(self.sources)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Product):
            return NotImplemented
        return (self.name, self.figures_by_key, self.sources) == (
            other.name,
            other.figures_by_key,
            other.sources,
        )

    def __hash__(self) -> int:
        return int(self.fingerprint[:15], 16)

    def __repr__(self) -> str:
        changed = sum(figure.overridden for figure in self.figures_by_key.values())
        return f"Product({self.name!r}, {len(self.figures_by_key)} figures, {changed} overridden)"
