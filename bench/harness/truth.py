"""A server that knows the truth (validity/native/truth_server.c), and what its log says a report should have printed.

Definitions, all from the server's log of the same requests (joined by `x-request-id`) and from the intended starts:

  service time   the server's kernel received the request, until the server had sent the last of the answer. What a
                 descheduled server loses counts as the server's; what the generator loses does not.
  response time  open: service time, and the wait that the target and the cap on requests in flight cause, as an ideal
                 generator would have had it: it starts each arrival at its intended start or when the first of `cap`
                 slots is free, whichever is later, and a slot is free when the server has answered. Closed: service time.
  TTFT, ITL      the server's send of the first content event since the kernel's receive; gaps between sends.
  throughput     open: what the ideal generator would have seen completed within the stage, per second. Closed: what the
                 users would have carried if the generator took no time between an answer and the next request: completed
                 requests x users x duration / the time that the server held requests within the stage.

A request that the server left to hang has an infinite time. One that was never sent is served, for the ideal
generator, like another request of its stage. A send has two times, before and after the system call; a figure is wrong
only if it is wrong against both. A path through two network stacks belongs to neither log: PATH_MS is allowed.
"""

import bisect
import functools
import heapq
import json
import math
import os
import signal
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .native import native
from .servers import CORE

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
METRICS = ("service_time", "response_time", "ttft", "itl")
PATH_MS = 0.05
SHARE_OFF = 0.05
MS = 1e6


@dataclass
class Served:
    """One request in the server's log, in ns since 1970; `sends` are (before, after) of each content event."""

    connection: int
    received: int
    read: int
    sends: list


class TruthServer:
    """The server on a core of its own, above other processes where root may ask for that. Use it in `with`."""

    def __init__(self, folder, *options, core=CORE):
        self.folder, self.options, self.core = Path(folder), options, core
        self.log, self.port_file = self.folder / "server.log", self.folder / "server.port"
        self.process, self.connections = None, None

    def __enter__(self):
        self.port_file.unlink(missing_ok=True)
        first = ["chrt", "-f", "10"] if os.getuid() == 0 else []
        command = [*first, "taskset", "-c", self.core, native("truth_server"), self.port_file, self.log, *self.options]
        self.process = subprocess.Popen(list(map(str, command)))
        for _ in range(200):
            if self.port_file.exists() and self.port_file.read_text().endswith("\n"):
                return self
            time.sleep(0.02)
        raise SystemExit("the truth server does not start")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()

    @property
    def port(self):
        return int(self.port_file.read_text())

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def finish(self):
        """Stops the server, and returns the requests that it served, by request id."""
        self.__exit__()
        served = {}
        with open(self.log) as lines:
            for line in lines:
                key, *values = line.split()
                if key == "end":
                    self.connections = int(values[0])
                    continue
                values = list(map(int, values))
                served[key] = Served(*values[:3], list(zip(values[3::2], values[4::2])))
        return served


@dataclass
class Result:
    """Files of one run's folder."""

    summary: dict
    rows: list
    text: str
    exit: int

    @staticmethod
    def read(out, code):
        folder = next(Path(out).iterdir())
        with open(folder / "results.jsonl") as lines:
            rows = [json.loads(line) for line in lines]
        return Result(
            json.loads((folder / "summary.json").read_text()), rows, (folder / "report.txt").read_text(), code
        )

    @property
    def valid(self):
        return not self.reasons()

    def stages(self):
        """The measured ones: their description and their figures."""
        groups = {group["stage"]: group for group in self.summary["by_stage"]}
        return [(stage, groups[stage["name"]]) for stage in self.summary["stages"] if not stage["warmup"]]

    def reasons(self):
        return [f"PL{f['code']}" for f in self.summary["findings"] if f["level"] == "invalid"]


@dataclass
class Limits:
    """Limits of a printed figure without the generator's overhead."""

    low: float
    high: float


def limits(printed, bound, metric):
    """The generator only adds to times since a start, and does both to gaps between tokens."""
    return Limits(printed - bound, printed + (bound if metric == "itl" else 0))


@dataclass
class Figure:
    """A figure of a report beside the truth, in ms or 1/s. `wrong`: the truth lies outside its printed limits.
    `unknown`: the report says that requests without an end leave it open."""

    stage: str
    metric: str
    name: str
    printed: float
    truth: float
    limits: Limits
    wrong: bool
    unknown: bool

    def __str__(self):
        low, high = self.limits.low, self.limits.high
        return f"{self.metric} {self.name} {self.printed:.4g} [{low:.4g}, {high:.4g}] for {self.truth:.4g}"


def figures(result, served, cap=None, timeout_ms=30_000.0):
    """Every percentile and throughput that the report printed for its measured stages."""
    ideal = Ideal(result, served, cap, timeout_ms)
    for stage, group in result.stages():
        values = ideal.values(stage)
        for metric in METRICS:
            distribution = group["distributions"].get(f"{metric}_ms") or {}
            low, high = (sorted(side) for side in values[metric])
            for name, q in PERCENTILES.items():
                printed = distribution.get(name)
                if printed is None or not low:
                    continue
                interval = (distribution.get("ci") or {}).get(name)
                within = limits(printed, (distribution.get("bound_ms") or {}).get(name, 0), metric)
                yield Figure(
                    stage["name"],
                    metric,
                    name,
                    printed,
                    quantile(low, q),
                    within,
                    differs(within, low, high, q, interval),
                    (distribution.get("refused") or {}).get(name) == "censored",
                )
        printed = group["rates"]["throughput_per_s"]
        truth, spread = ideal.throughput(stage)
        within = Limits(printed, printed + (group.get("rate_bounds") or {}).get("throughput_per_s", 0))
        off = max(within.low - truth, truth - within.high)
        unknown = (group.get("refused_rates") or {}).get("throughput_per_s") == "censored"
        wrong = off > max(SHARE_OFF * truth, spread)
        yield Figure(stage["name"], "throughput", "", printed, truth, within, wrong, unknown)


def differs(within, low, high, q, interval):
    """Like `is_wrong`, but where fewer requests than 1-q were left to hang, the figure may also be that of the others:
    so is the metric defined, and the counts stand beside it."""
    if not is_wrong(within, low, high, q, interval):
        return False
    answered = sum(map(math.isfinite, low))
    if len(low) - answered > (1 - q) * len(low) or answered == len(low):
        return True
    return is_wrong(within, low[:answered], high[:answered], q, interval)


def is_wrong(within, low, high, q, interval):
    """Off by more than 5 % and by more than its sampling interval; `low` and `high` bound the true values, sorted."""
    least, most = quantile(low, q), quantile(high, q)
    off = max(least - within.high, within.low - most)
    if off <= PATH_MS:
        return False
    if off <= SHARE_OFF * least and not math.isinf(least):
        return False
    if interval and not math.isinf(least):
        spread = max(within.high - within.low, 0)
        return not (interval["low"] - spread <= most and least <= interval["high"] + spread)
    first, last = ranks(len(low), q)
    return not (low[first] - PATH_MS <= within.high and within.low <= high[last] + PATH_MS)


def quantile(ordered, q):
    return ordered[min(len(ordered) - 1, max(0, math.ceil(q * len(ordered)) - 1))]


@functools.lru_cache(maxsize=4096)
def ranks(count, q):
    """Order statistics between which the quantile lies in at least 95 % of cases, by the binomial distribution."""
    if count > 1000:
        middle, half = count * q, 1.96 * math.sqrt(count * q * (1 - q)) + 1
        return max(0, math.floor(middle - half)), min(count - 1, math.ceil(middle + half))
    total, below = 0.0, []
    for k in range(count + 1):
        total += math.comb(count, k) * q**k * (1 - q) ** (count - k)
        below.append(total)
    return min(bisect.bisect_left(below, 0.025), count - 1), min(bisect.bisect_left(below, 0.975), count - 1)


class Ideal:
    """Measurements of an ideal generator, from the server's time for each request."""

    def __init__(self, result, served, cap, timeout_ms):
        self.served, self.timeout_ms = served, timeout_ms
        self.epoch = result.summary["run"]["started_unix_ns"]
        self.stages = {stage["name"]: stage for stage in result.summary["stages"]}
        self.rows = {}
        for row in sorted(result.rows, key=lambda row: row["intended_unix_ns"]):
            self.rows.setdefault(row["stage"], []).append(row)
        self.waits = self.queue(cap)

    def service(self, row):
        """(least, most) in ms; infinite where the server never answered; `None` where it never got the request."""
        served = self.served.get(row["request_id"])
        if served is None:
            return None
        if not served.sends:
            return math.inf, math.inf
        before, after = served.sends[-1]
        return (before - served.received) / MS, (after - served.received) / MS

    def queue(self, cap):
        """For each row of an open stage its wait in ms, and its service time."""
        waits, free = {}, [0.0] * (cap or 0)
        for name, rows in self.rows.items():
            if self.stages[name]["model"] != "open":
                continue
            known = [s for s in map(self.service, rows) if s] or [(math.inf, math.inf)]
            for number, row in enumerate(rows):
                service = self.service(row) or known[number % len(known)]
                at = (row["intended_unix_ns"] - self.epoch) / MS
                start = max(at, heapq.heappop(free)) if cap else at
                if cap:
                    heapq.heappush(free, start + min(service[1], self.timeout_ms))
                waits[row["request_id"]] = (start - at, service)
        return waits

    def values(self, stage):
        """The lowest and the highest true value of each metric for every request, in ms."""
        rows = self.rows.get(stage["name"], [])
        values = {metric: ([], []) for metric in METRICS}

        def add(metric, least, most):
            values[metric][0].append(least)
            values[metric][1].append(most)

        for row in rows:
            service, ideal = self.service(row), self.waits.get(row["request_id"])
            if service:
                add("service_time", *service)
            if ideal:
                add("response_time", ideal[0] + ideal[1][0], ideal[0] + ideal[1][1])
            elif service:
                add("response_time", *service)
            if row["stream"] and service:
                self.stream(self.served[row["request_id"]], row, add)
        return values

    @staticmethod
    def stream(served, row, add):
        if not served.sends:
            add("ttft", math.inf, math.inf)
            return
        before, after = served.sends[0]
        add("ttft", (before - served.received) / MS, (after - served.received) / MS)
        if row["outcome"] == "completed":
            for a, b in zip(served.sends, served.sends[1:]):
                if a != b:
                    add("itl", (b[0] - a[1]) / MS, (b[1] - a[0]) / MS)

    def throughput(self, stage):
        """Per second, and how far chance may move it."""
        duration_ms = stage["duration_s"] * 1e3
        start = stage["start_s"] * 1e3
        rows = self.rows.get(stage["name"], [])
        if stage["model"] == "open":
            # Like the report, this counts all requests completed during the stage, whichever stage they belong to.
            done = sum(start <= end <= start + duration_ms for end in self.ends())
            return done / stage["duration_s"], 2 / stage["duration_s"]
        return self.closed_throughput(stage, rows, self.epoch + start * MS, duration_ms)

    @functools.cache  # noqa: B019 - one object for each run
    def ends(self):
        """When the ideal generator would have had each answer of an open stage, in ms since the epoch of the run."""
        at = {
            row["request_id"]: (row["intended_unix_ns"] - self.epoch) / MS
            for rows in self.rows.values()
            for row in rows
        }
        return [at[key] + wait + service[1] for key, (wait, service) in self.waits.items()]

    def closed_throughput(self, stage, rows, began, duration_ms):
        """Time within the stage in which the server was processing requests."""
        held, done, times = 0.0, 0, []
        users = int(stage["name"].split(":")[0].split("..")[-1])
        for row in rows:
            service = self.service(row)
            if not service:
                continue
            left = duration_ms - (self.served[row["request_id"]].received - began) / MS
            held += max(0.0, min(service[1], left, self.timeout_ms))
            if service[1] <= left:
                done += 1
                times.append(service[1])
        if not held:
            return 0.0, 0.0
        truth = done * users / held * 1e3
        spread = statistics.stdev(times) / statistics.mean(times) / math.sqrt(len(times)) if len(times) > 1 else 1
        return truth, 1.96 * spread * truth
