"""Where a process runs: on a core, under a CPU quota, in a network that loses packets. The last two need root.

Each place is a list of words before a command (`prefix`), after which the process is the command itself: its id stays.
What a place made in the kernel is gone when its `with` block ends.
"""

import os
import shutil
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


class Namespace:
    """A network of its own; one of the two ends of a `Link`."""

    def __init__(self, name, address):
        self.name, self.address = name, address
        self.prefix = ["nsenter", f"--net=/run/netns/{name}"]


class Link:
    """Two networks, `client` and `server`, joined by a cable that loses a share of the packets in both directions.

    They are networks of their own at both ends, so that nothing is changed in the one of the machine. The addresses are
    from the block that is set aside for benchmarks (RFC 2544).
    """

    WIRE = "wire0"

    def __init__(self, loss=0.0):
        name = f"plimsoll-{os.getpid()}"
        self.loss = loss
        self.client = Namespace(f"{name}-a", "198.18.77.1")
        self.server = Namespace(f"{name}-b", "198.18.77.2")

    def __enter__(self):
        ends = (self.client, self.server)
        try:
            for end in ends:
                call("ip", "netns", "add", end.name)
            call(
                "ip",
                "link",
                "add",
                self.WIRE,
                "netns",
                self.client.name,
                "type",
                "veth",
                "peer",
                "name",
                self.WIRE,
                "netns",
                self.server.name,
            )
            for end in ends:
                call("ip", "-n", end.name, "addr", "add", f"{end.address}/30", "dev", self.WIRE)
                for device in ("lo", self.WIRE):
                    call("ip", "-n", end.name, "link", "set", device, "up")
            self.lose(self.loss)
        except BaseException:
            self.__exit__()
            raise
        return self

    def lose(self, share):
        """From now on this share of the packets that arrive at either end is dropped."""
        tool = shutil.which("iptables") or shutil.which("iptables-legacy")
        for end in (self.client, self.server):
            inside = ["ip", "netns", "exec", end.name]
            if tool:
                call(*inside, tool, "-F", "INPUT")
                if share:
                    call(
                        *inside,
                        tool,
                        "-A",
                        "INPUT",
                        "-i",
                        self.WIRE,
                        "-p",
                        "tcp",
                        "-m",
                        "statistic",
                        "--mode",
                        "random",
                        "--probability",
                        str(share),
                        "-j",
                        "DROP",
                    )
            elif shutil.which("nft"):
                self.lose_by_nft(inside, share)
            else:
                raise Unable("no lost packets: neither iptables nor nft is installed")

    def lose_by_nft(self, inside, share):
        call(*inside, "nft", "flush", "ruleset")
        if share:
            call(*inside, "nft", "add", "table", "ip", "bench")
            call(*inside, "nft", "add chain ip bench input { type filter hook input priority 0; }")
            call(
                *inside,
                "nft",
                f"add rule ip bench input iifname {self.WIRE} meta l4proto tcp "
                f"numgen random mod 10000 < {int(share * 10_000)} drop",
            )

    def __exit__(self, *_):
        for end in (self.client, self.server):
            subprocess.run(["ip", "netns", "del", end.name], capture_output=True)


def call(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise Unable(f"{command[0]} is not installed") from None
    if done.returncode:
        raise Unable(f"{' '.join(command)}: {done.stderr.strip()}")
