"""What the time rests on, and how to get it again."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ...simulator.record.run import ASSUMED_FIGURES, Run
from ..facts import facts, texts
from ..facts.repeat_command import repeat_command
from .writing import render

COLOURS = {"A": 2, "B": 0, "C": 1, "D": 3}
MOST_FIGURES = 200


def provenance(run: Run) -> Markup:
    """Share of the time by grade, and the assumed figures that it used with their values."""
    shares = [
        (g, texts.GRADES.get(g, g), us, facts.share(us, run.time_us), COLOURS.get(g, 6))
        for g, us in sorted(run.grades.items())
    ]
    return render("provenance.html", shares=shares, figures=assumed(run), changed=facts.overrides(run))


def assumed(run: Run) -> list[dict[str, Any]]:
    """The figures with grade D that the notes name: key, value, unit, where it comes from."""
    notes = (n.removeprefix(ASSUMED_FIGURES) for n in run.notes if n.startswith(ASSUMED_FIGURES))
    keys = [k for note in notes for k in note.split(", ")]
    found = facts.figures(run)
    fields = ("value", "unit", "source")
    return [{"key": k, **{n: str(found.get(k, {}).get(n, "")) for n in fields}} for k in keys[:MOST_FIGURES]]


def repeating(run: Run) -> Markup:
    """The command, and every choice that the numbers depend on."""
    choices = {"tiling": run.tiling, "options": run.options, "inputs": run.inputs}
    return render(
        "repeat.html", command=repeat_command(run), choices=choices, launches=run.launches, notes=run.notes
    )
