"""A pool: no answer is lost with a killed worker, a full queue says so, clients take turns, nothing is left at the end."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from ascendtile.reports.judging.processes import Cancellation, CancelledError, Pool, QueueFullError
from ascendtile.reports.judging.processes.watching import family
from ascendtile.simulator.errors import UsageError

CALLED = Path(__file__).resolve().parent / "called"
ECHO, SLEEPS = "process_functions:echo", "process_functions:sleeps"


@pytest.fixture(scope="module")
def pool():
    with Pool(2, waiting=4, folders=[CALLED]) as made:
        made.warm()
        yield made


def wait_until(true, seconds=10.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def workers(pool):
    """Processes of calls: those that the one that forks started."""
    inner = family(pool.zygote.process.pid)
    return inner[2 if "processes" in pool.zygote.kept_from else 1 :]


def is_there(pid):
    """Whether the process runs."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def killed(pool, wanted, ended, between=0):
    """Kill that many workers, after so many others each; how many were."""
    count, others, seen = 0, between, set()
    while count < wanted and not ended.wait(0.005):
        new = [p for p in workers(pool) if p not in seen]
        seen.update(new)
        others += len(new)
        if new and others > between:
            with suppress(OSError):
                os.kill(new[-1], signal.SIGKILL)
                count, others = count + 1, 0
    return count


def load(requests, clients, wanted):
    """Calls of as many clients, some of whose workers are killed: answers, how many were killed, memory at both ends."""
    with Pool(2, waiting=clients, folders=[CALLED]) as pool, ThreadPoolExecutor(clients + 1) as threads:
        pool.warm()
        ended = Event()
        killing = threads.submit(killed, pool, wanted, ended, between=6)
        ask = [
            threads.submit(pool.call, SLEEPS, {"seconds": 0.01}, client=str(k % clients))
            for k in range(requests)
        ]
        first = held(pool)
        statuses = [x.result().status for x in ask]
        ended.set()
        return statuses, killing.result(), held(pool) - first


def held(pool):
    """Bytes of memory of the process that forks."""
    inner = family(pool.zygote.process.pid)[1]
    return int(Path(f"/proc/{inner}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_no_answer_is_lost_when_a_worker_is_killed(pool):
    before = pool.zygote
    asked = ThreadPoolExecutor(1).submit(pool.call, SLEEPS, {"seconds": 0.2})
    wait_until(lambda: workers(pool))
    os.kill(workers(pool)[0], signal.SIGKILL)
    assert asked.result().status == "ok"
    assert pool.zygote is before


def test_no_answer_is_lost_when_the_process_that_forks_is_killed(pool):
    before = pool.zygote
    asked = ThreadPoolExecutor(1).submit(pool.call, SLEEPS, {"seconds": 0.2})
    wait_until(lambda: workers(pool))
    os.kill(before.process.pid, signal.SIGKILL)
    assert asked.result().status == "ok"
    assert pool.zygote is not before


def test_a_call_that_is_killed_twice_says_so(pool):
    ended = Event()
    killing = Thread(target=killed, args=(pool, 2, ended))
    killing.start()
    reply = pool.call(SLEEPS, {"seconds": 60})
    ended.set()
    killing.join()
    assert (reply.status, reply.reason) == ("killed", "was ended by SIGKILL")


@pytest.mark.exhaustive
def test_200_calls_of_16_clients_with_20_killed_workers_all_have_an_answer():
    statuses, count, _ = load(200, 16, 20)
    assert statuses == ["ok"] * 200
    assert count == 20


@pytest.mark.long
def test_1000_calls_leave_memory_as_it_was():
    statuses, count, grown = load(1000, 16, 20)
    assert statuses == ["ok"] * 1000
    assert count == 20
    assert grown < 1 << 20


def test_a_full_queue_says_how_many_wait():
    with Pool(1, waiting=1, folders=[CALLED]) as pool, ThreadPoolExecutor(2) as threads:
        cancel = Cancellation()
        asked = [threads.submit(pool.call, SLEEPS, {"seconds": 600}, cancel=cancel) for _ in range(2)]
        wait_until(lambda: pool.taken and pool.queue)
        with pytest.raises(
            QueueFullError, match="queue is full: 1 waiting, at most 1; try again later"
        ) as told:
            pool.call(ECHO, {})
        assert (told.value.waiting, told.value.most) == (1, 1)
        cancel.cancel()  # the one that runs, and the one that waits
        for x in asked:
            with pytest.raises(CancelledError, match="the job was cancelled"):
                x.result()
        assert pool.call(ECHO, {"after": 1}).answer == {"after": 1}


def test_a_pool_that_is_closed_while_it_starts_does_not_wait_for_that(tmp_path):
    (tmp_path / "never_imported.py").write_text("import time\ntime.sleep(600)")
    pool = Pool(1, modules=["never_imported"], folders=[tmp_path])
    with ThreadPoolExecutor(1) as thread:
        warmed = thread.submit(pool.warm)
        wait_until(pool.starting.locked)
        pool.close()
        with pytest.raises(CancelledError, match="the pool is closed"):
            warmed.result(60)


def test_clients_take_turns(pool):
    order = []

    def job(client):
        with pool.job(client):
            order.append(client)

    first, second = (pool.job(c) for c in ("much", "other"))
    with first, second, ThreadPoolExecutor(4) as threads:
        for count, client in enumerate(("much", "much", "little"), 1):
            threads.submit(job, client)
            wait_until(lambda count=count: len(pool.queue) == count)
        second.__exit__(None, None, None)
        wait_until(lambda: len(order) == 3)
        second = pool.job("other")
        second.__enter__()
    assert order[0] == "little"


def test_a_job_can_have_calls_at_the_same_time(pool):
    with pool.job() as job, ThreadPoolExecutor(2) as threads:
        replies = list(threads.map(lambda k: job.call(ECHO, {"k": k}), range(2)))
    assert [r.answer for r in replies] == [{"k": 0}, {"k": 1}]


def test_closing_ends_what_runs_and_what_waits():
    with ThreadPoolExecutor(2) as threads:
        pool = Pool(1, waiting=1, folders=[CALLED])
        pool.warm()
        asked = [threads.submit(pool.call, SLEEPS, {"seconds": 600}) for _ in range(2)]
        wait_until(lambda: workers(pool) and pool.queue)
        were = family(pool.zygote.process.pid)
        pool.close()
        for x in asked:
            with pytest.raises(CancelledError, match="the pool is closed"):
                x.result()
        wait_until(lambda: not any(map(is_there, were)))
        with pytest.raises(CancelledError, match="the pool is closed"):
            pool.call(ECHO, {})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.drawn(1)
def test_nothing_is_left_of_a_process_that_is_interrupted(number):
    script = CALLED / "process_pools.py"
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        zygote = int(process.stdout.readline())
        wait_until(lambda: len(family(zygote)) >= 3)
        were = [process.pid, *family(zygote)]
        process.send_signal(number)
        process.wait(10)
    wait_until(lambda: not any(map(is_there, were)))


@pytest.mark.parametrize(("wrong", "name"), [({"slots": 0}, "slots"), ({"waiting": -1}, "waiting")])
def test_sizes_of_a_pool_are_whole_numbers(wrong, name):
    with pytest.raises(UsageError, match=f"{name} must be an integer from"):
        Pool(**wrong)
