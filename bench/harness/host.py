"""Other load on this host during a benchmark: a forgotten process, a build, other guests of the machine."""

import contextlib
import os
import sys
import time
from pathlib import Path

# Share of one core. Lower values are the host's own background work.
MUCH = 0.05
# A guest on a busy machine is told that so much of its time was withheld.
MUCH_WITHHELD = 0.02


class Others:
    """CPU that others have from now on: programs that are not this script's, and other guests of the machine.

    Children count as the script's when they have ended and were waited for; servers that go on are named.
    """

    def __init__(self, servers=()):
        self.servers = list(servers)
        self.before = self.read()

    def read(self):
        """Seconds since the host began: of time, of CPU that was had, that was withheld, and that was the script's."""
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, _, _, irq, softirq, steal = (int(word) / os.sysconf("SC_CLK_TCK") for word in words)
        times = os.times()
        ours = times.user + times.system + times.children_user + times.children_system
        ours += sum(server.cpu()[0] for server in self.servers)
        return time.monotonic(), user + nice + system + irq + softirq, steal, ours

    def since(self):
        return (now - then for now, then in zip(self.read(), self.before))

    def cores(self):
        """Cores used by other processes, including stolen time."""
        lasted, had, stolen, ours = self.since()
        return (had + stolen - ours) / lasted

    def withheld(self):
        """The share of the CPU time that was wanted and that the hypervisor did not give."""
        _, had, stolen, _ = self.since()
        return stolen / (had + stolen) if stolen else 0.0


def counters():
    """The kernel's network counters of this host, such as `Tcp:RetransSegs`."""
    lines = (Path("/proc/net/snmp").read_text() + Path("/proc/net/netstat").read_text()).splitlines()
    pairs = [(names.split(), values.split()) for names, values in zip(lines[::2], lines[1::2])]
    return {names[0] + name: int(value) for names, values in pairs for name, value in zip(names[1:], values[1:])}


def line(cores, withheld):
    """Text about other load. The machine may be busy without a sign of it: other guests can slow the caches."""
    text = f"others had {max(cores, 0):.2f} of a core meanwhile; {withheld:.0%} of the CPU time was withheld"
    return f"! {text}: repeat it when they are gone" if cores > MUCH or withheld > MUCH_WITHHELD else text


@contextlib.contextmanager
def watched():
    """Says on stderr what others had meanwhile. Children that are started in it must end in it."""
    others = Others()
    try:
        yield
    finally:
        print(line(others.cores(), others.withheld()), file=sys.stderr)
