"""Target of command lines: options of every command, with values that are right, near, or nothing of the kind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import click

from ascendtile.reports.cli.main import cli

from . import seeds
from .judge import Bench
from .mutators import HOSTILE, Chance

SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl
@triton.jit
def twice(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)
x = np.ones(1000, np.float32)
twice[(4,)](x, np.empty_like(x), x.size, BLOCK=256)
print(sys.argv[1:])
"""
SIZES = {
    "rms_norm_grad": "rows=8 cols=64",
    "matmul": "m=32 n=32 k=32",
    "bce_with_logits": "shape=4x100",
    "layer_norm": "rows=8 cols=64",
    "group_norm": "n=2 c=8 hw=16",
    "flash_attention": "heads=2 queries=32",
}
WORDS: dict[str, tuple[str, ...]] = {
    "--case": ("tiny", "tiny", "decode", "nothing"),
    "--size": (
        "m=32", "n=32", "k=32", "rows=8", "cols=64", "shape=4x100", "m=0", "m=-1", "k=1", "rows=99999999999999999999",
        "shape=4x", "m=1.5", "m=16",
    ),
    "--dtype": ("float16", "bfloat16", "float32", "int8", "float64", "fp16", "nothing"),
    "--product": ("ascend910b3", "ascend310p", "ascend910a", "ascend910c", "nothing", "mine.toml", "x.run", "."),
    "--set": (
        "buffers.ub=256KiB", "buffers.ub=1", "clock.aicore_mhz=1.8GHz", "buffers.ub=0",
        "memory.bandwidth_tb_per_s=1e-300", "cores.vector_cores=1", "cores.cube_cores=0", "buffers.ub=-1",
        "nothing=3", "launch.all_cores_overhead_us=0", "buffers.l1=256KiB",
    ),
    "--tiling": (
        "rows=2", "cols=64", "block_m=16", "block_n=16", "block_k=16", "block=64", "cores=1", "cores=99", "rows=0",
        "buffers=0", "group=3", "split_k=2", "strategy=kept_row", "strategy=no", "schedule=persistent", "rows=1e9",
        "block_m=100000000000000000000",
    ),
    "--space": (
        "block_m=16,32", "block_n=16..64", "block_k=32..96+32", "rows=1,2", "cols=64", "dtype=float16,float32",
        "buffers=1,2", "rows=4..1", "block_m=", "block_m=1..99999999999999999999", "rows=0..4", "cores=1..9+0",
        "cube_math_type=KEEP_DTYPE,USE_HF32", "block_m=16..99999999+1",
    ),
    "--l2": ("cold", "warm", "loop", "x=warm", "x=warm,y=cold", "a=,b", "=", "x=hot"),
    "--numerics": ("cube_block_k=1", "overflow_mode=saturate", "cube_block_k=0", "nothing=1", "cube_block_k=x"),
    "--cube-math-type": ("KEEP_DTYPE", "USE_HF32", "USE_FP16", "nothing"),
    "--modes": ("KEEP_DTYPE", "USE_HF32,USE_FP16", "", "x,", "all"),
    "--dtypes": ("float16", "float32+float16", "mixed", "x", ","),
    "--option": ("reduction=sum", "eps=1e-5", "reduction=no", "eps=nan", "eps=-1", "x=1"),
    "--budget": ("3", "1s", "0", "-1", "nan", "nans", "1e9s", "x", "1m", "infs", "3.5"),
    "--sampler": ("auto", "exact", "random", "no"),
    "--objective": ("time", "ub", "error", "no"),
    "--workers": ("1", "0", "-1", "x", "1.5", "tcp://", ""),
    "--worker-timeout": ("1", "0", "-1", "nan", "inf", "x"),
    "--what-if": ("buffers.ub=128KiB,256KiB", "buffers.ub=", "nothing=1,2", "buffers.ub=x,y"),
    "--cases": ("tiny,decode", "tiny", ",", "no"),
    "--diff": ("rows=1", "rows=2", "auto", "block_m=16,group=1", "rows=", "x"),
    "--store": ("s.sqlite", "x.run", ".", "none/s.sqlite", ""),
    "--input": ("x.npz", "x.run", "none.npz", ".", "mine.toml"),
    "--reference": ("x.npz", "none.npz"),
    "--save": ("out.run", ".", "none/out.run", "x.run", ""),
    "--out": ("folder", ".", "x.run", ""),
    "--output": (
        "o.html", "o.json", "o.svg", "o.png", "o.pdf", "o.csv", "o.toml", ".", "none/o.html", "tables", "x.run", "",
    ),
    "--plot": ("o.svg", "o.xyz", "."),
    "--picture": (
        "roofline", "timeline", "occupancy", "errors", "magnitude", "pareto", "heatmap", "precision", "sweep",
        "difference", "no",
    ),
    "--window": ("0:1", ":", "1:0", "nan:nan", "-1:", "x", "0:inf", "1e999:"),
    "--baseline": ("b.json", "b.json", "x.run", "none.json", ".", ""),
    "--against": ("HEAD", "main", "", "-x"),
    "--of": ("HEAD", "nothing", ""),
    "--fail-above": ("5%", "0", "-1", "nan", "x", "1e9%"),
    "--example": ("example", ".", "x.run", "none/deep", ""),
    "--table": ("table.csv", "x.run", "none.csv"),
    "--group": ("nothing", "products"),
    "--distribution": ("normal", "heavy", "lognormal", "uniform", "cancel", "outliers", "no"),
    "--sweep": ("k", "scale", "distribution", "no"),
    "--export": ("csv", "json", "python", "no"),
    "--timeline": ("100", "0", "-1", "x"),
}  # fmt: skip
NUMBERS = ("0", "1", "2", "5", "-1", "7", "100000", "1.5", "x", "nan", "99999999999999999999")
ARGUMENTS = {
    "run": (
        "rms_norm_grad",
        "matmul",
        "bce_with_logits",
        "layer_norm",
        "script.py",
        "./script.py",
        "nothing",
        "x.run",
    ),
    "check": ("script.py", "none.py", "x.run", "."),
    "explore": ("rms_norm_grad", "matmul", "nothing"),
    "precision": ("matmul", "rms_norm_grad", "bce_with_logits"),
    "report": ("x.run", "y.run", "s.sqlite", "e.json", "p.json", "mine.toml", "none", "."),
    "export": ("x.run", "y.run", "s.sqlite", "none"),
    "compare": ("x.run", "y.run", "profile.csv", "none", "s.sqlite"),
    "calibrate": ("table.csv", "profile.csv", "x.run", "none"),
    "products": ("ascend910b3", "ascend310p", "mine.toml", "nothing", "x.run"),
    "ops": ("matmul", "rms_norm_grad", "nothing"),
    "validate": ("x",),
}
NOT_TRIED = ("demo", "serve")  # ten seconds each time; a server, which waits for requests
# What takes longer than a test may, and is asked for on purpose.
SLOW = {"--cross", "--sensitivity", "--all"}
LIMITS = {
    "explore": ("--budget", "3"),
    "validate": ("--table", "table.csv"),
    "calibrate": ("--most-rows", "3"),
    "precision": ("--no-time",),
}


@cache
def commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {n: cli.get_command(context, n) for n in cli.list_commands(context)}
    return {n: c for n, c in found.items() if c is not None and n not in NOT_TRIED}


def command_line(chance: Chance, bench: Bench) -> None:
    _files(bench)
    name = chance.choice(sorted(commands()))
    words = _words(chance, name)
    if chance.once_in(20):
        words.insert(
            chance.randrange(len(words) + 1),
            chance.one_of(
                "--nothing", "-", "--", "-x", "", "--json=1", *(h for h in HOSTILE if "\0" not in h)
            ),
        )
    words = [
        w.replace("\ud800", "\udcff") for w in words
    ]  # as a byte of a command line that is no text arrives
    chance.note(repr([name, *words]))
    bench.command(*([name] if not chance.once_in(50) else [chance.choice(HOSTILE[1:])]), *words)


def _files(bench: Bench) -> None:
    """What the words name."""
    from .records import zipped
    from .tables import inputs, measured, vendor_tables
    from .values import npy

    bench.file("x.run", seeds.records()[1])
    bench.file("y.run", seeds.records()[2])
    (bench.folder / "s.sqlite").write_bytes(seeds.sweep()[0])
    bench.file("e.json", seeds.sweep()[1])
    bench.file("script.py", SCRIPT)
    bench.file("b.json", '{"format": "ascendtile-baseline", "version": 1, "tests": {}}')
    bench.file(
        "mine.toml",
        'base = "ascend910b3"\n[buffers]\nub = { value = 131072, unit = "bytes", source = "me", grade = "D" }\n',
    )
    bench.file("profile.csv", vendor_tables()[0])
    head, *rows = measured()[0]
    bench.file("table.csv", "\n".join(",".join(f'"{x}"' for x in row) for row in [head, *rows[:2]]))
    bench.file("x.npz", zipped({f"{n}.npy": npy(x) for n, x in inputs()[1].items()}))


def _words(chance: Chance, name: str) -> list[str]:
    """Arguments and options in any order; what makes a run small unless another value is drawn."""
    command = commands()[name]
    count = len([p for p in command.params if isinstance(p, click.Argument) and p.required])
    count = count if not chance.once_in(5) else chance.randrange(4)
    arguments = [_usually(chance, ARGUMENTS.get(name, ("x",))) for _ in range(count)]
    groups = [[a] for a in arguments]
    options = [p for p in command.params if isinstance(p, click.Option) and not SLOW & set(p.opts)]
    drawn = chance.sample(options, min(len(options), chance.one_of(0, 1, 1, 2, 2, 3, 4)))
    groups += [_option(chance, p) for p in drawn]
    chance.shuffle(groups)
    words = [w for g in groups for w in g]
    if not {"--case", "--size", "--input"} & set(words) and arguments and arguments[0] in SIZES:
        words += ["--size", *SIZES[arguments[0]].split()]
    if name in LIMITS and LIMITS[name][0] not in words:
        words += LIMITS[name]
    return words


def _usually(chance: Chance, known: Sequence[Any]) -> str:
    """One of the first two, which are right, or any."""
    return str(chance.choice(known[:2] if not chance.once_in(3) else known))


def _option(chance: Chance, option: click.Option) -> list[str]:
    flag = max(option.opts, key=len)
    if option.is_flag:
        return [flag]
    known: Any = WORDS.get(flag) or getattr(option.type, "choices", None) or NUMBERS
    count = option.nargs if option.nargs > 1 else chance.one_of(1, 1, 2) if option.multiple else 1
    usual = [_usually(chance, list(known)) for _ in range(count)]
    if chance.once_in(15):
        usual[0] = chance.choice([h for h in HOSTILE if "\0" not in h])
    return [flag, *usual]
