"""What the cases of a task are like, without their values: shapes, dtypes, outputs, operations.

Of torch's tasks this is found on meta tensors, which have neither values nor memory: 6 GB of inputs cost nothing. Where a
task needs values for that (a shape that depends on data, `.item()`), it is run as it is, as tasks over numpy are.
"""

from __future__ import annotations

import math
import re
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ....simulator.errors import UsageError
from ..exchange import form_of, is_tensor, to_message
from ..pricing.host_ops import record_ops
from ..seeds import random_state, seed_everything
from .loading import Arguments, LoadedTask, loaded_task, tensors_in

MOST_LETTERS = 300  # of a case in words

Answer = tuple[dict[str, Any], dict[str, int]]


def described(request: dict[str, Any], fds: dict[str, int]) -> Answer:
    """Of each case: `to_message` of its arguments without arrays, forms of its outputs (None where they are not known
    without values), operations of its Model, whether it writes to inputs or returns one (not where it needs values),
    elements of both and a text; the init arguments, and the operations that made the inputs of all cases; "seeded":
    whether any of that may hang on the seed.
    """
    with loaded_task(request) as task:
        found = _with_or_without_values(task, request["seed"])
    found["seeded"] |= _speaks_of_seeds(request)
    return found, {}


def _with_or_without_values(task: LoadedTask, seed: int) -> dict[str, Any]:
    try:
        with _without_values():
            return _described(task, seed)
    except UsageError:
        if "torch" not in sys.modules:
            raise
    return _described(task, seed)


def _speaks_of_seeds(request: dict[str, Any]) -> bool:
    """Whether a task may read where random numbers stand, without drawing one."""
    texts = (request["text"], *request["companions"].values())
    return any(re.search(r"seed|rng|get_?state", text) for text in texts)


def _without_values() -> AbstractContextManager[Any]:
    torch = sys.modules.get("torch")
    return torch.device("meta") if torch is not None else nullcontext()


def _described(task: LoadedTask, seed: int) -> dict[str, Any]:
    seed_everything(seed)
    before = random_state()
    with record_ops(task.path) as made:
        cases = task.cases(seed)
    seeded = random_state() != before
    init = to_message(list(task.init()), None)
    model = task.model() if "torch" in sys.modules else None
    rows = [_case(task, model, arguments) for arguments in cases]
    recorded = [op.to_json() for op in made] if model is not None else None
    return {"init": init, "cases": rows, "made": recorded, "seeded": seeded}


def _case(task: LoadedTask, model: Any, arguments: Arguments) -> dict[str, Any]:
    inputs = tensors_in([*arguments[0], *arguments[1].values()])
    versions = _versions(inputs)
    outputs, ops = _run(task, model, arguments)
    return {
        "changes_input": outputs is not None and _versions(inputs) != versions,
        "returns_input": outputs is not None and _shares_storage(outputs, inputs),
        "arguments": to_message(list(arguments), None),
        "outputs": None if outputs is None else [_form(x) for x in outputs],
        "ops": ops,
        "inputs": [_form(x) for x in inputs],
        "elements": sum(math.prod(x.shape) for x in (*inputs, *tensors_in(outputs or []))),
        "text": text_of(arguments),
    }


def _run(
    task: LoadedTask, model: Any, arguments: Arguments
) -> tuple[list[Any] | None, list[dict[str, Any]] | None]:
    """Outputs and operations of Model; None where it needs values."""
    if model is None or not _on_meta(arguments):
        return None, None
    try:
        with record_ops(task.path) as recorded:
            outputs = task.outputs(model, arguments)
    except UsageError:
        return None, None
    return outputs, [op.to_json() for op in recorded]


def _versions(inputs: list[Any]) -> list[int]:
    """How often torch wrote to each; meta tensors count, too. None of numpy's."""
    return [x._version for x in inputs if hasattr(x, "is_meta")]


def _shares_storage(outputs: list[Any], inputs: list[Any]) -> bool:
    """Whether an output is an input, or a view of one. Storages of meta tensors have no address, but are objects."""
    theirs, mine = (
        {x.untyped_storage()._cdata for x in every if hasattr(x, "is_meta")} for every in (inputs, outputs)
    )
    return bool(theirs & mine)


def _on_meta(arguments: Arguments) -> bool:
    """Whether nothing is computed: a case of values is only run when they are judged."""
    found = tensors_in([*arguments[0], *arguments[1].values()])
    return all(x.is_meta for x in found if hasattr(x, "is_meta"))


def _form(value: Any) -> list[Any] | None:
    """Shape and dtype of an output; None of what is no tensor."""
    if not is_tensor(value):
        return None
    form = form_of(value)
    return [list(form.shape), form.dtype]


def text_of(arguments: Arguments) -> str:
    """Arguments in words: "float32[64, 128], 3, dim=1"."""
    args, named = arguments
    words = [*map(_word, args), *(f"{k}={_word(x)}" for k, x in named.items())]
    return _cut(", ".join(words) or "no arguments")


def _word(value: Any) -> str:
    if is_tensor(value):
        form = form_of(value)
        return f"{form.dtype}{list(form.shape)}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_word, value))}]"
    return repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."
