"""A chain of local servers, each in its place: the mock provider, the reference gateway, a Redis; and the load on it."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .processes import Process
from .servers import free_port

NS_PER_S = 1e9
LISTEN = "0A"


def die_in_order():
    """SIGTERM then ends `with` blocks as Ctrl-C does, and with them what was started; also behind a shell's `&`, which
    ignores Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)


def binary(path):
    """An argument of a command line: the binary to measure."""
    if not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"{path} is not a program")
    return str(Path(path).resolve())


class Server(Process):
    """A process that listens on a port, in its places."""

    def __init__(self, name, folder, command, port, places=()):
        prefix = [word for place in places for word in place.prefix]
        super().__init__(name, [*prefix, *command], folder / f"{name}.log")
        self.port = port

    @property
    def pid(self):
        return self.process.pid

    def is_ready(self):
        return listens(self.pid, self.port)

    def cpu(self):
        return cpu(self.pid)


def listens(pid, port):
    """Whether somebody listens on the port in the network of the process."""
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        if any(int(words[1].rsplit(":", 1)[1], 16) == port and words[3] == LISTEN for words in map(str.split, lines)):
            return True
    return False


def cpu(pid):
    """Seconds of CPU that the threads that a process has now have used, and those they waited for a core."""
    used = waited = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            words = (task / "schedstat").read_text().split()
        except OSError:
            continue
        used, waited = used + int(words[0]), waited + int(words[1])
    return used / NS_PER_S, waited / NS_PER_S


class Mock(Server):
    """The mock provider. `models` is what its configuration says about `other_models`; `log` whether it writes one."""

    def __init__(self, plimsoll, folder, models="{}", log=False, places=(), name="provider"):
        port, config = free_port(), folder / f"{name}.yaml"
        self.requests = folder / f"{name}.jsonl"
        config.write_text(f"other_models: {models}\n" + (f"log: {{file: {self.requests}}}\n" if log else ""))
        super().__init__(
            name, folder, [plimsoll, "mock", "--config", config, "--listen", f"127.0.0.1:{port}"], port, places
        )
        self.url = f"http://127.0.0.1:{port}"


class Gateway(Server):
    """The reference gateway before a mock, with the layers that the YAML `layers` switches on."""

    def __init__(self, plimsoll, folder, upstream, layers="", llm=False, places=(), name="gateway", host="127.0.0.1"):
        port, config = free_port(), folder / f"{name}.yaml"
        config.write_text(f"""name: {name}
listen: {host}:{port}
upstreams: {{provider: {{addresses: ["127.0.0.1:{upstream}"]}}}}
routes: [{{name: chat, path: /v1/chat/completions, upstream: provider, llm: {str(llm).lower()}}}]
{layers}""")
        super().__init__(name, folder, [plimsoll, "gateway", "--config", config], port, places)
        self.url = f"http://{host}:{port}"


class Redis(Server):
    """A Redis without persistence."""

    def __init__(self, folder, places=(), name="store"):
        port = free_port()
        options = f"--port {port} --bind 127.0.0.1 --appendonly no --enable-debug-command local"
        command = ["redis-server", *options.split(), "--save", "", "--dir", folder]
        super().__init__(name, folder, command, port, places)
        self.url = f"redis://127.0.0.1:{port}"


class Foreign(Server):
    """A program that has no part in the load, and listens nowhere."""

    def __init__(self, name, folder, command, places=()):
        super().__init__(name, folder, command, None, places)

    def is_ready(self):
        return True


class Load:
    """The generator with a profile, in its places."""

    def __init__(self, plimsoll, folder, profile, places=()):
        self.plimsoll, self.folder = plimsoll, folder
        self.prefix = [word for place in places for word in place.prefix]
        self.profile = folder / "profile.yaml"
        self.profile.write_text(profile)

    def command(self, verb, *arguments):
        return list(map(str, [*self.prefix, self.plimsoll, verb, self.profile, *arguments]))

    def run(self, url, stages, *more, rows=False, allowed=(0, 3)):
        """Carries out a run; its folder."""
        out = self.folder / f"runs-{time.monotonic_ns()}"
        options = f"--target {url} --stages {stages} --quiet --no-html" + ("" if rows else " --no-jsonl")
        command = self.command("run", *options.split(), "--out", out, *more)
        done = subprocess.run(command, capture_output=True, text=True, env=clean())
        run = next(iter(out.iterdir()), None) if out.exists() else None
        if run is None or done.returncode not in allowed or not (run / "summary.json").exists():
            raise SystemExit(
                f"{' '.join(command)}\nleft no result (exit {done.returncode}):\n{done.stdout}{done.stderr}"
            )
        return run


def clean():
    """An environment without settings for the generator."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PLIMSOLL")} | {"CI": "1"}


def summary(run):
    return json.loads((run / "summary.json").read_text())


def rows(file):
    """The rows of a `results.jsonl`."""
    with open(file) as lines:
        yield from map(json.loads, lines)


def served(log, since_ns, until_ns):
    """The records of a mock's log whose requests arrived within these times (since 1970)."""
    with open(log) as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:  # The last line, while it is written.
                continue
            if since_ns <= record["received"] < until_ns and record["status"] == 200:
                yield record
