"""Launches that follow each other find in L2 what those before them left; what the user may say of L2, and what not."""

import gc

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.simulator.device import using
from ascendtile.simulator.l2.state import L2State

SMALL = {"l2.size": 1 << 20}
N = 100_000


@sim.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


@pytest.fixture(autouse=True)
def small_l2():
    with sim.device("ascend910b3", overrides=SMALL, values=False):
        yield


def copied(x, y):
    return copy[(20,)](x, y, len(x) if isinstance(x, np.ndarray) else x.size, BLOCK=4096).launches[0]


def arrays(count, n=N):
    return [np.zeros(n, np.float16) for _ in range(count)]


def read_from_memory(x, y):
    return copied(x, y).resources["HBM"]


def test_a_launch_reads_what_the_one_before_it_wrote_out_of_l2():
    x, y, z = arrays(3)
    with sim.chain(cold=True):
        assert read_from_memory(x, y) == pytest.approx(2 * N, rel=0.01)
        assert read_from_memory(y, z) == 0


def test_the_first_launch_is_as_in_a_loop_of_its_own():
    x, y = arrays(2)
    alone = copied(x, y)
    with sim.chain():
        assert copied(x, y).cycles == alone.cycles


def test_what_came_between_pushes_older_tensors_out():
    x, y, *more = arrays(12)
    with sim.chain(cold=True):
        copied(x, y)
        for a, b in zip(more[::2], more[1::2], strict=True):
            copied(a, b)
        last = copied(x, y)
    assert last.resources["HBM"] > 3.9 * N  # x is read, and what others changed is written


def test_changed_lines_of_other_launches_are_left_until_somebody_writes_them():
    x, y, z = arrays(3)
    with sim.chain(cold=True):
        left = [copied(x, y).l2_left_bytes, copied(x, z).l2_left_bytes]
    assert left[0] == pytest.approx(2 * N, rel=0.01)
    assert left[1] == pytest.approx(4 * N, rel=0.01)


def test_another_tensor_at_the_same_address_is_not_there():
    (y,) = arrays(1)
    taken = []
    with sim.chain(cold=True):
        for _ in range(4):
            x = np.zeros(N, np.float16)
            taken.append(read_from_memory(x, y))
            del x
            gc.collect()
    assert min(taken) >= 2 * N - 256


def test_cycles_do_not_depend_on_addresses():
    def script():
        x, y, z = arrays(3)
        with sim.chain():
            return [copied(a, b).cycles for a, b in ((x, y), (y, z), (z, x), (x, y))]

    first = script()
    kept = [np.zeros(1000 + 64 * k) for k in range(20)]
    assert script() == first
    assert len(kept) == 20


def test_a_part_of_an_array_is_known_by_where_it_lies():
    (x,) = arrays(1, 3 * 64_000)
    y, z = arrays(2, 64_000)
    with sim.chain(cold=True):
        copied(x[:64_000], y)
        other, same = read_from_memory(x[64_000:128_000], z), read_from_memory(x[:64_000], z)
    assert other == pytest.approx(2 * 64_000, rel=0.01)
    assert same == 0


def test_a_torch_tensor_is_known_by_its_storage():
    torch = pytest.importorskip("torch")
    x, y = torch.zeros(N, dtype=torch.float16), torch.zeros(N, dtype=torch.float16)
    with sim.chain(cold=True):
        copy[(20,)](x, y, N, BLOCK=4096)
        gc.collect()
        again = copy[(20,)](x.view(N // 2, 2), torch.zeros_like(y), N, BLOCK=4096).launches[0]
    assert again.resources["HBM"] == 0


def test_an_operator_of_several_launches_is_repeated_as_a_whole():
    tiling = {"combine": "two_phase"}
    run = run_op("rms_norm_grad", case="tiny", values=False, tiling=tiling).run
    assert len(run.launches) > 1
    assert sum(x.resources["HBM"] for x in run.launches) == 0
    with sim.device(l2="cold"):
        assert run_op("rms_norm_grad", case="tiny", values=False, tiling=tiling).run.cycles >= run.cycles


def test_of_an_operator_of_several_launches_only_the_first_finds_l2_cold():
    tiling = {"strategy": "shared"}
    with sim.device(l2="cold", overrides={"l2.size": 192 << 20}):
        sums, dx, _ = run_op("group_norm_backward", case="vae-512", values=False, tiling=tiling).run.launches
    assert sums.resources["HBM"] > 0
    # It reads gamma; dy and x are there, and what it writes stays.
    assert dx.resources["HBM"] < 0.01 * sums.resources["HBM"]


def test_each_launch_is_as_the_user_says_also_in_a_chain():
    x, y = arrays(2)
    with sim.device(l2="cold"), sim.chain():
        assert copied(x, y).cycles == copied(x, y).cycles
        assert read_from_memory(x, y) == pytest.approx(2 * N, rel=0.01)
    with sim.chain():
        copied(x, y)
        with sim.device(l2={"x": "cold"}):
            assert read_from_memory(x, y) == pytest.approx(2 * N, rel=0.01)


@pytest.mark.parametrize("word", ["cold", "warm"])
def test_what_is_found_cold_or_warm_is_not_still_to_be_written(word):
    """What the launch before left of it does not count beside what this one writes."""
    x, y = arrays(2)
    with sim.chain(cold=True):
        once = copied(x, y).l2_left_bytes
        with sim.device(l2={"y": word}):
            assert copied(x, y).l2_left_bytes == once


def test_an_explained_launch_leaves_what_it_would_without():
    x, y, z = arrays(3)
    with sim.chain():
        copied(x, y)
        plain = copied(y, z).cycles
    with sim.chain():
        copied(x, y)
        with sim.device(explain=True):
            explained = copied(y, z).cycles
        assert copied(y, z).cycles > 0
    assert explained == plain


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"l2": "hot"}, "l2 must be loop, cold or warm, or these by tensor argument"),
        ({"l2": {"x": "hot"}}, "l2 must be loop, cold or warm"),
        ({"l2": True}, "l2 must be loop, cold or warm"),
        ({"warm_l2": True}, "the device option warm_l2 is gone; give l2='warm'"),
        ({"changed_l2": 0.5}, "the device option changed_l2 is gone; give l2='loop'"),
    ],
    ids=str,
)
def test_what_l2_cannot_be_is_refused_with_the_way_out(given, words):
    with pytest.raises(sim.UsageError, match=words), sim.device(**given):
        pass


def test_a_tensor_that_the_kernel_does_not_have_is_refused():
    with sim.device(l2={"q": "warm"}):
        with pytest.raises(sim.UsageError, match="copy has no tensor argument 'q'; it has x, y"):
            copied(*arrays(2))
        with pytest.raises(sim.UsageError, match="rms_norm_grad has no tensor argument 'q'"):
            run_op("rms_norm_grad", case="tiny", values=False)


def test_the_record_says_what_was_found_and_what_is_left(tmp_path):
    x, y = arrays(2)
    with sim.chain():
        runs = [copy[(20,)](x, y, N, BLOCK=4096) for _ in range(2)]
    assert [r.options["l2"] for r in runs] == ["loop", "loop (as launches before left it)"]
    runs[1].save(tmp_path / "x.run")
    again = sim.load_run(tmp_path / "x.run")
    assert again.l2_left_bytes == runs[1].l2_left_bytes == pytest.approx(2 * N, rel=0.01)


def test_lines_that_others_changed_have_to_be_written_by_who_pushes_them_out():
    x, y = (sim.shape(1 << 20, "float16") for _ in "xy")
    times = []
    for changed in (0.0, 0.5, 1.0):
        with sim.device(l2=L2State(changed=changed)) as device, using(device):
            times.append(copy.time((20,), x, y, 1 << 20, BLOCK=4096).cycles)
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_of_any_number_of_tensors_the_older_ones_are_put_together(monkeypatch):
    """They are not found again, and what is changed of them still has to be written."""
    monkeypatch.setattr("ascendtile.simulator.l2.chain.MANY", 20)
    x, *more = arrays(60, 1000)
    with sim.chain(cold=True) as chain:
        left = [copied(x, y).l2_left_bytes for y in more][-1]
        parts, lines = len(chain.left), sum(part.end - part.first for part in chain.left)
        assert read_from_memory(more[-1], x) == 0
        assert read_from_memory(more[0], x) == pytest.approx(2000, abs=64)
    assert parts <= 20
    assert lines == pytest.approx(60 * 16, rel=0.01)
    assert left == pytest.approx(59 * 2048, rel=0.1)
