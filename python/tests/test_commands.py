"""The other commands, the servers and the fixture."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import CHAT

import plimsoll


def test_http_sends_as_many_requests_as_asked(mock: plimsoll.Mock, tmp_path: Path) -> None:
    run = plimsoll.http(f"{mock.url}/health", concurrency=2, max_requests=50, out=tmp_path)
    assert run.summary["total"]["counters"]["completed"] == 50


def test_http_sends_a_body(mock: plimsoll.Mock, tmp_path: Path) -> None:
    body = '{"model": "mock-fast", "messages": [{"role": "user", "content": "hi"}]}'
    run = plimsoll.http(f"{mock.url}/v1/chat/completions", body=body, concurrency=1, max_requests=5, out=tmp_path)
    assert run.summary["total"]["statuses"] == {"200": 5}


def test_llm_gives_its_levels_a_curve_and_a_view(mock: plimsoll.Mock, tmp_path: Path) -> None:
    run = plimsoll.llm(
        mock.url, "m", concurrency=[1, 3], duration=1, warmup=0, isl=32, osl=8, out=tmp_path, allow_invalid=True
    )
    levels = run.levels("records")
    assert [(level["level"], level["users"]) for level in levels] == [("1 user", 1), ("3 users", 3)]
    rows = run.rows("records")
    for level, stage in zip(levels, ("1:1s", "3:1s")):
        times = sorted(row["ttft_ms"] for row in rows if row["stage"] == stage)
        assert level["requests"] == len([row for row in rows if row["stage"] == stage])
        # The mock waits 20 ms, and the median of the rows equals the level's.
        assert level["ttft_ms"] == pytest.approx(times[(len(times) - 1) // 2], rel=0.005)
        assert 20 <= level["ttft_ms_low"] <= level["ttft_ms"] <= level["ttft_ms_high"] <= times[-1] * 1.005
    assert run.levels("polars").columns == list(run.levels("pandas").columns) == list(levels[0])
    pytest.importorskip("matplotlib").use("Agg")
    assert run.plot().get_ylabel() == "median ttft, ms"
    view = run._repr_html_()
    assert (
        "data:image/png;base64," in view and "3 users" in view and run.sweep["verdict"] in view.replace("&#x27;", "'")
    )


def test_lists_and_numbers_are_given_as_a_person_writes_them(mock: plimsoll.Mock, tmp_path: Path) -> None:
    run = plimsoll.run(CHAT, target=mock.url, stages=["@20:1s", "@40:1s"], out=tmp_path)
    assert [stage["stage"] for stage in run.stages("records")] == ["@20:1s", "@40:1s"]
    timed = plimsoll.http(f"{mock.url}/health", concurrency=1, duration=1, warmup=0, out=tmp_path)
    assert timed.summary["stages"][0]["duration_s"] == pytest.approx(1, abs=0.2)


def test_the_version_is_that_of_the_program() -> None:
    assert plimsoll.__version__[0].isdigit()


def test_versus_finds_what_the_gateway_adds(mock: plimsoll.Mock, tmp_path: Path) -> None:
    with plimsoll.Gateway(mock, preset="proxy") as gateway:
        result = plimsoll.versus({"gateway": gateway.url}, CHAT, direct=mock.url, rate=20, duration="5s", out=tmp_path)
    assert result.comparison["schema"].startswith("plimsoll.versus/")
    assert set(result.models) >= {"gateway", "direct"}
    assert isinstance(plimsoll.load(result.folder), plimsoll.Versus)


def test_compare_judges_two_runs(run: plimsoll.Run, mock: plimsoll.Mock, tmp_path: Path) -> None:
    new = plimsoll.run(CHAT, target=mock.url, out=tmp_path, thresholds={"ttft": "p(50)<10s"})
    # One run of each version does not show how much runs differ: never a pass.
    result = plimsoll.compare([run], [new], gates={"ttft.p50": "10%"}, out=tmp_path)
    assert result.verdict is plimsoll.Verdict.INCONCLUSIVE
    assert plimsoll.load(result.folder).verdict is plimsoll.Verdict.INCONCLUSIVE


def test_knee_searches_within_its_bounds(mock: plimsoll.Mock, tmp_path: Path) -> None:
    result = plimsoll.knee(
        CHAT, "ttft<1s : 50%", target=mock.url, start=5, highest=10, budget="30s", confirm="0s", out=tmp_path
    )
    (found,) = result.data["knees"]
    assert found["knee"]["kept"] == 10
    # Short probes alone prove no capacity.
    assert result.verdict is plimsoll.load(result.folder).verdict is plimsoll.Verdict.INCONCLUSIVE


def test_servers_serve_and_stop() -> None:
    with plimsoll.Mock() as mock, plimsoll.Gateway(mock) as gateway:
        assert b"mock-fast" in urllib.request.urlopen(f"{mock.url}/v1/models").read()
        assert gateway.url != mock.url
        assert mock.pid > 0
        url = mock.url
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=1)


def test_a_server_that_cannot_start_says_why() -> None:
    with plimsoll.Mock() as mock, pytest.raises(plimsoll.RunError, match="in use"):
        plimsoll.Mock(listen=mock.url.removeprefix("http://")).start()


def test_the_binary_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_BIN", "/nonexistent/plimsoll")
    with pytest.raises(plimsoll.BinaryNotFound, match="/nonexistent"):
        plimsoll.run("minimal")


def test_the_fixture_runs_a_profile(mock: plimsoll.Mock, plimsoll_run: Callable[..., plimsoll.Run]) -> None:
    assert plimsoll_run(CHAT, target=mock.url, stages="@20:1s", thresholds={"error_rate": "<1%"}).passed


def test_the_fixture_fails_a_test_whose_threshold_is_broken(
    mock: plimsoll.Mock, plimsoll_run: Callable[..., plimsoll.Run]
) -> None:
    with pytest.raises(pytest.fail.Exception, match="response_time"):
        plimsoll_run(CHAT, target=mock.url, stages="@40:1s", thresholds={"response_time": "p(50)>10s"})
