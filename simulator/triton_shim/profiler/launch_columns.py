"""The columns of one launch in the vendor's profiler tables (kernel_details.csv, op_summary.csv)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...record.run import Launch

ABSENT = "N/A"
INPUTS = ("Input Shapes", "Input Data Types", "Input Formats")
OUTPUTS = ("Output Shapes", "Output Data Types", "Output Formats")
# Unit -> column of the metric PipeUtilization -> pipe of the model.
PIPES = {
    "aic": {"mac": "M", "scalar": "S", "mte1": "MTE1", "mte2": "MTE2", "fixpipe": "FIXP"},
    "aiv": {"vec": "V", "scalar": "S", "mte2": "MTE2", "mte3": "MTE3"},
}


def core_type(launch: Launch) -> str:
    """The vendor's name of the cores that a kernel takes."""
    units = {name.partition(".")[0] for name in launch.pipes}
    if "AICORE" in units:
        return "AI_CORE"
    return "MIX_AIC" if {"AIC", "AIV"} <= units else "AI_CORE" if "AIC" in units else "AI_VECTOR_CORE"


def unit_columns(launch: Launch, unit: str) -> dict[str, Any]:
    """Columns of one unit ("aic", "aiv"): its time and cycles are the launch's if it works at all, as the hardware counts
    them."""
    own = {n.partition(".")[2]: p for n, p in launch.pipes.items() if n.startswith((unit.upper(), "AICORE"))}
    whole = "aicore_time(us)" if unit == "aic" else "aiv_time(us)"
    us = launch.working_us
    out: dict[str, Any] = {whole: us if own else 0.0, f"{unit}_total_cycles": launch.cycles if own else 0.0}
    for column, name in PIPES[unit].items():
        share = own[name].share if name in own else 0.0
        out[f"{unit}_{column}_time(us)"] = share * us
        out[f"{unit}_{column}_ratio"] = share
    return {**out, f"{unit}_icache_miss_rate": ABSENT}


def shape_columns(arguments: dict[str, str], directions: dict[str, str]) -> dict[str, str]:
    """Shapes, types and formats of the tensors that a kernel reads and of those that it writes, as the vendor joins them.

    What is read and written is in both. Where the record does not know (it was run without a timeline, or by an earlier
    version) all are inputs, and the outputs are "N/A".
    """
    known = {n: directions.get(n, "in") for n in arguments}
    read = {n: x for n, x in arguments.items() if "in" in known[n].split()}
    written = {n: x for n, x in arguments.items() if "out" in known[n].split()}
    inputs = dict(zip(INPUTS, _joined(read), strict=True))
    outputs = _joined(written) if directions else (ABSENT,) * len(OUTPUTS)
    return {**inputs, **dict(zip(OUTPUTS, outputs, strict=True))}


def _joined(arguments: dict[str, str]) -> tuple[str, ...]:
    tensors = [x.removesuffix("]").split("[") for x in arguments.values() if x.endswith("]")]
    if not tensors:
        return (ABSENT,) * len(INPUTS)
    shapes = ";".join(shape.replace(" ", "") for _, shape in tensors)
    types = ";".join(TYPES.get(dtype, dtype.upper()) for dtype, _ in tensors)
    return f'"{shapes}"', types, ";".join("ND" for _ in tensors)


TYPES = {"fp32": "FLOAT", "fp16": "FLOAT16", "bf16": "DT_BF16", "int1": "BOOL"}
