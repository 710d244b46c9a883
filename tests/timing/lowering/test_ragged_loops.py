    """Of the rows of one program the last has a shorter loop: the others at once, their inner ones, and that of the last."""
    assert walks(on_tiles(1, 12, 30, 9, True)) == 3


@given(st.integers(1, 7), st.integers(1, 30), st.integers(1, 12), st.integers(0, 12), st.booleans())
def test_rows_of_any_number(programs: int, count: int, deep: int, last: int, tail: bool) -> None:
    check(on_tiles(programs, count, deep, min(last, deep), tail))


@pytest.mark.parametrize("iterations", [2, 9, 40])
def test_what_does_not_grow_evenly_is_found_out(iterations: int) -> None:
    def work() -> None:
        with sim.device("ascend910b3", values=False):
            wider[(3,)](*shapes(1 << 14), *shapes(1 << 14), iterations, BLOCK=64)

    check(work)


def test_uneven_products_are_walked_twice_at_most() -> None:
    """Stretches of a loop around a loop with a sum in L0C and a pointer that moves."""

    def work() -> None:
        with sim.device("ascend910b3", values=False):
            sizes = {"EVEN": True, "BIAS": False, "BM": 32, "BN": 32, "BK": 32}
            kernels.product[(7,)](*shapes((320, 512), (512, 320), (320, 320)), 320, 320, 512, **sizes)

    assert walks(work) == 2


trip_counts = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


@given(trip_counts)
def test_every_program_has_a_lane_for_each_of_its_iterations(trip_count: list[int]) -> None:
    found = IterationLanes(ranges_of_trip_counts(np.array(trip_count)))
    lanes = sorted(zip(found.iteration.tolist(), found.index.tolist(), strict=True))
    assert lanes == sorted((t, p) for p, n in enumerate(trip_count) for t in range(n))
    assert (np.diff(found.iteration) >= 0).all()
    assert found.trip_count == max(trip_count)


@given(trip_counts, st.integers(1, 3))
def test_a_range_takes_its_own_lanes_of_each_row(trip_count: list[int], rows: int) -> None:
    found = IterationLanes(ranges_of_trip_counts(np.array(trip_count)))
    lanes, done = len(found.index), 0
    numbers = np.arange(rows * lanes) + 100
    for part in found.parts:
        end = done + part.trip_count * len(part.programs)
        (cut,) = Cut(lanes, done, end).body([Instruction(0, 0, numbers)])
        assert np.atleast_1d(cut.occupancy).tolist() == [
            100 + r * lanes + i for r in range(rows) for i in range(done, end)
        ]
        done = end


def test_one_range_is_all_iterations_of_all_programs() -> None:
    found = even(3, 2)
    assert found.index.tolist() == [0, 1, 2, 0, 1, 2]
    assert found.iteration.tolist() == [0, 0, 0, 1, 1, 1]
