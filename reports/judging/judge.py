"""`ascendtile.judge`: a task and an answer in, a verdict out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...simulator.device import DEFAULT_PRODUCT, device
from ...simulator.errors import UsageError
from ...simulator.products import Product, load_product, product_names
from .advising import advised
from .assembling import not_compiled, verdict_of
from .controller import Judgement, JudgeRequest
from .judged_case import JudgedCase
from .processes.limits import Limits
from .processes.pool import Job, Pool
from .suspicions import text_facts
from .tasks.files import AnswerError, TaskFile, read_answer, read_task
from .verdict import Verdict

PathLike = str | os.PathLike[str]
Watch = Callable[[Sequence[JudgedCase]], None]
MODULES = (  # which the process that forks imports once, so that no call does
    "ascendtile.reports.judging.answering.run",
    "ascendtile.reports.judging.tasks.describing",
    "ascendtile.reports.judging.tasks.reference",
    "ascendtile.reports.judging.warmed",
)
TORCH_MODULES = (*MODULES, "ascendtile.reports.judging.warmed_torch")


def judge(
    task: PathLike,
    answer: PathLike,
    *,
    product: str | Product | None = None,
    values: bool = True,
    full: bool = False,
    seed: int | None = None,
    trials: bool = True,
    overrides: Mapping[str, Any] | None = None,
    compiler: str | None = None,
    compiler_version: str | None = None,
    limits: Limits | None = None,
    job: Job | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """Judge the answer to a task: values, cheats, time on a product, and whether it fits.

    Both run in processes of their own, without network, with limits; the answer's knows neither the task nor the seed. The
    same files and options give the same verdict, byte for byte.

    Args:
        task: a Python file with `Model`, `get_inputs` or `get_input_groups`, and `get_init_inputs` where Model takes
            arguments, as KernelBench, AscendOpGenAgent and AKG have them; over torch or numpy.
        answer: a Python file with `ModelNew`, or with a function that takes the inputs.
        product: a name of `products()`, a path to a TOML file, or a Product; None is ascend910b3.
        values: whether values are judged; without, the time is all that is found ("timed").
        full: all values, however long that takes; without, of large outputs some positions ("correct_so_far").
        seed: draws other inputs and positions; 0 or more.
        trials: whether changes of the dearest launch are timed, which the suggestion promises; without, it is what the
            record says.
        overrides: figures of the product that are changed, such as {"buffers.ub": 262144}.
        compiler, compiler_version: who makes the code, as options of `simulator.device`.
        limits: of each process.
        job: of a pool (`reports.judging.processes.pool`) that is running already; without, one is started for this verdict.
        watch: told the judged cases, whose calls say more than the verdict.

    Raises `UsageError` for a task that cannot be read or run, and for wrong options: that is no verdict on the answer. An
    answer that cannot be read as a file is wrong usage, too; one that is no Python has the verdict "not_compiled".
    """
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise UsageError(f"seed must be an integer of at least 0, got {seed!r}")
    if full and not values:
        raise UsageError("full is about values, which values=False leaves out")
    return judge_files(
        read_task(Path(task)),
        Path(answer),
        _options(product, overrides, compiler, compiler_version),
        values=values,
        full=full,
        seed=seed,
        trials=trials,
        limits=limits or Limits(),
        job=job,
        watch=watch,
    )


def judge_files(
    task: TaskFile,
    answer: Path,
    options: Mapping[str, Any],
    *,
    job: Job | None = None,
    watch: Watch | None = None,
    **asked: Any,
) -> Verdict:
    """The same of a task that was read. options: of `device_options`; asked: fields of `JudgeRequest`."""
    given = options["product"]
    product = load_product(given) if isinstance(given, str) else Product.from_dict(given)
    try:
        found = read_answer(answer, task)
    except AnswerError as e:
        return advised(not_compiled(e, product.name), ())
    wanted = JudgeRequest(task, found, options, **asked)
    with _job(job, wanted.needs_torch) as own:
        cases = Judgement(wanted, own).cases()
        if watch is not None:
            watch(cases)
        return advised(verdict_of(cases, product, text_facts(task, found)), cases)


def _options(
    product: str | Product | None,
    overrides: Mapping[str, Any] | None,
    compiler: str | None,
    version: str | None,
) -> dict[str, Any]:
    """Options of the device as plain data, checked."""
    given = {"compiler": compiler, "compiler_version": version}
    options = {n: x for n, x in given.items() if x is not None}
    chosen = load_product(product or DEFAULT_PRODUCT, overrides=overrides or {})
    with device(chosen, **options):
        pass
    shipped = product is None or (isinstance(product, str) and product in product_names())
    return {"product": chosen.name if shipped and not overrides else chosen.to_dict(), **options}


@contextmanager
def _job(given: Job | None, torch: bool) -> Iterator[Job]:
    """The given one; else one of a pool that ends with the verdict."""
    if given is not None:
        yield given
        return
    modules = TORCH_MODULES if torch else MODULES
    with Pool(slots=1, waiting=0, torch=torch, modules=modules) as pool, pool.job() as own:
        yield own
