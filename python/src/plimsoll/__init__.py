"""Load testing for LLM and API gateways: the program `plimsoll`, called from Python.

import plimsoll

with plimsoll.Mock(ttft="50ms") as mock:
    run = plimsoll.llm(mock.url, "mock-small", concurrency=[1, 2, 4, 8], duration=5)
print(run)                                   # the screen of the run
print(run.levels())                          # a table: one row per level
run.plot()                                   # the curve of throughput against TTFT
print(run.percentile("response_time", 95))   # milliseconds, or None if the data do not support it
"""

from plimsoll._binary import binary
from plimsoll._commands import compare, http, knee, llm, run, versus
from plimsoll._errors import BinaryNotFound, CheckFailed, Interrupted, PlimsollError, RunError, UsageError
from plimsoll._run import Comparison, Knee, Result, Run, Verdict, Versus, load
from plimsoll._servers import Gateway, Mock

__all__ = [
    "BinaryNotFound",
    "CheckFailed",
    "Comparison",
    "Gateway",
    "Interrupted",
    "Knee",
    "Mock",
    "PlimsollError",
    "Result",
    "Run",
    "RunError",
    "UsageError",
    "Verdict",
    "Versus",
    "binary",
    "compare",
    "http",
    "knee",
    "llm",
    "load",
    "run",
    "versus",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from plimsoll._binary import call

        return call(["--version"]).stdout.split()[-1]
    raise AttributeError(f"module 'plimsoll' has no attribute {name!r}")
