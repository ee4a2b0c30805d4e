"""Where a process runs: on a core, or under a CPU quota, which needs root.

Each place is a list of words before a command (`prefix`), after which the process is the command itself: its id stays.
What a place made in the kernel is gone when its `with` block ends.
"""

import os
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
