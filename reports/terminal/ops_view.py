"""Views of operators: the list of all, the page of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...kernels.operator.operator import Case, Operator
from ...kernels.operator.parameter import Parameter
from ..facts.texts import clean
from .tables import folding


def ops_json(operators: Iterable[Operator]) -> dict[str, Any]:
    """Operators as plain data, by name."""
    return {"ops": {op.name: _plain(op) for op in operators}}


def ops_table(operators: Iterable[Operator]) -> RenderableType:
    """All operators, a row each."""
    table = folding(("op", 26), ("cases", 5), ("data types", 14), ("what it computes", 32))
    for op in operators:
        types = " ".join(op.dtypes)
        table.add_row(Text(op.name, style="bold"), str(len(op.cases)), Text(types), Text(clean(op.summary)))
    return Group(table, Text("\n`ascendtile ops OP` shows the cases and knobs of one.", style="dim"))


def op_page(operators: Iterable[Operator]) -> RenderableType:
    """The first operator: inputs, outputs, cases, sizes, knobs, options."""
    op = next(iter(operators))
    inputs = ", ".join([*op.required, *(f"[{name}]" for name in op.optional)])
    first = next(iter(op.cases), None)
    return Group(
        Text.assemble((op.name, "bold"), f"  {clean(op.summary)}"),
        Text(f"\ninputs   {inputs}\noutputs  {', '.join(op.outputs)}\ndtypes   {', '.join(op.dtypes)}"),
        *_cases(op.cases.values()),
        *_pairs("sizes (--size NAME=VALUE)", op.sizes.items()),
        *_pairs("tiling (--tiling NAME=VALUE)", ((p.name, _knob(p)) for p in op.parameters)),
        *_pairs("options (--option NAME=VALUE)", ((p.name, _knob(p)) for p in op.options)),
        Text(f"\nascendtile run {op.name}" + (f" --case {first}" if first else ""), style="dim"),
    )


def _plain(op: Operator) -> dict[str, Any]:
    return {
        "summary": op.summary,
        "dtypes": list(op.dtypes),
        "inputs": {"required": list(op.required), "optional": list(op.optional)},
        "outputs": list(op.outputs),
        "sizes": dict(op.sizes),
        "parameters": {p.name: _plain_parameter(p) for p in op.parameters},
        "options": {p.name: _plain_parameter(p) for p in op.options},
        "cases": {name: _plain_case(case) for name, case in op.cases.items()},
    }


def _plain_parameter(p: Parameter) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(p).items() if k != "name"}


def _plain_case(case: Case) -> dict[str, Any]:
    sizes = {n: list(x) if isinstance(x, tuple) else x for n, x in case.sizes.items()}
    return {"title": case.title, "sizes": sizes, "source": case.source, "options": dict(case.options)}


def _cases(cases: Iterable[Case]) -> list[RenderableType]:
    table = folding(("\ncases (--case NAME)", 22), ("\nsizes, options", 26), ("\nwhat it is", 30))
    for case in cases:
        sizes = " ".join(f"{n}={_size(x)}" for n, x in {**case.sizes, **case.options}.items())
        table.add_row(Text(case.name, style="bold"), Text(sizes), Text(clean(case.title)))
    return [table] if table.row_count else []


def _size(x: Any) -> str:
    return "x".join(map(str, x)) if isinstance(x, list | tuple) else str(x)


def _knob(p: Parameter) -> str:
    if p.choices is not None:
        values = " | ".join(p.choices)
    elif p.kind == "float":
        values = "a number"
    else:
        values = f"{'' if p.low is None else p.low}..{'' if p.high is None else p.high}"
        values += " for each axis" if p.kind == "ints" else ""
    return f"{p.help} ({values}; {'chosen by the op' if p.default is None else p.default} unless given)"


def _pairs(title: str, pairs: Iterable[tuple[str, str]]) -> list[RenderableType]:
    table = folding((f"\n{title}", 30), ("", 49))
    for name, text in pairs:
        table.add_row(Text(f"  {name}"), Text(clean(text)))
    return [table] if table.row_count else []
