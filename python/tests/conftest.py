"""The tests run the real program against its own mock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import plimsoll

CHAT = {
    "name": "chat",
    "model": "mock-fast",
    "stages": "w@10:1s,@40:2s",
    "stream": True,
    "max_tokens": 16,
    "content": {"mode": "pool", "prompts": ["What is a load line?"]},
}


@pytest.fixture(scope="session")
def mock() -> Iterator[plimsoll.Mock]:
    with plimsoll.Mock(ttft="20ms", gap="1ms", tokens=16) as server:
        yield server


@pytest.fixture(scope="session")
def run(mock: plimsoll.Mock, tmp_path_factory: pytest.TempPathFactory) -> plimsoll.Run:
    """One run for all tests that only read."""
    out: Path = tmp_path_factory.mktemp("runs")
    return plimsoll.run(CHAT, target=mock.url, out=out, thresholds={"ttft": "p(50)<10s"})
