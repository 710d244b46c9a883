"""A process with a pool, which the tests interrupt: it calls until it is ended."""

import sys
from pathlib import Path
from threading import Thread

from ascendtile.reports.judging.processes import Pool

if __name__ == "__main__":
    with Pool(2, folders=[Path(__file__).parent]) as pool:
        pool.warm()
        for _ in range(2):
            Thread(target=pool.call, args=("process_functions:sleeps", {"seconds": 600}), daemon=True).start()
        print(pool.zygote.process.pid, flush=True)
        sys.stdin.read()
