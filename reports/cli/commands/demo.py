"""`ascendtile demo`: four runs, what they found, and a record of each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ..options import json_option

if TYPE_CHECKING:
    from ....simulator.record.run import Run

PRODUCT = "ascend910b3"
FOLDER = "ascendtile-demo"
# Operator, case, data type.
RUNS = (
    ("rms_norm_grad", "llama3-8b", "float16"),
    ("rms_norm_grad", "llama3-8b", "bfloat16"),
    ("rms_norm_grad", "llama3-8b", "float32"),
    ("bce_with_logits_backward", "yolo", "float16"),
)


@click.command()
@click.option("--out", metavar="DIR", default=FOLDER, show_default=True, help="Folder for the run records.")
@json_option
def command(out: str, as_json: bool) -> None:
    """Four runs on ascend910b3 in about ten seconds.

    Shows errors, time, bounds and the lines that cost most of each, and keeps a record of each in DIR.
    """
    make_folder(out)
    shown = [_one(number, out, as_json) for number in range(len(RUNS))]
    _finish(shown, as_json)


def make_folder(out: str) -> None:
    """Before anything is computed: a folder that files can be written to."""
    import tempfile

    from ....simulator.record.files import naming

    with naming(out, "write to"):
        os.makedirs(out, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()


def _one(number: int, out: str, as_json: bool) -> tuple[Run, str]:
    from ....kernels import run_op
    from ...terminal.console import note, show
    from ..progress import shown

    op, case, dtype = RUNS[number]
    what = f"{number + 1}/{len(RUNS)} {op} {case} {dtype}"
    with shown(what) as progress:
        run = run_op(op, case=case, dtype=dtype, product=PRODUCT, progress=progress).run
    record = os.path.join(out, f"{op}-{case}-{dtype}.run")
    run.save(record)
    if as_json:
        note(f"{what}: {record}")
    else:
        from ...terminal.demo_view import compact

        show(compact(run, record))
        show("")
    return run, record


def _finish(shown: list[tuple[Run, str]], as_json: bool) -> None:
    from ...terminal.console import show, show_json

    if as_json:
        from ...facts.json_view import run_json

        data: dict[str, Any] = {"runs": [run_json(run, record) for run, record in shown]}
        show_json(data)
    else:
        from ...terminal.demo_view import summary

        show(summary([run for run, _ in shown]))
