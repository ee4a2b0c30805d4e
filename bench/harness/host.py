"""What others did on this host while a benchmark ran: a forgotten process, a build, other guests of the machine.

Ratios between neighbours in time forgive a host that is slow. They do not forgive one whose cores are shared: caches
are then the others', and a figure can be off by a half although nothing that was measured shows it.
"""

import contextlib
import os
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
# Of one core. Below, it is what a host does for itself.
MUCH = 0.05
# A guest on a busy machine is told that so much of its time was withheld.
MUCH_STOLEN = 0.02


@dataclass
class Use:
    """Seconds: of time, of CPU of the whole host, of it by this process and its children, and of steal."""

    time: float
    busy: float
    own: float
    stolen: float

    def __sub__(self, before):
        return Use(self.time - before.time, self.busy - before.busy, self.own - before.own, self.stolen - before.stolen)

    def others(self):
        """Cores that others kept busy."""
        return max(self.busy - self.own, 0) / self.time

    def withheld(self):
        """Share of the wanted CPU time that the hypervisor did not give."""
        return self.stolen / max(self.busy + self.stolen, 1e-9)

    def is_disturbed(self):
        return self.others() > MUCH or self.withheld() > MUCH_STOLEN

    def text(self):
        """Nothing noticed is no quiet machine: neighbours outside of this guest can slow its caches unseen."""
        text = (f"others on this host used {self.others():.2f} of a core, "
                f"{self.withheld():.0%} of the CPU time was withheld")
        return f"! {text}: repeat it when they are gone" if self.is_disturbed() else text


def use():
    """Since the host and this process began. Children count when they have ended and were waited for."""
    user, nice, system, _, _, irq, softirq, stolen = map(int, Path("/proc/stat").read_text().split()[1:9])
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Use(time.monotonic(), (user + nice + system + irq + softirq) / TICKS,
               sum(each.ru_utime + each.ru_stime for each in own), stolen / TICKS)


@contextlib.contextmanager
def watched():
    """Says on stderr what others did meanwhile. Children that were started in it must end in it."""
    before = use()
    try:
        yield
    finally:
        print((use() - before).text(), file=sys.stderr)
