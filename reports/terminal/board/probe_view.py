"""Views of a probe: what was written for the board, and what its results say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ....kernels.probe import ProbeAnswer, ProbeFindings
from ....kernels.probe.assumed import VectorVerdict
from ...facts.texts import clean
from ..tables import fact, folding

STYLES = {"named": "", "measured": "", "several agree": "yellow", "none agrees": "red", "open": "yellow"}


def written_json(out: str, names: list[str]) -> dict[str, Any]:
    return {"folder": out, "experiments": names}


def written_page(out: str, names: list[str]) -> RenderableType:
    """What to do next."""
    return Parts(
        fact(
            "written",
            f"{len(names)} experiments to {clean(out, 200)}; README.txt there is for the person at the board",
        ),
        fact("board", "copy the folder to it and run `python run_probe.py`"),
        fact("read", f"ascendtile probe --read {clean(out, 200)} -o numerics.toml"),
    )


def probe_json(found: ProbeFindings) -> dict[str, Any]:
    return found.to_dict()


def probe_page(found: ProbeFindings) -> RenderableType:
    """Questions with their answers and evidence, and the assumed vectors."""
    counts = Counter(a.verdict for a in found.answers)
    told = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    versions = ", ".join(f"{clean(n, 20)} {clean(x, 40)}" for n, x in found.versions.items())
    return Parts(
        Text(clean(f"probe of {found.product or 'an unknown product'}", 80), style="bold"),
        fact("with", versions or "unknown versions"),
        fact("result", f"{len(found.answers)} questions: {told}"),
        Text(),
        _answers(found.answers),
        Text(),
        *_vectors(found.vectors),
    )


def _answers(answers: Iterable[ProbeAnswer]) -> Table:
    table = folding(("question", 18), ("answer", 31), ("evidence", 0))
    for a in answers:
        evidence = "\n".join((*a.experiments, f"{a.bits:,} bits")) if a.experiments else "-"
        table.add_row(
            Text(clean(a.question, 60)), Text(clean(_told(a), 500), STYLES[a.verdict]), Text(evidence)
        )
    return table


def _told(answer: ProbeAnswer) -> str:
    """The named values, or how the question stays open."""
    values = " ".join(f"{n}={'|'.join(map(str, x))}" for n, x in answer.values.items() if x)
    if answer.verdict == "named":
        return values
    if answer.verdict == "measured":
        return answer.detail
    return ". ".join(x for x in (answer.verdict, values, answer.detail) if x)


def _vectors(verdicts: Iterable[VectorVerdict]) -> Iterable[RenderableType]:
    """One line for each way in which assumed vectors ended."""
    groups: dict[tuple[str, str], list[str]] = {}
    for v in verdicts:
        groups.setdefault((v.verdict, v.reason), []).append(str(v.vector.number))
    yield Text("vectors of the numerics specification that were assumed", style="bold")
    for (verdict, reason), numbers in groups.items():
        yield fact("", f"{verdict}: {', '.join(numbers)}{f' ({reason})' if reason else ''}")
