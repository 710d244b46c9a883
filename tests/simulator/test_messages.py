"""Messages of a launch: texts with a kind, that nothing loses on the way."""

import copy
import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.simulator.messages import KINDS, Message, as_message, fault, note, time_hint
from ascendtile.simulator.record.codec import Decoder, Encoder
from ascendtile.simulator.record.loading import load_run

from ..support.sample_runs import launch, run

TEXTS = st.text(max_size=20)
PLACES = st.one_of(
    st.just(""), st.builds("{}.py:{}".format, st.text("ab/ :", min_size=1), st.integers(1, 99))
)
MESSAGES = st.builds(
    lambda make, *about: make(*about),
    st.sampled_from([fault, time_hint, note]),
    TEXTS,
    PLACES,
    st.lists(st.integers(0, 2**40), max_size=3),
)


def parts(m: Message) -> tuple[object, ...]:
    return type(m), str(m), m.kind, m.place, m.programs


@given(MESSAGES)
def test_a_message_survives_pickle_copy_and_record(m):
    data = json.loads(json.dumps(Encoder({}).encode(m, Message)))
    read = Decoder({}, lambda name: None).decode(data, Message, "warnings.0")
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m), copy.copy(m), read):
        assert parts(other) == parts(m)


@given(MESSAGES)
def test_a_message_is_its_text_with_the_place_in_front(m):
    assert m == (f"{m.place}: {m.what}" if m.place else m.what)
    assert m.file_and_line is None or "{}:{}".format(*m.file_and_line) == m.place


def test_a_plain_text_is_a_note_and_a_message_stays_as_it_is():
    assert parts(as_message("x")) == (Message, "x", "note", "", ())
    wrong = fault("x", "k.py:3", [1, 2])
    assert as_message(wrong) is wrong
    with pytest.raises(ValueError, match="fault, time, note"):
        Message("x", "danger")


def test_the_faults_of_a_run_are_its_messages_of_that_kind_each_once():
    wrong, slow = fault("stored twice", "k.py:3", (0, 1)), time_hint("discrete", "k.py:2")
    of_launch = launch(warnings=("plain", slow, wrong))
    made = replace(run(), launches=(of_launch,), value_warnings=(wrong, fault("read before")))
    assert [w.kind for w in made.warnings] == ["note", "time", "fault", "fault"]
    assert made.faults == ("k.py:3: stored twice", "read before")


def test_a_record_keeps_kind_place_and_programs(tmp_path):
    wrong = fault("stored twice", "k.py:3", (0, 1))
    made = replace(run(), launches=(launch(warnings=(wrong, "plain")),), value_warnings=(note("told"),))
    made.save(tmp_path / "x.run")
    assert list(map(parts, load_run(tmp_path / "x.run").warnings)) == list(map(parts, made.warnings))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3, "must be a JSON object, got 3"),
        ({"text": "x", "kind": "danger", "place": "", "programs": []}, "kind is 'danger'; it must be one of fault"),
        ({"text": "x", "kind": 1, "place": "", "programs": []}, "kind must be str"),
        ({"text": "x", "kind": "note", "place": ""}, "lacks field 'programs'"),
        ({"text": "x", "kind": "note", "place": "", "programs": [], "more": 1}, "has unknown field 'more'"),
        ({"text": "x", "kind": "note", "place": "", "programs": ["1"]}, "programs.0 must be int"),
        ({"text": "x", "kind": "note", "place": "", "programs": [-1]}, "programs.0 is -1; it must be 0 or more"),
        ({"text": "x", "kind": "note", "place": "", "programs": [2**70]}, "which no int of a run is"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(data, text):
    with pytest.raises(sim.UsageError, match=text):
        Decoder({}, lambda name: None).decode(data, Message, "warnings.0")


def test_the_text_of_an_earlier_record_is_a_note():
    read = Decoder({}, lambda name: None).decode("k.py:3: discrete load", Message, "warnings.0")
    assert parts(read) == (Message, "k.py:3: discrete load", "note", "", ())
    assert KINDS == ("fault", "time", "note")
