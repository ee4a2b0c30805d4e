"""The gateways of examples/gateways as processes: installed from their registries, started, awaited, stopped."""

import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

from .clients import PLIMSOLL, ROOT
from .exchange import ask
from .servers import free_port

FOLDER = ROOT / "examples" / "gateways"
# Seconds. LiteLLM takes most of a minute to start on a busy machine; Caddy is compiled.
INSTALL, START, STOP = 900, 180, 10
SIGNAL_OF_PARENTS_DEATH = 1


class Unavailable(Exception):
    """It cannot be installed, started or used, and why."""


def names():
    """Names of all gateways."""
    return sorted(path.parent.name for path in FOLDER.glob("*/start"))


def headers(upstream):
    """Headers that Portkey needs. Other gateways forward or drop them."""
    return [("x-portkey-provider", "openai"), ("x-portkey-custom-host", f"http://127.0.0.1:{upstream}/v1")]


def chat(content="hello", stream=False, model="mock"):
    return {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 20, "stream": stream}


def install(name):
    """Makes it available where it is missing; its name and version."""
    try:
        done = subprocess.run(
            [FOLDER / name / "install"], capture_output=True, text=True, timeout=INSTALL, env=environment()
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"its installation takes longer than {INSTALL} s") from None
    version = done.stdout.strip()
    if done.returncode or not version:
        raise Unavailable(last_lines(done.stderr) or "its installation prints no version")
    return version.splitlines()[-1]


def size(name):
    """The bytes that its installation takes on the disk; `None` where it belongs to the system."""
    folder = Path(os.environ.get("GATEWAYS", ROOT / "target" / "gateways")) / name
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    # Downloaded packages were unpacked, and are not needed any more.
    needed = [path for path in files if not path.is_relative_to(folder / "packages")]
    return sum(path.stat().st_blocks * 512 for path in needed) or None


def environment(**more):
    return {**os.environ, "PLIMSOLL": str(PLIMSOLL), **more}


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
        started = time.monotonic()
        deadline = started + START
        while not self.is_ready():
            if self.process.poll() is not None:
                raise Unavailable(f"it ended with {self.process.returncode}: {last_lines(self.log.read_text())}")
            if time.monotonic() > deadline:
                raise Unavailable(f"it did not answer within {START} s: {last_lines(self.log.read_text())}")
            time.sleep(0.02)
        #: From its start to the answer to a first chat.
        self.startup_s = time.monotonic() - started

    def is_ready(self):
        """Does it answer a chat?"""
        try:
            return ask(self.port, chat(), headers(self.upstream)).status == 200
        except OSError:
            return False

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


class RealGateway(Process):
    """One of examples/gateways, on a free port before the provider on the port `upstream`. Configuration and log are
    written to `folder`."""

    def __init__(self, name, folder, upstream, workers=1):
        self.port, self.upstream, self.title = free_port(), upstream, name
        ports = {"PORT": str(self.port), "UPSTREAM_PORT": str(upstream), "WORKERS": str(workers), "RUN": str(folder)}
        super().__init__(name, [FOLDER / name / "start"], folder / f"{name}.log", env=environment(**ports))


class Provider(Process):
    """The mock with examples/gateways/mock.yaml and a log of every request."""

    def __init__(self, folder):
        self.port = self.upstream = free_port()
        self.requests = folder / "mock.jsonl"
        super().__init__(
            "mock",
            [
                PLIMSOLL,
                "mock",
                "--config",
                FOLDER / "mock.yaml",
                "--log",
                self.requests,
                "--listen",
                f"127.0.0.1:{self.port}",
            ],
            folder / "mock.log",
        )
