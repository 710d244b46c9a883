"""Launch times: exact where they can be worked out from the product's figures, and the laws every estimate must obey."""

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.simulator import language as tl
from ascendtile.simulator.timing.engine.machine import start_cycles

from ..support import kernels

pytestmark = pytest.mark.usefixtures("cold_l2")

P = sim.load_product("ascend910b3")
READ, READ_FIXED = P.number("path.gm_to_ub.bytes_per_cycle"), P.number("path.gm_to_ub.fixed_cycles")
WRITE, WRITE_FIXED = P.number("path.ub_to_gm.bytes_per_cycle"), P.number("path.ub_to_gm.fixed_cycles")
LATE = P.number("memory.read_late_cycles")
FLAGS = P.number("sync.set_flag_cycles") + P.number("sync.wait_flag_cycles")
ADDS_FIXED = P.number("vector.op.adds.fixed_cycles")


def launch_of(kernel, grid, *args, device=None, **kwargs):
    with sim.device("ascend910b3", **(device or {})):
        return kernel.time(grid, *args, **kwargs).launches[0]


def chain_cycles(length, block=4096):
    return launch_of(
        kernels.chain,
        (1,),
        sim.shape(block, "float32"),
        sim.shape(block, "float32"),
        LENGTH=length,
        BLOCK=block,
    ).cycles


def test_a_dependent_instruction_pays_its_repeats_and_its_fixed_part():
    # 4096 float32 are 64 repeats; each further dependent addition adds 64 cycles and the fixed part, nothing else
    assert chain_cycles(5) - chain_cycles(4) == pytest.approx(64 + ADDS_FIXED, abs=1e-9)
    assert chain_cycles(9) - chain_cycles(4) == pytest.approx(5 * (64 + ADDS_FIXED), abs=1e-9)


def test_one_load_one_addition_one_store_is_the_sum_of_its_parts():
    # issue of the first scalar work and of three instructions runs ahead of the pipes, except before the first
    cycles = chain_cycles(1)
    parts = 16384 / READ + READ_FIXED + LATE + FLAGS + 64 + ADDS_FIXED + FLAGS + 16384 / WRITE + WRITE_FIXED
    scalar = cycles - parts
    assert 0 < scalar < 10  # the scalar unit's own operations before the load


def test_independent_instructions_do_not_pay_the_fixed_part_again():
    def vector_busy(n):
        launch = launch_of(
            kernels.fan,
            (1,),
            sim.shape(4096, "float32"),
            sim.shape(4096 * 8, "float32"),
            LENGTH=n,
            BLOCK=4096,
            compiler="ascendc",  # the other one makes equal additions once
        )
        return launch.pipes["AIV.V"].busy_cycles

    assert vector_busy(4) - vector_busy(3) == pytest.approx(64)


def copies(multibuffer, iterations=32, block=8192):
    shape = sim.shape(iterations * block, "float16")
    return launch_of(
        kernels.copy_iterations,
        (1,),
        shape,
        shape,
        iterations,
        BLOCK=block,
        device={"multibuffer": multibuffer},
    )


def test_double_buffering_overlaps_and_single_buffering_does_not():
    one, two = copies(1), copies(2)
    load, work = 16384 / READ, 64  # 8192 float16 are 64 repeats
    assert one.cycles > 32 * (
        load + READ_FIXED + work
    )  # a load waits for the work of the iteration before it
    assert two.cycles < 0.65 * one.cycles
    assert two.pipes["AIV.MTE2"].stalls["buffer"] < one.pipes["AIV.MTE2"].stalls["buffer"]


def test_more_copies_never_hurt_and_reach_the_pipe_bound():
    times = [copies(n).cycles for n in (1, 2, 3, 4, 6)]
    assert times == sorted(times, reverse=True)
    load = 16384 / READ  # from memory: on the slowest pipe
    assert copies(6, iterations=96).cycles - copies(6, iterations=64).cycles == pytest.approx(
        32 * load, rel=1e-9
    )


def read_cycles(cores, product="ascend910b3"):
    n = 1 << 23
    free = {"ub_banks.read_read_conflict": "none"}  # so that the additions are never the slowest
    with sim.device(product, overrides=free):
        args = (sim.shape(n, "float32"), sim.shape(cores * 8192, "float32"), n)
        return kernels.read_only.time((cores,), *args, BLOCK=8192, multibuffer=4).launches[0]


def test_cores_share_the_bandwidth_of_hbm():
    moved = 4 * (1 << 23)
    one, few, all_cores = (moved / read_cycles(c).cycles for c in (1, 4, 40))
    assert one == pytest.approx(READ, rel=0.08)  # alone, a core is limited by its port
    assert few == pytest.approx(4 * READ, rel=0.10)  # four ports are still less than HBM gives
    reached = P.hbm_bytes_per_cycle * P.number("memory.read_efficiency")
    assert all_cores == pytest.approx(reached, rel=0.08)  # forty are not


def test_l2_serves_what_other_programs_have_read():
    launch = launch_of(
        kernels.chain, (40,), sim.shape(4096, "float32"), sim.shape(4096, "float32"), LENGTH=1, BLOCK=4096
    )
    assert launch.resources["HBM"] == 16384  # one read of the shared tile; what is written stays in L2
    assert launch.resources["L2"] == 80 * 16384


def test_programs_beyond_the_cores_run_in_waves_with_dispatch():
    shape = sim.shape(1 << 20, "float16")

    def cycles(programs):
        n = programs * 8192  # longer than the start of all cores
        return launch_of(kernels.add, (programs,), shape, shape, shape, n, BLOCK=8192).cycles

    assert cycles(80) - cycles(40) > P.number("launch.dispatch_cycles_per_program")
    assert cycles(40) - 39 * start_cycles(P) < 1.5 * cycles(1)


def test_a_launch_takes_longer_the_more_cores_have_to_start():
    shape = sim.shape(40 * 1024, "float16")
    one = launch_of(kernels.add, (1,), shape, shape, shape, 1024, BLOCK=1024)
    full = launch_of(kernels.add, (40,), shape, shape, shape, 40 * 1024, BLOCK=1024)
    head = P.number("launch.kernel_head_us")
    assert one.overhead_us == full.overhead_us == P.number("launch.single_core_overhead_us") + head
    last = P.us_to_cycles(
        P.number("launch.all_cores_overhead_us") - P.number("launch.single_core_overhead_us")
    )
    assert last <= full.cycles - one.cycles < 1.1 * last
    assert full.time_us == pytest.approx(P.cycles_to_us(full.cycles) + full.overhead_us)


@sim.jit
def product_and_scale(a_ptr, c_ptr, VECTOR: tl.constexpr):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    c = tl.dot(tl.load(a_ptr + at), tl.load(a_ptr + at))
    tl.store(c_ptr + tl.program_id(0) * 256 + at, c * 2.0 if VECTOR else c)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("product", "of_cube", "of_both"), [("ascend910b3", 1, 3), ("ascend910b1", 1, 3), ("ascend910a", 1, 1)]
)
@pytest.mark.parametrize("cold", [False, True])
def test_each_core_that_starts_counts_also_the_vector_cores_beside_a_cube_core(
    product, of_cube, of_both, cold
):
    """One after the other in any launch, and the code of all of them after another kernel."""
    p, cores = sim.load_product(product), 16
    for vector, each in ((False, of_cube), (True, of_both)):
        with sim.device(product, values=False, cold_code=cold):
            one, all_cores = (
                product_and_scale.time(
                    (n,), sim.shape(256, "float16"), sim.shape(n * 256, "float32"), VECTOR=vector
                ).launches[0]
                for n in (1, cores)
            )
        step = p.cycles_to_us(start_cycles(p)) * each
        assert all_cores.working_us - one.working_us == pytest.approx((cores - 1) * step, rel=0.25)
        fetched = p.number("launch.cold_code_us_per_core") * each * (cores - 1) if cold else 0.0
        assert all_cores.overhead_us - one.overhead_us == pytest.approx(fetched)


def test_code_of_another_kernel_keeps_all_cores_from_work_and_that_of_two_units_for_longer():
    """Cores wait at the same time: what they do afterwards takes as long as in a loop."""
    x = sim.shape(40 * 1024, "float16")
    for kernel, grid, arguments, further, fixed in (
        (kernels.add, 40, dict(x_ptr=x, y_ptr=x, out_ptr=x, n=40 * 1024, BLOCK=1024), 1, 0.0),
        (
            product_and_scale,
            20,
            dict(a_ptr=x, c_ptr=sim.shape(20 * 256, "float32"), VECTOR=True),
            2,
            P.number("launch.cold_mixed_code_us"),
        ),
    ):
        with sim.device("ascend910b3", values=False):
            warm = kernel.time((grid,), **arguments).launches[0]
        with sim.device("ascend910b3", values=False, cold_code=True):
            cold = kernel.time((grid,), **arguments).launches[0]
        assert cold.cycles == warm.cycles
        cores = 40 if not fixed else 60
        fetched = (cores - 1) * P.number("launch.cold_code_us_per_core") + fixed
        fetched += further * P.number("launch.cold_code_us_per_operation")
        assert cold.overhead_us - warm.overhead_us == pytest.approx(fetched)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("product", sim.product_names())
def test_the_simulated_time_is_never_below_a_bound(product):
    with sim.device(product):
        shape = sim.shape(1 << 18, "float16")
        for block in (256, 2048, 16384):
            launch = kernels.add.time(
                (-(-(1 << 18) // block),), shape, shape, shape, 1 << 18, BLOCK=block
            ).launches[0]
            assert launch.time_us >= max(launch.bounds.values()) * (1 - 1e-12)


def test_lines_and_rest_add_up_to_the_cycles():
    launch = copies(2)
    assert sum(x.cycles for x in launch.lines) + launch.other_cycles == pytest.approx(launch.cycles)
    assert launch.other_cycles == pytest.approx(
        0, abs=1e-6
    )  # one core, one program: nothing is dispatched or idle
    assert launch.lines[0].source.startswith(("x = tl.load", "tl.store"))


def test_a_tail_program_moves_only_its_own_bytes():
    shape = sim.shape(5000, "float16")
    launch = launch_of(kernels.add, (5,), shape, shape, shape, 5000, BLOCK=1024)
    per_tensor = 4 * 2048 + -(-(5000 - 4096) * 2 // 32) * 32
    assert launch.resources["HBM"] == 2 * per_tensor  # what is written stays in L2
    assert launch.resources["L2"] == 3 * per_tensor


def test_time_needs_no_memory_for_tensors():
    huge = sim.shape(10**13, "float16")
    launch = launch_of(kernels.add, (4,), huge, huge, huge, 4096, BLOCK=1024)
    assert launch.cycles > 0


def test_time_with_and_without_values_is_the_same():
    x = np.ones(40 * 1024, np.float16)
    shape = sim.shape(x.shape, "float16")
    with sim.device("ascend910b3"):
        with_values = kernels.add[(40,)](x, x, np.empty_like(x), x.size, BLOCK=1024)
        without = kernels.add.time((40,), shape, shape, shape, x.size, BLOCK=1024)
    assert with_values.cycles == without.cycles
    assert with_values.launches[0].lines == without.launches[0].lines


def test_control_flow_on_data_is_timed_with_values_and_refused_without():
    x = np.array([1, 6, 27, 97], np.int32)
    out = np.zeros(4, np.int32)
    with sim.device("ascend910b3"):
        run = kernels.collatz[(4,)](x, out)
        with pytest.raises(
            sim.UsageError, match=r"kernels\.py:\d+: the `while` depends on loaded data.*collatz\[grid\]"
        ):
            kernels.collatz.time((4,), sim.shape(4, "int32"), sim.shape(4, "int32"))
    assert out.tolist() == [0, 8, 111, 118]
    assert run.launches[0].programs == 4
    assert run.cycles > 118 * 3  # the longest program's iterations cost scalar work


def test_the_same_launch_gives_the_same_cycles_every_time():
    assert len({copies(2).cycles for _ in range(3)}) == 1


def test_the_timeline_names_the_line_of_each_instruction():
    launch = copies(2, iterations=3)
    t = launch.timeline
    assert t.complete
    assert len(t.start) == len(t.line)
    sources = {
        launch.lines[k].source for k, p in zip(t.line, t.pipe, strict=True) if t.pipes[p] == "AIV.MTE2"
    }
    assert sources == {"x = tl.load(x_ptr + offsets)"}
    busy = sum(e - s for s, e, p in zip(t.start, t.end, t.pipe, strict=True) if t.pipes[p] == "AIV.V")
    assert busy == pytest.approx(launch.pipes["AIV.V"].busy_cycles)


def test_a_partial_tile_in_one_program_does_not_slow_the_others_down():
    def cycles(n):
        shape = sim.shape(n, "float32")
        launch = launch_of(kernels.strided_sum, (8,), shape, sim.shape(8 * 2048, "float32"), n, BLOCK=2048)
        return launch.cycles

    whole = 8 * 2048 * 20
    assert cycles(whole - 5) == pytest.approx(cycles(whole), rel=0.03)


def hbm_reads(kernel, n, *args, **kwargs):
    """Bytes from memory over those of the tensor; what is written fits in L2."""
    launch = launch_of(
        kernel, (40,), sim.shape(n + 2, "float32"), sim.shape(n, "float32"), n, *args, **kwargs
    )
    return launch.resources["HBM"] / (4 * n)


def test_every_byte_comes_from_hbm_once_however_it_is_cut():
    n = 40 * 4096 * 16
    assert hbm_reads(kernels.peek_then_read, n, BLOCK=4096) == pytest.approx(1, rel=0.01)
    assert hbm_reads(kernels.stencil, n, BLOCK=4096) == pytest.approx(1, rel=0.02)


def test_the_second_half_of_a_tile_read_again_comes_from_l2():
    n = 40 * 4096
    assert hbm_reads(kernels.read_half_again, n, BLOCK=4096) == pytest.approx(1, rel=0.01)


def test_time_refuses_what_is_out_of_bounds_as_the_launch_does():
    shape = sim.shape(950, "float32")
    with pytest.raises(sim.RunError, match="load of element 999 of 'x_ptr' in program 9 is out of bounds"):
        kernels.add.time((10,), shape, shape, shape, 1000, BLOCK=100)


def test_values_alone_refuse_what_does_not_fit():
    x, out = np.ones(100_000, np.float32), np.zeros(100_000, np.float32)
    with sim.device("ascend910b3", time=False), pytest.raises(sim.RunError, match="ub overflow"):
        kernels.add[(1,)](x, x, out, x.size, BLOCK=x.size)
    assert not out.any()


@sim.jit
def product_of(a_ptr, c_ptr, TILES: tl.constexpr, FRACTALS: tl.constexpr):
    m, rows = tl.arange(0, 16), tl.arange(0, 256)
    acc = tl.zeros((16, 256), tl.float32)
    for t in range(TILES):
        if FRACTALS:
            inside = m[:, None] * 16 + m[None, :]
            first = m[:, None] * 4096 + m[None, :] * 256
            tile = tl.load(a_ptr + t * 65536 + first[:, :, None, None] + inside[None, None, :, :])
            b = tl.reshape(tl.permute(tile, (1, 2, 0, 3)), (256, 256))
        else:
            b = tl.load(a_ptr + t * 65536 + rows[:, None] * 256 + tl.arange(0, 256)[None, :])
        acc = tl.dot(tl.load(a_ptr + m[:, None] * 256 + tl.arange(0, 256)[None, :]), b, acc)
    tl.store(c_ptr + m[:, None] * 256 + tl.arange(0, 256)[None, :], acc)


@pytest.mark.parametrize(
    ("fractals", "figure"),
    [(False, "path.gm_to_l1_nd2nz.bytes_per_cycle"), (True, "path.gm_to_l1.memory_bytes_per_cycle")],
)
def test_what_memory_has_in_fractals_comes_faster_than_rows_that_are_turned_into_them(fractals, figure):
    with sim.device("ascend910b3", values=False, l2="cold"):
        few, many = (
            product_of.time(
                (1,), sim.shape(n * 65536, "float16"), sim.shape(4096, "float32"), TILES=n, FRACTALS=fractals
            )
            for n in (16, 32)
        )
    assert many.cycles - few.cycles == pytest.approx(16 * 2 * 65536 / P.number(figure), rel=0.1)


@sim.jit
def narrow_product(a_ptr, c_ptr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, WIDE)
    a = tl.load(a_ptr + row[:, None] * WIDE + column[None, :])
    c = tl.dot(a, tl.load(a_ptr + column[:, None] * WIDE + column[None, :]))
    tl.store(c_ptr + row[:, None] * WIDE + column[None, :], c)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_rows_of_one_block_are_turned_into_fractals_one_by_one(dtype):
    """However they follow each other in memory: the next row is another transfer."""
    wide, out = (32, "int32") if dtype == "int8" else (16, "float32")
    with sim.device("ascend910b3", values=False, l2="warm"):
        busy = [
            narrow_product.time(
                (1,), sim.shape(n * wide, dtype), sim.shape(n * wide, out), ROWS=n, WIDE=wide
            ).launches[0].pipes["AIC.MTE2"].busy_cycles
            for n in (128, 256)
        ]  # fmt: skip
    each = P.number("path.gm_to_l1_nd2nz.issue_interval_cycles")
    assert busy[1] - busy[0] == pytest.approx(128 * each, rel=0.01)


def test_reads_and_writes_together_pass_l2_faster_than_reads_alone():
    """Half of what a copy moves are writes: L2 gives it what it gives mixed traffic, and reads what it gives reads."""
    x, iterations = sim.shape(48 * 16 * 8192, "float16"), 16
    with sim.device("ascend910b1", values=False, l2="warm"):
        copied = kernels.copy_iterations.time((48,), x, x, iterations, BLOCK=8192).launches[0]
        read = kernels.read_only.time((48,), x, sim.shape(48 * 8192, "float32"), x.size, BLOCK=8192).launches[
            0
        ]
    product = sim.load_product("ascend910b1")
    assert product.l2_mixed_bytes_per_cycle > product.l2_bytes_per_cycle
    for launch, rate, near in (
        (copied, product.l2_mixed_bytes_per_cycle, 1e-9),
        (read, product.l2_bytes_per_cycle, 0.15),  # its one store is a write, too
    ):
        bound = launch.resources["L2"] / rate / product.us_to_cycles(1.0)
        assert bound * (1 - near) <= launch.bounds["L2"] <= bound * (1 + 1e-9)
