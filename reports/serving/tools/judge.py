"""The tool `judge`: an answer to a task, as `ascendtile judge` judges it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....simulator.errors import UsageError
from .tool import COMPILER, FILES, PRODUCT, SET, Arguments, Tool, checked_files, flag, number, source, text
from .writing import written

if TYPE_CHECKING:
    from ...judging.judge import Watch
    from ...judging.processes.limits import Limits
    from ...judging.processes.pool import Job

TASK, ANSWER = "task.py", "answer.py"
ABOUT = (
    "Judge a kernel: task as KernelBench, NPUKernelBench, AscendOpGenAgent and AKG write them (Model, get_inputs or "
    "get_input_groups, get_init_inputs), answer with ModelNew or one function. The verdict is a superset of KernelBench's "
    "result: correctness with error by output, time in us against the reference and the floor, UB bits, the line that "
    "costs, cheats by name, confidence, and one suggestion to follow next. The same verdict every time."
)
PROPERTIES = {
    "task": source("Text of the task's file."),
    "answer": source("Text of the answer's file."),
    "task_path": text("The task as a path below the server's --root instead of its text.", 1000),
    "answer_path": text("The answer as a path below the server's --root instead of its text.", 1000),
    "files": FILES,
    "product": PRODUCT,
    "set": SET,
    "compiler": COMPILER,
    "values": flag("Whether values are judged; false is time only.", True),
    "full": flag("Every value of large outputs instead of a drawn part of them. Slower.", False),
    "seed": number("Of the inputs, beside what the texts give.", 0, 2**63 - 1),
}


def judged(
    arguments: Arguments, job: Job, limits: Limits, below: Path, watch: Watch | None = None
) -> dict[str, Any]:
    """The verdict as plain data, by processes of the job. below: where texts become files; watch: as for `judge`."""
    from ...judging.judge import judge

    given = {n: arguments[n] for n in GIVEN if n in arguments} | {"overrides": arguments.get("set")}
    texts = {TASK: arguments["task"], ANSWER: arguments["answer"]}
    with written(checked_files(arguments, TASK, ANSWER) | texts, below) as folder:
        try:
            return judge(
                folder / TASK, folder / ANSWER, **given, limits=limits, job=job, watch=watch
            ).to_json()
        except UsageError as e:
            raise UsageError(str(e).replace(f"{folder}/", "")) from None


GIVEN = ("product", "compiler", "values", "full", "seed")
PATHS = {"task_path": "task", "answer_path": "answer"}
TOOL = Tool(
    "judge",
    "Judge an answer to a task",
    ABOUT,
    PROPERTIES,
    directed=judged,
    required=("task", "answer"),
    paths=PATHS,
)
