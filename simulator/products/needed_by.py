"""What a figure is for: who has to do without when a product file lacks it.

>>> needed_by("vector.op.exp.fixed_cycles")
'exp on the Vector unit'
"""

from __future__ import annotations

# By the longest prefix that a key starts with; a path and a vector operation name themselves.
USES = {
    "product": "every report: what the product is",
    "product.core_model": "every kernel: whether Cube and Vector share a core",
    "cores": "every kernel: how many programs run at once",
    "clock": "every time: cycles to microseconds",
    "buffers.ub": "every tile of the Vector unit",
    "buffers.l1": "operands of tl.dot",
    "buffers.l0a": "the left operand of tl.dot",
    "buffers.l0b": "the right operand of tl.dot",
    "buffers.l0c": "the result of tl.dot",
    "buffers.bt": "a bias of tl.dot",
    "buffers.fb": "scales of a product that leaves L0C",
    "buffers.ub_reserved": "every tile of the Vector unit",
    "buffers.l1_reserved": "operands of tl.dot",
    "alignment": "the places of tiles in buffers",
    "alignment.gm": "transfers between global memory and the core",
    "l2": "tl.load and tl.store, through L2",
    "memory": "tl.load and tl.store, from and to global memory",
    "cube": "tl.dot",
    "path": "transfers on this way",
    "path.gm_to_ub": "tl.load of a tile of the Vector unit",
    "path.gm_to_l1": "tl.load of an operand of tl.dot",
    "path.l1_to_l0a": "tl.dot, its left operand",
    "path.l1_to_l0b": "tl.dot, its right operand",
    "path.l1_to_bt": "tl.dot with a bias",
    "path.l1_to_fb": "tl.dot with scales of its columns",
    "path.l0c_to_gm": "tl.store of a product",
    "path.l0c_to_ub": "a product that the Vector unit reads",
    "path.ub_to_gm": "tl.store of a tile of the Vector unit",
    "path.ub_to_ub": "copies inside UB",
    "path.ub_to_l1": "a tile of the Vector unit as an operand of tl.dot",
    "path.l1_to_ub": "a tile of L1 that the Vector unit reads",
    "vector": "every instruction of the Vector unit",
    "ub_banks": "bank conflicts of the Vector unit",
    "sync": "flags between pipes",
    "sync.cross_core": "what passes between Cube and Vector cores",
    "launch": "the launch of every kernel",
    "launch.dispatch_cycles_per_program": "grids of more programs than cores",
    "scalar": "scalar work, and operations that fall back to it",
    "scalar.ub_half_add": "operations that fall back to the scalar unit",
    "dtypes": "the check of a kernel's types",
    "dtypes.cube_inputs": "tl.dot: which operands it takes",
    "dtypes.atomic_add": "tl.atomic_add: which types it takes",
    "numerics": "the values of every kernel",
}
OPERATION = "vector.op."


def needed_by(key: str) -> str:
    """Who needs the figure `key`; empty for a key that nobody knows."""
    if key.startswith(OPERATION):
        return f"{key.removeprefix(OPERATION).split('.')[0]} on the Vector unit"
    found = max((prefix for prefix in USES if key.startswith(prefix)), key=len, default="")
    return USES.get(found, "")


def users_of(keys: list[str]) -> str:
    """'buffers.ub (every tile of the Vector unit), cores.cube_cores (every kernel: ...)'."""
    return ", ".join(f"{key} ({user})" if (user := needed_by(key)) else key for key in keys)
