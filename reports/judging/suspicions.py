"""Cheats of a judged case: from the answer's text, from its process, and from the logs of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .cheats.judging import CaseFacts, judged_cheats
from .cheats.launch_sites import LaunchSite, launch_sites
from .cheats.static import static_cheats
from .costs import CaseCost
from .judged_case import JudgedCase
from .tasks.files import AnswerFile, TaskFile
from .verdict import Cheat


@dataclass(frozen=True)
class TextFacts:
    """What the text of an answer shows: cheats, and where it launches kernels."""

    cheats: tuple[Cheat, ...]
    sites: tuple[LaunchSite, ...]


def text_facts(task: TaskFile, answer: AnswerFile) -> TextFacts:
    """Of an answer and the modules beside it."""
    texts = [answer.text, *answer.siblings.values()]
    stem, siblings = task.path.stem, tuple(answer.siblings)
    cheats = [c for text in texts for c in static_cheats(text, stem, siblings)]
    return TextFacts(tuple(cheats), tuple(s for text in texts for s in launch_sites(text, answer.entry)))


def with_cheats(cases: Sequence[JudgedCase], costs: Sequence[CaseCost], text: TextFacts) -> list[JudgedCase]:
    """The cases with all that speaks against them: what the text shows, what was refused, what the calls show."""
    return [replace(case, cheats=_cheats(case, cost, text)) for case, cost in zip(cases, costs, strict=True)]


def _cheats(case: JudgedCase, cost: CaseCost, text: TextFacts) -> tuple[Cheat, ...]:
    form = case.form
    facts = CaseFacts(
        elements=form.elements,
        inputs=form.inputs,
        ops=form.ops or (),
        sites=text.sites,
        values=case.values,
        compared=case.outputs or (),
        time_us=cost.time_us,
        floor_us=cost.floor_us,
        returns_input=form.returns_input,
        changes_input=form.changes_input,
    )
    every = (*text.cheats, *case.cheats, *judged_cheats(case.calls, facts))
    return tuple(dict.fromkeys(every))


def cheats_of(cases: Sequence[JudgedCase]) -> tuple[Cheat, ...]:
    """Of all cases, each once."""
    return tuple(dict.fromkeys(c for case in cases for c in case.cheats))
