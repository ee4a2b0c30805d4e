"""Shared parts of the tests of engines: a mock, checks, and the summaries of merged runs."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLIMSOLL = ROOT / os.environ.get("PLIMSOLL", "target/debug/plimsoll")
INVALID = 3  # exit status
failures = []


def check(holds, text):
    print(("  ok    " if holds else "  FAIL  ") + text, flush=True)
    if not holds:
        failures.append(text)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_until(met, what, seconds=60):
    end = time.monotonic() + seconds
    while not met():
        if time.monotonic() > end:
            sys.exit(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def clean_environment():
    """The environment without settings for other runs."""
    foreign = ("SLURM_", "PLIMSOLL", "PMI_", "OMPI_", "JOB_", "RCLONE_", "AWS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


class Mock:
    def __init__(self, folder):
        [port] = free_ports(1)
        self.url, self.log = f"http://127.0.0.1:{port}", folder / "truth.jsonl"
        command = [str(PLIMSOLL), "mock", "--listen", f"127.0.0.1:{port}", "--log", str(self.log)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(lambda: listens(port), "the mock answers")

    def requests(self):
        """The requests that it saw; it writes them down within a second."""
        time.sleep(1.2)
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def newest_summary(out):
    """The summary of the newest run in a folder of runs."""
    runs = [run for run in out.iterdir() if (run / "summary.json").exists()]
    return json.loads(max(runs, key=lambda run: run.stat().st_mtime).joinpath("summary.json").read_text())


def states(summary):
    return [shard["state"] for shard in summary["shards"]]
