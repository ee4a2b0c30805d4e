"""Where a process runs: on a core, under a CPU quota or in a network of its own, which need root.

Each place is a list of words before a command (`prefix`), after which the process is the command itself: its id stays.
What a place made in the kernel is gone when its `with` block ends.
"""

import os
import subprocess
import time
from pathlib import Path

PERIOD_US = 100_000
CGROUPS = Path("/sys/fs/cgroup")


class Unable(Exception):
    """This machine does not allow it, and why."""


class Core:
    """One core."""

    def __init__(self, number):
        self.prefix = ["taskset", "-c", str(number)]


class Quota:
    """A control group with a share of one core, version 1 or 2 of the kernel's groups, whichever has the quota."""

    def __init__(self, name, share=None):
        self.name, self.share = f"plimsoll-bench-{os.getpid()}-{name}", share

    def __enter__(self):
        parent = controller()
        self.is_v2 = not (parent / "cpu.cfs_quota_us").exists()
        self.folder = parent / self.name
        try:
            self.folder.mkdir()
            self.set(self.share)
        except OSError as error:
            self.__exit__()
            raise Unable(f"no CPU quota: {error}") from None
        return self

    @property
    def prefix(self):
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.folder / "cgroup.procs")]

    def set(self, share):
        """From now on so much of one core; None for no limit."""
        quota = None if share is None else int(share * PERIOD_US)
        if self.is_v2:
            (self.folder / "cpu.max").write_text(f"{'max' if quota is None else quota} {PERIOD_US}")
        else:
            (self.folder / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))

    def throttled(self):
        """Periods in which it was held back, and all in which it had work, since its beginning."""
        words = (self.folder / "cpu.stat").read_text().split()
        counts = dict(zip(words[::2], map(int, words[1::2])))
        return counts.get("nr_throttled", 0), counts.get("nr_periods", 0)

    def __exit__(self, *_):
        for _ in range(50):
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:  # A process of it has not ended yet.
                time.sleep(0.1)


class Network:
    """A network of its own behind a wire from the host's. The addresses are from the block for benchmarks (RFC 2544)."""

    address, wire = "198.18.77.2", "plimsoll-wire"

    def __init__(self):
        self.name = f"plimsoll-{os.getpid()}"
        self.prefix = ["nsenter", f"--net=/run/netns/{self.name}"]

    def __enter__(self):
        try:
            call(f"ip netns add {self.name}")
            call(f"ip link add {self.wire} type veth peer name wire netns {self.name}")
            call(f"ip addr add 198.18.77.1/30 dev {self.wire}")
            call(f"ip link set {self.wire} up")
            self.call(f"ip addr add {self.address}/30 dev wire")
            self.call("ip link set wire up")
            self.call("ip link set lo up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def call(self, command):
        """Runs a command in it."""
        call(" ".join([*self.prefix, command]))

    def lose(self, percent):
        """From now on so many of the packets that arrive in it are dropped."""
        chain = "add chain ip bench input { type filter hook input priority 0; }"
        rule = f"add rule ip bench input iifname wire numgen random mod 100 < {percent} drop"
        self.call(f"nft add table ip bench; {chain}; {rule}")

    def __exit__(self, *_):
        # The wire first, because the kernel removes a network some time later.
        for command in (f"ip link del {self.wire}", f"ip netns del {self.name}"):
            subprocess.run(command.split(), capture_output=True)


def call(command):
    try:
        done = subprocess.run(command.split(), capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Unable(str(error)) from None
    if done.returncode:
        raise Unable(f"{command}: {done.stderr.strip()}")


def controller():
    """The folder in which groups with a quota can be made."""
    for folder in (CGROUPS / "cpu", CGROUPS / "cpu,cpuacct"):
        if (folder / "cpu.cfs_quota_us").exists() or (folder / "cgroup.procs").exists():
            return folder
    for folder in (CGROUPS, CGROUPS / "unified"):
        if "cpu" in read(folder / "cgroup.controllers").split():
            try:
                (folder / "cgroup.subtree_control").write_text("+cpu")
            except OSError as error:
                raise Unable(f"no CPU quota in {folder}: {error}") from None
            return folder
    raise Unable("no CPU quota: the kernel shows no control groups for the CPU")


def read(file):
    try:
        return file.read_text()
    except OSError:
        return ""
