"""The commands: each calls the program, and gives what it measured."""

from __future__ import annotations

import difflib
import functools
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from plimsoll import _binary, _progress
from plimsoll._errors import Interrupted, RunError, UsageError
from plimsoll._run import Comparison, Knee, Result, Run, Versus

Profile = str | Path | Mapping[str, Any]
Bounds = Mapping[str, str | Sequence[str]]
R = TypeVar("R", bound=Result)


def run(
    profile: Profile,
    *,
    target: str | None = None,
    key: str | None = None,
    model: str | None = None,
    stages: str | None = None,
    headers: Mapping[str, str] | None = None,
    watch: Mapping[str, str | int] | None = None,
    settings: Mapping[str, Any] | None = None,
    run_id: str | None = None,
    shard: str | None = None,
    processes: int | None = None,
    insecure: bool = False,
    ca_file: str | Path | None = None,
    out: str | Path = "runs",
    rows: bool | Literal["zstd"] = True,
    html: bool = True,
    probe: bool = True,
    allow_invalid: bool = False,
    progress: bool | None = None,
    **overrides: Any,
) -> Run:
    """Runs a profile: a file, the name of a built-in one, the folder of a run, or a dict of its keys.

    Further keywords set keys at the top of the profile: `timeout="30s"`, `thresholds={"ttft": "p(95)<500ms"}`.
    `settings` sets any key by its path: `{"scenarios.chat.weight": 3}`. `processes` divides the run among so many
    processes of this machine. `rows="zstd"` keeps the rows compressed. `progress` shows a bar (needs tqdm); default:
    in notebooks and terminals.

    Raises `UsageError` for a bad profile or flag and `RunError` if no load could be sent, both with the program's
    words; `TypeError` for a keyword that is no key; `Interrupted` after Ctrl-C, with the report of what was measured.
    A broken threshold does not raise: see `Run.verdict` and `Run.check`.
    """
    load = run_flags(
        target=target,
        model=model,
        stages=stages,
        headers=headers,
        settings=settings,
        insecure=insecure,
        probe=probe,
        rows=rows,
        overrides=overrides,
        function=run,
    )
    flags = [
        *load,
        *_flag("--run-id", run_id),
        *_flag("--shard", shard),
        *_flag("--processes", processes),
        *_flag("--ca-file", ca_file),
        *_watch(watch),
        *_switches({"--no-html": not html, "--allow-invalid": allow_invalid}),
    ]
    with _profile_file(profile) as file:
        total = _progress.planned_s(file, flags) if _progress.wanted(progress) else None
        return _result(Run, ["run", file, *flags], out, key=key, progress=progress, total_s=total)


def run_flags(
    *,
    target: str | None,
    model: str | None,
    stages: str | None,
    headers: Mapping[str, str] | None,
    settings: Mapping[str, Any] | None,
    insecure: bool,
    probe: bool,
    rows: bool | Literal["zstd"],
    overrides: Mapping[str, Any],
    function: Any,
) -> list[str]:
    """The flags of a run that mean the same wherever it runs; `function` took the keywords in `overrides`."""
    _check_keywords(overrides, function)
    return [
        *_flag("--target", target),
        *_flag("--model", model),
        *_flag("--stages", stages),
        *_headers(headers),
        *_settings({**overrides, **(settings or {})}),
        *_switches({"--insecure": insecure, "--no-jsonl": not rows, "--zstd": rows == "zstd"}),
        *_switches({"--no-probe": not probe}),
    ]


def http(
    url: str,
    *,
    connections: int | None = None,
    rate: float | None = None,
    duration: str | None = None,
    warmup: str | None = None,
    max_requests: int | None = None,
    method: str | None = None,
    body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: str | None = None,
    thresholds: Bounds | None = None,
    insecure: bool = False,
    probe: bool = True,
    out: str | Path = "runs",
    progress: bool | None = None,
) -> Run:
    """Loads one URL without a profile: as many requests as `connections` carry, or `rate` per second."""
    flags = [
        *_flag("--connections", connections),
        *_flag("--rate", rate),
        *_flag("--duration", duration),
        *_flag("--warmup", warmup),
        *_flag("--max-requests", max_requests),
        *_flag("--method", method),
        *_flag("--timeout", timeout),
        *_headers(headers),
        *_bounds(thresholds),
        *_switches({"--insecure": insecure, "--no-probe": not probe}),
    ]
    with _body_file(body) as content:
        total = _progress.seconds(duration or "10s")
        return _result(Run, ["http", url, *flags, *content], out, progress=progress, total_s=total)


def versus(
    targets: Mapping[str, str],
    profile: Profile | None = None,
    *,
    direct: str | None = None,
    rate: float | None = None,
    duration: str | None = None,
    schedule: str | None = None,
    margin: str | None = None,
    rounds: int | None = None,
    key: str | None = None,
    model: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path = "runs",
    progress: bool | None = None,
) -> Versus:
    """Compares targets (`{"name": "http://..."}`) request by request, with `direct` as the upstream itself."""
    flags = versus_flags(
        targets,
        direct=direct,
        rate=rate,
        duration=duration,
        schedule=schedule,
        margin=margin,
        model=model,
        settings=settings,
    )
    flags += _flag("--rounds", rounds)
    with _profile_file(profile) as file:
        arguments = ["versus", *([file] if file else []), *flags]
        return _result(Versus, arguments, out, key=key, progress=progress, total_s=_progress.seconds(duration))


def versus_flags(
    targets: Mapping[str, str],
    *,
    direct: str | None,
    rate: float | None,
    duration: str | None,
    schedule: str | None,
    margin: str | None,
    model: str | None,
    settings: Mapping[str, Any] | None,
) -> list[str]:
    """The flags of a comparison that mean the same wherever it runs."""
    return [
        *_flag("--direct", direct),
        *(part for name, url in targets.items() for part in ("--target", f"{name}={url}")),
        *_flag("--rate", rate),
        *_flag("--for", duration),
        *_flag("--schedule", schedule),
        *_flag("--margin", margin),
        *_flag("--model", model),
        *_settings(settings or {}),
    ]


def knee(
    profile: Profile,
    slo: str,
    *,
    target: str | None = None,
    key: str | None = None,
    model: str | None = None,
    start: float | None = None,
    highest: float | None = None,
    users: bool = False,
    precision: str | None = None,
    budget: str | None = None,
    confirm: str | None = None,
    at_least: float | None = None,
    direct: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path = "runs",
    progress: bool | None = None,
) -> Knee:
    """How much load a target carries within an objective, like `slo="ttft<500ms : 99%"`."""
    flags = [
        *("--slo", slo),
        *_flag("--target", target),
        *_flag("--model", model),
        *_flag("--from", start),
        *_flag("--to", highest),
        *_switches({"--users": users}),
        *_flag("--precision", precision),
        *_flag("--budget", budget),
        *_flag("--confirm", confirm),
        *_flag("--at-least", at_least),
        *_flag("--direct", direct),
        *_settings(settings or {}),
    ]
    with _profile_file(profile) as file:
        total = _progress.seconds(budget or "5m")
        return _result(Knee, ["knee", file, *flags], out, key=key, progress=progress, total_s=total)


def compare(
    old: Iterable[Run | str | Path],
    new: Iterable[Run | str | Path],
    *,
    gates: Mapping[str, str] | None = None,
    allow_different: Sequence[str] = (),
    history: str | Path | None = None,
    out: str | Path = "runs",
) -> Comparison:
    """Judges old and new runs: is the new version worse than the margins allow? `gates={"ttft.p99": "10%"}`."""
    flags = [
        *(part for figure, margin in (gates or {}).items() for part in ("--gate", f"{figure}={margin}")),
        *_flag("--allow-different", ",".join(allow_different) or None),
        *_flag("--history", history),
    ]
    folders = [*map(_folder, old), "--new", *map(_folder, new)]
    return _result(Comparison, ["compare", *folders, *flags], out, progress=False, ui=False)


def _folder(of: Run | str | Path) -> str:
    return str(of.folder if isinstance(of, Result) else of)


def _result(
    kind: type[R],
    arguments: Sequence[str],
    out: str | Path,
    *,
    key: str | None = None,
    progress: bool | None = None,
    total_s: float | None = None,
    ui: bool = True,
) -> R:
    """Runs the command and reads its folder."""
    shows = ui and _progress.wanted(progress)
    full = [*arguments, "--out", str(out), *(["--ui", "lines" if shows else "none"] if ui else [])]
    environment = {"PLIMSOLL_KEY": key} if key is not None else None
    before = _folders(Path(out))
    with _progress.bar(arguments[0], total_s, shown=shows) as on_line:
        finished = _binary.call(full, environment=environment, on_line=on_line)
    folder = finished.folder or _new_folder(Path(out), before, kind.file)
    if finished.code == _binary.USAGE:
        raise UsageError(finished.error)
    if folder is None or not (folder / kind.file).is_file():
        if finished.interrupted:
            raise Interrupted(finished.error or "interrupted before anything was measured", None)
        raise RunError(finished.error or f"plimsoll ended with exit code {finished.code}")
    result = kind(folder, exit_code=finished.code, text=finished.stdout)
    if finished.interrupted:
        raise Interrupted(f"interrupted; the report of the time until then is in {folder}", result)
    return result


def _folders(out: Path) -> set[Path]:
    return set(out.iterdir()) if out.is_dir() else set()


def _new_folder(out: Path, before: set[Path], file: str) -> Path | None:
    """The one folder that was not there before, if the command named none."""
    new = [path for path in _folders(out) - before if (path / file).is_file()]
    return new[0] if len(new) == 1 else None


@contextmanager
def _profile_file(profile: Profile | None) -> Iterator[str]:
    """The profile as an argument; a dict is written to a file for as long as the command lasts."""
    if profile is None or isinstance(profile, (str, Path)):
        yield str(profile) if profile is not None else ""
        return
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
        path = Path(folder) / "profile.yaml"
        # JSON is YAML.
        path.write_text(json.dumps(profile, default=_plain), encoding="utf-8")
        path.chmod(0o600)
        yield str(path)


def profile_text(profile: Profile) -> tuple[str, str | None]:
    """A profile for another machine: the name of a file and its text; of a built-in one the name alone."""
    if isinstance(profile, Mapping):
        return "profile.yaml", json.dumps(profile, default=_plain)
    path = Path(profile)
    if path.is_dir():
        path = path / "profile.yaml"
    return (path.name, path.read_text(encoding="utf-8")) if path.is_file() else (str(profile), None)


@contextmanager
def _body_file(body: str | bytes | None) -> Iterator[list[str]]:
    if body is None:
        yield []
        return
    with tempfile.NamedTemporaryFile(prefix="plimsoll-") as file:
        file.write(body.encode() if isinstance(body, str) else body)
        file.flush()
        yield ["--body", f"@{file.name}"]


def _plain(value: object) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (set, tuple)):
        return list(value)
    raise TypeError(f"profile: {value!r} is neither text, number, list nor dict")


def _flag(name: str, value: object) -> list[str]:
    return [] if value is None else [name, str(value)]


def _switches(flags: Mapping[str, bool]) -> list[str]:
    return [name for name, given in flags.items() if given]


def _headers(headers: Mapping[str, str] | None) -> list[str]:
    return [part for name, value in (headers or {}).items() for part in ("--header", f"{name}: {value}")]


def _watch(watch: Mapping[str, str | int] | None) -> list[str]:
    return [part for name, what in (watch or {}).items() for part in ("--watch", f"{name}={what}")]


def _bounds(thresholds: Bounds | None) -> list[str]:
    return [
        part
        for metric, bounds in (thresholds or {}).items()
        for bound in ([bounds] if isinstance(bounds, str) else bounds)
        for part in ("--threshold", f"{metric}: {bound}")
    ]


def _settings(settings: Mapping[str, Any]) -> list[str]:
    return [part for path, value in settings.items() for part in ("--set", f"{path}={_yaml(path, value)}")]


def _yaml(path: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if path == "thresholds" and isinstance(value, Mapping):
        value = {metric: [bounds] if isinstance(bounds, str) else bounds for metric, bounds in value.items()}
    return json.dumps(value, default=_plain)


@functools.cache
def profile_keys() -> frozenset[str]:
    """The keys at the top of a profile, as the program has them."""
    schema = json.loads(_binary.call(["profile", "schema"]).stdout)
    return frozenset(schema["properties"])


def _check_keywords(overrides: Mapping[str, Any], function: Any) -> None:
    """`TypeError` for a keyword that is neither an argument nor a key of profiles, with a suggestion."""
    if not overrides:
        return
    known = profile_keys()
    arguments = list(function.__kwdefaults__)
    for name in overrides:
        if name in known:
            continue
        near = difflib.get_close_matches(name, [*known, *arguments], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "a key below the top is set by settings={'path.to.key': value}"
        raise TypeError(f"run() has no argument {name!r}, and profiles have no such key; {hint}")
