"""What an agent is told when it connects: the first lines of the loop; SKILL.md has the whole."""

from __future__ import annotations

from importlib.resources import files

INSTRUCTIONS = (
    "A simulated Ascend NPU judges Triton and Triton-Ascend kernels: values, error, time in us, buffers, the same every "
    "time. Loop: write an answer, call judge with the texts of task and answer, read verdict, then suggestion, change that "
    "one thing, judge again. `docs` with page reports/serving/SKILL.md has the rules, the meaning of every field and what "
    "counts as a cheat."
)


def skill() -> str:
    """The text of SKILL.md."""
    return (files(__package__) / "SKILL.md").read_text(encoding="utf-8")
