"""Where the program is, and how it is run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from plimsoll._errors import BinaryNotFound

PASS, FAILED, USAGE, INVALID, INTERRUPTED = 0, 1, 2, 3, 130


def binary() -> Path:
    """The program: `PLIMSOLL_BIN`, else the one of this environment, else the first in `PATH`."""
    named = os.environ.get("PLIMSOLL_BIN")
    if named:
        if not Path(named).is_file():
            raise BinaryNotFound(f"PLIMSOLL_BIN: {named}: no such file")
        return Path(named)
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        if (Path(folder) / "plimsoll").is_file():
            return Path(folder) / "plimsoll"
    found = shutil.which("plimsoll")
    if found is None:
        raise BinaryNotFound(
            "the program `plimsoll` is not installed: `pip install plimsoll-load`, or set PLIMSOLL_BIN"
        )
    return Path(found)


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str
    interrupted: bool

    @property
    def error(self) -> str:
        """The error of the program, or all of its output on stderr."""
        start = self.stderr.find("error: ")
        return self.stderr[start + len("error: ") :].strip() if start >= 0 else self.stderr.strip()

    @property
    def folder(self) -> Path | None:
        """The result folder that the command printed."""
        named = re.search(r"^files: (.+)$", self.stdout, re.MULTILINE)
        return Path(named[1]) if named and Path(named[1]).is_dir() else None


def start(arguments: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[Any]:
    """Starts the program; it ends when this process does, however that ends: its standard input closes then."""
    environment = {**(os.environ if env is None else env), "PLIMSOLL_FOLLOW_CALLER": "1"}
    return subprocess.Popen(
        [str(binary()), *arguments], stdin=subprocess.PIPE, env=environment, start_new_session=True, **options
    )


def call(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> Finished:
    """Runs the program to its end; Ctrl-C ends the load, not the report.

    The program has a session of its own, so that a terminal's Ctrl-C reaches it once, through this process: a
    second signal would end it without a report.
    """
    process = start(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "COLUMNS": "200", **(environment or {})},
    )
    if process.stdout is None or process.stderr is None:
        raise AssertionError("both are pipes")
    out: list[str] = []
    err: list[str] = []
    readers = [
        threading.Thread(target=_read, args=(process.stdout, out, None), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, err, on_line), daemon=True),
    ]
    for reader in readers:
        reader.start()
    interrupted = _wait(process)
    for reader in readers:
        reader.join()
    return Finished(process.returncode, "".join(out), "".join(err), interrupted)


def _read(stream: IO[str], lines: list[str], on_line: Callable[[str], None] | None) -> None:
    with stream:
        for line in stream:
            lines.append(line)
            if on_line is not None:
                on_line(line.rstrip("\n"))


def _wait(process: subprocess.Popen[str]) -> bool:
    """Waits for the end; passes the first Ctrl-C on, and at the second one ends the program at once."""
    interrupted = False
    while True:
        try:
            process.wait()
            return interrupted
        except KeyboardInterrupt:
            process.send_signal(signal.SIGKILL if interrupted else signal.SIGINT)
            interrupted = True
        except BaseException:
            process.kill()
            process.wait()
            raise
