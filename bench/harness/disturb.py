"""Disturbances of the generator, planted from outside: stops, busy loops, fewer cores, refused time stamps."""

import contextlib
import os
import signal
import subprocess
import threading
import time

from .native import native


@contextlib.contextmanager
def nothing(_process):
    yield


def stop_once(after_s, stop_ms):
    """SIGSTOP once, `after_s` after the start of the process."""
    return stops(lambda: [(after_s, stop_ms / 1e3)])


def stop_periodically(after_s, stop_ms, every_ms, until_s):
    """SIGSTOP for `stop_ms` of every `every_ms`."""
    count = int((until_s - after_s) * 1e3 / every_ms)
    return stops(lambda: [(after_s + k * every_ms / 1e3, stop_ms / 1e3) for k in range(count)])


def stops(plan):
    @contextlib.contextmanager
    def disturb(process):
        began, ended = time.monotonic(), threading.Event()

        def run():
            for at, length in plan():
                if ended.wait(max(0.0, began + at - time.monotonic())) or process.poll() is not None:
                    return
                process.send_signal(signal.SIGSTOP)
                ended.wait(length)
                process.send_signal(signal.SIGCONT)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    return disturb


def busy_loops(count, core):
    """Processes that use a core as much as the scheduler lets them, all the time."""

    @contextlib.contextmanager
    def disturb(_process):
        loops = [subprocess.Popen(["taskset", "-c", core, "sh", "-c", "while :; do :; done"]) for _ in range(count)]
        try:
            yield
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()

    return disturb


def refused_stamps():
    """Command prefix that denies sockets the kernel's receive timestamps."""
    return [native("refuse_stamps")]


def run(command, disturb=nothing, timeout=120):
    """Runs a command while it is disturbed; returns its exit status and output. Ends it after `timeout` s."""
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": "/nonexistent"},
    )
    with disturb(process):
        try:
            text, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGCONT)
            process.kill()
            text, _ = process.communicate()
    return process.returncode, text
