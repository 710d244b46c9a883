"""`ascendtile probe`: how a board's units compute, from experiments that run on it."""

from __future__ import annotations

import sys
from typing import Any

import click

from ..options import json_option

STAYS_OPEN = 1  # exit status where a question is not settled


@click.command()
@click.option("--out", metavar="DIR", help="Write kernels, inputs and run_probe.py to a new folder.")
@click.option("--read", metavar="DIR", help="Read the results that run_probe.py left in that folder.")
@click.option("-o", "--output", metavar="F.toml", help="Write what was named, for --numerics F.toml.")
@click.option("--force", is_flag=True, help="Replace the file of --output if it is there.")
@json_option
def command(out: str | None, read: str | None, output: str | None, force: bool, as_json: bool) -> None:
    """Find out how the units of a board compute.

    --out writes a folder of small Triton kernels and their inputs. On the board `python run_probe.py` in it runs them, and
    --read decides from the bits which models agree: products added in a step, their order, sums and roundings, subnormal
    values, saturation, casts, reductions. Under the simulator run_probe.py runs, too: `ascendtile run DIR/run_probe.py`.

    Exit status: 0 every question is settled, 1 one stays open, 2 wrong usage, or results that are damaged or not of
    these experiments.

    Example: ascendtile probe --read probe -o numerics.toml
    """
    if (out is None) == (read is None):
        raise click.UsageError("give --out DIR to write a probe, or --read DIR to read its results")
    if read is None and (output is not None or force):
        raise click.UsageError(
            "--output and --force are for --read: nothing is named before a board ran the probe"
        )
    if force and output is None:
        raise click.UsageError("--force is for the file of --output; give one, or leave it out")
    if out is not None:
        _write(out, as_json)
    elif read is not None:
        _read(read, output, force, as_json)


def _write(out: str, as_json: bool) -> None:
    from ....kernels.probe import write_probe
    from ...terminal.board.probe_view import written_json, written_page
    from ...terminal.console import present

    present(as_json, written_json, written_page, out, write_probe(out))


def _read(folder: str, output: str | None, force: bool, as_json: bool) -> None:
    from ....kernels.probe import read_probe
    from ...terminal.board.probe_view import probe_json, probe_page
    from ...terminal.console import present

    if output is not None:
        _check_output(output, force)
    found = read_probe(folder)
    present(as_json, probe_json, probe_page, found)
    if output is not None:
        _save(output, found)
    if found.open_questions:
        sys.exit(STAYS_OPEN)


def _check_output(output: str, force: bool) -> None:
    from ....simulator.errors import UsageError
    from ....simulator.record.files import check_target

    target = check_target(output)
    if target.suffix != ".toml":
        raise UsageError(f"{output}: a file of numerics must end in .toml")
    if target.exists() and not force:
        raise UsageError(f"{output} exists; take another name, or --force to replace it")


def _save(output: str, found: Any) -> None:
    import datetime

    from ....simulator.record.files import write_whole
    from ...terminal.console import note

    if not found.choices:
        note(f"{output} is not written: nothing was named")
        return
    write_whole(output, found.numerics_file(datetime.date.today().isoformat()).encode())
    note(f"wrote {output}; use it with --numerics {output}")
