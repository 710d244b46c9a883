"""The cores of a product as the engine sees them: pipes, shared bandwidth, ways to global memory.

A kernel without matrix products runs on Vector cores. One with them runs on Cube cores; where Cube and Vector are apart
(AIC and AIV), each Cube core brings its Vector cores along, and what passes between them goes through global memory.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache

from ...ir.passes.split_cores import CUBE
from ...products import Product
from ..costs.transfers import FRACTALS
from .engine import Channel, Machine, PipeSpec, Resource

HBM, L2 = 0, 1
CUBE_UNIT, FIRST_VECTOR_UNIT, SECOND_VECTOR_UNIT = "AIC", "AIV", "AIV1"
# Channels of the paths to and from global memory: from or to HBM, and where L2 has the bytes. `_channels` makes them.
CHANNELS = {"gm_to_ub": (0, 1), "ub_to_gm": (2, 6), "gm_to_l1": (3, 4), "l0c_to_gm": (5, 7)}
WRITES = (2, 5, 6, 7, 10, 11)  # out of the cores
# In their place where two Vector cores do the same: each moves half of a tile; each loads a whole one, the second from L2.
HALVES, WHOLE = {0: 8, 1: 9, 2: 10, 6: 11}, {0: 12, 1: 9}


@dataclass(frozen=True)
class Wiring:
    """An engine machine, and which of its pipes and channels plays which part (-1: it has none)."""

    machine: Machine
    scalar: int
    vector: int
    mte2: int
    mte3: int
    cube_scalar: int
    cube_mte2: int
    mte1: int
    mmad: int
    fixp: int
    read: tuple[int, int]  # GM to UB: from HBM, from L2
    write: tuple[int, int]  # UB to GM: as fast as memory takes it, and into L2
    cube_read: tuple[int, int]  # GM to L1
    cube_read_fractals: tuple[int, int]  # of a tile that is not turned into fractals on the way
    cube_write: tuple[int, int]  # L0C to GM
    alike: bool  # whether two Vector cores do the same at the same time
    cores_each: int  # AIC and AIV cores that a core of the machine consists of

    @property
    def mixed(self) -> bool:
        """Whether its cores are Cube and Vector cores."""
        return CUBE_UNIT in self.machine.units and len(self.machine.units) > 1

    def channel(self, number: int, half: bool) -> int:
        """The one that a transfer takes. half: whether each Vector core moves half of a tile."""
        return (HALVES if half else WHOLE).get(number, number) if self.alike else number

    @property
    def told(self) -> tuple[tuple[str, int], ...]:
        """All pipes by name, and which one's figures are theirs: those of twins come last."""
        pipes = list(enumerate(self.machine.pipes))
        twins = [(f"{spec.twin}.{spec.name}", p) for p, spec in pipes if spec.twin]
        return (*((self.pipe_name(p), p) for p, _ in pipes), *twins)

    def pipe_name(self, pipe: int) -> str:
        """ "AIV.V" and the like."""
        spec = self.machine.pipes[pipe]
        return f"{spec.unit}.{spec.name}"

    def pipe(self, core: str, name: str) -> int:
        """A core's pipe; the scalar unit for all of them. MTE3 of a Cube core is its way out, the fixpipe."""
        if core == CUBE:
            table = {
                "S": self.cube_scalar,
                "ALL": self.cube_scalar,
                "M": self.mmad,
                "MTE1": self.mte1,
                "MTE2": self.cube_mte2,
                "MTE3": self.fixp,
                "FIX": self.fixp,
            }
        else:
            table = {
                "S": self.scalar,
                "ALL": self.scalar,
                "V": self.vector,
                "MTE2": self.mte2,
                "MTE3": self.mte3,
            }
        return table[name]

    def pipes_of(self, core: str) -> tuple[int, ...]:
        """All pipes of a core."""
        names = ("S", "MTE2", "MTE1", "M", "FIX") if core == CUBE else ("S", "V", "MTE2", "MTE3")
        return tuple(p for n in names if (p := self.pipe(core, n)) >= 0)


@lru_cache(maxsize=128)
def wire(
    product: Product, has_dot: bool, has_vector: bool, both: bool = False, alike: bool = False
) -> Wiring:
    """The machine for a kernel that has matrix products or not, and vector work or not.

    both: the kernel tells the Vector cores beside a Cube core apart; then a core of the machine has both of them, and the
    wiring names the pipes of the first.
    alike: both do the same at the same time, so that the pipes of the first stand for those of the second.
    """
    split = product.core_model == "split"
    units = _units(split, has_dot, has_vector)
    if both:
        units = (*units, (SECOND_VECTOR_UNIT, units[-1][1]))
    pipes = _pipes(product, units, SECOND_VECTOR_UNIT if alike else "")
    index = {(p.unit, p.name): i for i, p in enumerate(pipes)}
    vector_unit, cube_unit = (FIRST_VECTOR_UNIT, CUBE_UNIT) if split else ("AICORE", "AICORE")

    def pipe(unit: str, name: str) -> int:
        return index.get((unit, name), -1)

    cores = product.cube_cores if has_dot else product.vector_cores // (product.aiv_per_aic if both else 1)
    together = cores_each(product, [name for name, _ in units])
    machine = Machine(
        pipes=pipes,
        cores=cores,
        channels=_channels(product),
        resources=(
            Resource(name="HBM", bytes_per_cycle=product.hbm_bytes_per_cycle),
            Resource(name="L2", bytes_per_cycle=product.l2_bytes_per_cycle),
        ),
        dispatch_cycles=product.number("launch.dispatch_cycles_per_program"),
        core_start_cycles=start_cycles(product) * together,
        cross_pipe_cycles=product.number("sync.set_flag_cycles") + product.number("sync.wait_flag_cycles"),
        issue_cycles=product.number("scalar.issue_cycles_per_instruction"),
    )
    return Wiring(
        machine=machine,
        scalar=pipe(vector_unit, "S"),
        vector=pipe(vector_unit, "V"),
        mte2=pipe(vector_unit, "MTE2"),
        mte3=pipe(vector_unit, "MTE3"),
        cube_scalar=pipe(cube_unit, "S"),
        cube_mte2=pipe(cube_unit, "MTE2"),
        mte1=pipe(cube_unit, "MTE1"),
        mmad=pipe(cube_unit, "M"),
        fixp=pipe(cube_unit, "FIXP"),
        read=CHANNELS["gm_to_ub"],
        write=CHANNELS["ub_to_gm"],
        cube_read=CHANNELS["gm_to_l1"],
        cube_read_fractals=(FRACTALS, CHANNELS["gm_to_l1"][1]),
        cube_write=CHANNELS["l0c_to_gm"],
        alike=alike,
        cores_each=together,
    )


def port_rate(machine: Machine, path: str) -> float:
    """Bytes per cycle that a core moves at most on a path such as "gm_to_ub"."""
    return max(machine.channels[c].port_bytes_per_cycle for c in CHANNELS[path])


def _units(split: bool, has_dot: bool, has_vector: bool) -> tuple[tuple[str, tuple[str, ...]], ...]:
    vector = ("S", "V", "MTE2", "MTE3")
    cube = ("S", "MTE2", "MTE1", "M", "FIXP")
    if not split:
        return (("AICORE", ("S", "V", "MTE2", "MTE3", *(("MTE1", "M") if has_dot else ()))),)
    if not has_dot:
        return ((FIRST_VECTOR_UNIT, vector),)
    return ((CUBE_UNIT, cube), (FIRST_VECTOR_UNIT, vector)) if has_vector else ((CUBE_UNIT, cube),)


def _pipes(
    product: Product, units: tuple[tuple[str, tuple[str, ...]], ...], twin: str
) -> tuple[PipeSpec, ...]:
    depth = product.integer("sync.pipe_queue_depth")
    return tuple(
        PipeSpec(
            name=n,
            unit=unit,
            queue_depth=depth,
            scalar=n == "S",
            twin=twin if unit == FIRST_VECTOR_UNIT else "",
        )
        for unit, names in units
        for n in names
    )


def _channels(product: Product) -> tuple[Channel, ...]:
    """Ways between global memory and the core: each has a port rate and the shared resources it draws on."""
    to_l1 = "gm_to_l1_nd2nz"
    found = (
        _channel("GM to UB from HBM", _rate(product, "gm_to_ub", hit=False), (HBM, L2)),
        _channel("GM to UB from L2", _rate(product, "gm_to_ub", hit=True), (L2,)),
        _channel("UB to GM", _rate(product, "ub_to_gm", hit=False), (HBM, L2)),
        _channel("GM to L1 from HBM", _rate(product, to_l1, hit=False), (HBM, L2)),
        _channel("GM to L1 from L2", _rate(product, to_l1, hit=True), (L2,)),
        _channel("L0C to GM", _out_rate(product), (HBM, L2)),
        _channel("UB to L2", _rate(product, "ub_to_gm", hit=True), (L2,)),
        _channel("L0C to L2", _out_rate(product, hit=True), (L2,)),
    )
    of_two = [replace(found[c], resources=2 * found[c].resources) for c in HALVES]
    whole_for_two = replace(found[0], resources=(HBM, L2, L2))
    fast = "path.gm_to_l1.memory_bytes_per_cycle"
    rate = product.number(fast) if product.has(fast) else found[3].port_bytes_per_cycle
    return (*found, *of_two, whole_for_two, _channel("GM to L1 in fractals from HBM", rate, (HBM, L2)))


def _channel(name: str, rate: float, resources: tuple[int, ...]) -> Channel:
    return Channel(name=name, port_bytes_per_cycle=rate, resources=resources)


def _rate(product: Product, path: str, hit: bool) -> float:
    fast = f"path.{path}.l2_hit_bytes_per_cycle"
    return product.number(fast if hit and product.has(fast) else f"path.{path}.bytes_per_cycle")


def _out_rate(product: Product, hit: bool = False) -> float:
    nd = "path.l0c_to_gm.nz2nd_bytes_per_cycle"
    return product.number(nd) if product.has(nd) else _rate(product, "l0c_to_gm", hit)


def with_memory_rate(machine: Machine, product: Product, write_share: float, part: float = 1.0) -> Machine:
    """The machine with the rate that memory reaches for a launch of which this part of its traffic is writes.

    part: of that rate, what is left for the transfers of the launch.

    Reads alone reach one part of the peak, writes alone another, reads and writes in turn less: the bus has to turn around.
    Between alone and one write (or read) in five the part falls evenly.
    """
    most = "write" if write_share > 0.5 else "read"
    alone, mixed = (product.number(f"memory.{n}_efficiency") for n in (most, "mixed"))
    iterations = min(1.0, 5.0 * min(write_share, 1.0 - write_share))
    reached = product.hbm_bytes_per_cycle * (alone + (mixed - alone) * iterations)
    hbm = replace(machine.resources[HBM], bytes_per_cycle=reached * part)
    return replace(machine, resources=(hbm, *machine.resources[HBM + 1 :]))


def cores_each(product: Product, units: Collection[str]) -> int:
    """AIC and AIV cores that start together where a core of the machine has these units."""
    return 1 if len(units) == 1 else product.aiv_per_aic + (CUBE_UNIT in units)


def with_l2_rate(machine: Machine, product: Product, write_share: float) -> Machine:
    """The machine with the rate of L2 for a launch of which this part of its traffic is writes.

    Reads and writes have ways of their own, each with the rate of reads alone; together they reach that of mixed traffic.
    """
    alone = product.l2_bytes_per_cycle / max(write_share, 1.0 - write_share)
    l2 = replace(machine.resources[L2], bytes_per_cycle=min(alone, product.l2_mixed_bytes_per_cycle))
    return replace(machine, resources=(*machine.resources[:L2], l2, *machine.resources[L2 + 1 :]))


def start_cycles(product: Product) -> float:
    """Cycles between the starts of two cores, AIC or AIV: those of all Vector cores lie between those of one and all."""
    one, most = (product.number(f"launch.{n}_overhead_us") for n in ("single_core", "all_cores"))
    return product.us_to_cycles(most - one) / max(1, product.vector_cores - 1)


def cold_code_us(product: Product, cores: int, mixed: bool) -> float:
    """Time after another kernel until the cores work: all of them fetch the kernel's code, and what one of them waits for
    is the same for all.

    That they wait at the same time is what profiles tell: cast-1 of the Qwen3 step takes 6.4 us on 40 cores, 2.8 when it is
    launched again and again, and 5.4 of the 6.4 are the mean core's own time. cores: AIC and AIV that start, with those that
    find no work to do; the part of the first is in the head, which was fitted on kernels of one block after others.
    mixed: Cube and Vector work, which is two programs.
    """
    fetched, both = (cores - 1) * product.number("launch.cold_code_us_per_core"), "launch.cold_mixed_code_us"
    return fetched + (product.number(both) if mixed and product.has(both) else 0.0)


def launch_overhead_us(product: Product) -> float:
    """Of a launch, what is before its cores and after them, and the head of the kernel in a core.

    That cores start one after the other is in the engine (`start_cycles`).
    """
    return sum(product.number(f"launch.{n}_us") for n in ("single_core_overhead", "kernel_head"))
