"""Progress while a command runs: a bar of tqdm, if it is installed."""

from __future__ import annotations

import importlib.util
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from plimsoll import _binary

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def wanted(progress: bool | None) -> bool:
    """Whether to show a bar: as asked, else where somebody sees it and tqdm is there."""
    if progress is not None:
        if progress and importlib.util.find_spec("tqdm") is None:
            raise ImportError("progress=True needs tqdm: `pip install 'plimsoll-load[progress]'`")
        return progress
    return importlib.util.find_spec("tqdm") is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


def seconds(duration: str | None) -> float | None:
    """The length of `1m30s` in seconds; `None` if it is not a length of time."""
    parts = re.findall(r"([\d.]+)(ms|s|m|h)", duration or "")
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else None


def planned_s(profile: str, flags: Sequence[str]) -> float | None:
    """The length of all stages of a profile; `None` if it cannot be told."""
    return planned(profile, flags)[0]


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
    """A bar of time; gives what takes the program's lines, whose last one stands beside the bar."""
    if not shown:
        yield None
        return
    from tqdm.auto import tqdm

    layout = None if total_s else "{desc} {elapsed} {postfix}"
    with tqdm(total=total_s and round(total_s, 1), desc=title, unit="s", bar_format=layout, leave=False) as shown_bar:
        ended = threading.Event()

        def tick() -> None:
            start = time.monotonic()
            while not ended.wait(0.5):
                elapsed = time.monotonic() - start
                shown_bar.n = round(min(elapsed, total_s) if total_s else elapsed, 1)
                shown_bar.refresh()

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield lambda line: shown_bar.set_postfix_str(line.strip()[:120], refresh=False)
        finally:
            ended.set()
            ticker.join()
