"""A product: all figures of one device, frozen and checked. It knows no file and converts no user input."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ..errors import ProductError
from .checks import check, suggestion
from .figure import Figure, Value
from .reading import read_record

WHAT_IF_RATE = "cube.what_if_k_bytes_per_cycle"  # of operands in formats that a Cube lacks


def what_if_k(product: Product, bits: int) -> int:
    """k a cycle of operands of so many bits in a format that the Cube lacks."""
    return max(1, 8 * product.integer(WHAT_IF_RATE) // bits)


def _size(key: str, doc: str) -> cached_property[int]:
    """A property with the whole number of a key."""
    found: cached_property[int] = cached_property(lambda product: product.integer(key))
    found.__doc__ = doc
    return found


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

    def _of_kind(self, key: str, kind: Any, called: str) -> Any:
        value = self.value(key)
        if not isinstance(value, kind):
            raise ProductError(f"{self.name}: {key} is not {called} but {value!r}")
        return value

    def number(self, key: str) -> float:
        """`value`, for a key that holds a number."""
        return self._of_kind(key, int | float, "a number")  # type: ignore[no-any-return]

    def integer(self, key: str) -> int:
        """`value`, for a key that holds a whole number."""
        return self._of_kind(key, int, "a whole number")  # type: ignore[no-any-return]

    def text(self, key: str) -> str:
        """`value`, for a key that holds a text."""
        return self._of_kind(key, str, "a text")  # type: ignore[no-any-return]

    def texts(self, key: str) -> tuple[str, ...]:
        """`value`, for a key that holds a tuple of texts, such as dtypes.storage."""
        return tuple(str(item) for item in self._of_kind(key, tuple, "a list"))

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
    def overridden(self) -> tuple[str, ...]:
        """Keys of the figures that the user set."""
        return tuple(key for key, figure in self.figures_by_key.items() if figure.overridden)

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

    ub_bytes = _size("buffers.ub", "Unified Buffer of one Vector unit.")
    l1_bytes = _size("buffers.l1", "L1 buffer of one Cube core.")
    l0a_bytes = _size("buffers.l0a", "L0A, left operand of the Cube.")
    l0b_bytes = _size("buffers.l0b", "L0B, right operand of the Cube.")
    l0c_bytes = _size("buffers.l0c", "L0C, accumulators of the Cube.")
    bt_bytes = _size("buffers.bt", "Bias table; 0 where there is none.")

    @cached_property
    def fb_bytes(self) -> int:
        """The part of the fixpipe's buffer that holds the parameters of its quantisation; 0 where there is none."""
        parts = self.value("buffers.fb_parts") if self.has("buffers.fb_parts") else (0,)
        assert isinstance(parts, tuple)
        return int(parts[0])

    cube_cores = _size("cores.cube_cores", "Cube units on one die.")
    vector_cores = _size("cores.vector_cores", "Vector units on one die that go with a Cube.")
    aiv_per_aic = _size("cores.aiv_per_aic", "Vector units per Cube unit.")

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

    @cached_property
    def l2_mixed_bytes_per_cycle(self) -> float:
        """L2 bandwidth for reads and writes together, bytes per AI Core cycle; at least that of one of them."""
        mixed = "l2.mixed_bandwidth_tb_per_s"
        both = self.number(mixed) * 1e6 / self.aicore_mhz if self.has(mixed) else 0.0
        return max(both, self.l2_bytes_per_cycle)

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
        mine, others = ((p.name, p.figures_by_key, p.sources) for p in (self, other))
        return mine == others

    def __hash__(self) -> int:
        return int(self.fingerprint[:15], 16)

    def __repr__(self) -> str:
        return (
            f"Product({self.name!r}, {len(self.figures_by_key)} figures, {len(self.overridden)} overridden)"
        )
