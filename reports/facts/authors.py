"""Who made the code of a run: the vendor's compiler, or an author who writes it by hand."""

from __future__ import annotations

from collections.abc import Iterable

from ...simulator.device import ASCENDC, TRITON_ASCEND
from ...simulator.record.run import Run
from . import facts, texts
from .repeat_command import CHOSEN

RULES = "compiler.rules"  # the figure of a product that says how sure the compiler's rules are
LONGEST_NAME = 60


def compiler(run: Run) -> str:
    """ "triton-ascend 9.0", "ascendc", both where launches differ; empty for a record that does not say."""
    made = dict.fromkeys(x.compiler for x in run.launches if x.compiler)
    said = ", ".join(made) or str(run.options.get("compiler", "")).removesuffix(CHOSEN)
    return texts.clean(said, LONGEST_NAME)


def code_text(run: Run) -> str:
    """Who made the code and why that one: "ascendc, written by hand: usual for an operator"; empty likewise."""
    made = compiler(run)
    if not made:
        return ""
    hand = ", written by hand" if made == ASCENDC else ""
    usual = "an operator" if run.op else "a kernel of your own"
    asked = str(run.options.get("compiler", "")).endswith(CHOSEN)
    return f"{made}{hand}: {'as asked' if asked else f'usual for {usual}'}{_assumed(run, made)}"


def script_text(runs: Iterable[Run]) -> str:
    """The same for all launches of a script, each text once; empty likewise."""
    return "; ".join(dict.fromkeys(filter(None, map(code_text, runs))))


def _assumed(run: Run, made: str) -> str:
    graded = facts.figures(run).get(RULES, {}).get("grade")
    if graded != "D" or not made.startswith(TRITON_ASCEND):
        return ""
    return (
        f"; its rules are those of Atlas A2, assumed on {texts.clean(facts.product_name(run), LONGEST_NAME)}"
    )
