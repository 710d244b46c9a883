"""The cores of a product as the engine sees them: pipes, shared bandwidth, ways to global memory."""

from __future__ import annotations

from ..products import Product
from .engine import Channel, Machine, PipeSpec, Resource

SCALAR, VECTOR, MTE2, MTE3 = 0, 1, 2, 3
PIPES = ("S", "V", "MTE2", "MTE3")
HBM, L2 = 0, 1
RESOURCES = ("HBM", "L2")
READ_HBM, READ_L2, WRITE_HBM = 0, 1, 2


def vector_unit(product: Product) -> str:
    """Name of the unit that runs vector kernels: AIV where Cube and Vector are apart, AICORE where one core has both."""
    return "AIV" if product.core_model == "split" else "AICORE"


def vector_machine(product: Product) -> Machine:
    """Vector cores of the product, for kernels without matrix products."""
    unit = vector_unit(product)
    depth = product.integer("sync.pipe_queue_depth")
    pipes = tuple(PipeSpec(name=n, unit=unit, queue_depth=depth, scalar=n == "S") for n in PIPES)
    read, write = (
        product.number("path.gm_to_ub.bytes_per_cycle"),
        product.number("path.ub_to_gm.bytes_per_cycle"),
    )
    hit = "path.gm_to_ub.l2_hit_bytes_per_cycle"
    channels = (
        Channel(name="GM to UB from HBM", port_bytes_per_cycle=read, resources=(HBM, L2)),
        Channel(
            name="GM to UB from L2",
            port_bytes_per_cycle=product.number(hit) if product.has(hit) else read,
            resources=(L2,),
        ),
        Channel(name="UB to GM", port_bytes_per_cycle=write, resources=(HBM, L2)),
    )
    return Machine(
        pipes=pipes,
        cores=product.vector_cores,
        channels=channels,
        resources=(
            Resource(name="HBM", bytes_per_cycle=product.hbm_bytes_per_cycle),
            Resource(name="L2", bytes_per_cycle=product.l2_bytes_per_cycle),
        ),
        dispatch_cycles=product.number("launch.dispatch_cycles_per_program"),
        cross_pipe_cycles=product.number("sync.set_flag_cycles") + product.number("sync.wait_flag_cycles"),
        issue_cycles=product.number("scalar.issue_cycles_per_instruction"),
    )


def launch_overhead_us(product: Product, cores: int) -> float:
    """Launch cost outside of the cores: published for one core and for all, linear in between."""
    one, most = (
        product.number("launch.single_core_overhead_us"),
        product.number("launch.all_cores_overhead_us"),
    )
    span = product.vector_cores - 1
    return one if span <= 0 else one + (most - one) * (cores - 1) / span
