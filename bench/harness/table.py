"""Figures as a Markdown table: medians with the best beside them, and ratios with their spread."""

import statistics

from . import answers
from .clients import REFERENCE, TESTS

HEAD = [
    "test",
    "server",
    "client",
    "requests/s (best)",
    "CPU us/request (best)",
    "peak MB",
    "rate ratio",
    "CPU ratio",
    "server busy",
]
# A server with this share of its core busy may be the bottleneck.
AT_ITS_LIMIT = 0.95


def header():
    return row(HEAD) + "\n" + "|---" * len(HEAD) + "|"


def rows(test, server, seen):
    """`seen` has the figures of each client, round by round; ratios are to the test's reference client."""
    reference = seen.get(REFERENCE[test])
    for number, (name, figures) in enumerate(seen.items()):
        rates, cpu = [f.rate for f in figures], [f.cpu_us for f in figures]
        shown = f"{median(rates):,.0f} ({max(rates):,.0f})"
        if test == "stream" and name != "wrk":
            shown += f"; {median(rates) * answers.EVENTS:,.0f} events/s"
        busy = median(f.server_busy for f in figures)
        yield row(
            [
                TESTS[test] if number == 0 else "",
                server if number == 0 else "",
                name,
                shown,
                f"{median(cpu):,.2f} ({min(cpu):,.2f})",
                f"{median(f.memory_mb for f in figures):,.0f}",
                *ratios(figures, reference),
                f"{busy:.0%}" + (", the limit" if busy >= AT_ITS_LIMIT else ""),
            ]
        )


def ratios(figures, reference):
    """Compares neighbours in time, so the machine's drift cancels out."""
    if not reference:
        return ["", ""]
    pairs = list(zip(figures, reference))
    return [
        spread([mine.rate / its.rate for mine, its in pairs]),
        spread([mine.cpu_us / its.cpu_us for mine, its in pairs]),
    ]


def spread(values):
    """The median, and between which values the middle half lies."""
    if len(values) < 2:
        return digits(values[0])
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{digits(median(values))} ({digits(low)} to {digits(high)})"


def digits(ratio):
    return f"{ratio:.2f}" if 0.1 < ratio < 100 else f"{ratio:,.4f}" if ratio < 1 else f"{ratio:,.0f}"


def median(values):
    return statistics.median(values)


def row(cells):
    return "| " + " | ".join(cells) + " |"
