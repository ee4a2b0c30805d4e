"""The tests run the real program against its own mock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import plimsoll

# Runs only in `scripts/test --all`.
takes_minutes = pytest.mark.skipif("PLIMSOLL_TEST_ALL" not in os.environ, reason="takes minutes: scripts/test --all")

CHAT = {
    "name": "chat",
    "model": "mock-fast",
    "stages": "w@10:1s,@40:2s",
    "stream": True,
    "max_tokens": 16,
    "content": {"mode": "pool", "prompts": ["What is a load line?"]},
}


@contextmanager
def ray_cluster(shards: int) -> Iterator[tuple[Any, list[Any]]]:
    """Nodes of a real Ray cluster with room for a shard each; the driver's own has none."""
    import ray
    import ray.cluster_utils

    cluster = ray.cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(shards)]
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    yield cluster, nodes
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="session")
def mock() -> Iterator[plimsoll.Mock]:
    with plimsoll.Mock(ttft="20ms", gap="1ms", tokens=16) as server:
        yield server


@pytest.fixture(scope="session")
def run(mock: plimsoll.Mock, tmp_path_factory: pytest.TempPathFactory) -> plimsoll.Run:
    """One run for all tests that only read."""
    out: Path = tmp_path_factory.mktemp("runs")
    return plimsoll.run(CHAT, target=mock.url, out=out, thresholds={"ttft": "p(50)<10s"})
