"""Commands to copy and paste: one that makes a saved run once more, with every choice of its record that differs from the
usual one, and one that runs a tiling which an exploration found.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import chain
from typing import Any

from ...simulator.device import USUAL_RELEASE
from ...simulator.errors import UsageError
from ...simulator.l2.state import LOOP, told
from ...simulator.precision.numeric_switches import SWITCHES
from ...simulator.record.run import Run
from . import facts
from .l2_text import l2_option
from .texts import clean

CHOSEN = " (chosen)"  # ends a choice of numerics that the user made, or a changed product
OF_FILE = " (file "  # begins the name of the file of numerics that made it
SETTINGS = {"dtype": "--dtype", "cube_math_type": "--cube-math-type"}
USUAL = {
    "cube_math_type": "KEEP_DTYPE",
    "compiler_version": USUAL_RELEASE,
    "l2": LOOP,
    "seed": 0,
    "distribution": "normal",
}


def repeat_command(run: Run) -> str | None:
    """`ascendtile run ...` with everything that differs from the usual; None for a kernel of the user's own."""
    if run.op is None:
        return None
    found = {
        "--dtype": run.dtype,
        "--product": facts.product_name(run),
        "--cube-math-type": _unusual("cube_math_type", run.cube_math_type),
        **_compiler(run.options.get("compiler")),
        "--l2": l2_option(run),
        "--set": facts.overrides(run),
        "--numerics": _numerics(run),
        "--tiling": run.tiling,
        "--option": _options(run),
        "--seed": _unusual("seed", run.options.get("seed")),
        "--distribution": _unusual("distribution", run.options.get("distribution")),
        "--no-values": not _valued(run),
        "--no-time": not facts.timed(run) and run.time_seconds is None,
        "--check": run.options.get("check") is True,
        "--masked": run.options.get("masked"),
        "--out-of-bounds": run.options.get("out_of_bounds"),
    }
    return " ".join(["ascendtile", *_command("run", run.op, _inputs(run), found)])


def repeat_tiling(op: str, point: Mapping[str, Any], asked: Mapping[str, Any], width: int) -> str:
    """`ascendtile run OP ...` in lines of at most `width` that a shell joins.

    point: knobs, and settings where they are axes. asked: what else the sweep was started with, by name of its option
    (case, size, input_file, dtype, product, overrides, compiler, compiler_version, l2, cube_math_type, options).
    """
    settings = {n: point.get(n, asked.get(n)) for n in SETTINGS}
    found = {
        "--case": asked.get("case"),
        **_problem(asked),
        **{flag: settings[n] for n, flag in SETTINGS.items() if settings[n] != USUAL.get(n)},
        "--size": asked.get("size"),
        "--set": asked.get("overrides"),
        "--option": asked.get("options"),
        "--tiling": {n: x for n, x in point.items() if n not in SETTINGS and x is not None},
    }
    return _folded(_command("run", op, [], found), width)


def repeat_chain(
    chain: str, formats: Mapping[str, str], modes: Mapping[str, str], asked: Mapping[str, Any], width: int
) -> str:
    """`ascendtile chain NAME ...` likewise, with what a search found. asked: also seed, distribution and numerics."""
    found = {
        **_problem(asked),
        "--size": asked.get("size"),
        "--set": asked.get("overrides"),
        "--numerics": asked.get("numerics"),
        "--seed": _unusual("seed", asked.get("seed", 0)),
        "--distribution": _unusual("distribution", asked.get("distribution", "normal")),
        "--formats": formats,
        "--modes": modes,
    }
    return _folded(_command("chain", chain, [], found), width)


def _problem(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Options for the inputs of a file, and the device."""
    return {
        "--input": asked.get("input_file"),
        "--product": asked.get("product"),
        "--compiler": asked.get("compiler"),
        "--compiler-version": asked.get("compiler_version"),
        "--l2": None if asked.get("l2") is None else _unusual("l2", told(asked["l2"])),
    }


def _folded(arguments: list[str], width: int) -> str:
    """The command in lines of at most `width` that a shell joins."""
    lines = ["ascendtile"]
    for argument in arguments:
        if len(lines[-1]) + len(argument) + 3 > width:
            lines.append("   ")
        lines[-1] += f" {argument}"
    return " \\\n".join(lines)


def _command(verb: str, op: str, arguments: list[str], options: Mapping[str, Any]) -> list[str]:
    """What follows `ascendtile`, quoted for a shell."""
    flags = (_arguments(flag, value) for flag, value in options.items())
    return [shlex.quote(clean(str(w))) for w in (verb, op, *arguments, *chain(*flags))]


def _arguments(flag: str, value: Any) -> list[str]:
    """Arguments of an option on the command line, NAME=VALUE for each of a mapping; none where there is nothing to say."""
    if value in (None, "", False) or value == {}:
        return []
    if isinstance(value, Mapping):
        return [flag, *(f"{n}={_plain(x)}" for n, x in value.items())]
    return [flag] if value is True else [flag, str(value)]


def _plain(x: Any) -> str:
    """(2, 2) as 2x2, which is how the command line reads it."""
    return "x".join(map(str, x)) if isinstance(x, list | tuple) else str(x)


def _compiler(chosen: Any) -> dict[str, str]:
    """ "triton-ascend 9.0 (chosen)" as options; none for the usual one."""
    text = str(chosen)
    if not text.endswith(CHOSEN):
        return {}
    author, _, version = text.removesuffix(CHOSEN).partition(" ")
    return {
        "--compiler": author,
        "--compiler-version": version if version != USUAL["compiler_version"] else "",
    }


def _unusual(name: str, value: Any) -> Any:
    return None if value == USUAL[name] else value


def _inputs(run: Run) -> list[str]:
    """The case, or the sizes that stand for one; inputs of the user's own cannot be drawn again."""
    if not run.case:
        return ["--input", "INPUTS.npz"] if run.inputs else []
    return ["--size", *run.case.split()] if "=" in run.case else ["--case", run.case]


def options_text(run: Run) -> str:
    """ "causal=1": `set_options` as on the command line."""
    return "  ".join(f"{n}={_plain(x)}" for n, x in set_options(run).items())


def _numerics(run: Run) -> dict[str, str]:
    """What the user chose; a changed figure of the product is there already."""
    changed = facts.overrides(run)
    given = {n: str(run.options.get(n, "")) for n in SWITCHES if f"numerics.{n}" not in changed}
    return {n: x.partition(" (")[0] for n, x in given.items() if x.endswith(CHOSEN) or OF_FILE in x}


def _options(run: Run) -> dict[str, Any]:
    """Arguments of the operator that differ from those of the case."""
    return set_options(run, beside_case=True)


def set_options(run: Run, beside_case: bool = False) -> dict[str, Any]:
    """Arguments of the operator that differ from its usual ones, or from those of the case; None is what the operator
    chooses.
    """
    from ...kernels import get_operator

    try:
        op = get_operator(run.op or "")
        of_case = op.cases[run.case].options if beside_case and run.case and run.case in op.cases else {}
        usual = op.read_options(of_case)
    except UsageError:  # a record of an operator that this version does not have
        return {}
    given = {n: run.options[n] for n in usual if n in run.options}
    return {n: x for n, x in given.items() if x is not None and _plain(x) != _plain(usual[n])}


def _valued(run: Run) -> bool:
    """Whether values were computed: of a case what they were drawn from is said, of given inputs their errors are."""
    return "seed" in run.options if run.case else bool(run.errors) or not facts.timed(run)
