"""Figures as a Markdown table of medians."""

import statistics

from . import answers
from .clients import REFERENCE, TESTS

HEAD = ["test", "client", "requests/s", "CPU us/request", "peak MB", "rate ratio", "CPU ratio", "server busy"]


def header():
    return row(HEAD) + "\n" + "|---" * len(HEAD) + "|"


def rows(test, seen):
    """`seen` has the figures of each client, round by round; ratios are to the test's reference client."""
    reference = seen.get(REFERENCE[test])
    for number, (name, figures) in enumerate(seen.items()):
        rate = median(f.rate for f in figures)
        shown = f"{rate:,.0f}"
        if test == "stream" and name != "wrk":
            shown += f" ({rate * answers.EVENTS:,.0f} events/s)"
        yield row([TESTS[test] if number == 0 else "", name, shown, f"{median(f.cpu_us for f in figures):,.2f}",
                   f"{median(f.memory_mb for f in figures):,.0f}", *ratios(figures, reference),
                   f"{median(f.server_busy for f in figures):.0%}"])


def ratios(figures, reference):
    """Of neighbours in time, so that the machine's drift cancels out."""
    if not reference:
        return ["", ""]
    pairs = list(zip(figures, reference))
    return [digits(median(mine.rate / its.rate for mine, its in pairs)),
            digits(median(mine.cpu_us / its.cpu_us for mine, its in pairs))]


def digits(ratio):
    return f"{ratio:.2f}" if 0.1 < ratio < 100 else f"{ratio:,.4f}" if ratio < 1 else f"{ratio:,.0f}"


def median(values):
    return statistics.median(values)


def row(cells):
    return "| " + " | ".join(cells) + " |"
