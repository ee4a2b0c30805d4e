"""The mock provider and the reference gateway, for as long as a `with` block lasts."""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from plimsoll._binary import start
from plimsoll._errors import RunError

#: Time to start, and to stop, in seconds.
_PATIENCE_S = 15.0


class _Server:
    """A server of the program on a free port of this machine."""

    def __init__(self, arguments: list[str]) -> None:
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._url = ""

    @property
    def url(self) -> str:
        """Its base URL."""
        if self._process is None:
            raise RunError("the server does not run: use it in a `with` block, or call `start`")
        return self._url

    @property
    def pid(self) -> int:
        """The id of its process, for `watch`."""
        if self._process is None:
            raise RunError("the server does not run: use it in a `with` block, or call `start`")
        return self._process.pid

    def start(self) -> None:
        """Starts it and waits until it listens."""
        # A file, not a pipe: nobody has to read it while the server runs.
        output = tempfile.TemporaryFile()  # noqa: SIM115
        self._output = output
        self._process = start(self._arguments, stdout=output, stderr=subprocess.STDOUT)
        self._url = self._wait_for_url()

    def stop(self) -> None:
        """Stops it in an orderly way, and by force if it does not end."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._output is not None:
            self._output.close()

    def _wait_for_url(self) -> str:
        import time

        process = self._process
        deadline = time.monotonic() + _PATIENCE_S
        while process is not None and time.monotonic() < deadline:
            ended = process.poll() is not None
            written = self._written()
            found = re.search(r"listening on (?:https?://)?(\S+:\d+)", written)
            if found and not ended:
                return f"http://{found[1]}"
            if ended:
                self._process = None
                raise RunError(written.removeprefix("error: ").strip())
            time.sleep(0.02)
        self.stop()
        raise RunError(f"the server did not listen within {_PATIENCE_S:g} s")

    def _written(self) -> str:
        if self._output is None:
            return ""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Mock(_Server):
    """The mock LLM provider: `with Mock(ttft="200ms", gap="10ms") as mock: run("minimal", target=mock.url)`."""

    def __init__(
        self,
        *,
        ttft: str | None = None,
        gap: str | None = None,
        tokens: int | None = None,
        config: str | Path | None = None,
        log: str | Path | None = None,
        listen: str = "127.0.0.1:0",
    ) -> None:
        given = {"--ttft": ttft, "--gap": gap, "--tokens": tokens, "--config": config, "--log": log}
        flags = [part for name, value in given.items() if value is not None for part in (name, str(value))]
        super().__init__(["mock", "--listen", listen, *flags])

    def __enter__(self) -> Mock:
        self.start()
        return self


class Gateway(_Server):
    """The reference gateway in front of `upstream`, by a preset or a configuration file."""

    def __init__(
        self,
        upstream: str | Mock,
        *,
        preset: str = "llm",
        config: str | Path | None = None,
        settings: Mapping[str, str] | None = None,
        listen: str = "127.0.0.1:0",
    ) -> None:
        self._upstream = upstream
        kind = ["--config", str(config)] if config is not None else ["--preset", preset]
        changes = [part for path, value in (settings or {}).items() for part in ("--set", f"{path}={value}")]
        super().__init__(["gateway", *kind, "--listen", listen, *changes])

    def start(self) -> None:
        """Starts it and waits until it listens."""
        upstream = self._upstream.url if isinstance(self._upstream, _Server) else self._upstream
        self._arguments += ["--upstream", re.sub(r"^https?://", "", upstream).rstrip("/")]
        super().start()

    def __enter__(self) -> Gateway:
        self.start()
        return self
