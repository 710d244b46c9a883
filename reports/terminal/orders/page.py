"""The page and the JSON of `ascendtile same-bits`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ....simulator.orders.verdict import DIFFERS, SAME, Counterexample, ElementOrder, SameBits, place
from ..sections import Block, more
from ..tables import fact, item

MOST_NAMES = 12
MOST_PAIRS = 4
STYLES = {SAME: "bold green", DIFFERS: "bold red"}


def same_bits_json(
    verdicts: Sequence[SameBits], not_compared: Mapping[str, str] | None = None, whole: bool = True
) -> dict[str, Any]:
    """All verdicts as one object; same: whether all are proven, and nothing is left out.

    not_compared: kernels without a verdict, with why. whole: whether the script launched all that it would.
    """
    left_out = dict(not_compared or {})
    same = whole and not left_out and all(v.same for v in verdicts)
    return {"same": same, "verdicts": [_json(v) for v in verdicts], "not_compared": left_out}


def _json(verdict: SameBits) -> dict[str, Any]:
    out = asdict(verdict)
    return {"subject": out.pop("subject"), "verdict": out.pop("kind"), "words": verdict.words, **out}


def same_bits_page(verdicts: Sequence[SameBits]) -> RenderableType:
    """Each verdict, what it is about, and the counterexample."""
    parts: Block = []
    for verdict in verdicts:
        parts += [Text()] if parts else []
        parts += _verdict(verdict)
    return Group(*parts)


def _verdict(verdict: SameBits) -> Block:
    return [
        Text(verdict.words, STYLES.get(verdict.kind, "bold yellow")),
        fact("runs", _names(verdict.configurations)),
        fact("outputs", f"{verdict.elements} elements of {', '.join(verdict.outputs)}"),
        *_doubts(verdict),
        *_differing(verdict),
        *(_counterexample(verdict.counterexample) if verdict.counterexample is not None else ()),
        *(fact("holds", text) for text in verdict.laws),
        *(fact("note", text) for text in verdict.notes),
        *(fact("advice", text) for text in verdict.advice),
    ]


def _names(names: Sequence[str]) -> str:
    left = len(names) - MOST_NAMES
    return "; ".join(names[:MOST_NAMES]) + (f"; and {left} more" if left > 0 else "")


def _doubts(verdict: SameBits) -> Block:
    return [
        *(fact("unknown", f"{place_}: {why}") for place_, why in verdict.unknowns.items()),
        *(
            fact(
                "by data",
                f"{place_} goes by {', '.join(names) or 'data'}; --given says that it stays as it is",
            )
            for place_, names in verdict.depends.items()
        ),
    ]


def _differing(verdict: SameBits) -> Block:
    """The pairs of configurations whose orders differ."""
    pairs = [f"{a} and {b}" for a, b in verdict.differing]
    shown = [fact("orders", f"differ between {text}") for text in pairs[:MOST_PAIRS]]
    return [*shown, *more(len(pairs) - MOST_PAIRS, "pairs")]


def _counterexample(found: Counterexample) -> Block:
    lines: Block = [Text(), Text(place(found), "bold")]
    for order in found.orders:
        lines += [item(f"{order.configuration}:", "bold"), Text(f"    {order.text}", overflow="fold")]
    if found.orders[0].value:
        which = "for these inputs" if found.inputs else "for inputs that are all 0"
        others = ", and all others 0" if found.inputs and not found.other else ""
        lines.append(Text.assemble((which, "bold"), others))
        lines += [Text(f"    {name} = {x:.9g}") for name, x in found.inputs.items()]
        lines += more(found.other, "elements that are not 0")
        lines += [Text(f"  {_of_inputs(order)}", overflow="fold") for order in found.orders]
    return lines


def _of_inputs(order: ElementOrder) -> str:
    return f"{order.configuration}: {order.of_inputs} = {order.value} ({order.bits})"
