"""Messages and arrays of a process that lies: bounded memory, bounded time, and an error of ours."""

import json
import mmap
import os
import socket
import threading
import time

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ascendtile.reports.judging.processes import messages, packed, unpacked
from ascendtile.simulator.errors import UsageError

MB = 1_000_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(), x, max_size=3),
)
DTYPES = st.sampled_from(["float32", "float64", "float16", "int8", "int64", "uint8", "bool", "complex64"])


@pytest.fixture
def ends():
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def soon(seconds=5.0):
    return time.monotonic() + seconds


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_a_message_is_what_was_sent(message):
    here, there = socket.socketpair()
    with here, there:
        messages.send(here, message, (), soon())
        assert messages.receive(there, MB, soon()) == (message, [])


def test_files_come_with_their_message(ends):
    here, there = ends
    with open(os.devnull) as file:
        messages.send(here, {"k": 1}, [file.fileno()] * 3, soon())
        messages.send(here, {"k": 2}, [], soon())
        first, fds = messages.receive(there, MB, soon())
        messages.close_all(fds)
        assert (first, len(fds)) == ({"k": 1}, 3)
        assert messages.receive(there, MB, soon()) == ({"k": 2}, [])


def test_large_messages_go_through_small_buffers(ends):
    here, there = ends
    message = {"text": "x" * 3 * MB}
    sending = threading.Thread(target=messages.send, args=(here, message, (), soon()))
    sending.start()
    assert messages.receive(there, 4 * MB, soon()) == (message, [])
    sending.join()


def framed(data):
    return messages.HEADER.pack(len(data)) + data


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (messages.HEADER.pack(1 << 63), "at most 1000000 are read"),
        (framed(b"nothing"), "no JSON"),
        (framed(b"[" * 100_000), "no JSON"),
        (framed(b"1" * 5000), "no JSON"),
        (framed(b"\xff"), "no JSON"),
        (framed(b"[1]"), "a message is list"),
        (framed(b"{}")[:-1], "no whole message came in time"),
        (b"\0", "no whole message came in time"),
        (b"", "no whole message came in time"),
    ],
)
def test_what_is_no_message_is_told(ends, sent, said):
    here, there = ends
    here.sendall(sent)
    with pytest.raises(messages.MessageError, match=said):
        messages.receive(there, MB, soon(0.05))


def test_who_sends_a_byte_at_a_time_is_waited_for_until_the_deadline_only(ends):
    here, there = ends
    ended = threading.Event()

    def trickle():
        while not ended.wait(0.01):
            here.send(b"\0")

    sending = threading.Thread(target=trickle)
    sending.start()
    begun = time.monotonic()
    with pytest.raises(messages.MessageError):
        messages.receive(there, MB, soon(0.05))
    ended.set()
    sending.join()
    assert time.monotonic() - begun < 2


def test_too_many_files_are_closed_and_told(ends):
    here, there = ends
    before = len(os.listdir("/dev/fd"))
    with open(os.devnull) as file:
        messages.send(here, {}, [file.fileno()] * 20, soon())
        with pytest.raises(messages.MessageError, match="more than 8 files"):
            messages.receive(there, MB, soon(), most_fds=8)
    assert len(os.listdir("/dev/fd")) == before


def test_an_end_without_a_message_is_told(ends):
    here, there = ends
    here.close()
    with pytest.raises(messages.ClosedError):
        messages.receive(there, MB, soon())
    with pytest.raises(messages.ClosedError):
        messages.send(there, {}, (), soon())


def test_who_does_not_read_is_waited_for_until_the_deadline_only(ends):
    with pytest.raises(messages.MessageError, match="did not read in time"):
        messages.send(ends[0], {"text": "x" * 3 * MB}, (), soon(0.05))


# ---- arrays ----


def through(given, **options):
    layout, fd = packed(given)
    try:
        return unpacked(json.loads(json.dumps(layout)), fd, MB, **options)
    finally:
        os.close(fd)


@given(
    st.dictionaries(st.text(), arrays.arrays(DTYPES, arrays.array_shapes(min_dims=0, min_side=0)), max_size=4)
)
def test_arrays_are_what_was_packed(given):
    found = through(given)
    assert list(found) == list(given)
    for name, x in given.items():
        assert (found[name].dtype, found[name].shape) == (x.dtype, x.shape)
        assert found[name].tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_types_that_numpy_lacks_are_packed(dtype):
    x = np.arange(5).astype(dtype)
    assert through({"x": x})["x"].dtype == dtype


def test_transposed_arrays_are_packed_in_their_order():
    x = np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(through({"x": x})["x"], x)


def test_types_without_a_fixed_meaning_are_refused():
    with pytest.raises(UsageError, match="array x is of object"):
        packed({"x": np.array([object()])})


@pytest.mark.parametrize("writable", [False, True])
def test_only_writable_arrays_are_written_and_by_their_owner_only(writable):
    x = np.arange(3.0)
    layout, fd = packed({"x": x})
    mine, other = (unpacked(layout, fd, MB, writable=writable)["x"] for _ in range(2))
    if writable:
        mine[:] = 9
    else:
        with pytest.raises(ValueError, match="read-only"):
            mine[:] = 9
    np.testing.assert_array_equal(other, x)
    os.close(fd)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs files that are sealed")
def test_what_is_packed_cannot_be_changed_shortened_or_lengthened():
    _, fd = packed({"x": np.arange(100.0)})
    for attempt in (
        lambda: os.truncate(fd, 1),
        lambda: os.truncate(fd, 1 << 20),
        lambda: os.pwrite(fd, b"1", 0),
        lambda: mmap.mmap(fd, 100),
    ):
        with pytest.raises(PermissionError):
            attempt()
    os.close(fd)


PLACE = ["float32", [2, 3], 0]


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ([], "a layout of arrays is an object"),
        ({"x": None}, "needs dtype, shape and offset"),
        ({"x": PLACE[:2]}, "needs dtype, shape and offset"),
        ({"x": ["object", [1], 0]}, "no type of arrays"),
        ({"x": ["<f4", [1], 0]}, "no type of arrays"),
        ({"x": [["f4"], [1], 0]}, "no type of arrays"),
        ({"x": ["float32", 3, 0]}, "needs a shape"),
        ({"x": ["float32", [1] * 65, 0]}, "needs a shape"),
        ({"x": ["float32", [-1], 0]}, "for a length or an offset"),
        ({"x": ["float32", [True], 0]}, "for a length or an offset"),
        ({"x": ["float32", [1.5], 0]}, "for a length or an offset"),
        ({"x": ["float32", [1 << 62], 0]}, "for a length or an offset"),
        ({"x": ["float32", [1 << 40, 1 << 40], 0]}, "of a file of 24"),
        ({"x": ["float32", [2, 3], 4]}, "ends at byte 28 of a file of 24"),
    ],
)
def test_a_layout_that_lies_is_refused(layout, said):
    fd = os.memfd_create("arrays") if hasattr(os, "memfd_create") else packed({})[1]
    os.write(fd, bytes(24))
    with pytest.raises(UsageError, match=said):
        unpacked(layout, fd, MB)
    os.close(fd)


def test_a_file_that_is_too_large_is_not_read():
    layout, fd = packed({"x": np.zeros(100)})
    with pytest.raises(UsageError, match="arrays have 832 bytes, at most 100 are read"):
        unpacked(layout, fd, 100)
    os.close(fd)


def test_a_file_of_another_kind_is_not_read():
    for fd in os.pipe():
        with pytest.raises(UsageError, match="a file of another kind"):
            unpacked({"x": PLACE}, fd, MB)
        os.close(fd)


def test_a_file_that_can_still_change_is_copied(tmp_path):
    path = tmp_path / "arrays"
    path.write_bytes(bytes(24))
    with open(path, "r+b") as file:
        x = unpacked({"x": PLACE}, file.fileno(), MB)["x"]
        file.truncate(0)
    assert not x.any()  # a mapped file that is shortened would end this process
