"""Takes a known share of its time from a process: SIGSTOP and SIGCONT at random phases."""

import os
import signal
import time

STOP_S, CELL_S = 0.001, 0.020


def real_time(core):
    """This process, but none that it starts, is from now on exact about its own times, on the core. Needs root."""
    os.sched_setaffinity(0, {core})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))
    except PermissionError:
        pass


def sleep_until(at):
    """On the monotonic clock."""
    left = at - time.monotonic()
    if left > 0:
        time.sleep(left)


class Thief:
    """Stops a process for `stop_s` of every `cell_s`, each time at a random place of the cell.

    Where `stolen` is False, the same signals are sent at the same times, but all of them SIGCONT: what this script costs
    by itself is then the same.
    """

    def __init__(self, random, stop_s=STOP_S, cell_s=CELL_S):
        self.random, self.stop_s, self.cell_s = random, stop_s, cell_s

    def take(self, pid, until, stolen=True):
        """Goes on until a time of the monotonic clock; seconds that the process stood still."""
        first, lost, cell = (signal.SIGSTOP if stolen else signal.SIGCONT), 0.0, time.monotonic()
        try:
            while cell + self.cell_s <= until:
                at = cell + self.random.uniform(0, self.cell_s - self.stop_s)
                sleep_until(at)
                began = time.monotonic()
                os.kill(pid, first)
                sleep_until(began + self.stop_s)
                os.kill(pid, signal.SIGCONT)
                lost += time.monotonic() - began if stolen else 0.0
                cell += self.cell_s
        finally:
            os.kill(pid, signal.SIGCONT)
        sleep_until(until)
        return lost
