"""Load testing for LLM and API gateways: the program `plimsoll`, called from Python.

import plimsoll

with plimsoll.Mock(ttft="50ms") as mock:
    run = plimsoll.run("minimal", target=mock.url, stages="2:5s,8:5s")
print(run)                                   # the screen of the run
print(run.stages())                          # a table: one row per stage
print(run.percentile("response_time", 95))   # milliseconds, or None where the data do not carry it
"""

from plimsoll._binary import binary
from plimsoll._commands import compare, http, knee, run, versus
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
    "load",
    "run",
    "versus",
]
