"""The names that keys of a product are made of: data types, paths, pipes, vector operations."""

# fmt: off
# "any" and "b8" to "b32" stand in vector tables for every type, or every type of that width.
DTYPES = (
    "fp16", "bf16", "hf32", "fp32", "int4", "int8", "uint8", "int16", "uint16", "int32", "uint32",
    "int64", "uint64", "bool", "any", "b8", "b16", "b32",
)

# Every product has these paths; a coupled core has the next three too; the rest may be left out.
PATHS_ALWAYS = (
    "gm_to_ub", "gm_to_l1", "gm_to_l1_nd2nz", "l1_to_l0a", "l1_to_l0b", "l1_to_bt", "l0c_to_gm",
    "ub_to_gm", "ub_to_ub",
)
PATHS_COUPLED = ("l0c_to_ub", "ub_to_l1", "l1_to_ub")
PATHS_OPTIONAL = ("gm_to_l0a", "gm_to_l0b", "l0c_to_l1", "l1_to_fb", "l1_to_gm")
PATHS = (*PATHS_ALWAYS, *PATHS_COUPLED, *PATHS_OPTIONAL)

PIPES = ("S", "MTE1", "MTE2", "MTE3", "M", "V", "FIXP")

# Vector operations of the per-instruction table.
OPS = (
    "add", "sub", "mul", "max", "min", "div", "adds", "muls", "maxs", "mins", "abs", "relu", "lrelu",
    "exp", "ln", "sqrt", "rsqrt", "rec", "and", "or", "not", "shift", "axpy", "muladddst",
    "fusedmuladd", "addrelu", "select", "compare", "compares", "cast_f16_f32", "cast_f32_f16",
    "cast_bf16_f32", "cast_f32_bf16", "cast_f32_s32", "cast_s32_f32", "cast_s8_f16", "cast_f32_s64",
    "cast_other",
    "reduce_repeat_sum", "reduce_block_sum", "reduce_pair_sum", "reduce_repeat_max", "reduce_block_max",
    "duplicate", "copy", "brcb", "gather", "gatherb", "gather_mask", "gather_mask_user",
    "transpose_5hd", "sort32", "mrgsort4",
)
