"""Servers as processes: started, awaited, stopped."""

import ctypes
import os
import signal
import subprocess
import time

# Seconds.
START, STOP = 180, 10
SIGNAL_OF_PARENTS_DEATH = 1


class Unavailable(Exception):
    """It cannot be installed, started or used, and why."""


def last_lines(text, count=3):
    return " / ".join(line.strip() for line in text.strip().splitlines()[-count:])


class Process:
    """A server in a session of its own: Ctrl-C reaches this script alone, which then ends it. It also ends when this
    script is killed. Use it in a `with` statement."""

    def __init__(self, name, command, log, **more):
        self.name, self.command, self.log, self.more = name, list(map(str, command)), log, more

    def __enter__(self):
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
                **self.more,
            )
        try:
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_ready(self):
        deadline = time.monotonic() + START
        while not self.is_ready():
            if self.process.poll() is not None:
                raise Unavailable(f"it ended with {self.process.returncode}: {last_lines(self.log.read_text())}")
            if time.monotonic() > deadline:
                raise Unavailable(f"it did not answer within {START} s: {last_lines(self.log.read_text())}")
            time.sleep(0.02)

    def __exit__(self, *_):
        try:
            end(self.process)
        finally:
            # Processes that it started and left behind.
            send(self.process.pid, signal.SIGKILL)


def die_with_parent():
    ctypes.CDLL(None).prctl(SIGNAL_OF_PARENTS_DEATH, signal.SIGTERM)


def end(process):
    send(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP)
    except subprocess.TimeoutExpired:
        send(process.pid, signal.SIGKILL)
        process.wait()


def send(group, what):
    try:
        os.killpg(group, what)
    except ProcessLookupError:
        pass
