"""What is a finding: an exception that is not ours, an odd exit status, too much time or memory, markup or control
characters that got through, output that is no JSON."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

from ascendtile.reports.cli import main
from ascendtile.simulator.errors import AscendtileError

from ..reports.page_reader import check_safe, read

MOST_SECONDS = 20.0  # of the processor, for one input
MOST_SECONDS_BY_THE_CLOCK = 600.0  # for what waits for ever, or is in a library that hears no signal
MOST_BYTES = 1536 * 2**20  # beyond what the process had before
STATUSES = (0, 1, 2)
# Of the first two columns of Unicode, and what turns the direction of a line.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Finding(Exception):
    """Something that no input may do."""


@dataclass(frozen=True)
class Answer:
    """Exit status, standard output, standard error."""

    status: int
    out: str
    err: str


@dataclass
class Bench:
    """Where one input is tried. folder: the current one meanwhile. accepted: how often the product went on."""

    folder: Path
    accepted: int = 0
    tried: dict[str, bytes] = field(default_factory=dict)

    def file(self, name: str, data: bytes | str) -> Path:
        """A file of the input."""
        raw = data if isinstance(data, bytes) else data.encode(errors="surrogatepass")
        (self.folder / name).write_bytes(raw)
        self.tried[name] = raw
        return self.folder / name

    def command(self, *arguments: object) -> Answer:
        """`ascendtile ARGUMENTS` in this process; a finding where it ends as no command may."""
        texts = [str(a) for a in arguments]
        faults: list[str] = []
        out, err = (
            io.TextIOWrapper(io.BytesIO(), "utf-8"),
            io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace"),
        )
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _explained(faults):
            status = main.status_of(texts)
            answer = Answer(status, _text(out), _text(err))
        self.accepted += status == 0
        check_answer(answer, texts, faults)
        return answer

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Around a call of the library, which may refuse in words of ours."""
        try:
            yield
            self.accepted += 1
        except AscendtileError as error:
            if not str(error).strip():
                raise Finding("an error without a word") from error


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return raw.decode("utf-8", "replace")


@contextlib.contextmanager
def _explained(faults: list[str]) -> Iterator[None]:
    """Keep the trace of what the command line calls a fault of its own."""
    really = main.explain

    def explain(error: BaseException) -> tuple[int, str | None]:
        status, message = really(error)
        if "a fault of ascendtile" in (message or ""):
            faults.append("".join(traceback.format_exception(error, limit=-6)))
        return status, message

    main.explain = explain
    try:
        yield
    finally:
        main.explain = really


def check_answer(answer: Answer, texts: list[str], faults: list[str]) -> None:
    what = f"ascendtile {' '.join(texts)!r:.500}"
    if faults:
        raise Finding(f"{what}: {faults[0]}")
    if answer.status not in STATUSES:
        raise Finding(f"{what}: exit status {answer.status}")
    if "Traceback" in answer.err + answer.out:
        raise Finding(f"{what}: a stack trace: {answer.err[-2000:]}")
    if answer.status and not answer.err.strip():
        raise Finding(f"{what}: exit status {answer.status} without a word")
    for name, text in (("output", answer.out), ("errors", answer.err)):
        if found := CONTROL.search(text):
            raise Finding(
                f"{what}: {found[0]!r} in standard {name}: {text[max(0, found.start() - 80) : found.end() + 20]!r}"
            )
    if answer.status == 0 and "--json" in itertools.takewhile(lambda x: not x.endswith(".py"), texts):
        read_json(answer.out, what)  # what stands behind a script is the script's


def read_json(text: str, what: str) -> Any:
    """Strict: no NaN."""

    def no_literal(word: str) -> NoReturn:
        raise ValueError(word)

    try:
        return json.loads(text, parse_constant=no_literal)
    except (ValueError, RecursionError) as error:
        raise Finding(f"{what}: no JSON ({error}): {text[:300]!r}") from None


def check_file(path: Path) -> None:
    """A file that the product wrote is whole, and nothing of the input is markup in it."""
    text = path.read_bytes()
    try:
        if path.suffix in (".html", ".htm"):
            check_markup(text.decode())
        elif path.suffix == ".svg":
            names = {e.tag.rpartition("}")[2] for e in ElementTree.fromstring(text).iter()}
            assert not {"fuzz", "script"} & names, names
        elif path.suffix == ".json":
            read_json(text.decode(), path.name)
        elif path.suffix == ".png":
            assert text.startswith(b"\x89PNG")
    except (AssertionError, ValueError, ElementTree.ParseError) as error:
        raise Finding(f"{path.name}: {type(error).__name__}: {error}") from error


def check_markup(page: str, whole: bool = True) -> None:
    """Of a page, or of what a notebook shows, nothing came from the input. `AssertionError` says what did."""
    scripts = len(re.findall(r"<script(?![^>]*type=)", page))
    reader = check_safe(page, scripts) if whole else read(page)
    assert "fuzz" not in {tag for tag, _ in reader.elements}
    assert not [a for _, attributes in reader.elements for a in attributes if "fuzz" in a]
    for attributes, text in reader.scripts:
        if attributes.get("type") == "application/json":
            json.loads(text)
        assert not text.lstrip().startswith("fuzz")


# ---- time and memory ----


class _Overtime(BaseException):
    """Not an Exception: nothing may take it for an error of its own."""


@contextlib.contextmanager
def watched(name: str) -> Iterator[None]:
    """A finding where what is inside takes too long or too much. name: told where the process has to be ended for it."""
    late: list[str] = []

    def ring(number: int, _: Any) -> None:
        late.append("".join(traceback.format_stack(limit=12)))
        raise _Overtime

    kept = signal.signal(signal.SIGPROF, ring)
    end = threading.Timer(MOST_SECONDS_BY_THE_CLOCK, _give_up, [name])
    end.start()
    before, began = _resident_bytes("VmRSS", reset=True), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        with contextlib.suppress(_Overtime):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, kept)
        end.cancel()
        _check_used(late, time.process_time() - began, _resident_bytes("VmHWM") - before)


def _give_up(name: str) -> NoReturn:
    os.write(2, f"{name}: {MOST_SECONDS_BY_THE_CLOCK:.0f} s and no end\n".encode())
    os._exit(3)


def _check_used(late: list[str], seconds: float, used: int) -> None:
    if late or seconds > MOST_SECONDS:
        raise Finding(
            f"{seconds:.1f} s of processor time, at most {MOST_SECONDS} are allowed: {''.join(late[:1])}"
        )
    if used > MOST_BYTES:
        raise Finding(f"{used >> 20} MiB, at most {MOST_BYTES >> 20} are allowed")


def _resident_bytes(name: str, reset: bool = False) -> int:
    """Of this process, or the most since the last reset; 0 where the system does not say."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        found = re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[Bench]:
    """A bench in an empty folder, which is the user's home, cache and current folder."""
    folder.mkdir()
    here, kept = os.getcwd(), dict(os.environ)
    os.environ.update(HOME=str(folder), XDG_CACHE_HOME=str(folder / "cache"), COLUMNS="80")
    os.environ.pop(main.DEBUG, None)
    os.chdir(folder)
    try:
        yield Bench(folder)
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(kept)
