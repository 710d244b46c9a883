"""What a probe found: an answer to each question, the choices they name, and the assumed vectors they settle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...simulator.precision.numerics_file import numerics_text
from .assumed import VectorVerdict

# How a question ends. NAMED: one model agrees with every bit. SEVERAL: the ones listed do. NONE: no model does. OPEN: there
# is no result to decide with. MEASURED: a figure, not a choice.
NAMED, SEVERAL, NONE, OPEN, MEASURED = "named", "several agree", "none agrees", "open", "measured"


@dataclass(frozen=True)
class ProbeAnswer:
    """values: by choice, those that agree with every bit. experiments, bits: what was compared. detail: one sentence."""

    question: str
    verdict: str
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    experiments: tuple[str, ...] = ()
    bits: int = 0
    detail: str = ""

    @property
    def settled(self) -> bool:
        return self.verdict in (NAMED, MEASURED)

    def to_dict(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "verdict": self.verdict,
            "values": {name: list(found) for name, found in self.values.items()},
            "experiments": list(self.experiments),
            "bits": self.bits,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class ProbeFindings:
    """product, versions: as the results have them. choices: named ones, as `numerics=` of a device takes them."""

    product: str
    versions: Mapping[str, str]
    answers: tuple[ProbeAnswer, ...]
    choices: Mapping[str, Any]
    vectors: tuple[VectorVerdict, ...]

    @property
    def open_questions(self) -> list[ProbeAnswer]:
        return [a for a in self.answers if not a.settled]

    def numerics_file(self, date: str) -> str:
        """The choices that were named, as a file of numerics. date: of the reading."""
        source = f"probe, {sum(a.verdict == NAMED for a in self.answers)} questions named"
        return numerics_text(self.choices, product=self.product, source=source, date=date)

    def to_dict(self) -> dict[str, Any]:
        return {
            "product": self.product,
            "versions": dict(self.versions),
            "answers": [a.to_dict() for a in self.answers],
            "choices": dict(self.choices),
            "open": len(self.open_questions),
            "vectors": [
                {
                    "id": v.vector.number,
                    "verdict": v.verdict,
                    "reason": v.reason,
                    "observed": _word(v.observed),
                }
                for v in self.vectors
            ],
        }


def _word(word: int | None) -> str | None:
    return None if word is None else f"0x{word:08x}"
