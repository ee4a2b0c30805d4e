"""Three nodes of a real Ray cluster on this machine, one of which is lost: before the start, in the middle, while its
files are collected; or only its program is killed, or the driver. It takes minutes: `scripts/test --all` runs it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
import ray.cluster_utils
from conftest import CHAT, ray_cluster, takes_minutes

import plimsoll
import plimsoll.ray

pytestmark = takes_minutes


@pytest.fixture
def cluster() -> Iterator[tuple[Any, list[Any]]]:
    with ray_cluster(shards=3) as cluster:
        yield cluster


def lose(cluster: tuple[Any, list[Any]], shard: plimsoll.ray.Shard) -> None:
    """Kills the node of a shard, as a power cut does: with its workers, which would answer for a second without it."""
    all_nodes, nodes = cluster
    [lost] = [node for node in nodes if node.node_id[:8] in shard.node]
    workers = children(lost.all_processes["raylet"][0].process.pid)
    all_nodes.remove_node(lost, allow_graceful=False)
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def children(parent: int) -> list[int]:
    """The processes that a process started, from /proc: the fourth field of `stat`, behind the name in brackets."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(state[1]) == parent:
                found.append(int(process.name))
    return found


def run_while(mock: plimsoll.Mock, out: Path, told: Callable[[str], None], **keywords: Any) -> plimsoll.ray.RayRun:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", plimsoll.ray.ShardLost)
        return plimsoll.ray.run(CHAT, shards=3, target=mock.url, out=out, stages="@60:8s", on_progress=told, **keywords)


def states(run: plimsoll.ray.RayRun) -> list[str]:
    return [shard["state"] for shard in run.summary["shards"]]


def check_others(run: plimsoll.ray.RayRun, index: int, state: str) -> None:
    """The verdict names the lost shard, and the others sent their parts to the end."""
    assert run.verdict is plimsoll.Verdict.INVALID
    assert states(run)[index] == state and states(run).count("done") == 2, states(run)
    assert f"shard {index}/3" in run.report.split("INVALID", 1)[1]
    done = [shard["scheduled"] for shard in run.summary["shards"] if shard["state"] == "done"]
    assert done == [160, 160]


def test_a_node_lost_before_the_start_ends_the_run_and_nothing_is_sent(
    cluster: tuple[Any, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = plimsoll.ray._Cluster._compare_clocks

    def losing(self: Any, index: int, end: float) -> tuple[float, float]:
        if index == 2:
            about = ray.get(self.actors[1].about.remote())
            lose(cluster, plimsoll.ray.Shard(1, f"{about['host']} (node {about['node'][:8]})", 0.0, 0.0))
        return compare(self, index, end)

    monkeypatch.setattr(plimsoll.ray._Cluster, "_compare_clocks", losing)
    with plimsoll.Mock(ttft="5ms", gap="1ms", tokens=16) as mock:
        with pytest.raises(plimsoll.RunError, match=r"shard 1/3 was lost before the start .*; nothing was sent"):
            plimsoll.ray.run(CHAT, shards=3, target=mock.url, out=tmp_path, stages="@60:8s")
    assert not any(tmp_path.iterdir())


def test_a_node_lost_in_the_middle_is_missing(cluster: tuple[Any, list[Any]], tmp_path: Path) -> None:
    loser: list[threading.Thread] = []

    def told(line: str) -> None:
        if "in flight" in line and not loser:
            [shard] = [shard for shard in current[0].shards if shard.index == 1]
            loser.append(threading.Thread(target=lose, args=(cluster, shard)))
            loser[0].start()

    current: list[Any] = []
    get_ready = plimsoll.ray._Cluster.get_ready
    with pytest.MonkeyPatch.context() as patch, plimsoll.Mock(ttft="5ms", gap="1ms", tokens=16) as mock:

        def noting(self: Any, limit_s: float) -> None:
            current.append(self)
            get_ready(self, limit_s)

        patch.setattr(plimsoll.ray._Cluster, "get_ready", noting)
        run = run_while(mock, tmp_path, told)
    loser[0].join()
    check_others(run, 1, "missing")
    [lost] = run.lost
    assert lost.lost is not None and "was lost" in lost.lost and "s after the start" in lost.lost


def test_a_loss_that_is_accepted_leaves_a_valid_run(cluster: tuple[Any, list[Any]], tmp_path: Path) -> None:
    def told(line: str) -> None:
        if "in flight" in line and " 0 done" not in line and not killed:
            killed.extend(kill_shard("1/3"))

    killed: list[int] = []
    with plimsoll.Mock(ttft="5ms", gap="1ms", tokens=16) as mock:
        run = run_while(mock, tmp_path, told, lost_at_most=0.4)
    assert killed and run.passed, run.text
    assert "2 of 3 shards completed: shard 1/3" in " ".join(run.report.split())


def test_a_loss_ends_the_load_if_asked(cluster: tuple[Any, list[Any]], tmp_path: Path) -> None:
    def told(line: str) -> None:
        if "in flight" in line and " 0 done" not in line and not killed:
            killed.extend(kill_shard("1/3"))

    killed: list[int] = []
    with plimsoll.Mock(ttft="5ms", gap="1ms", tokens=16) as mock:
        run = run_while(mock, tmp_path, told, on_loss="stop", allow_invalid=True)
    assert killed and states(run) == ["partial"] * 3


def test_a_node_lost_while_its_files_are_collected_is_missing(
    cluster: tuple[Any, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect = plimsoll.ray._Cluster.collect

    def losing(self: Any, folder: Path) -> None:
        lose(cluster, self.shards[2])
        collect(self, folder)

    monkeypatch.setattr(plimsoll.ray._Cluster, "collect", losing)
    with plimsoll.Mock(ttft="5ms", gap="1ms", tokens=16) as mock:
        run = run_while(mock, tmp_path, lambda line: None)
    check_others(run, 2, "missing")
    [lost] = run.lost
    assert lost.lost is not None and "before its files were collected" in lost.lost


def test_a_program_that_is_killed_is_partial_with_what_it_counted(
    cluster: tuple[Any, list[Any]], tmp_path: Path
) -> None:
    killed: list[int] = []

    def told(line: str) -> None:
        if "in flight" in line and not killed and " 0 done" not in line:
            killed.extend(kill_shard("1/3"))

    with plimsoll.Mock(ttft="5ms", gap="1ms", tokens=16) as mock:
        run = run_while(mock, tmp_path, told)
    assert killed
    check_others(run, 1, "partial")
    [lost] = run.lost
    assert lost.lost is not None and "ended with code -9" in lost.lost and "requests were completed" in lost.lost
    assert "left counts up to" in run.report


def test_a_program_that_is_stopped_is_given_up_with_what_it_counted_and_does_not_stay(
    cluster: tuple[Any, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []

    def told(line: str) -> None:
        if "in flight" in line and not stopped and " 0 done" not in line:
            stopped.extend(kill_shard("1/3", signal.SIGSTOP))

    monkeypatch.setattr(plimsoll.ray, "SILENCE_S", 3.0)
    with plimsoll.Mock(ttft="5ms", gap="1ms", tokens=16) as mock:
        run = run_while(mock, tmp_path, told)
        assert running_shards(mock.url) == []
    check_others(run, 1, "partial")
    [lost] = run.lost
    assert lost.lost is not None and "has not been heard of for" in lost.lost
    assert "left counts up to" in run.report


def kill_shard(place: str, how: signal.Signals = signal.SIGKILL) -> list[int]:
    """Kills or stops the program of a shard, and says which process that was."""
    killed = []
    for process in Path("/proc").glob("[0-9]*"):
        words = arguments(process)
        if "--shard" in words and words[words.index("--shard") + 1] == place and "run" in words:
            os.kill(int(process.name), how)
            killed.append(int(process.name))
    return killed


DRIVER = """
import sys, ray, plimsoll.ray
ray.init(address=sys.argv[1], log_to_driver=False)
from conftest import CHAT, ray_cluster
plimsoll.ray.run(CHAT, shards=3, target=sys.argv[2], out=sys.argv[3], stages="@60:120s",
                 on_progress=lambda line: print(line, flush=True))
"""


def test_a_driver_that_dies_ends_the_load_everywhere(cluster: tuple[Any, list[Any]], tmp_path: Path) -> None:
    with plimsoll.Mock(ttft="5ms", gap="1ms", tokens=16) as mock:
        words = [sys.executable, "-c", DRIVER, cluster[0].address, mock.url, str(tmp_path)]
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        driver = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
        assert driver.stdout is not None
        begun = any("in flight" in line for line in driver.stdout)
        shards = running_shards(mock.url)
        driver.kill()
        driver.wait()
        assert begun and len(shards) == 3
        end = time.monotonic() + 60
        while running_shards(mock.url) and time.monotonic() < end:
            time.sleep(0.5)
        assert running_shards(mock.url) == []


def running_shards(target: str) -> list[int]:
    """The processes of the program that are parts of a load on this target."""
    found = [process for process in Path("/proc").glob("[0-9]*") if "--shard" in arguments(process)]
    return [int(process.name) for process in found if target in arguments(process)]


def arguments(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
