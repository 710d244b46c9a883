"""What is looked at before an answer, where most of it was looked at before the fork."""

import json
import sys
import types

import pytest

from ascendtile.reports.judging import seeds
from ascendtile.reports.judging.answering import fingerprints
from ascendtile.reports.judging.answering._changed import changed, changed_owners


@pytest.mark.parametrize(
    ("was", "now", "found"),
    [
        ({}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 3}, ["b"]),
        ({"a": 1, "b": 2, "c": 3}, {"a": 1, "new": 0, "b": 5, "c": 3}, ["b"]),
        ({"a": 1, "b": 2}, {}, ["a", "b"]),
    ],
)
def test_changed_names_what_is_another_object_or_gone_in_any_order(was, now, found):
    assert changed(was, now) == found


def test_an_owner_differs_by_what_is_another_gone_or_added():
    same, other = {"a": 1}, {"a": 2}
    pairs = {"same": (same, {"a": 1}), "other": (other, {"a": 1}), "more": (same, {}), "less": ({}, {"a": 1})}
    assert changed_owners(pairs) == ["other", "more", "less"]


class _OfLate:
    """Comes into a module after it was looked at."""

    def method(self):
        return 1


def test_what_was_known_before_and_changed_since_is_a_look_at_everything_now(monkeypatch):
    late = types.ModuleType("ascendtile.late")
    late.function = len
    fingerprints.know()
    _OfLate.__module__ = seeds.__name__
    monkeypatch.setattr(seeds, "OfLate", _OfLate, raising=False)
    monkeypatch.setattr(json, "dumps", lambda x: "")
    monkeypatch.delattr(json, "load")
    monkeypatch.setitem(sys.modules, late.__name__, late)
    renewed, whole = fingerprints.snapshot(), fingerprints.snapshot()
    assert {*renewed} == {*whole} >= {"ascendtile.late", f"{seeds.__name__}.OfLate"}
    assert all(renewed[n][0] is whole[n][0] and renewed[n][1].keys() == whole[n][1].keys() for n in whole)
    assert not changed_owners(renewed)
    late.function = max
    monkeypatch.setattr(_OfLate, "method", lambda self: 2)
    told = [cheat.message for cheat in fingerprints.replaced(renewed)]
    assert sorted(told) == ["replaces ascendtile.late.function", f"replaces {seeds.__name__}.OfLate.method"]
