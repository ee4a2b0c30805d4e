"""Results of a command, read from the files of its folder."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from plimsoll import _binary, _rows
from plimsoll._errors import CheckFailed, RunError
from plimsoll._histogram import percentile_ms


def _unchanged(path: Path) -> Path:
    """The path of a file, unless the run wrote another content there: `shard.json` has the digests."""
    status = path.with_name("shard.json")
    digest = json.loads(status.read_text(encoding="utf-8"))["files"].get(path.name) if status.is_file() else None
    if digest is not None:
        length = crc = 0
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                length, crc = length + len(block), zlib.crc32(block, crc)
        if (length, crc) != (digest["bytes"], digest["crc32"]):
            raise RunError(
                f"{path} is not as the run wrote it ({length:,} bytes of {digest['bytes']:,}): copy it again"
            )
    return path


class Verdict(str, Enum):
    """Outcome of a command. Only `PASS` is a pass: missing data never is."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    INTERRUPTED = "interrupted"

    def __str__(self) -> str:
        return self.value


class Result:
    """The folder of a result: `text`, `data` (the JSON file), `html`, `verdict`."""

    #: The JSON file of the folder.
    file: str = "summary.json"

    def __init__(self, folder: str | Path, *, exit_code: int | None = None, text: str | None = None) -> None:
        self.folder = Path(folder)
        self._exit_code = exit_code
        self._text = text
        if not (self.folder / self.file).is_file():
            raise RunError(f"{self.folder}: has no {self.file}")

    @cached_property
    def data(self) -> dict[str, Any]:
        """All figures, as the JSON file of the folder has them."""
        loaded: dict[str, Any] = json.loads(_unchanged(self.folder / self.file).read_text(encoding="utf-8"))
        return loaded

    @property
    def text(self) -> str:
        """The screen that the command ended with."""
        if self._text is None:
            self._text = _binary.call(["report", str(self.folder)]).stdout
        return self._text

    @property
    def report(self) -> str:
        """The whole report as text."""
        return _binary.call(["report", str(self.folder), "--full"]).stdout

    @property
    def html(self) -> str:
        """The page with charts: one document without scripts."""
        path = self.folder / "report.html"
        if path.is_file():
            return path.read_text(encoding="utf-8")
        return _binary.call(["report", str(self.folder), "--html"]).stdout

    @property
    def verdict(self) -> Verdict:
        """Outcome of the command."""
        return _verdict_of_code(self._exit_code)

    @property
    def passed(self) -> bool:
        """Whether the verdict is "pass"."""
        return self.verdict is Verdict.PASS

    def check(self) -> None:
        """Raises `CheckFailed`, with the screen of the result, unless it passed."""
        if not self.passed:
            raise CheckFailed(f"{self.verdict}: {self.folder}\n{self.text}", self)

    def __bool__(self) -> bool:
        raise TypeError("a result is neither true nor false: use `passed` or `verdict`")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.verdict}: {self.folder}>"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self.text)}</pre>"


class Run(Result):
    """A run: its figures by stage, its rows, its verdict."""

    @property
    def summary(self) -> dict[str, Any]:
        """`summary.json`: docs/reference/summary.md describes every key."""
        return self.data

    @property
    def verdict(self) -> Verdict:
        """By the same order as the program's exit code."""
        if self._exit_code is not None:
            return _verdict_of_code(self._exit_code)
        ended = self.summary["run"]["ended"]
        if ended == "interrupted":
            return Verdict.INTERRUPTED
        if ended == "too_many_errors":
            return Verdict.FAIL
        if any(finding["level"] == "invalid" for finding in self.summary["findings"]):
            return Verdict.INVALID
        states = [found["judgement"]["state"] for found in self.summary["thresholds"]]
        if "fail" in states:
            return Verdict.FAIL
        counters = self.summary["total"]["counters"]
        counted = counters["completed"] or counters.get("as_expected", 0)
        return Verdict.INCONCLUSIVE if "inconclusive" in states or not counted else Verdict.PASS

    @property
    def models(self) -> dict[str, str]:
        """The model that each target was asked for."""
        return {target["name"]: target["model"] for target in self.summary["targets"]}

    def percentile(
        self,
        metric: str,
        percent: float = 50,
        *,
        stage: str | None = None,
        scenario: str | None = None,
        target: str | None = None,
    ) -> float | None:
        """A percentile in milliseconds, like `percentile("ttft", 95, stage="@100:30s")`.

        `None` if the data do not support it: fewer than 10 values beyond it, or no values; `ValueError` for a
        metric that does not exist. Without `stage`, `scenario` and `target` it covers the whole run without warm-up.
        """
        if not 0 < percent < 100:
            raise ValueError(f"percent: {percent} is not between 0 and 100")
        group = self._group(stage, scenario, target)
        found = group["distributions"].get(_metric(metric))
        if found is None:
            return None
        written = found.get("p" + f"{percent:g}".replace(".", "_"), percentile_ms)
        value: float | None = percentile_ms(found["histogram"], percent) if written is percentile_ms else written
        return value

    @cached_property
    def sweep(self) -> dict[str, Any]:
        """`levels.json`: docs/reference/levels.schema.json describes every key."""
        path = self.folder / "levels.json"
        stored = path.read_text(encoding="utf-8") if path.is_file() else None
        loaded: dict[str, Any] = json.loads(
            stored or _binary.call(["report", str(self.folder), "--format", "levels"]).stdout
        )
        return loaded

    @_rows.Table
    def levels(self) -> list[dict[str, Any]]:
        """A table with one row per level of load: rates, and median times, each with the ends of its interval.

        The argument is "polars", "pandas" or "records" (a list of dicts); default: what is installed.
        """
        return [_level_record(level) for level in self.sweep["levels"]]

    def plot(self, axes: Any = None) -> Any:
        """Draws TTFT, or the response time, against throughput, with 95 % intervals; gives the axes of matplotlib."""
        try:
            import matplotlib.pyplot
        except ImportError as error:
            raise ImportError("plot needs matplotlib: `pip install matplotlib`") from error
        levels = self.levels("records")
        time = next(name for name in ("ttft", "response_time", "service_time") if f"{name}_ms" in levels[0])
        rate = "tokens_per_s" if levels[0].get("tokens_per_s") is not None else "requests_per_s"
        axes = axes or matplotlib.pyplot.subplots()[1]
        drawn = [level for level in levels if level.get(f"{time}_ms") and level.get(rate)]
        x, y = ([level[name] for level in drawn] for name in (rate, f"{time}_ms"))
        x_error, y_error = (_errors(drawn, name) for name in (rate, f"{time}_ms"))
        axes.errorbar(x, y, xerr=x_error, yerr=y_error, marker="o", capsize=3)
        for level, *at in zip(drawn, x, y):
            axes.annotate(level["level"], at, textcoords="offset points", xytext=(6, 6))
        room = 1.15
        axes.set(xlabel=rate.replace("_per_s", "/s"), xlim=(0, room * max(x, default=1)))
        axes.set(ylabel=f"median {time}, ms", ylim=(0, room * max(axes.get_ylim()[1], *y)))
        return axes

    def _repr_html_(self) -> str:
        import html

        found, levels = self.sweep, self.levels("records")
        shown = [name for name in levels[0] if not name.endswith(("_low", "_high"))] if levels else []
        cells = [[_cell(level, name) for name in shown] for level in levels]
        rows = [f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in cells]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
        said = "".join(f"<li>{html.escape(text)}</li>" for text in found["findings"])
        picture = f'<img alt="curve" src="{self._picture()}">' if len(levels) > 1 else ""
        return (
            f"<p><b>{html.escape(found['verdict'])}</b></p>{picture}<table><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table><ul>{said}</ul><p>{html.escape(str(self.folder))}</p>"
        )

    def _picture(self) -> str:
        import base64
        import io

        try:
            from matplotlib.figure import Figure
        except ImportError:
            return ""
        figure, data = Figure(figsize=(7, 4)), io.BytesIO()
        self.plot(figure.subplots())
        figure.savefig(data, format="png")
        return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()

    @_rows.Table
    def stages(self) -> list[dict[str, Any]]:
        """A table with one row per stage, warm-up left out: load, rates, median and tail times, errors.

        The argument is "polars", "pandas" or "records" (a list of dicts); default: what is installed.
        """
        info = {stage["name"]: stage for stage in self.summary["stages"]}
        groups = (group for group in self.summary["by_stage"] if not group["warmup"])
        return [_stage_record(info[group["stage"]], group) for group in groups]

    @_rows.Table
    def figures(self) -> list[dict[str, Any]]:
        """Every figure in the long form: stage, target, scenario, metric, statistic, value."""
        groups = [self.summary["total"]]
        for key in ("by_stage", "by_target", "by_scenario", "cells"):
            groups.extend(self.summary[key])
        return [record for group in groups for record in _long_form(group)]

    def rows(self, backend: str | None = None) -> Any:
        """One row per request, with its model: polars, pandas, or a list of dicts."""
        chosen = _rows.checked(backend)
        path = self._rows_path()
        if chosen == "polars":
            if path.suffix == ".parquet":
                import polars

                return polars.read_parquet(path)
            return _rows.scan(path, self.models).collect()
        if chosen == "pandas":
            import pandas

            read = pandas.read_parquet(path) if path.suffix == ".parquet" else pandas.read_json(path, lines=True)
            if "model" not in read and "target" in read:
                read["model"] = read["target"].map(self.models)
            return read
        return list(self.iter_rows())

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        """The rows one by one, as `results.jsonl` has them, with the model of their target."""
        models = self.models
        with _rows.open_lines(self._lines_path()) as lines:
            for line in lines:
                row = json.loads(line)
                row.setdefault("model", models.get(row["target"]))
                yield row

    def to_parquet(self, path: str | Path | None = None) -> Path:
        """Writes the rows as Parquet, by default `results.parquet` in the folder, from where `rows` reads them then."""
        destination = Path(path) if path is not None else self.folder / "results.parquet"
        return _rows.to_parquet(self._lines_path(), self.models, destination)

    def _rows_path(self) -> Path:
        parquet = self.folder / "results.parquet"
        return parquet if parquet.is_file() else self._lines_path()

    def _lines_path(self) -> Path:
        for name in ("results.jsonl", "results.jsonl.zst"):
            if (self.folder / name).is_file():
                return _unchanged(self.folder / name)
        raise RunError(f"{self.folder}: has no results.jsonl; the run was made without rows")

    def _group(self, stage: str | None, scenario: str | None, target: str | None) -> dict[str, Any]:
        wanted = {"stage": stage, "scenario": scenario, "target": target}
        named = {key: value for key, value in wanted.items() if value is not None}
        if not named:
            total: dict[str, Any] = self.summary["total"]
            return total
        groups = self.summary[f"by_{next(iter(named))}"] if len(named) == 1 else self.summary["cells"]
        found = [group for group in groups if all(group[key] == value for key, value in named.items())]
        if len(found) == 1:
            only: dict[str, Any] = found[0]
            return only
        if found:
            raise KeyError(f"{named}: {len(found)} groups; name stage, scenario and target")
        known = {key: sorted({str(group[key]) for group in groups}) for key in named}
        raise KeyError(f"{named}: there is no such group; known are {known}")


class Comparison(Result):
    """The result of `compare`: `data["gates"]` has each gate with its judgement."""

    file = "comparison.json"

    @property
    def verdict(self) -> Verdict:
        """Outcome of the gates."""
        return Verdict(self.data["verdict"])


class Knee(Result):
    """The result of `knee`: the highest load at which each target meets the objective."""

    file = "knee.json"

    @property
    def verdict(self) -> Verdict:
        """The worst of all targets, as the exit code of the program."""
        if self.data["interrupted"]:
            return Verdict.INTERRUPTED
        verdicts = [Verdict(found["verdict"]) for found in self.data["knees"]]
        worst = (verdict for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE) if verdict in verdicts)
        return next(worst, Verdict.PASS)


class Versus(Run):
    """The result of `versus`: what each target adds, request by request, in `comparison`."""

    @cached_property
    def comparison(self) -> dict[str, Any]:
        """`versus.json`: docs/reference/versus.md describes every key."""
        loaded: dict[str, Any] = json.loads((self.folder / "versus.json").read_text(encoding="utf-8"))
        return loaded


def load(folder: str | Path) -> Run | Comparison | Knee:
    """A stored result; a folder of results gives the latest one that has a summary."""
    path = Path(folder)
    for kind, file in (
        (Comparison, "comparison.json"),
        (Knee, "knee.json"),
        (Versus, "versus.json"),
        (Run, "summary.json"),
    ):
        if (path / file).is_file():
            return kind(path)
    inside = sorted((found.parent for found in path.glob("*/summary.json")), key=lambda found: found.name)
    if not inside:
        raise RunError(f"{path}: is neither the folder of a result nor a folder of such folders")
    return load(inside[-1])


def _verdict_of_code(code: int | None) -> Verdict:
    verdicts = {
        _binary.PASS: Verdict.PASS,
        _binary.FAILED: Verdict.FAIL,
        _binary.INVALID: Verdict.INVALID,
        _binary.INTERRUPTED: Verdict.INTERRUPTED,
    }
    return verdicts.get(code if code is not None else -1, Verdict.INCONCLUSIVE)


def _metric(name: str) -> str:
    """The key of a metric: `ttft` is `ttft_ms`; `ValueError` for one that does not exist."""
    from plimsoll._commands import known_flags

    known, metric = known_flags()["metrics"], name.removesuffix("_ms")
    if metric not in known:
        raise ValueError(f"metric: {name!r} is not known; metrics are {', '.join(known)}")
    return f"{metric}_ms"


def _level_record(level: Mapping[str, Any]) -> dict[str, Any]:
    """A level without nesting: `ttft_ms` is its median, `ttft_ms_low` and `ttft_ms_high` are the ends of its interval."""
    record: dict[str, Any] = {}
    for name, value in level.items():
        if isinstance(value, Mapping) and "value" in value:
            record |= {name: value["value"], f"{name}_low": value["low"], f"{name}_high": value["high"]}
        elif name != "times":
            record[name] = value
    for name, times in level["times"].items():
        record |= {name: times["p50"], f"{name}_low": times["p50_low"], f"{name}_high": times["p50_high"]}
        record |= {f"{name}_{key}": times.get(key) for key in ("n", "mean", "max", "p90", "p95", "p99")}
    return record


def _errors(levels: list[dict[str, Any]], name: str) -> list[list[float]]:
    """The lengths of the bars to both ends of the intervals."""
    ends = [(level[name], level[f"{name}_low"], level[f"{name}_high"]) for level in levels]
    low = [value - low for value, low, _ in ends]
    return [low, [0 if high is None else high - value for value, _, high in ends]]


def _cell(level: Mapping[str, Any], name: str) -> str:
    value, low, high = (level.get(key) for key in (name, f"{name}_low", f"{name}_high"))
    text = f"{value:,.4g}" if isinstance(value, float) else "" if value is None else str(value)
    return f"{text} [{low:,.4g}, {high:,.4g}]" if low is not None and high is not None and low != high else text


_STATISTICS = ("count", "mean", "min", "max", "p50", "p90", "p95", "p99", "p99_9")


def _stage_record(info: Mapping[str, Any], group: Mapping[str, Any]) -> dict[str, Any]:
    rates, counters, times = group["rates"], group["counters"], group["distributions"]
    output = [rates.get("output_token_rate_reported_per_s"), rates.get("output_token_rate_estimated_per_s")]
    given = [rate for rate in output if rate is not None]
    record: dict[str, Any] = {
        "stage": group["stage"],
        "model": info["model"],
        "users": info.get("users"),
        "duration_s": group["duration_s"],
        "planned_per_s": rates.get("planned_rate_per_s"),
        "sent_per_s": rates.get("achieved_rate_per_s"),
        "completed_per_s": rates.get("throughput_per_s"),
        "output_tokens_per_s": sum(given) if given else None,
        "requests": counters["scheduled"],
        "completed": counters["completed"],
        "rejected": counters["rejected"],
        "failed": counters["failed"],
        "error_rate": rates.get("error_rate"),
    }
    for metric in ("response_time", "ttft", "itl", "tpot"):
        found = times.get(f"{metric}_ms", {})
        record.update({f"{metric}_{name}_ms": found.get(name) for name in ("p50", "p95", "p99")})
    return record


def _long_form(group: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    scope = {key: group[key] for key in ("stage", "target", "scenario")}
    kinds = {"count": group["counters"], "rate": group["rates"]}
    for statistic, figures in kinds.items():
        for metric, value in figures.items():
            if value is not None:
                yield {**scope, "metric": metric, "statistic": statistic, "value": float(value)}
    for metric, found in group["distributions"].items():
        for statistic in _STATISTICS:
            if found.get(statistic) is not None:
                yield {**scope, "metric": metric, "statistic": statistic, "value": float(found[statistic])}
