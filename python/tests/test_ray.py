"""One load from two nodes of a real Ray cluster on this machine; one of them is lost."""

from __future__ import annotations

import _thread
import errno
import re
import shutil
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import CHAT, ray_cluster, takes_minutes

import plimsoll
import plimsoll.ray


@pytest.fixture
def cluster() -> Iterator[tuple[Any, list[Any]]]:
    with ray_cluster(shards=2) as cluster:
        yield cluster


def server() -> plimsoll.Mock:
    return plimsoll.Mock(ttft="5ms", gap="1ms", tokens=16)


def test_two_nodes_send_one_load_together(cluster: Any, tmp_path: Path) -> None:
    lines: list[str] = []
    with server() as mock:
        run = plimsoll.ray.run(
            CHAT, shards=2, target=mock.url, out=tmp_path, stages="@40:3s", on_progress=lines.append, run_id="both"
        )
        alone = plimsoll.run(CHAT, target=mock.url, out=tmp_path / "alone", stages="@40:3s", run_id="both")
    assert [shard["state"] for shard in run.summary["shards"]] == ["done", "done"], run.report
    assert run.lost == []
    assert len({shard.node for shard in run.shards}) == 2, "one shard on each node"
    # The same requests as from one process: ids follow from seed and run id.
    ids = {row["request_id"] for row in run.rows("records")}
    assert len(ids) == 120
    assert ids == {row["request_id"] for row in alone.rows("records")}
    # They began together, by clocks that the driver compared.
    assert all(shard["clock_uncertainty_s"] < 0.5 for shard in run.summary["shards"])
    assert max(shard["start_s"] for shard in run.summary["shards"]) < 0.1, run.summary["shards"]
    assert any("2 of 2 shards" in line and "in flight" in line for line in lines), lines


@takes_minutes
def test_two_nodes_compare_targets_together(cluster: Any, tmp_path: Path) -> None:
    lines: list[str] = []
    with server() as mock, plimsoll.Gateway(mock, preset="proxy") as gateway:
        compared = plimsoll.ray.versus(
            {"gateway": gateway.url},
            CHAT,
            shards=2,
            direct=mock.url,
            rate=20,
            duration="4s",
            out=tmp_path,
            run_id="pairs",
            on_progress=lines.append,
        )
    assert compared.lost == [] and len({shard.node for shard in compared.shards}) == 2
    assert [shard["state"] for shard in compared.summary["shards"]] == ["done", "done"], compared.report
    # 20 blocks a second for 4 s: each on both targets, and all of both shards in one result.
    assert compared.comparison["blocks"]["planned"] == 80
    assert compared.comparison["blocks"]["recorded"] > 60, compared.comparison["blocks"]
    assert set(compared.models) >= {"gateway", "direct"}
    targets = [row["target"] for row in compared.rows("records")]
    assert targets.count("gateway") == targets.count("direct") >= 80
    assert any("2 of 2 shards" in line for line in lines), lines
    assert isinstance(plimsoll.load(compared.folder), plimsoll.Versus)


@takes_minutes
def test_a_node_that_is_lost_is_told_in_words_and_the_other_finishes(cluster: Any, tmp_path: Path) -> None:
    cluster, nodes = cluster
    begun = threading.Event()

    def told(line: str) -> None:
        if "in flight" in line:
            begun.set()

    def lose() -> None:
        begun.wait(60)
        cluster.remove_node(nodes[1], allow_graceful=False)

    loser = threading.Thread(target=lose)
    loser.start()
    with server() as mock, pytest.warns(plimsoll.ray.ShardLost, match="was lost"):
        run = plimsoll.ray.run(CHAT, shards=2, target=mock.url, out=tmp_path, stages="@40:8s", on_progress=told)
    loser.join()
    assert run.verdict is plimsoll.Verdict.INVALID
    [lost] = run.lost
    assert lost.lost is not None and "s after the start" in lost.lost
    states = [shard["state"] for shard in run.summary["shards"]]
    assert sorted(states) == ["done", "missing"]
    assert states[lost.index] == "missing"
    assert f"shard {lost.index}/2 is missing" in run.report
    # The other sent its half to the end.
    assert run.summary["total"]["counters"]["scheduled"] == 160


def test_a_cluster_without_room_or_a_bad_profile_sends_nothing(cluster: Any, tmp_path: Path) -> None:
    with server() as mock:
        with pytest.raises(plimsoll.RunError, match="no room for 3 shards"):
            plimsoll.ray.run(CHAT, shards=3, target=mock.url, out=tmp_path, room_timeout_s=2)
        with pytest.raises(plimsoll.UsageError, match="stages"):
            plimsoll.ray.run(CHAT, shards=2, target=mock.url, out=tmp_path, stages="nonsense")
    with pytest.raises(plimsoll.RunError, match="nothing listens"):
        plimsoll.ray.run(CHAT, shards=2, target="http://127.0.0.1:1", out=tmp_path)
    with pytest.raises(TypeError, match="stream"):
        plimsoll.ray.run(CHAT, shards=2, target="http://127.0.0.1:1", strem=True)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_shards_stay_on_their_nodes_until_the_result_is_written(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def failing(*arguments: Any, **keywords: Any) -> Any:
        raise failure

    monkeypatch.setattr(tarfile, "open", failing)
    expected = plimsoll.Interrupted if isinstance(failure, KeyboardInterrupt) else plimsoll.RunError
    with server() as mock, pytest.raises(expected, match="its shards are kept: shard 0/2 on .*; shard 1/2") as caught:
        plimsoll.ray.run(CHAT, shards=2, target=mock.url, out=tmp_path, stages="@40:1s", run_id="kept")
    monkeypatch.undo()
    last = str(caught.value).splitlines()[-1]
    folders = re.findall(r" in (\S+/kept/shard-0000[01]-of-00002)", last)
    assert len(folders) == 2, last
    # By the command that the message names.
    command = last.partition("to collect them: ")[2].split()
    assert command[:4] == ["python", "-m", "plimsoll.ray", "collect"]
    merged = plimsoll.ray.collect(command[4], out=command[6], allow_invalid=True)
    assert merged.summary["total"]["counters"]["scheduled"] == 40
    assert [shard["state"] for shard in merged.summary["shards"]] == ["done", "done"]
    for folder in folders:
        shutil.rmtree(Path(folder).parent.parent)


def test_shards_are_removed_from_their_nodes_once_the_result_is_written(cluster: Any, tmp_path: Path) -> None:
    with server() as mock:
        run = plimsoll.ray.run(CHAT, shards=2, target=mock.url, out=tmp_path, stages="@40:1s")
    assert [Path(shard.folder).exists() for shard in run.shards] == [False, False]


def test_an_out_that_cannot_be_written_is_found_before_the_load(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "used").mkdir()
    # The port is closed, so a load would raise another error.
    for out, run_id, words in [
        (tmp_path / "file", "any", "nothing was sent"),
        (tmp_path / "file/deeper", "any", "nothing was sent"),
        (tmp_path, "used", "exists already"),
        (Path("/proc/plimsoll"), "any", "nothing was sent"),
    ]:
        with pytest.raises(plimsoll.UsageError, match=words):
            plimsoll.ray.run(CHAT, shards=2, target="http://127.0.0.1:1", out=out, run_id=run_id)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "used"]


def test_rows_are_kept_up_to_ten_thousand_per_second_unless_asked() -> None:
    target = ["--target", "http://127.0.0.1:1"]
    for stages, rows, kept in [
        ("@10000:5s", None, True),
        ("w@10:1s,@10001:5s", None, False),
        ("@10001:5s", True, True),
        ("@10:5s", False, False),
        ("500:5s", None, True),
    ]:
        options = plimsoll.ray.Options(2, rows=rows)
        order = plimsoll.ray._order(["run"], CHAT, [*target, "--stages", stages], options)
        assert order.rows is kept and ("--no-jsonl" in order.flags) is not kept, stages
    # Shards and the merged run have each row: 2 x 700 bytes x 10,000 x 10 s.
    order = plimsoll.ray._order(["run"], CHAT, [*target, "--stages", "@10000:10s"], plimsoll.ray.Options(2))
    assert 140_000_000 <= order.needed_bytes < 160_000_000


def test_an_out_without_space_or_in_the_package_folder_is_refused_before_the_load(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(plimsoll.UsageError, match="0 MiB free.*nothing was sent"):
        plimsoll.ray.run(CHAT, shards=2, target="http://127.0.0.1:1", out=tmp_path)
    monkeypatch.undo()
    package = tmp_path / "runtime_resources/working_dir_files/_ray_pkg_1"
    package.mkdir(parents=True)
    monkeypatch.chdir(package)
    with pytest.raises(plimsoll.UsageError, match="package folder"):
        plimsoll.ray.run(CHAT, shards=2, target="http://127.0.0.1:1")


@takes_minutes
def test_ctrl_c_ends_the_load_on_all_nodes(cluster: Any, tmp_path: Path) -> None:
    def told(line: str) -> None:
        if "in flight" in line and not ended:
            ended.append(time.monotonic())
            _thread.interrupt_main()

    ended: list[float] = []
    with server() as mock, pytest.raises(plimsoll.Interrupted) as caught:
        plimsoll.ray.run(CHAT, shards=2, target=mock.url, out=tmp_path, stages="@40:60s", on_progress=told)
    assert time.monotonic() - ended[0] < 30
    run = caught.value.result
    assert isinstance(run, plimsoll.Run)
    assert run.verdict is plimsoll.Verdict.INTERRUPTED
    assert run.summary["total"]["counters"]["completed"] > 0
