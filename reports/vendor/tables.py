"""The vendor's tables of one launch, and op_summary of a run. What the model does not have is "NA", as there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...simulator.record.run import Launch, Run
from ...simulator.triton_shim.profiler.launch_columns import core_type, shape_columns, unit_columns
from .units import Unit, units

Row = dict[str, Any]
NA = "NA"
CUBE_SIDE = ("cube", "scalar", "mte1", "mte2", "mte3", "fixpipe")
VECTOR_SIDE = ("vec", "scalar", "mte2", "mte3")
COUPLED = ("cube", "vec", "scalar", "mte1", "mte2", "mte3")
# The vendor's name of a path of transfers -> ours.
PATHS = {"GM_to_L1": "GM to L1", "L0C_to_GM": "L0C to GM", "GM_to_UB": "GM to UB", "UB_to_GM": "UB to GM"}


def pipe_utilization(launch: Launch) -> list[Row]:
    """PipeUtilization.csv: how long each pipe of each core worked, and its share of the core's cycles."""
    return [{**_head(launch, u), **_pipe_cells(launch, u)} for u in units(launch)]


def resource_conflicts(launch: Launch) -> list[Row]:
    """ResourceConflictRatio.csv: the share of its core's cycles for which each pipe waited, and that bank conflicts added.

    Bank groups are met by reads, banks by a write and a read; the total is of these two. Conflicts over execution units and
    with transfers are not modelled.
    """
    out = []
    for unit in units(launch):
        cells = {}
        for side, pipes in _sides(launch):
            for name in pipes:
                cells[f"{side}_{name}_wait_ratio"] = _of(unit.waits, name, unit.side == side)
            if "vec" in pipes:
                cells |= _conflict_cells(unit, side)
        out.append({**_head(launch, unit), **cells})
    return out


def memory(launch: Launch) -> list[Row]:
    """Memory.csv: volumes and rates of each path, core by core; of records that do not tell cores apart in this, means over
    the cores that worked. Usage is the launch's: of what all cores can move in its time."""
    found = units(launch)
    usage = {f"{column}_bw_usage_rate(%)": _usage(launch, path) for column, path in PATHS.items()}
    out = []
    for u in found:
        volumes = {f"{column}_datas(KB)": _volume(launch, u, path) / 1024 for column, path in PATHS.items()}
        whole = {
            "read_main_memory_datas(KB)": volumes["GM_to_L1_datas(KB)"] + volumes["GM_to_UB_datas(KB)"],
            "write_main_memory_datas(KB)": volumes["L0C_to_GM_datas(KB)"] + volumes["UB_to_GM_datas(KB)"],
        }
        cells = {n: x for c in PATHS for n, x in (*_with(volumes, c), *_with(usage, c))}
        out.append({**_head(launch, u), **_rates(u, volumes), **whole, **cells})
    return out


def _with(cells: Row, column: str) -> list[tuple[str, Any]]:
    return [(n, x) for n, x in cells.items() if n.startswith(f"{column}_")]


def _volume(launch: Launch, unit: Unit, path: str) -> float:
    """Bytes that the unit moved on a path."""
    if unit.moved is not None:
        return unit.moved.get(path, 0.0)
    roof = launch.roofs.get(path)
    return roof.amount / launch.cores_used if roof else 0.0


def _usage(launch: Launch, path: str) -> float:
    roof = launch.roofs.get(path)
    busiest = roof.per_us * launch.working_us if roof else 0.0
    return 100 * roof.amount / busiest if roof and busiest else 0.0


def basic_info(launch: Launch) -> list[Row]:
    """OpBasicInfo.csv: one row."""
    kind = core_type(launch)
    blocks = min(launch.cores_used, launch.programs)
    return [
        {
            "Op Name": launch.kernel,
            "Op Type": {"MIX_AIC": "mix", "AI_VECTOR_CORE": "vector"}.get(kind, "cube"),
            "Task Duration(us)": launch.time_us,
            "Block Dim": blocks,
            "Mix Block Dim": NA,
            "Device Id": 0,
            "Pid": NA,
        }
    ]


def op_summary(run: Run) -> list[Row]:
    """op_summary.csv: a row for each launch, one after another from time 0 on."""
    head: Row
    out, begins = [], 0.0
    for launch in run.launches:
        head = {"Device_id": 0, "Op Name": launch.kernel, "OP Type": launch.kernel}
        head |= {"Task Type": core_type(launch), "Task Start Time(us)": begins}
        times = {"Task Duration(us)": launch.time_us, "Task Wait Time(us)": 0.0}
        shapes = {"Block Dim": launch.programs, **shape_columns(launch.arguments, launch.directions)}
        out.append({**head, **times, **shapes, **unit_columns(launch, "aic"), **unit_columns(launch, "aiv")})
        begins += launch.time_us
    return out


TABLES: dict[str, Callable[[Launch], list[Row]]] = {
    "OpBasicInfo.csv": basic_info,
    "PipeUtilization.csv": pipe_utilization,
    "Memory.csv": memory,
    "ResourceConflictRatio.csv": resource_conflicts,
}


def _head(launch: Launch, unit: Unit) -> Row:
    out: Row = {"block_id": unit.block, "sub_block_id": unit.part}
    for side, _ in _sides(launch):
        out[f"{side}_time(us)"] = unit.us if unit.side == side else NA
        out[f"{side}_total_cycles"] = unit.cycles if unit.side == side else NA
    return out


def _sides(launch: Launch) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The column groups: Cube and Vector cores apart, or one core with both."""
    coupled = any(n.startswith("AICORE.") for n in launch.pipes)
    return (("aic", COUPLED),) if coupled else (("aic", CUBE_SIDE), ("aiv", VECTOR_SIDE))


def _pipe_cells(launch: Launch, unit: Unit) -> Row:
    cells: Row = {}
    for side, pipes in _sides(launch):
        for name in pipes:
            share = _of(unit.busy, name, unit.side == side)
            cells[f"{side}_{name}_time(us)"] = NA if share == NA else share * unit.us
            cells[f"{side}_{name}_ratio"] = share
        cells[f"{side}_icache_miss_rate"] = NA
    return cells


def _conflict_cells(unit: Unit, side: str) -> Row:
    known = unit.conflicts if unit.side == side else {}
    shares = {"total": sum(known.values()), **known} if known else {}
    return {
        f"{side}_vec_{c}_cflt_ratio": shares.get(c, NA) for c in ("total", "bankgroup", "bank", "resc", "mte")
    }


def _of(shares: dict[str, float], name: str, mine: bool) -> Any:
    """A pipe's share; 0 for one that this kernel's core has and does not use, NA on another sort of core."""
    return shares.get(name, 0.0) if mine else NA


def _rates(unit: Unit, cells: Row) -> Row:
    """GB/s of the paths that the vendor gives as rates."""
    per = 1024 / 1e3 / unit.us
    return {
        "aiv_gm_to_ub_bw(GB/s)": cells["GM_to_UB_datas(KB)"] * per if unit.side == "aiv" else NA,
        "aiv_ub_to_gm_bw(GB/s)": cells["UB_to_GM_datas(KB)"] * per if unit.side == "aiv" else NA,
    }
