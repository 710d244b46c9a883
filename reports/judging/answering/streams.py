"""Streams of an answer's own: launches on them count as all others do, and somebody has to wait for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ....simulator.triton_shim.torch_npu.npu import DEFAULT_STREAM, Event, Stream

PLACES = ("torch.npu", "torch.cuda", "torch_npu.npu")


class Streams:
    """Which stream is in force, and what runs on streams that nobody waited for."""

    def __init__(self) -> None:
        self.current: Any = DEFAULT_STREAM
        self.pending: dict[int, tuple[Any, list[int]]] = {}  # by the stream: it, and lines of its launches

    def begin(self) -> None:
        """A call begins."""
        self.current = DEFAULT_STREAM
        self.pending.clear()

    def launched(self, line: int) -> None:
        """A launch, or an operation of torch, is made by that line."""
        if self.current is not DEFAULT_STREAM:
            self.pending.setdefault(id(self.current), (self.current, []))[1].append(line)

    def waited(self, stream: Any = None) -> None:
        """The default stream, or the host, waits for a stream; for all of them without one."""
        if stream is None:
            self.pending.clear()
        else:
            self.pending.pop(id(stream), None)

    @property
    def unsynchronised(self) -> tuple[int, ...]:
        """Lines whose launches nobody waited for."""
        return tuple(sorted({line for _, lines in self.pending.values() for line in lines}))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A block in which torch's streams tell what is done with them."""
        with _set(_names(self)):
            yield


def _names(streams: Streams) -> dict[str, Any]:
    class OwnStream(Stream):
        """A stream that tells who waits for whom."""

        def __enter__(self) -> Stream:
            self.before, streams.current = streams.current, self
            return self

        def __exit__(self, *_: Any) -> None:
            streams.current = self.before

        def synchronize(self) -> None:
            streams.waited(self)

        def record_event(self, event: Event | None = None) -> Event:
            event = super().record_event(event)
            event.of_stream = self  # type: ignore[attr-defined]
            return event

        def wait_stream(self, other: Any) -> None:
            """What waits is done only when this one is."""
            for line in streams.pending.get(id(other), (other, []))[1]:
                streams.pending.setdefault(id(self), (self, []))[1].append(line)
            streams.waited(other)

        def wait_event(self, event: Event) -> None:
            stream = getattr(event, "of_stream", None)
            if stream is not None:
                self.wait_stream(stream)

    class OwnEvent(Event):
        """An event that knows its stream."""

        def record(self, stream: Any = None) -> None:
            super().record(stream)
            self.of_stream = stream or streams.current

        def synchronize(self) -> None:
            streams.waited(getattr(self, "of_stream", None) or DEFAULT_STREAM)

        def wait(self, stream: Any = None) -> None:
            if stream is None or stream is DEFAULT_STREAM or isinstance(stream, _Default):
                self.synchronize()

    class _Default(OwnStream):
        """The stream that everything else waits for."""

        def __enter__(self) -> Stream:
            self.before, streams.current = streams.current, DEFAULT_STREAM
            return self

        def wait_stream(self, other: Any) -> None:
            streams.waited(other)

    default = _Default()

    @contextmanager
    def stream(x: Any = None) -> Iterator[None]:
        with x if isinstance(x, OwnStream) else default:
            yield

    def set_stream(x: Any) -> None:
        streams.current = DEFAULT_STREAM if isinstance(x, _Default) else x

    def current_stream(device: Any = None) -> Any:
        return default if streams.current is DEFAULT_STREAM else streams.current

    made = {"Stream": OwnStream, "Event": OwnEvent, "stream": stream, "set_stream": set_stream}
    asked = {"current_stream": current_stream, "default_stream": lambda device=None: default}
    return {**made, **asked, "synchronize": lambda *_, **__: streams.waited()}


@contextmanager
def _set(names: dict[str, Any]) -> Iterator[None]:
    before = [
        (module, n, vars(module).get(n))
        for p in PLACES
        if (module := sys.modules.get(p)) is not None
        for n in names
    ]
    for module, n, was in before:
        if was is not None:
            setattr(module, n, names[n])
    try:
        yield
    finally:
        for module, n, was in before:
            if was is not None:
                setattr(module, n, was)
