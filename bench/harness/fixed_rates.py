"""The load at which a share of requests keeps a bound, by long runs at fixed rates in alternating order.

Own arithmetic on the rows of the runs: nothing of the product's search or statistics.

A rate has the median of its runs, since one stall of the machine spoils a run near a limit from its beginning to its end.
Where a higher rate nevertheless kept a larger share than a lower one, both are run again, and what then remains is said.
"""

import math
import statistics
from dataclasses import dataclass, field

from .chain import rows, summary

# How far from the load in question: both ends, then further in. A second pass goes the other way round.
STEPS = (0.06, -0.06, 0.04, -0.04, 0.02, -0.02)
# Where the share is not between those at the ends, further rates are tried; at most so many.
FURTHER, MOST_FURTHER = 0.06, 6
# The two rates that enclose the load end up this close to each other.
FINE, MOST_FINE = 0.015, 3
# A share that is higher at a higher rate, by so many logits, is looked at again; at most so often.
CONTRADICTION, MOST_AGAIN = 1.0, 3


@dataclass
class Rate:
    """All runs at a rate: how many requests were due and kept the objective in each."""

    rate: float
    runs: list = field(default_factory=list)
    invalid: int = 0

    def shares(self):
        return [kept / due for due, kept in self.runs]

    def logit(self):
        """Median over runs of the share of kept requests; finite."""
        return statistics.median(logit((kept + 0.5) / (due + 1)) for due, kept in self.runs)


def logit(share):
    return math.log(share / (1 - share))


class Truth:
    """Long runs around a load. `run(rate, seconds)` runs a load and returns its folder."""

    def __init__(self, run, within_ms, share, seconds, passes, tell=print):
        self.run, self.within_ms, self.share, self.seconds = run, within_ms, share, seconds
        self.passes, self.tell, self.rates = passes, tell, {}

    def around(self, load):
        """The true load and the two rates that enclose it; None where it is not enclosed."""
        for number in range(self.passes):
            for step in STEPS[:: -1 if number % 2 else 1]:
                self.measure(load * (1 + step))
        self.again()
        for _ in range(MOST_FURTHER):
            crossing = self.crossing()
            if crossing:
                break
            lowest, highest = min(self.rates), max(self.rates)
            above = self.smooth()[-1][1] > logit(self.share)
            self.measure(highest * (1 + FURTHER) if above else lowest * (1 - FURTHER))
        for _ in range(MOST_FINE):
            crossing = self.crossing()
            if not crossing or crossing[2] / crossing[1] - 1 <= FINE:
                break
            for _ in range(self.passes):
                self.measure(math.sqrt(crossing[1] * crossing[2]))
        self.again()
        return self.crossing()

    def again(self):
        """Runs once more what contradicts itself."""
        for _ in range(MOST_AGAIN):
            for rate in {rate for pair in self.contradictions() for rate in pair}:
                self.measure(rate)

    def contradictions(self):
        """Pairs of neighbouring rates whose higher one kept clearly more."""
        ordered = sorted(self.rates)
        level = {rate: self.rates[rate].logit() for rate in ordered}
        return [
            (a, b)
            for a, b in zip(ordered, ordered[1:])
            if level[b] - level[a] > CONTRADICTION and level[a] < logit(self.share)
        ]

    def measure(self, rate):
        rate = round(rate, 1)
        run = self.run(rate, self.seconds)
        found = self.rates.setdefault(rate, Rate(rate))
        due, kept = count(run, self.within_ms)
        found.runs.append((due, kept))
        found.invalid += any(f["level"] == "invalid" for f in summary(run)["findings"])
        self.tell(f"    {rate:8,.1f}/s for {self.seconds} s: {kept / due:.3%} of {due:,} kept")

    def smooth(self):
        """Pairs of a rate and its logit, made to fall with the rate by pooling neighbours that do not."""
        pools = []
        for rate in sorted(self.rates):
            pools.append([[rate], self.rates[rate].logit(), len(self.rates[rate].runs)])
            while len(pools) > 1 and pools[-2][1] < pools[-1][1]:
                (left, a, n), (right, b, m) = pools[-2:]
                pools[-2:] = [[left + right, (a * n + b * m) / (n + m), n + m]]
        return [(rate, level) for members, level, _ in pools for rate in members]

    def crossing(self):
        """Where the share is the wanted one, and its neighbours."""
        wanted, points = logit(self.share), self.smooth()
        for (a, above), (b, below) in zip(points, points[1:]):
            if above >= wanted > below:
                part = (above - wanted) / (above - below)
                return math.exp(math.log(a) + part * math.log(b / a)), a, b
        return None


def count(run, within_ms):
    """Numbers of requests due in the measured stages, and of requests answered well within the bound."""
    due = kept = 0
    for row in rows(run / "results.jsonl"):
        if not row["warmup"]:
            due += 1
            kept += row["outcome"] == "completed" and row["response_time_ms"] < within_ms
    if not due:
        raise SystemExit(f"{run}: no request was due")
    return due, kept
