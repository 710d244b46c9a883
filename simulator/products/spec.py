"""The schema of a product file, as data: every key a product may have, its kind, unit, range and need.

A key is the dotted path of a figure in the file, such as `buffers.ub` or `vector.op.add.per_repeat.fp16`. The
table writes `<path>`, `<op>` and `<dtype>` where one line serves many keys; `rule_for` finds that line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

from .vocabulary import DTYPES, OPS, PATHS, PATHS_ALWAYS, PATHS_COUPLED, PIPES

CORE_MODELS = ("split", "coupled")
GRADES = ("A", "B", "C", "D")
ASSUMED_GRADE = "D"


@dataclass(frozen=True)
class FigureRule:
    """What one key must look like.

    kind: "int", "float", "text", "texts" (tuple of str) or "ints" (tuple of int).
    unit: the unit of the stored value. bounds: "positive", "non-negative", "power of two", "multiple of 16" (sides of
    fractals); of numbers alone.
    choices: allowed texts, or () for any. need: "always" or "" (may be left out).
    """

    kind: str
    unit: str
    bounds: str = "positive"
    choices: tuple[str, ...] = ()
    need: str = "always"


def _text(*choices: str, kind: str = "text", need: str = "always") -> FigureRule:
    return FigureRule(kind, "text", choices=choices, need=need)


_texts = partial(_text, kind="texts")
_count, _bytes = partial(FigureRule, "int", "count"), partial(FigureRule, "int", "bytes")
_cycles, _rate = partial(FigureRule, "float", "cycles"), partial(FigureRule, "float")

TABLE: dict[str, FigureRule] = {
    "product.name": _text(),
    "product.family": _text(),
    "product.soc_version": _text(),
    "product.npu_arch": _count(),
    "product.core_model": _text(*CORE_MODELS),
    "product.dies_per_package": _count(),
    "cores.cube_cores": _count(),
    "cores.vector_cores": _count(),
    "cores.aiv_per_aic": _count(),
    "cores.extra_vector_cores": _count("non-negative", need=""),
    "clock.aicore_mhz": _rate("MHz"),
    "buffers.l1": _bytes(),
    "buffers.l0a": _bytes(),
    "buffers.l0b": _bytes(),
    "buffers.l0c": _bytes(),
    "buffers.ub": _bytes(),
    "buffers.bt": _bytes("non-negative"),
    "buffers.fb_total": _bytes("non-negative"),
    "buffers.fb_parts": FigureRule("ints", "bytes", need=""),
    "buffers.ub_reserved_always": _bytes("non-negative"),
    "buffers.ub_reserved_default": _bytes("non-negative"),
    "buffers.l1_reserved": _bytes("non-negative"),
    "alignment.block": _bytes("power of two"),
    "alignment.ub": _bytes("power of two"),
    "alignment.l1": _bytes("power of two"),
    "alignment.l0a": _bytes("power of two"),
    "alignment.l0b": _bytes("power of two"),
    "alignment.l0c": _bytes("power of two"),
    "alignment.bt": _bytes("power of two", need=""),
    "alignment.fb": _bytes("power of two", need=""),
    "alignment.gm_efficient": _bytes("power of two"),
    "alignment.gm_min_efficient_transfer": _bytes(need=""),
    "l2.size": _bytes(),
    "l2.line": _bytes("power of two"),
    "l2.bandwidth_tb_per_s": _rate("TB/s"),
    "l2.same_address_bytes_per_cycle": _rate("bytes/cycle"),
    "l2.same_address_row_cycles": _cycles("non-negative"),
    "l2.read_latency_cycles": _cycles(),
    "l2.write_latency_cycles": _cycles(),
    "memory.size": _bytes(),
    "memory.bandwidth_tb_per_s": _rate("TB/s"),
    "memory.read_efficiency": _rate("peak share"),
    "memory.mixed_efficiency": _rate("peak share"),
    "cube.m": _count("multiple of 16"),
    "cube.n": _count("multiple of 16"),
    "cube.startup_cycles": _cycles(),
    "cube.operand_switch_cycles": _cycles("non-negative", need=""),
    "cube.drain_cycles": _cycles("non-negative", need=""),
    "cube.mnk_max": _count(),
    "cube.accumulate_barrier_tiles": _count("non-negative"),
    "cube.queue_depth": _count(need=""),
    "cube.k_per_cycle.<dtype>": FigureRule("int", "elements/cycle", need=""),
    "cube.k0.<dtype>": FigureRule("int", "elements", need=""),
    "path.<path>.pipe": _text(*PIPES),
    "path.<path>.bytes_per_cycle": _rate("bytes/cycle"),
    "path.<path>.fixed_cycles": _cycles("non-negative"),
    "path.<path>.issue_interval_cycles": _cycles(),
    "path.<path>.l2_hit_bytes_per_cycle": _rate("bytes/cycle", need=""),
    "path.<path>.min_cycles": _cycles(need=""),
    "path.<path>.nz2nd_fixed_cycles": _cycles(need=""),
    "path.<path>.nz2nd_bytes_per_cycle": _rate("bytes/cycle", need=""),
    "path.<path>.row_cycles": _cycles(need=""),
    "path.<path>.latency_cycles": _cycles("non-negative", need=""),
    "path.<path>.load3d_slowdown": _rate("ratio", need=""),
    "path.<path>.load3d_fixed_cycles": _cycles("non-negative", need=""),
    "vector.bytes_per_repeat": _bytes(),
    "vector.block_bytes": _bytes("power of two"),
    "vector.repeat_times_max": _count(),
    "vector.min_instruction_cycles": _cycles(),
    "vector.partial_mask_penalty_cycles": _cycles("non-negative"),
    "vector.mask_set_cycles": _cycles("non-negative"),
    "vector.missing_instructions": _texts(need=""),
    "vector.lanes.<dtype>": FigureRule("int", "elements/cycle", need=""),
    "vector.op.<op>.isa": _text(),
    "vector.op.<op>.fixed_cycles": _cycles(),
    "vector.op.<op>.issue_cycles.<dtype>": FigureRule("float", "cycles", "non-negative", need=""),
    "vector.op.<op>.per_repeat.<dtype>": _rate("cycles/repeat", need=""),
    "vector.op.<op>.per_repeat_conflict.<dtype>": _rate("cycles/repeat", need=""),
    "ub_banks.groups": _count(),
    "ub_banks.banks_per_group": _count(),
    "ub_banks.banks": _count(),
    "ub_banks.bank_bytes": _bytes(),
    "ub_banks.row_bytes": _bytes("power of two"),
    "ub_banks.group_of_address": _text(),
    "ub_banks.bank_of_address": _text(),
    "ub_banks.read_read_conflict": _text("same group", "same bank", "none"),
    "ub_banks.write_write_conflict": _text("same group", "same bank", "none"),
    "ub_banks.read_write_conflict": _text("same group", "same bank", "none"),
    "ub_banks.read_write_conflict_cycles": FigureRule("float", "cycles/repeat", "non-negative"),
    "ub_banks.write_delay_repeats": _count("non-negative"),
    "ub_banks.cycles_8_blocks_same_group": _cycles(),
    "ub_banks.cycles_block_stride_8": _cycles(),
    "sync.pipe_queue_depth": _count(),
    "sync.set_flag_cycles": _cycles("non-negative"),
    "sync.wait_flag_cycles": _cycles("non-negative"),
    "sync.pipe_barrier_v_cycles": _cycles("non-negative"),
    "sync.event_ids": _count(),
    "sync.cross_core_model_cycles": _cycles("non-negative"),
    "launch.single_core_overhead_us": FigureRule("float", "us", "non-negative"),
    "launch.all_cores_overhead_us": FigureRule("float", "us", "non-negative"),
    "launch.kernel_head_us": FigureRule("float", "us", "non-negative"),
    "launch.dispatch_cycles_per_program": _cycles("non-negative"),
    "scalar.simple_op_cycles": _cycles(),
    "scalar.issue_cycles_per_instruction": _cycles(),
    "scalar.ub_half_add_cycles_per_element": _cycles(),
    "dtypes.atomic_add": _texts(*DTYPES),
    "dtypes.cube_inputs": _texts(*DTYPES),
    "dtypes.vector_arithmetic": _texts(*DTYPES),
    "dtypes.vector_cast_only": _texts(*DTYPES),
    "dtypes.storage": _texts(*DTYPES),
    "numerics.overflow_mode": _text("saturate", "inf_nan"),
    "numerics.sum_order": _text("tree_tree", "tree_sequential"),
    "numerics.fp32_subnormals": _text("flush", "keep"),
    "numerics.fp16_subnormals": _text("flush", "keep"),
}


@lru_cache(maxsize=4096)
def rule_for(key: str) -> FigureRule | None:
    """The line of the table that a concrete key falls under, or None for a key that no product may have."""
    return None if "<" in key else TABLE.get(key) or TABLE.get(_pattern(key.split(".")))


def _pattern(parts: list[str]) -> str:
    """The key as the table writes it."""
    if parts[0] == "path" and len(parts) > 1 and parts[1] in PATHS:
        parts[1] = "<path>"
    if parts[:2] == ["vector", "op"] and len(parts) > 2 and parts[2] in OPS:
        parts[2] = "<op>"
    if parts[-1] in DTYPES:
        parts[-1] = "<dtype>"
    return ".".join(parts)


@lru_cache(maxsize=4)
def required_keys(core_model: str) -> tuple[str, ...]:
    """Every key that a product of this core model ("split" or "coupled") must have, beside data types."""
    paths = (*PATHS_ALWAYS, *PATHS_COUPLED) if core_model == "coupled" else PATHS_ALWAYS
    keys: list[str] = []
    for pattern, rule in TABLE.items():
        if rule.need == "always":
            keys += (
                _expand(pattern, "<path>", paths) if "<path>" in pattern else _expand(pattern, "<op>", OPS)
            )
    return tuple(keys)


def _expand(pattern: str, placeholder: str, names: tuple[str, ...]) -> list[str]:
    if placeholder not in pattern:
        return [pattern]
    return [pattern.replace(placeholder, name) for name in names]


def known_keys() -> tuple[str, ...]:
    """Every concrete key except those that end in a data type: the candidates for "did you mean"."""
    keys: list[str] = []
    for pattern in TABLE:
        for path in _expand(pattern, "<path>", PATHS):
            keys += _expand(path, "<op>", OPS)
    return tuple(key for key in keys if "<" not in key)
