"""Keywords of a launch that are no parameters of the kernel: compile options of Triton and Triton-Ascend.

Those that the engine can model change the device of the launch; the others are accepted and named in the record, the ones
that change time or buffers on the device with the reason why they change nothing here. A keyword that is in no list is
refused, as a misspelt argument would be; so is a value of the wrong kind, in the words of the keyword.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .device import TRITON_ASCEND, Device
from .device_checks import COPIED, check_option
from .errors import UsageError
from .messages import Message, note

Change = Callable[[Device, Any], Device]


def _multibuffer(device: Device, x: Any) -> Device:
    return replace(device, multibuffer=(2 if x else 1) if isinstance(x, bool) else x)


def _one_of(name: str, x: Any, allowed: tuple[Any, ...]) -> Any:
    if type(x) is not type(allowed[0]) or x not in allowed:
        raise UsageError(f"{name} must be {' or '.join(map(repr, allowed))}, got {x!r}")
    return x


def _limit_of_local_buffer(device: Device, x: Any) -> Device:
    limit = _one_of("limit_auto_multi_buffer_of_local_buffer", x, ("no-limit", "no-l0c"))
    return replace(device, multibuffer_l0c=limit == "no-limit")


def _given(name: str, field: str) -> Change:
    """The keyword is a field of the device, and has its rule."""

    def change(device: Device, x: Any) -> Device:
        check_option(field, x, name)
        return replace(device, **{field: x})

    return change


def _single(space: str) -> Change:
    name = f"disable_multi_buffer_on_{space.lower()}"

    def change(device: Device, x: Any) -> Device:
        alone = _one_of(name, x, (True, False))
        return replace(device, single_in=(*device.single_in, space)) if alone else device

    return change


WORKSPACE = "set_workspace_multibuffer"
_FIELDS = {
    "unit_flag": "unit_flag",
    "compiler": "compiler",
    "compiler_version": "compiler_version",
    "enable_auto_bind_sub_block": "bind_sub_block",
    WORKSPACE: "workspace_copies",
}
# Of code that the vendor's compiler makes.
_COMPILER_FIELDS = {
    "limit_auto_multi_buffer_buffer": "mixed_copies",
    "limit_mix_auto_multi_buffer_buffer": "mixed_copies",
    "limit_auto_multi_buffer_only_for_local_buffer": "local_copies_only",
    "tile_mix_vector_loop": "tile_mix_vector_loop",
    "tile_mix_cube_loop": "tile_mix_cube_loop",
}
MODELLED: dict[str, Change] = {
    "multibuffer": _multibuffer,
    "limit_auto_multi_buffer_of_local_buffer": _limit_of_local_buffer,
    **{name: _given(name, field) for name, field in _FIELDS.items()},
}
OF_THE_COMPILER: dict[str, Change] = {
    **{name: _given(name, field) for name, field in _COMPILER_FIELDS.items()},
    **{f"disable_multi_buffer_on_{space.lower()}": _single(space) for space in COPIED},
}
# Options of the Ascend compiler that change time or buffer use there: why they change nothing here.
ASSUMED_AWAY = {
    "enable_ubuf_saving": "a tile's UB is always free for others after its last use",
    "enable_hivm_auto_cv_balance": "Cube and Vector work is not moved between cores",
}
PLACES_ONLY = (
    "so many places in global memory for a tile that passes between Cube and Vector cores, and nothing else; within an "
    "iteration of triton-ascend's code Cube and Vector work keep the order of the kernel, so that often no time changes"
)
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
) -> tuple[Device, dict[str, Any], tuple[Message, ...]]:
    """Device, arguments of the kernel, and words for the record, of the keywords of a launch.

    A keyword that the kernel has as a parameter is the kernel's.
    """
    known = {**MODELLED, **OF_THE_COMPILER}
    ours = {k: x for k, x in kwargs.items() if k not in parameters}
    rest = {k: x for k, x in kwargs.items() if k in parameters}
    for k, x in ours.items():
        if k in known:
            device = device if x is None else known[k](device, x)
        elif k not in WITHOUT_EFFECT and k not in ASSUMED_AWAY:
            rest[k] = x
    return device, rest, tuple(map(note, _messages(ours, device)))


def _messages(given: dict[str, Any], device: Device) -> Iterator[str]:
    plain = [f"{k}={x}" for k, x in given.items() if k in WITHOUT_EFFECT]
    if plain:
        yield f"no effect in the model: launch keyword{'s' * (len(plain) > 1)} {', '.join(plain)}"
    for k, x in given.items():
        if x is None:
            continue
        if why := _why_not(k, device):
            yield f"no effect in the model: launch keyword {k}={x}, because {why}"
        elif k == WORKSPACE and device.author == TRITON_ASCEND:
            yield f"launch keyword {k}={x}: {PLACES_ONLY}"


def _why_not(keyword: str, device: Device) -> str | None:
    """Why a keyword changes nothing; None where it may change something, or has no words of its own."""
    compiled = device.author == TRITON_ASCEND
    if not compiled and (keyword in OF_THE_COMPILER or keyword == "compiler_version"):
        return "an author of Ascend C makes the code, not the vendor's compiler"
    if keyword == WORKSPACE and compiled and device.local_copies_only:
        return "limit_auto_multi_buffer_only_for_local_buffer leaves one place in global memory"
    return ASSUMED_AWAY.get(keyword)
