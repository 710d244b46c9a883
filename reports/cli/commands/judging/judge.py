"""`ascendtile judge`: whether an answer to a task of a benchmark is right, how fast it is, and what to change."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ...options import (
    AssignmentCommand,
    compiler_option,
    json_option,
    product_option,
    set_option,
    version_option,
)

if TYPE_CHECKING:
    from ....judging.processes.limits import Limits
    from ....judging.verdict import Verdict

NOT_ACCEPTED = 1  # exit status


@click.command(cls=AssignmentCommand)
@click.argument("task", metavar="TASK.py")
@click.argument("answer", metavar="ANSWER.py")
@product_option
@set_option
@compiler_option
@version_option
@click.option("--no-values", is_flag=True, help="Time only: values are not judged.")
@click.option(
    "--full", is_flag=True, help="Judge all values, however long it takes; without, of large outputs some."
)
@click.option("--no-trials", is_flag=True, help="Time no changes for the suggestion, which takes longest.")
@click.option("--seed", type=click.IntRange(min=0), help="Draw other inputs and other positions.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Processor time that each process of the judgement may take.",
)
@click.option("-o", "--output", metavar="FILE.json", help="Write the verdict to a file, too.")
@json_option
def command(**options: Any) -> None:
    """Judge an answer to a task: values, cheats, time, fit.

    TASK.py is a task of KernelBench, AscendOpGenAgent's NPUKernelBench or AKG, as it is (Model, get_inputs or
    get_input_groups, get_init_inputs); ANSWER.py has ModelNew, or a function that takes the inputs. Both run in processes
    without network. The verdict is the same each time; --json gives it with the keys of KernelBench's result.

    Exit status: 0 correct, correct_so_far or timed; 1 any other verdict; 2 wrong usage, or a task that cannot be read.

    Example: ascendtile judge 19_ReLU.py answer.py
    """
    asked = SimpleNamespace(**options)
    if asked.full and asked.no_values:
        raise click.UsageError("--full is about values, which --no-values leaves out")
    _check_output(asked)
    verdict = _judged(asked)
    from ....terminal.console import present
    from ....terminal.judging.page import verdict_page

    if asked.output:
        _write(verdict, asked.output)
    present(asked.as_json, lambda v: v.to_json(), verdict_page, verdict)
    sys.exit(0 if verdict.accepted else NOT_ACCEPTED)


def _judged(asked: SimpleNamespace) -> Verdict:
    from ....judging.judge import judge

    return judge(
        asked.task,
        asked.answer,
        product=asked.product,
        overrides=asked.overrides,
        compiler=asked.compiler,
        compiler_version=asked.compiler_version,
        values=not asked.no_values,
        full=asked.full,
        seed=asked.seed,
        trials=not asked.no_trials,
        limits=_limits(asked.seconds),
    )


def _limits(seconds: float | None) -> Limits | None:
    from ....judging.processes.limits import Limits

    return None if seconds is None else Limits(cpu_s=seconds, wall_s=10 * seconds)


def _check_output(asked: SimpleNamespace) -> None:
    """Refuse what cannot be written before anything runs."""
    if not asked.output:
        return
    from .....simulator.record.files import check_target

    if not asked.output.endswith(".json"):
        raise click.UsageError(f"-o {asked.output}: the name must end in .json")
    check_target(asked.output)


def _write(verdict: Verdict, path: str) -> None:
    import json

    from .....simulator.record.files import write_whole
    from ....terminal.console import note

    text = json.dumps(verdict.to_json(), indent=1, allow_nan=False)
    write_whole(path, f"{text}\n".encode())
    note(f"wrote {path}")
