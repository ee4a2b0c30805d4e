"""`plimsoll versus` before the mock and gateways of this repository: what it says, and what the gateways' own clocks say.

Servers have one core, the client the other. Gateways write an audit row for every request, with the microseconds from its
head to its last byte by their own clock. Client and gateways share a request's id, so that both can be compared pair by
pair. PLIMSOLL=path selects the binary.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .clients import PLIMSOLL
from .measure import CORE as CLIENT_CORE
from .servers import CORE, free_port, wait_for

# Answers of some milliseconds, whose times follow from the prompt: the same for every target.
MOCK = "{{draw: prompt, log: none, other_models: {{ttft: {{uniform: {{min: {least}, max: {most}}}}}, output: from_request}}}}\n"
NS_PER_US = 1e3


def parser(text, runs, seconds):
    arguments = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=int, default=runs)
    arguments.add_argument("--seconds", type=int, default=seconds)
    arguments.add_argument("--rate", type=int, default=100, help="requests/s and target")
    arguments.add_argument("--folder", help="where logs and rows are kept meanwhile")
    return arguments


@contextlib.contextmanager
def place(options):
    """A folder that is gone afterwards, unless the user named one."""
    if options.folder:
        Path(options.folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        yield Path(folder)


@contextlib.contextmanager
def server(folder, name, command):
    with open(folder / f"{name}.err", "w") as errors:
        process = subprocess.Popen(
            ["taskset", "-c", CORE, PLIMSOLL, *map(str, command)], stdout=subprocess.DEVNULL, stderr=errors
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


class Mock:
    def __init__(self, folder, least="2ms", most="6ms"):
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = folder / "mock.yaml"
        self.config.write_text(MOCK.format(least=least, most=most))

    def __enter__(self):
        command = ["mock", "--config", self.config, "--listen", f"127.0.0.1:{self.port}"]
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(server(self.folder, "mock", command))
        wait_for(self.port, "plimsoll mock")
        return self

    def __exit__(self, *_):
        self.stack.close()


class Gateway:
    """The reference gateway as a proxy, with a log of its own times; `delay_us` makes every request later."""

    def __init__(self, folder, name, mock, delay_us=0, audit=True):
        self.folder, self.name, self.port = folder, name, free_port()
        self.url, self.log = f"http://127.0.0.1:{self.port}", folder / f"{name}.jsonl"
        self.command = [
            "gateway",
            "--preset",
            "proxy",
            "--listen",
            f"127.0.0.1:{self.port}",
            "--upstream",
            f"127.0.0.1:{mock.port}",
            "--workers",
            "1",
            "--set",
            "request_id={}",
        ]
        if audit:
            self.command += ["--set", f"audit.path={self.log}"]
        if delay_us:
            self.command += ["--set", f"faults.delay={delay_us}us"]

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(server(self.folder, self.name, self.command))
        wait_for(self.port, "plimsoll gateway")
        return self

    def __exit__(self, *_):
        self.stack.close()

    def own_us(self):
        """By request id: microseconds by its own clock. Rows are written when the gateway has ended at the latest."""
        return {row["request_id"]: row["latency_us"] for row in lines(self.log)}


def lines(file):
    with open(file) as rows:
        return [json.loads(row) for row in rows]


def target(name, url, role="gateway", marker=None):
    """An entry of `targets:`. Two of one URL need different markers, of equal length."""
    headers = f", headers: {{x-marker: '{marker}'}}" if marker else ""
    return f"  - {{name: {name}, url: '{url}', role: {role}{headers}}}\n"


class Run:
    """What one `plimsoll versus` left: its exit code, `versus.json`, and its rows where they were asked for."""

    def __init__(self, folder, targets, options, settings="", rows=False, allow_invalid=True):
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        profile = self.folder / "profile.yaml"
        profile.write_text(
            f"""name: bench
model: m
stages: "w@{options.rate}:1s,@{options.rate}:{options.seconds}s"
content: {{mode: sized, approx_input_tokens: 64}}
max_tokens: 8
cache_mode: bust
workers: 1
versus: {{control: false, alone: 0s{settings}}}
targets:
"""
            + "".join(targets)
        )
        command = ["versus", profile, "--quiet", "--out", self.folder / "runs"]
        command += ["--allow-invalid"] * allow_invalid + ["--no-jsonl"] * (not rows)
        self.exit, self.text, self.result, self.run = carry_out(command, self.folder / "runs")

    def difference(self, of, than, kind="added", figure=None, quantile="p50"):
        """Value, lower and upper end in microseconds, or None."""
        return difference(self.result, of, than, kind, figure, quantile)

    def invalid(self):
        return self.result.get("invalid", [])

    def claims(self, *names):
        """Sentences that hold on these two targets."""
        return [
            claim["text"]
            for claim in self.result["claims"]
            if claim["holds"] and {claim["target"], claim["reference"]} == set(names)
        ]

    def own_difference(self, gateway, name, other, than):
        """The median over pairs, by the gateways' own clocks, of what `name` took longer than `than`, in microseconds."""
        own, theirs = gateway.own_us(), other.own_us()
        pairs = {}
        for row in lines(self.run / "results.jsonl"):
            log = own if row["target"] == name else theirs if row["target"] == than else None
            if log is not None and not row["warmup"] and row["request_id"] in log:
                pairs.setdefault(row["pair"], {})[row["target"]] = log[row["request_id"]]
        both = [pair[name] - pair[than] for pair in pairs.values() if len(pair) == 2]
        if not both:
            raise SystemExit("the gateways' logs have no request of the run: look at their audit rows by hand")
        return statistics.median(both)


def carry_out(arguments, out):
    command = list(map(str, ["taskset", "-c", CLIENT_CORE, PLIMSOLL, *arguments]))
    done = subprocess.run(command, capture_output=True, text=True)
    run = next(iter(out.iterdir()), None) if out.exists() else None
    if run is None or not (run / "versus.json").exists():
        raise SystemExit(
            f"{' '.join(command)}\nleft no comparison (exit {done.returncode}):\n{done.stdout}{done.stderr}"
        )
    return done.returncode, done.stdout, json.loads((run / "versus.json").read_text()), run


def difference(result, of, than, kind="added", figure=None, quantile="p50"):
    wanted = (of, than, kind, figure or result["headline"], quantile)
    for found in result["differences"]:
        key = tuple(found[name] for name in ("target", "reference", "kind", "figure", "quantile"))
        if key == wanted and found["value_ns"] is not None:
            return tuple(found[name] / NS_PER_US for name in ("value_ns", "low_ns", "high_ns"))
    return None


def covers(found, value):
    return found is not None and found[1] <= value <= found[2]


def shown(found):
    return "-" if found is None else "{:+.1f} us [{:.1f}, {:.1f}]".format(*found)


def verdict(bars, whole):
    """Prints each bar, and ends with 1 if one is missed, 2 if runs were left out."""
    for text, kept in bars:
        print(f"bar: {text}: {'kept' if kept else 'MISSED'}", flush=True)
    sys.exit(1 if not all(kept for _, kept in bars) else 0 if whole else 2)
