"""Errors, with the words of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll._run import Result


class PlimsollError(Exception):
    """Base of all errors of this package."""


class BinaryNotFound(PlimsollError):
    """The program `plimsoll` is not installed. Remedy: `pip install plimsoll-load`, or set `PLIMSOLL_BIN`."""


class UsageError(PlimsollError, ValueError):
    """Wrong usage, or an invalid profile. The message is the program's; nothing was sent."""


class RunError(PlimsollError, RuntimeError):
    """The command failed: the connection was refused, the key is wrong, or the folder cannot be written."""


class CheckFailed(PlimsollError, AssertionError):
    """`Result.check` found another verdict than "pass". `result` has the figures."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the load early. `result` has the report of the time until then; `None` if nothing was measured."""

    def __init__(self, message: str, result: Result | None) -> None:
        super().__init__(message)
        self.result = result
