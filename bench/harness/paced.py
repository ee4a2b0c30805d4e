"""Paced streams: a mock that logs when it wrote each event, and how a client's times are compared with it."""

import json
import subprocess

from .clients import PLIMSOLL
from .measure import cpu
from .servers import CORE, free_port, wait_for

NS_PER_MS = 1e6


class Mock:
    """A mock with a log. Its first content event comes after 20 ms to 20 ms and a gap, so that streams that begin
    together do not send in step."""

    def __init__(self, folder, gap_ms, name="mock", core=CORE, port=None):
        self.log, self.port, self.core = folder / f"{name}.jsonl", port or free_port(), core
        self.config = folder / f"{name}.yaml"
        self.config.write_text(
            f"log: {{file: {self.log}}}\nother_models: {{ttft: {{uniform: {{min: 20ms, max: "
            f"{20 + gap_ms}ms}}}}, gap: {gap_ms}ms, output: from_request}}\n"
        )

    def __enter__(self):
        command = [
            "taskset",
            "-c",
            self.core,
            PLIMSOLL,
            "mock",
            "--config",
            self.config,
            "--listen",
            f"127.0.0.1:{self.port}",
        ]
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.port, "plimsoll mock")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def cpu(self):
        return cpu(self.process.pid)

    def truth(self):
        """By request id: when the request arrived, and of each content event when it was due and written, in ns."""
        requests = {}
        with open(self.log) as lines:
            for line in lines:
                record = json.loads(line)
                events = [
                    (chunk["due"], chunk["written"])
                    for chunk in record["chunks"]
                    for _ in range(chunk["tokens"])
                    if chunk["written"]
                ]
                requests[record["request_id"]] = (record["arrived"], events)
        return requests


def rows(file):
    """Those of a `results.jsonl`."""
    with open(file) as lines:
        yield from map(json.loads, lines)


def percentile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")
