"""Keywords of a launch that are no parameters of the kernel: compile options of Triton and Triton-Ascend.

Those that the engine can model change the device of the launch; the others are accepted and named in the record, the ones
that change time or buffers on the device with the reason why they change nothing here. A keyword that is in no list is
refused, as a misspelt argument would be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .device import Device
from .errors import UsageError


def _multibuffer(device: Device, x: Any) -> Device:
    return replace(device, multibuffer=(2 if x else 1) if isinstance(x, bool) else x)


def _limit_of_local_buffer(device: Device, x: Any) -> Device:
    if x not in ("no-limit", "no-l0c"):
        raise UsageError(f"limit_auto_multi_buffer_of_local_buffer must be 'no-limit' or 'no-l0c', got {x!r}")
    return replace(device, multibuffer_l0c=x == "no-limit")


def _sub_blocks(device: Device, x: Any) -> Device:
    return replace(device, bind_sub_block=bool(x))


def _unit_flag(device: Device, x: Any) -> Device:
    return replace(device, unit_flag=bool(x))


MODELLED: dict[str, Callable[[Device, Any], Device]] = {
    "multibuffer": _multibuffer,
    "limit_auto_multi_buffer_of_local_buffer": _limit_of_local_buffer,
    "unit_flag": _unit_flag,
    "enable_auto_bind_sub_block": _sub_blocks,
    "set_workspace_multibuffer": lambda device, x: replace(device, workspace_copies=x),
}
# Options of the Ascend compiler that change time or buffer use there: why they change nothing here.
ASSUMED_AWAY = {
    "enable_ubuf_saving": "a tile's UB is always free for others after its last use",
    "limit_auto_multi_buffer_only_for_local_buffer": "copies of workspace in global memory are not modelled",
    "enable_hivm_auto_cv_balance": "Cube and Vector work is not moved between cores",
    "tile_mix_vector_loop": "a program's tiles are not cut further for the vector cores",
    "tile_mix_cube_loop": "products are cut by the capacity of L0, or by l0_tile of the device",
}
# Options that have no counterpart in this machine at all.
_NAMES = """
    num_warps num_stages num_ctas maxnreg debug enable_fp_fusion waves_per_eu matrix_instr_nonkdim kpack cluster_dims
    launch_cooperative_grid launch_pdl num_buffers_warp_spec num_consumer_groups reg_dec_producer reg_inc_consumer
    default_dot_input_precision allowed_dot_input_precisions max_num_imprecise_acc_default extern_libs instrumentation_mode
    enable_warp_specialization enable_persistent optimize_epilogue sanitize_overflow warp_size arch grf_mode device_type
    stream device kernel_name num_vecs bottleneck is_simt_mode opt_level ir_override
    sync_solver inject_barrier_all inject_block_all disable_auto_inject_block_sync enable_nd2nz_on_vector
    auto_blockify_size enable_auto_blockify compile_mode optimize_dynamic_offset enable_mixed_cv
    auto_tile_and_bind_subblock enable_mask_fallback_conversion vf_merge_level
    disable_tightly_coupled_buffer_reuse enable_select_analysis enable_cce_vf_auto_sync enable_cce_vf_remove_membar
    enable_drop_unit_dims enable_flatten enable_auto_vectorize_v2 auto_vectorize_v2_max_fused_ops_num
    prevec_max_fused_ops_num disable_size_align_for_cast enable_vf_fusion add_auto_scheduling
    hfusion_enable_multiple_consumer_fusion parallel_mode force_simt_only force_simt_template enable_sync_block_lock
    shared_mem_dynamic_size enable_bishengir_simt_optimization compile_on_910_95 simt_stack_limit bisheng_options
    disable_ffts precision_mode mix_mode enable_linearize
"""
WITHOUT_EFFECT = frozenset(_NAMES.split())


def apply(
    device: Device, kwargs: dict[str, Any], parameters: set[str]
) -> tuple[Device, dict[str, Any], tuple[str, ...]]:
    """Device, arguments of the kernel, and words for the record, of the keywords of a launch.

    A keyword that the kernel has as a parameter is the kernel's.
    """
    ours = {k: x for k, x in kwargs.items() if k not in parameters}
    rest = {k: x for k, x in kwargs.items() if k in parameters}
    ignored = []
    for k, x in ours.items():
        if k in MODELLED:
            device = device if x is None else MODELLED[k](device, x)
        elif k in WITHOUT_EFFECT or k in ASSUMED_AWAY:
            ignored.append(k)
        else:
            rest[k] = x
    return device, rest, tuple(_messages(ours, ignored))


def _messages(given: dict[str, Any], ignored: list[str]) -> list[str]:
    plain = [f"{k}={given[k]}" for k in ignored if k in WITHOUT_EFFECT]
    out = (
        [f"no effect in the model: launch keyword{'s' * (len(plain) > 1)} {', '.join(plain)}"]
        if plain
        else []
    )
    return out + [
        f"no effect in the model: launch keyword {k}={given[k]}, because {ASSUMED_AWAY[k]}"
        for k in ignored
        if k in ASSUMED_AWAY
    ]
