"""Progress while a command runs: one line on stderr."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from plimsoll import _binary

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def wanted(progress: bool | None) -> bool:
    """Whether to show progress: as asked, else where somebody sees it."""
    return progress if progress is not None else sys.stderr.isatty() or "ipykernel" in sys.modules


def seconds(duration: object) -> float | None:
    """The length of `1m30s`, or of a number of seconds; `None` if it is not a length of time."""
    if isinstance(duration, (int, float)):
        return float(duration)
    parts = re.findall(r"([\d.]+)(ms|s|m|h)", str(duration or ""))
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else None


def planned(profile: str, flags: Sequence[str]) -> tuple[float | None, float]:
    """The length of all stages of a profile, and their highest rate; `None` and 0 where it cannot be told."""
    shown = _binary.call(["profile", "show", profile, *_shown_flags(flags)]).stdout
    found = re.search(r"^stages: *['\"]?(.+?)['\"]?$", shown, re.MULTILINE)
    stages = [stage.partition(":") for stage in found[1].split(",")] if found else []
    rates = [float(rate) for load, _, _ in stages if "@" in load for rate in re.findall(r"[\d.]+", load)]
    return sum(seconds(length) or 0 for _, _, length in stages) or None, max(rates, default=0)


def _shown_flags(flags: Sequence[str]) -> list[str]:
    """The flags that change the load."""
    pairs = zip(flags, flags[1:])
    return [
        part for name, value in pairs if name in ("--stages", "--set", "--target", "--model") for part in (name, value)
    ]


@contextmanager
def bar(title: str, total_s: float | None, *, shown: bool) -> Iterator[Callable[[str], None] | None]:
    """A line on stderr with the time; gives what takes the program's lines, whose last one stands beside it."""
    if not shown:
        yield None
        return
    ended, last = threading.Event(), [""]

    def tick() -> None:
        start = time.monotonic()
        while True:
            of = f" of {total_s:.0f}" if total_s else ""
            print(
                f"\r\x1b[K{title}: {time.monotonic() - start:.0f}{of} s  {last[0]}", end="", file=sys.stderr, flush=True
            )
            if ended.wait(0.5):
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
                return

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield lambda line: last.__setitem__(0, line.strip()[:100])
    finally:
        ended.set()
        ticker.join()
