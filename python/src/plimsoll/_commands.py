"""The commands: each calls the program, and returns its results.

A further keyword is a flag of the command, as `_flags.json` lists them: `max_requests=5` is `--max-requests 5`,
`insecure=True` is `--insecure`, `probe=False` is `--no-probe`, and `headers={"x-a": "b"}` is `--header 'x-a: b'`.
"""

from __future__ import annotations

import difflib
import functools
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from plimsoll import _binary, _progress
from plimsoll._errors import Interrupted, RunError, UsageError
from plimsoll._run import Comparison, Knee, Result, Run, Versus

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from plimsoll._flags import CompareFlags, HttpFlags, KneeFlags, LlmFlags, RunFlags, VersusFlags

Profile = str | Path | Mapping[str, Any]
R = TypeVar("R", bound=Result)

# Flags whose names are words of Python, or are longer here.
_SPELLINGS = {"connections": "concurrency", "start": "from", "highest": "to", "settings": "set"}
# Separator of the two parts of a value, if it is not `=`.
_SIGNS = {"header": ": ", "threshold": ": "}


def run(
    profile: Profile,
    *,
    key: str | None = None,
    out: str | Path = "runs",
    rows: bool | Literal["zstd"] = True,
    progress: bool | None = None,
    **flags: Unpack[RunFlags],
) -> Run:
    """Runs a profile: a file, the name of a built-in one, the folder of a run, or a dict of its keys.

    Further keywords are flags, or keys at the top of the profile: `timeout="30s"`, `thresholds={"ttft":
    "p(95)<500ms"}`. `settings` sets any key by its path: `{"scenarios.chat.weight": 3}`. `processes` divides the run
    among so many processes of this machine. `rows="zstd"` keeps the rows compressed. `progress` shows a
    line on stderr; default: in notebooks and terminals.

    Raises `UsageError` for a bad profile or flag and `RunError` if no load could be sent, both with the program's
    words; `TypeError` for a keyword that is neither flag nor key; `Interrupted` after Ctrl-C, with the results so
    far. A broken threshold does not raise: see `Run.verdict` and `Run.check`.
    """
    given = [*flags_of("run", flags), *rows_flags(rows)]
    with _profile_file(profile) as file:
        total = _progress.planned(file, given)[0] if _progress.wanted(progress) else None
        return _result(Run, ["run", file, *given], out, key=key, progress=progress, total_s=total)


def http(
    url: str,
    *,
    body: str | bytes | None = None,
    out: str | Path = "runs",
    progress: bool | None = None,
    **flags: Unpack[HttpFlags],
) -> Run:
    """Loads one URL without a profile: `concurrency` requests at once, or `rate` per second."""
    with _body_file(body) as content:
        total = _progress.seconds(flags.get("duration") or "10s")
        arguments = ["http", url, *flags_of("http", flags), *content]
        return _result(Run, arguments, out, progress=progress, total_s=total)


def llm(
    url: str,
    model: str | Sequence[str],
    *,
    concurrency: int | Sequence[int] | None = None,
    rate: float | Sequence[float] | None = None,
    sweep: bool = False,
    key: str | None = None,
    out: str | Path = "runs",
    progress: bool | None = None,
    **flags: Unpack[LlmFlags],
) -> Run:
    """Loads an LLM endpoint level by level: `concurrency=[1, 2, 4, 8]`, `rate=[1, 2]`, or `sweep=True` until saturation.

    `isl` and `osl` are the tokens of input and output. `Run.levels` has the figures, `Run.plot` draws the curve.
    """
    load = {"concurrency": concurrency, "rate": rate, "sweep": sweep}
    given = flags_of("llm", {"model": model, **{name: value for name, value in load.items() if value}, **flags})
    levels = len(_several(concurrency or rate or range(4)))
    each = _progress.seconds(flags.get("duration", 30))
    total = each * levels + (_progress.seconds(flags.get("warmup", 5)) or 0) if each and not sweep else None
    return _result(Run, ["llm", url, *given], out, key=key, progress=progress, total_s=total)


def versus(
    targets: Mapping[str, str],
    profile: Profile | None = None,
    *,
    key: str | None = None,
    out: str | Path = "runs",
    progress: bool | None = None,
    **flags: Unpack[VersusFlags],
) -> Versus:
    """Compares targets (`{"name": "http://..."}`) request by request, with `direct` as the upstream itself."""
    given = flags_of("versus", {"targets": targets, **flags})
    with _profile_file(profile) as file:
        arguments = ["versus", *([file] if file else []), *given]
        total = _progress.seconds(flags.get("duration"))
        return _result(Versus, arguments, out, key=key, progress=progress, total_s=total)


def knee(
    profile: Profile,
    slo: str,
    *,
    key: str | None = None,
    out: str | Path = "runs",
    progress: bool | None = None,
    **flags: Unpack[KneeFlags],
) -> Knee:
    """Finds the highest load that meets an objective, such as `slo="ttft<500ms : 99%"`."""
    given = flags_of("knee", {"slo": slo, **flags})
    with _profile_file(profile) as file:
        total = _progress.seconds(flags.get("budget") or "5m")
        return _result(Knee, ["knee", file, *given], out, key=key, progress=progress, total_s=total)


def compare(
    old: Iterable[Run | str | Path],
    new: Iterable[Run | str | Path],
    *,
    out: str | Path = "runs",
    **flags: Unpack[CompareFlags],
) -> Comparison:
    """Judges old and new runs: is the new version worse than the margins allow? `gates={"ttft.p99": "10%"}`."""
    folders = [*map(_folder, old), "--new", *map(_folder, new)]
    return _result(Comparison, ["compare", *folders, *flags_of("compare", flags)], out, progress=False, ui=False)


@functools.cache
def known_flags() -> dict[str, list[str]]:
    """The flags of each command, and the names of metrics, as the program has them."""
    text = resources.files("plimsoll").joinpath("_flags.json").read_text(encoding="utf-8")
    found: dict[str, list[str]] = json.loads(text)
    return found


def flags_of(command: str, keywords: Mapping[str, Any]) -> list[str]:
    """The flags that keywords mean; for `run` also those that are keys of profiles.

    Raises `TypeError` for a keyword that is neither, with a suggestion.
    """
    flags: list[str] = []
    for name, value in keywords.items():
        flag = _flag_named(command, name)
        if name == "stages" and not isinstance(value, str):
            value = ",".join(map(str, _several(value)))
        if flag is None:
            flags += _values("set", {name: value})
        elif flag.startswith("no-") and not name.startswith("no_"):
            flags += [] if value else [f"--{flag}"]
        else:
            flags += _values(flag, value)
    return flags


def _flag_named(command: str, name: str) -> str | None:
    """The flag of a keyword, or `None` for a key of profiles."""
    known, dashed = known_flags()[command], name.rstrip("_").replace("_", "-")
    for flag in (dashed, _SPELLINGS.get(name, ""), f"no-{dashed}", dashed.removesuffix("s")):
        if flag in known:
            return flag
    keys = profile_keys() if command == "run" else frozenset()
    if name in keys:
        return None
    near = difflib.get_close_matches(name, [*keys, *(flag.replace("-", "_") for flag in known)], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "settings={'path.to.key': value} sets any key of the profile"
    raise TypeError(f"{command}() has no argument {name!r}, and profiles have no such key; {hint}")


def _values(flag: str, value: Any) -> list[str]:
    if isinstance(value, Mapping):
        sign = _SIGNS.get(flag, "=")
        items = value.items()
        if flag == "set":
            return [part for path, own in items for part in ("--set", f"{path}={_yaml(path, own)}")]
        return [part for name, own in items for one in _several(own) for part in (f"--{flag}", f"{name}{sign}{one}")]
    if value is True:
        return [f"--{flag}"]
    return [part for one in _several(value) for part in (f"--{flag}", str(one))]


def _several(value: Any) -> list[Any]:
    if value is None or value is False:
        return []
    return [value] if isinstance(value, (str, bytes, Path)) or not isinstance(value, Iterable) else list(value)


def rows_flags(rows: bool | Literal["zstd"]) -> list[str]:
    """The flags for the rows of a run."""
    return ["--zstd"] if rows == "zstd" else [] if rows else ["--no-jsonl"]


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
