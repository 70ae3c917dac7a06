"""A warehouse of the chaos program: `python _chaos_worker.py live|settle FOLDER SECONDS-OFF`.

`live` keeps everything fresh until the process is killed, under a clock that is this many seconds
off. `settle` refreshes everything, and prints the failures and the findings of `verify --recompute`
as JSON.
"""

import json
import os
import signal
import sys
import time

from springhouse.lake.storage.clock import SteadyClock
from springhouse.warehouse import Event, Failed, Warehouse

SETTINGS = {"springhouse.spark.master": "local[1]", "spark.driver.memory": "1g"}
TRIES = 6


def main() -> None:
    job, folder, off = sys.argv[1:]
    clock = SteadyClock(wall=lambda: time.time() + float(off))
    with Warehouse(folder, configuration=SETTINGS, listener=tell, clock=clock) as warehouse:
        signal.signal(signal.SIGTERM, lambda *_: warehouse.stop())
        if job == "live":
            warehouse.run()
            return
        failures = {}
        for _ in range(TRIES):
            failures = {name: each.problem for name, each in warehouse.refresh().failures.items()}
            if not failures and not warehouse.plan():
                break
        warehouse.refresh()  # Deliver the changes that sinks still lack.
        problems = {e.table: e.problems for e in warehouse.verify(recompute=True) if e.problems}
        # Spark may also print to stdout; the reader takes the last line.
        sys.stdout.write(json.dumps({"failures": failures, "problems": problems}) + "\n")
        sys.stdout.flush()


def tell(event: Event) -> None:
    if isinstance(event, Failed):
        sys.stderr.write(f"{os.getpid()} {event.table}: {event.failure.problem}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
