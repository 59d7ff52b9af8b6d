"""Start many idle processes of several programs, and audit all of them at once: `benchmarks/many_processes.py [COUNT]`.

Prints the processor time, the time on the clock and the peak memory of `footprint audit`, as text and as JSON.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack

_PROGRAMS = (["sleep", "1000"], ["perl", "-e", "sleep 1000"], ["sh", "-c", "read line"], ["cat"])


def main() -> None:
    """Start the processes, audit them twice, and end them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=2000)
    count = parser.parse_args().count
    with ExitStack() as stack:
        pids = []
        for number in range(count):
            # Who reads from a pipe that nobody writes to waits.
            process = subprocess.Popen(_PROGRAMS[number % len(_PROGRAMS)], stdin=subprocess.PIPE)
            stack.callback(process.wait)
            stack.callback(process.kill)
            pids.append(str(process.pid))
        time.sleep(2)
        for option in ((), ("--json",)):
            begin = time.monotonic()
            with open(os.devnull, "wb") as nowhere:
                child = subprocess.Popen([sys.executable, "-m", "footprint", "audit", *option, *pids], stdout=nowhere)
                _, status, used = os.wait4(child.pid, 0)
            wall = time.monotonic() - begin
            cost = f"{used.ru_utime:.2f} s user, {used.ru_stime:.2f} s sys, {wall:.2f} s, {used.ru_maxrss >> 10} MiB"
            print(f"audit {' '.join(option)} of {count:,}: {cost}, exit code {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    main()
