"""Runs a client on its core and returns its result and its cost."""

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CORE = "1"
# Seconds between two looks at the memory. The peak that wait4 tells would be that of this script at least, since a
# process starts as a copy of it.
LOOK = 0.5


@dataclass
class Figure:
    """One run: requests/s, CPU of the client per request, its peak memory, share of its core the server used."""

    rate: float
    cpu_us: float
    memory_mb: float
    server_busy: float


def measure(client, server, seconds, folder):
    command = ["taskset", "-c", CORE, *map(str, client.command)]
    with tempfile.TemporaryFile("w+") as out:
        start, before = time.monotonic(), server.cpu()
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **client.env})
        memory = watch(process, tree if client.tree else peak)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        lasted, served = time.monotonic() - start, server.cpu() - before
        out.seek(0)
        text = out.read()
    rate = client.rate(text, folder)
    if not rate:
        raise SystemExit(f"{command} printed no rate (exit {process.returncode}):\n{text[-3000:]}")
    requests = client.requests(text, folder) if client.requests else rate * seconds
    cpu = (usage.ru_utime + usage.ru_stime) / requests * 1e6
    return Figure(rate, cpu, memory, served / (lasted if client.tree else seconds))


def watch(process, memory):
    """The largest of all looks, in MB; returns when the process has ended, and leaves it to be waited for."""
    largest = 0
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        largest = max(largest, memory(process.pid))
        time.sleep(LOOK)
    return largest / 1024


def peak(pid):
    """Peak memory of the process so far, in KB."""
    return kilobytes(f"/proc/{pid}/status", "VmHWM:")


def tree(pid):
    """Current memory of the process and its children, in KB; shared pages are counted once."""
    return sum(kilobytes(f"/proc/{each}/smaps_rollup", "Pss:") for each in family(pid))


def family(pid):
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from family(int(child))
    except OSError:
        return


def cpu(pid):
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kilobytes(file, name):
    """0 when the process is gone."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
