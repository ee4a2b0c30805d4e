"""A run's figures, compared with what this file computes from its rows."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import CHAT

import plimsoll


def nearest_rank(values: list[float], percent: float) -> float:
    return sorted(values)[math.ceil(percent / 100 * len(values)) - 1]


def test_a_run_passes_and_shows_its_screen(run: plimsoll.Run) -> None:
    assert run.verdict is plimsoll.Verdict.PASS
    assert run.passed
    run.check()
    assert "requests due in" in str(run)
    assert run.html.startswith("<!DOCTYPE html>")
    assert run.summary["total"]["counters"]["completed"] == 80


def test_rows_are_those_of_the_file(run: plimsoll.Run) -> None:
    polars, pandas, records = run.rows("polars"), run.rows("pandas"), run.rows("records")
    assert len(polars) == len(pandas) == len(records) == 90
    assert set(polars["model"]) == set(pandas["model"]) == {row["model"] for row in records} == {"mock-fast"}
    assert polars["ttft_ms"].to_list() == [row.get("ttft_ms") for row in records]
    # A key that no row has is a column all the same.
    assert polars["rpc_code"].null_count() == 90


def test_percentiles_agree_with_the_rows(run: plimsoll.Run) -> None:
    values = [row["ttft_ms"] for row in run.rows("records") if not row["warmup"]]
    # p80 is not in summary.json: it comes from the histogram, which has three digits.
    for percent in (50, 80):
        assert run.percentile("ttft", percent) == pytest.approx(nearest_rank(values, percent), rel=0.002)
    assert run.percentile("ttft", 50, stage="@40:2s") == run.percentile("ttft_ms", 50)


def test_a_percentile_without_enough_values_is_none(run: plimsoll.Run) -> None:
    assert run.percentile("response_time", 99) is None
    assert run.percentile("response_time", 99.5) is None


def test_a_metric_that_does_not_exist_is_an_error(run: plimsoll.Run) -> None:
    with pytest.raises(ValueError, match="response_time"):
        run.percentile("ttftt")
    # Known, and without a value here.
    assert run.percentile("tls") is None


def test_a_result_is_neither_true_nor_false(run: plimsoll.Run) -> None:
    with pytest.raises(TypeError, match="passed"):
        bool(run)


def test_an_unknown_stage_is_named_with_the_known_ones(run: plimsoll.Run) -> None:
    with pytest.raises(KeyError, match="@40:2s"):
        run.percentile("ttft", 50, stage="@400:2s")


def test_stages_are_a_table_without_warm_up(run: plimsoll.Run) -> None:
    (stage,) = run.stages("records")
    assert stage["stage"] == "@40:2s"
    assert stage["completed"] == 80
    assert stage["error_rate"] == 0
    assert run.stages("polars").columns == list(run.stages("pandas").columns) == list(stage)


def test_figures_are_in_the_long_form(run: plimsoll.Run) -> None:
    figures = run.figures("polars")
    assert figures.columns == ["stage", "target", "scenario", "metric", "statistic", "value"]
    whole = [row for row in run.figures("records") if row["stage"] is row["target"] is row["scenario"] is None]
    (completed,) = [row["value"] for row in whole if row["metric"] == "completed"]
    assert completed == 80


def test_parquet_has_all_rows(run: plimsoll.Run, tmp_path: Path) -> None:
    import polars

    path = run.to_parquet(tmp_path / "rows.parquet")
    read = polars.read_parquet(path)
    assert read.equals(run.rows("polars"))


def test_a_stored_run_is_read_again(run: plimsoll.Run) -> None:
    again = plimsoll.load(run.folder)
    assert isinstance(again, plimsoll.Run)
    assert again.verdict is plimsoll.Verdict.PASS
    assert again.text.splitlines()[0] == run.text.splitlines()[0]
    assert isinstance(plimsoll.load(run.folder.parent), plimsoll.Run)


def test_a_broken_threshold_is_a_verdict_not_an_exception(mock: plimsoll.Mock, tmp_path: Path) -> None:
    run = plimsoll.run(CHAT, target=mock.url, stages="@40:1s", out=tmp_path, thresholds={"response_time": "p(50)>10s"})
    assert run.verdict is plimsoll.Verdict.FAIL
    with pytest.raises(plimsoll.CheckFailed, match="response_time"):
        run.check()
    stored = plimsoll.load(run.folder)
    assert stored.verdict is plimsoll.Verdict.FAIL


def test_settings_reach_the_plan(mock: plimsoll.Mock, tmp_path: Path) -> None:
    run = plimsoll.run(
        "minimal", target=mock.url, stages="1:1s", out=tmp_path, seed=7, settings={"labels.build": "b1"}, rows=False
    )
    assert run.summary["run"]["seed"] == 7
    assert run.summary["labels"] == {"build": "b1"}
    with pytest.raises(plimsoll.RunError, match="without rows"):
        run.rows()


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"profile": "nonsense"}, plimsoll.UsageError, "no built-in profile has this name"),
    ({"profile": "minimal", "stages": "10"}, plimsoll.UsageError, "stages"),
    ({"profile": "minimal", "timeout": "soon"}, plimsoll.UsageError, "not a length of time"),
    ({"profile": {"content": {"mode": "poll"}}}, plimsoll.UsageError, "pool"),
    ({"profile": "minimal", "stagez": "1:1s"}, TypeError, "did you mean 'stages'"),
    ({"profile": "minimal", "tresholds": {}}, TypeError, "did you mean 'thresholds'"),
    ({"profile": "minimal", "target": "http://127.0.0.1:9"}, plimsoll.RunError, "refused"),
    ({"profile": "minimal", "out": "/proc/none"}, plimsoll.RunError, "/proc/none"),
]


@pytest.mark.parametrize(("arguments", "error", "words"), BAD)
def test_errors_have_the_words_of_the_program(
    arguments: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    arguments = {"target": "http://127.0.0.1:9", "out": tmp_path, **arguments}
    with pytest.raises(error, match=words):
        plimsoll.run(**arguments)


INTERRUPTED = """
import sys, plimsoll
try:
    plimsoll.run("minimal", target=sys.argv[1], stages="2:60s", out=sys.argv[2])
except plimsoll.Interrupted as interrupted:
    result = interrupted.result
    print(result.verdict, result.summary["total"]["counters"]["completed"] > 0, "report.html" in str(list(result.folder.iterdir())))
"""


def test_ctrl_c_still_gives_the_report(mock: plimsoll.Mock, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, mock.url, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("*/results.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    assert out.split() == ["interrupted", "True", "True"]
    assert child.returncode == 0


KILLED = """
import sys, plimsoll
with plimsoll.Mock(ttft="20ms") as mock:
    print(mock.pid, flush=True)
    plimsoll.llm(mock.url, "m", concurrency=2, duration="2s", warmup=1, out=sys.argv[1])
    print("over", flush=True)
    input()
"""


def processes_of(folder: Path, mock_pid: int) -> list[str]:
    """Processes of the program that belong to the caller: its mock, and its load by the folder in its arguments."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "plimsoll" in words[0] and (line.parent.name == str(mock_pid) or str(folder) in words):
            found.append(" ".join(words))
    return found


@pytest.mark.parametrize("moment", ["mock", "load", "over"])
def test_a_killed_caller_leaves_no_process_behind(moment: str, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    mock_pid = int(child.stdout.readline())
    deadline = time.monotonic() + 30
    while moment == "load" and not list(tmp_path.glob("*/plan.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    if moment == "over":
        assert child.stdout.readline() == "over\n"
    assert processes_of(tmp_path, mock_pid)
    child.kill()
    child.wait()
    while processes_of(tmp_path, mock_pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(tmp_path, mock_pid) == []
    # The load ended with its caller, and not by itself.
    assert bool(list(tmp_path.glob("*/summary.json"))) == (moment == "over")


def test_progress_shows_a_line(mock: plimsoll.Mock, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plimsoll.run("minimal", target=mock.url, stages="1:2s", out=tmp_path, progress=True)
    assert "run:" in capfd.readouterr().err


def test_compressed_rows_are_read_like_others(mock: plimsoll.Mock, tmp_path: Path) -> None:
    run = plimsoll.run("minimal", target=mock.url, model="m", stages="2:1s", out=tmp_path, rows="zstd")
    assert not (run.folder / "results.jsonl").exists()
    scheduled = run.summary["total"]["counters"]["scheduled"]
    assert len(list(run.iter_rows())) == len(run.rows("polars")) == scheduled > 0
