"""Programs that store one value to one place: a note where it is the same to the bit, a fault where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.checks import races


def kinds(launch: Callable[[], Any], **options: Any) -> set[str]:
    """Of what a launch says of two programs."""
    with sim.device(time=False, **options):
        return {w.kind for w in launch().warnings if len(w.programs) == 2}


@sim.jit
def all_store(out, HOW: tl.constexpr, DIFFER: tl.constexpr, B: tl.constexpr):
    o, p = tl.arange(0, B), tl.program_id(0)
    value = o * 2 + p * DIFFER
    if HOW == "box":
        tl.store(out + o, value)
    elif HOW == "scalar":
        tl.store(out, p * DIFFER)
    elif HOW == "rows":
        tl.store(out + o[:, None] * B + o[None, :], value[None, :] + o[:, None] * 0)
    elif HOW == "mask":
        tl.store(out + o, value, mask=o % 3 == 0)
    elif HOW == "backwards":
        tl.store(out + B - 1 - o, value)
    elif HOW == "loop":
        for k in range(3):
            tl.store(out + k * B + o, value + k)
    elif HOW == "two lines":
        tl.store(out + o, o * 2)
        tl.store(out + o, value)
    elif HOW == "block pointer":
        tl.store(tl.make_block_ptr(out, (B,), (1,), (0,), (B,), (0,)), value.to(out.dtype.element_ty))
    elif HOW == "loads it back":
        tl.store(out + o, value)
        tl.store(out + (p + 1) * B + o, tl.load(out + o) + 1)


WAYS = ("box", "scalar", "rows", "mask", "backwards", "loop", "two lines", "block pointer", "loads it back")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
@pytest.mark.parametrize("how", WAYS)
def test_equal_values_are_a_note_and_others_a_fault(how: str, dtype: type) -> None:
    def launch(differ: int) -> Any:
        return all_store[(4,)](np.zeros(64, dtype), HOW=how, DIFFER=differ, B=8)

    assert kinds(lambda: launch(0)) == {"note"}
    assert "fault" in kinds(lambda: launch(1))


@sim.jit
def table_stores(out, places, values, BACK: tl.constexpr, B: tl.constexpr):
    """BACK: loads an element that nobody stores to, which only data tells, so that programs run one by one."""
    at = tl.program_id(0) * B + tl.arange(0, B)
    if BACK:
        tl.store(out + 9, tl.load(out + tl.load(places) * 0 + 8), mask=tl.load(places) < 0)
    tl.store(out + tl.load(places + at), tl.load(values + at))


@sim.jit
def one_by_one(out, places, values, BACK: tl.constexpr, B: tl.constexpr):
    for k in range(B):
        at = tl.program_id(0) * B + k
        tl.store(out + tl.load(places + at), tl.load(values + at))


TABLES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 1)), min_size=12, max_size=12)


@given(
    table=TABLES, kernel=st.sampled_from([table_stores, one_by_one]), back=st.booleans(), few=st.booleans()
)
def test_a_fault_is_an_element_of_two_programs_and_two_values(
    table: list[tuple[int, int]], kernel: Any, back: bool, few: bool
) -> None:
    """However many programs run at once, and whether stores are noted or looked up at once."""
    places, values = (np.array(x, np.int32) for x in zip(*table, strict=True))
    said = set()
    for k in range(8):
        programs = {i // 3 for i in np.flatnonzero(places == k)}
        if len(programs) > 1:
            said.add("fault" if len(set(values[places == k].tolist())) > 1 else "note")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(races, "MOST_NOTES", 0 if few else races.MOST_NOTES)
        found = kinds(lambda: kernel[(4,)](np.zeros(16, np.int32), places, values, BACK=back, B=3))
    assert max(found, default="") == max(said, default="") if "fault" not in said else "fault" in found


@sim.jit
def overwritten_later(out, WHO: tl.constexpr, B: tl.constexpr):
    """All store the same; one of them goes on with another value."""
    o, p = tl.arange(0, B), tl.program_id(0)
    tl.store(out + o, o)
    if p == WHO:
        tl.store(out + 1, 7)


@pytest.mark.parametrize("who", range(4))
def test_one_program_that_stores_another_value_later_is_told(who: int) -> None:
    assert "fault" in kinds(lambda: overwritten_later[(4,)](np.zeros(8, np.int32), WHO=who, B=8))
    assert kinds(lambda: overwritten_later[(4,)](np.zeros(8, np.int32), WHO=9, B=8)) == {"note"}


@sim.jit
def copied(out, x):
    tl.store(out, tl.load(x + tl.program_id(0)))


@pytest.mark.parametrize(("one", "two"), [(0.0, -0.0), (1.0, 1.0 + 2**-23)])
def test_values_are_compared_to_the_bit(one: float, two: float) -> None:
    for x, said in ([one, one], "note"), ([one, two], "fault"):
        assert kinds(lambda x=x: copied[(2,)](np.ones(1, np.float32), np.array(x, np.float32))) == {said}


@sim.jit
def loads_what_all_store(out, got, LOADS: tl.constexpr):
    p = tl.program_id(0)
    if p < 3:
        tl.store(out, 1.0)
    elif LOADS:
        tl.store(got, tl.load(out))


@pytest.mark.parametrize("loads", [False, True])
def test_a_load_of_what_others_store_alike_is_a_fault(loads: bool) -> None:
    out, got = np.ones(1, np.float32), np.ones(1, np.float32)
    found = kinds(lambda: loads_what_all_store[(4,)](out, got, LOADS=loads))
    assert found == ({"note", "fault"} if loads else {"note"})


@sim.jit
def loads_behind_a_lock(out, got, lock, DIFFER: tl.constexpr, B: tl.constexpr):
    """Each program loads what it has stored itself, as all others did, after others have told it something."""
    o, p = tl.arange(0, B), tl.program_id(0)
    tl.store(out + o, o + p * DIFFER)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(got + o, tl.load(got + o) + tl.load(out + o))
    tl.atomic_xchg(lock, 0)


@sim.jit
def loads_behind_a_flag(out, got, flags, DIFFER: tl.constexpr, B: tl.constexpr):
    o, p = tl.arange(0, B), tl.program_id(0)
    tl.store(out + o, o + p * DIFFER)
    if p > 0:
        while tl.atomic_add(flags + p - 1, 0) == 0:
            pass
    tl.store(got + p * B + o, tl.load(out + o))
    tl.atomic_xchg(flags + p, 1)


@pytest.mark.parametrize("kernel", [loads_behind_a_lock, loads_behind_a_flag])
@pytest.mark.parametrize("differ", [0, 1])
def test_what_a_program_loads_may_be_stored_again_as_it_was(kernel: Any, differ: int) -> None:
    memory = [np.zeros(n, np.int32) for n in (8, 32, 4)]
    assert ("fault" in kinds(lambda: kernel[(4,)](*memory, DIFFER=differ, B=8))) == bool(differ)
