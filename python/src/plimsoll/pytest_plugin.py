"""A fixture for pytest: load tests beside the other tests.

    def test_first_token(plimsoll_run):
        run = plimsoll_run("chat.yaml", target=URL, thresholds={"ttft": "p(95)<500ms"})
        assert run.percentile("response_time", 50) < 2000

The fixture runs a profile and fails the test, with the screen of the run, unless its verdict is "pass".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll._commands import Profile, run
from plimsoll._run import Run


@pytest.fixture
def plimsoll_run(tmp_path: Path) -> Callable[..., Run]:
    """Runs a profile as `plimsoll.run` does, in the test's folder, and asserts its thresholds."""

    def run_and_check(profile: Profile, *, check: bool = True, **arguments: Any) -> Run:
        __tracebackhide__ = True
        arguments.setdefault("out", tmp_path)
        result = run(profile, **arguments)
        if check and not result.passed:
            pytest.fail(f"{result.verdict}: {result.folder}\n{result.text}", pytrace=False)
        return result

    return run_and_check
