"""Many requests by many clients while workers are killed: each gets its answer, always the same one, and memory stays."""

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .conftest import WAIT_SECONDS, descendants
from .tasks import ANSWER, SCRIPT, TASK

pytestmark = pytest.mark.extra("mcp")
KINDS = (
    ("run", {"op": "rms_norm_grad", "case": "tiny", "values": False}),
    ("judge", {"task": TASK, "answer": ANSWER}),
    ("run", {"script": SCRIPT}),
    ("judge", {"task": TASK, "answer": ANSWER, "values": False}),
    ("products", {"name": "ascend910b3"}),
)
PAGE = os.sysconf("SC_PAGE_SIZE")
GROWTH = 16 << 20  # bytes that allocators may keep beyond what the first requests took


def own_bytes(pid):
    """Memory that the process alone has: resident and not shared."""
    _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(resident) - int(shared)) * PAGE


def killer(served, count, done):
    """Kill that many workers, spread over the requests: processes that were not there when nothing ran."""
    idle, killed = served.idle, 0
    while killed < count and not done.is_set():
        time.sleep(0.05)
        for pid in sorted(descendants(served.process.pid) - idle)[:1]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed += 1
            done.wait(0.5)
    return killed


def load(served, requests, clients, kills):
    """Answers by kind of request, as texts; how many workers were killed."""
    answers = {k: set() for k in range(len(KINDS))}
    done = threading.Event()

    def ask(number):
        kind = number % len(KINDS)
        status, answer = served.ask(*KINDS[kind], timeout=10 * WAIT_SECONDS)
        return kind, f"{status} {json.dumps(answer, sort_keys=True)}"

    with ThreadPoolExecutor(1) as beside, ThreadPoolExecutor(clients) as threads:
        killed = beside.submit(killer, served, kills, done)
        for kind, text in threads.map(ask, range(requests)):
            answers[kind].add(text)
        done.set()
    return answers, killed.result()


def check(start, requests, clients, kills):
    served = start("--no-torch", "--slots", "2", "--queue", str(clients))
    warm, _ = load(served, 4 * len(KINDS), 2, 0)
    served.eventually("nothing runs", running=0)
    served.idle = descendants(served.process.pid)
    before = {p: own_bytes(p) for p in (served.process.pid, *served.idle)}
    answers, killed = load(served, requests, clients, kills)
    assert killed == kills
    assert answers == warm
    assert all(len(texts) == 1 and min(texts).startswith("200 ") for texts in answers.values())
    served.eventually("nothing is left", running=0, waiting=0)
    after = {p: own_bytes(p) for p in before}
    assert all(after[p] - before[p] < GROWTH for p in before), (before, after)


def test_no_answer_is_lost_or_differs_while_workers_are_killed(start):
    check(start, requests=40, clients=8, kills=3)


@pytest.mark.exhaustive
def test_a_thousand_requests_by_16_clients_while_20_workers_are_killed(start):
    check(start, requests=1000, clients=16, kills=20)
