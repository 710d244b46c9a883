"""Labels of points: none covers another or a mark, none leaves the frame, and one that stands alone is beside its point."""

from __future__ import annotations

from itertools import combinations

import hypothesis.strategies as st
from hypothesis import given

from ascendtile.reports.facts.study.labels import LED, LabelBox, around, labels

FRAME = LabelBox(60.0, 16.0, 680.0, 480.0)
places = st.tuples(st.floats(60.0, 740.0), st.floats(16.0, 496.0))


@given(st.lists(places, max_size=34), st.data())
def test_no_label_covers_another_or_a_mark_or_leaves_the_frame(points, data):
    size = st.tuples(st.floats(10.0, 140.0), st.just(14.0))
    sizes = data.draw(st.lists(size, min_size=len(points), max_size=len(points)))
    found = [b for b in labels(points, sizes, FRAME, 5.0, points[:5]) if b is not None]
    assert not [pair for pair in combinations(found, 2) if pair[0].overlaps(pair[1])]
    assert all(FRAME.holds(b) for b in found)
    assert not [b for b in found for p in points if b.overlaps(around(*p, 5.0))]


@given(st.lists(st.floats(100.0, 400.0), min_size=30, max_size=30))
def test_thirty_points_of_one_time_all_have_a_label(heights):
    """8-bit formats take one time on a Cube: their points stand above each other."""
    found = labels([(400.0, y) for y in heights], [(90.0, 14.0)] * 30, FRAME, 5.0)
    assert None not in found


@given(places)
def test_a_point_alone_has_its_label_beside_it(point):
    (box,) = labels([point], [(60.0, 14.0)], FRAME, 5.0)
    assert box is not None
    x, y = box.nearest(*point)
    assert abs(x - point[0]) <= LED
    assert abs(y - point[1]) <= LED
    assert box.leader(*point) is None


def test_a_label_keeps_clear_of_the_line():
    (box,) = labels([(300.0, 200.0)], [(60.0, 14.0)], FRAME, 5.0, [(300.0, 200.0), (700.0, 200.0)])
    assert box is not None
    assert not 193 < box.middle[1] < 207


def test_where_there_is_no_room_there_is_no_label():
    assert labels([(5.0, 5.0)], [(60.0, 14.0)], LabelBox(0.0, 0.0, 30.0, 10.0), 5.0) == [None]
