"""One load from the nodes of a Ray cluster: `plimsoll.ray.run(profile, shards=8)`; `versus` compares targets from there.

Each shard is an actor that runs the program on its node. The driver places them, compares their clocks with its own,
fixes one start when all are ready, shows their progress, and collects their folders: no disk is shared. What is sent
follows from profile, seed and shard alone, so nothing is handed out while the load goes on, and a driver that is slow
or gone changes nothing of what the others send.

As a job, with its result in a bucket or a folder that outlives the job:

    ray job submit --working-dir . -- python -m plimsoll.ray run big.yaml --shards 8 --out s3://bucket/runs

Whatever ends the driver, the nodes keep their folders: `python -m plimsoll.ray collect LAUNCH` fetches and merges them.

On every node: `pip install 'plimsoll-load[ray]'`, for instance by `runtime_env={"pip": ["plimsoll-load[ray]"]}`.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import importlib
import io
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from plimsoll import _binary, _progress
from plimsoll._commands import Profile, flags_of, profile_text, rows_flags
from plimsoll._errors import Interrupted, RunError, UsageError
from plimsoll._run import Run, Versus

__all__ = ["Options", "RayRun", "RayVersus", "Shard", "ShardLost", "collect", "run", "versus"]

#: Between the readiness of all shards and the start; and for each shard, because shards look for it the less often the
#: more they are.
LEAD_S, LEAD_OF_SHARD_S = 1.0, 0.01
#: From so many requests per second on, rows are written only if they are asked for.
MANY_PER_S = 10_000
#: Space of a row, and of the other files of a shard.
ROW_BYTES, SHARD_BYTES = 700, 2 << 20
#: The beginning of the names of folders on nodes.
PREFIX = "plimsoll-ray-"
#: Between two looks at the shards.
POLL_S = 0.5
#: A shard without news for so long is given up, once its load must be over; and while it writes its files.
SILENCE_S, WRITING_S = 30.0, 120.0
#: An interrupted shard may write its files for so long after the driver gave up.
ENDING_S = 5.0
#: The parts in which a folder travels.
PIECE = 32 << 20
#: Readings by which two clocks are compared; the one with the shortest way counts.
READINGS = 9


class ShardLost(UserWarning):
    """A shard was lost: with its node, its process, or its answers."""


@dataclass
class Shard:
    """Fate of a shard, as seen by the driver."""

    index: int
    #: Host name and id of its node.
    node: str
    #: Offset of its clock from the driver's (positive: ahead), and the maximum error, in seconds.
    clock_offset_s: float
    clock_uncertainty_s: float
    #: Its folder on its node, which is removed once the result is on the driver's disk.
    folder: str = ""
    #: Why it is missing or incomplete; `None` if it finished its load.
    lost: str | None = None


class RayRun(Run):
    """The merged run, with `shards`: where each ran, and why some are incomplete."""

    shards: Sequence[Shard] = ()

    @property
    def lost(self) -> list[Shard]:
        """The shards that are missing or incomplete."""
        return [shard for shard in self.shards if shard.lost is not None]


class RayVersus(RayRun, Versus):
    """The same of a comparison."""


R = TypeVar("R", bound=RayRun)


@dataclass(frozen=True)
class Options:
    """The keywords of `run` and `versus` that are not flags of the program."""

    shards: int
    key: str | None = None
    run_id: str | None = None
    #: A folder, or a place in a bucket (`s3://bucket/runs`, needs pyarrow), to which the result is copied.
    out: str | Path = "runs"
    #: Whether rows are kept; by default unless the load has more than 10,000 requests per second.
    rows: bool | None = None
    html: bool = True
    allow_invalid: bool = False
    #: The part of the load that may be lost: 0.01 accepts two lost shards of 200, and states them.
    lost_at_most: float = 0
    #: Whether the others stop or go on when a shard is lost: "stop" or "go-on".
    on_loss: str = "go-on"
    progress: bool | None = None
    #: Gets a line about every second.
    on_progress: Callable[[str], None] | None = None
    #: Resources that Ray reserves for a shard. The program itself uses all free cores of its node.
    cpus: float = 1
    resources: Mapping[str, float] | None = None
    #: The longest wait for nodes: more than the default where an autoscaler starts them.
    room_timeout_s: float = 10
    #: The longest wait until all shards are ready.
    ready_timeout_s: float = 600

    def __post_init__(self) -> None:
        if self.shards < 2:
            raise ValueError("shards must be 2 or more; without Ray, plimsoll runs a load from this machine")
        if self.on_loss not in ("stop", "go-on"):
            raise ValueError(f"on_loss={self.on_loss!r}: write 'stop' or 'go-on'")
        if not 0 <= self.lost_at_most <= 1:
            raise ValueError(f"lost_at_most={self.lost_at_most!r}: write a part of the load, such as 0.01")


def run(profile: Profile, *, shards: int, **keywords: Any) -> RayRun:
    """Runs a profile as `shards` parts on the nodes of the Ray cluster, one on each where there are enough nodes.

    Further keywords are the keywords of `Options` and of `plimsoll.run`; a file is sent to the nodes, but the files
    that it names (traces, certificates) must already be there.

    A node that is lost before the start ends the run before the first request (`RunError`). One that is lost later is a
    `ShardLost` warning, the others finish, and the result is INVALID unless `lost_at_most` accepts it: see
    `RayRun.lost`. Ctrl-C ends the load on all nodes; `Interrupted` has the results so far. If the driver dies, Ray ends
    the actors, and these the load. If the result cannot be written, the nodes keep the folders of their shards, and the
    error has the command that collects them.
    """
    options, flags = _split(shards, keywords)
    order = _order(["run", "--yes"], profile, flags_of("run", flags), options)
    return _together(RayRun, order, options)


def versus(targets: Mapping[str, str], profile: Profile | None = None, *, shards: int, **keywords: Any) -> RayVersus:
    """Compares targets from the nodes of the Ray cluster; the keywords are those of `Options` and `plimsoll.versus`.

    Each block, a request to every target, is sent by one shard, so its node adds the same overhead to all of its
    times. The blocks of all shards are judged together, at `rate` per second and target in all.
    """
    options, flags = _split(shards, keywords)
    order = _order(["versus"], profile, flags_of("versus", {"targets": targets, **flags}), options)
    return _together(RayVersus, order, options)


def _split(shards: int, keywords: Mapping[str, Any]) -> tuple[Options, dict[str, Any]]:
    """The options among the keywords, and the flags."""
    names = {field.name for field in dataclasses.fields(Options)}
    options = {name: value for name, value in keywords.items() if name in names}
    return Options(shards, **options), {name: value for name, value in keywords.items() if name not in names}


def _together(kind: type[R], order: _Order, options: Options) -> R:
    """Runs the load on the shards, and merges their results."""
    with _Place(options.out, order) as place:
        cluster, interrupted, stored = _Cluster(order, options), False, False
        try:
            cluster.get_ready(options.ready_timeout_s)
            # Also for a driver that is killed, or whose head is lost.
            print(f"the nodes keep their shards until the result is written; {place.how_to_collect()}", file=sys.stderr)
            cluster.start()
            shows = options.on_progress is None and _progress.wanted(options.progress)
            with _progress.bar("ray", order.planned_s, shown=shows) as line:
                try:
                    cluster.follow(options.on_progress or line)
                except KeyboardInterrupt:
                    interrupted = True
                    cluster.interrupt()
            cluster.collect(place.folder)
            if not any(place.folder.iterdir()):
                words = "; ".join(f"shard {shard.index}/{order.count}: {shard.lost}" for shard in cluster.lost())
                raise RunError(f"nothing of the run could be collected: {words}")
            merged = _merge(kind, place.folder, order, options, place.out)
            merged.shards = cluster.shards
            place.store(merged)
            stored = True
        except BaseException as error:
            if not cluster.started:
                raise
            kept = f"{cluster.kept()}; {place.how_to_collect()}"
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(kept, None) from error
            if isinstance(error, Exception):
                raise RunError(f"{error}\n{kept}") from error
            # Exits without a message, because `ray job stop` ends a driver this way.
            print(kept, file=sys.stderr, flush=True)
            raise
        finally:
            cluster.end(stored)
    if interrupted:
        raise Interrupted(f"interrupted; the report of the time until then is in {merged.folder}", merged)
    return merged


def collect(launch: str, *, out: str | Path = "runs", **keywords: Any) -> RayRun:
    """Fetches the shards of a launch that its driver left on the nodes, and merges them; `lost_at_most` as for `run`.

    The folders stay on the nodes.
    """
    ray = _ray()
    folder = Path(out) / f"collected-{launch}"
    folder.mkdir(parents=True, exist_ok=True)
    scheduling = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    for node in [node["NodeID"] for node in ray.nodes() if node["Alive"]]:
        actor = ray.remote(_Folders).options(num_cpus=0, scheduling_strategy=scheduling(node, soft=False)).remote()
        for path in ray.get(actor.of_launch.remote(launch)):
            # Several nodes may share a disk.
            if not (folder / Path(path).name).is_dir():
                _fetch(ray, actor, path, folder)
    shards = sorted(path.name for path in folder.iterdir())
    if not shards:
        folder.rmdir()
        raise RunError(f"no node of the cluster has a shard of launch {launch}")
    order = _Order(count=int(shards[0].rpartition("-")[2]), launch=launch)
    kind = RayVersus if any(folder.glob("*/facts.json")) else RayRun
    return _merge(kind, folder, order, Options(order.count, **keywords), Path(out))


class _Place:
    """Destination of the result. Write access is checked before the load."""

    def __init__(self, out: str | Path, order: _Order) -> None:
        self.named, self.order = str(out), order
        self.bucket = self.named if "://" in self.named else None
        self.out = Path(tempfile.mkdtemp(prefix="plimsoll-")) if self.bucket else Path(out)
        self.folder = self.out / order.run_id

    def __enter__(self) -> _Place:
        if "runtime_resources" in self.out.resolve().parts:
            raise UsageError(f"{self.out} is in the job's package folder, which Ray removes: give another out")
        _claim(self.folder, self.order.needed_bytes)
        if self.bucket is not None:
            try:
                store, path = _bucket(self.bucket)
                with store.open_output_stream(f"{path}/.{self.order.launch}") as probe:
                    probe.write(b"plimsoll")
                store.delete_file(f"{path}/.{self.order.launch}")
            except OSError as error:
                raise UsageError(f"cannot write to {self.bucket} ({error}); nothing was sent") from error
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def store(self, merged: Run) -> None:
        """Copies the result to the bucket, if there is one."""
        if self.bucket is not None:
            store, path = _bucket(self.bucket)
            for folder in (self.folder, merged.folder):
                copy = importlib.import_module("pyarrow.fs").copy_files
                copy(str(folder), f"{path}/{folder.name}", destination_filesystem=store)

    def how_to_collect(self) -> str:
        out = self.out if self.bucket else self.named
        return f"to collect them: python -m plimsoll.ray collect {self.order.launch} --out {out}"


def _bucket(uri: str) -> tuple[Any, str]:
    store, path = importlib.import_module("pyarrow.fs").FileSystem.from_uri(uri)
    return store, path.rstrip("/")


def _claim(folder: Path, needed: int) -> None:
    """Creates the folder of the shards on a disk with this many free bytes."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(f"{folder} exists already: choose another run_id or out, or remove the folder") from error
    except OSError as error:
        raise UsageError(f"cannot create {folder} ({error}); nothing was sent: choose another out") from error
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(1 << 16))
    except OSError as error:
        folder.rmdir()
        raise UsageError(f"cannot write to {folder} ({error}); nothing was sent: choose another out") from error
    free = shutil.disk_usage(folder).free
    if free < needed:
        folder.rmdir()
        raise UsageError(
            f"{folder}: {free >> 20:,} MiB free, the result may take {needed >> 20:,} MiB; nothing was sent: "
            "choose another out, or rows=False"
        )


def _merge(kind: type[R], folder: Path, order: _Order, options: Options, out: Path) -> R:
    """Merges the collected shards, and returns once shards and result are on the disk."""
    merge = ["merge", str(folder), "--expect", str(order.count), "--launch", order.launch, "--out", str(out)]
    merge += ["--lost-at-most", str(options.lost_at_most)]
    switches = {
        "--no-html": not options.html,
        "--allow-invalid": options.allow_invalid,
        "--no-jsonl": not order.rows,
    }
    finished = _binary.call([*merge, *(flag for flag, given in switches.items() if given)])
    if finished.folder is None:
        raise RunError(finished.error)
    merged = kind(finished.folder, exit_code=finished.code, text=finished.stdout)
    for path in [folder, *folder.rglob("*"), merged.folder, *merged.folder.rglob("*")]:
        opened = os.open(path, os.O_RDONLY)
        os.fsync(opened)
        os.close(opened)
    return merged


@dataclass(frozen=True)
class _Order:
    """Settings shared by all shards."""

    count: int
    #: Tells the shards of this launch from those of any other.
    launch: str
    run_id: str = ""
    #: The command of the program, with the flags that a launcher needs.
    command: Sequence[str] = ()
    #: Its name, or its file's name; `None` for the command's own.
    profile: str | None = None
    text: str | None = None
    flags: Sequence[str] = ()
    rows: bool = True
    key: str | None = None
    timeout_s: float = 0
    binary: str | None = None
    #: Length of the load, and its highest rate, where they are known.
    planned_s: float | None = None
    planned_per_s: float = 0

    @property
    def needed_bytes(self) -> int:
        """Space that shards and merged result may take at the driver."""
        rows = ROW_BYTES * self.planned_per_s * (self.planned_s or 0) if self.rows else 0
        return int(2 * (SHARD_BYTES * self.count + rows))


def _order(command: Sequence[str], profile: Profile | None, flags: list[str], options: Options) -> _Order:
    name, text = profile_text(profile) if profile is not None else (None, None)
    planned_s, per_s = _planned(name, text, flags)
    rows = options.rows if options.rows is not None else per_s <= MANY_PER_S
    return _Order(
        count=options.shards,
        launch=secrets.token_hex(8),
        run_id=options.run_id or f"ray-{secrets.token_hex(6)}",
        command=command,
        profile=name,
        text=text,
        flags=[*flags, *rows_flags(rows)],
        rows=rows,
        key=options.key,
        timeout_s=options.ready_timeout_s,
        binary=os.environ.get("PLIMSOLL_BIN"),
        planned_s=planned_s,
        planned_per_s=per_s,
    )


def _planned(profile: str | None, text: str | None, flags: Sequence[str]) -> tuple[float | None, float]:
    """The length of a load and its highest rate; `None` and 0 where they are unknown."""
    given = dict(zip(flags, flags[1:]))
    if "--for" in given:
        return _progress.seconds(given["--for"]), float(given.get("--rate", 0)) * (1 + flags.count("--target"))
    if profile is None:
        return None, 0
    if text is None:
        return _progress.planned(profile, flags)
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
        file = Path(folder) / profile
        file.write_text(text, encoding="utf-8")
        return _progress.planned(str(file), flags)


class _Folders:
    """Folders of shards on a node: the body of an actor."""

    def of_launch(self, launch: str) -> list[str]:
        """Those that a launch left."""
        return [str(path) for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}{launch}-*/*/shard-*")]

    def pack(self, folder: str) -> int:
        """Packs a folder, and returns the length in bytes; 0 if the folder does not exist."""
        if not Path(folder).is_dir():
            return 0
        packed = _packed(folder)
        with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
            archive.add(folder, Path(folder).name)
        return packed.stat().st_size

    def piece(self, folder: str, offset: int) -> bytes:
        with _packed(folder).open("rb") as file:
            file.seek(offset)
            return file.read(PIECE)

    def unpacked(self, folder: str) -> None:
        _packed(folder).unlink(missing_ok=True)


def _packed(folder: str) -> Path:
    return Path(folder).parent / f"{Path(folder).name}.tar.gz"


class _Pieces(io.RawIOBase):
    """A packed folder of a node, read piece by piece: each travels once, and none is stored."""

    def __init__(self, ray: Any, actor: Any, folder: str, length: int) -> None:
        self.ray, self.actor, self.folder, self.left = ray, actor, folder, length
        self.offset, self.piece = 0, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.piece and self.left:
            got = self.ray.get(self.actor.piece.remote(self.folder, self.offset), timeout=600)
            self.piece, self.offset, self.left = memoryview(got), self.offset + len(got), self.left - len(got)
        count = min(len(buffer), len(self.piece))
        buffer[:count], self.piece = self.piece[:count], self.piece[count:]
        return count


def _fetch(ray: Any, actor: Any, path: str, folder: Path) -> None:
    """Unpacks a folder of a node into one of this machine."""
    length = ray.get(actor.pack.remote(path), timeout=600)
    if length:
        with tarfile.open(fileobj=_Pieces(ray, actor, path, length), mode="r|gz") as archive:
            archive.extractall(folder, filter="data")
    actor.unpacked.remote(path)


class _Process(_Folders):
    """The program on a node: the body of an actor. Every method but the last returns at once."""

    def __init__(self, index: int, order: _Order) -> None:
        self.index, self.order = index, order
        if order.binary and Path(order.binary).is_file():
            os.environ["PLIMSOLL_BIN"] = order.binary
        self.out = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{order.launch}-"))
        self.folder = self.out / order.run_id / f"shard-{index:05}-of-{order.count:05}"
        self.process: subprocess.Popen[bytes] | None = None
        self.interrupted = False

    def about(self) -> dict[str, str]:
        """Where it is, and of which version."""
        ray = importlib.import_module("ray")
        node = ray.get_runtime_context().get_node_id()
        version = _binary.call(["--version"]).stdout.strip()
        return {"host": socket.gethostname(), "node": node, "version": version, "folder": str(self.folder)}

    def clock(self) -> int:
        return time.time_ns()

    def launch(self) -> None:
        """Prepares the shard, which then waits for its start."""
        profile = self.order.profile
        if profile is not None and self.order.text is not None:
            path = self.out / profile
            path.write_text(self.order.text, encoding="utf-8")
            path.chmod(0o600)
            profile = str(path)
        place = f"{self.index}/{self.order.count}"
        arguments = [*self.order.command, *([profile] if profile is not None else []), *self.order.flags]
        arguments += ["--launch", self.order.launch]
        arguments += ["--run-id", self.order.run_id, "--shard", place, "--no-html", "--quiet", "--out", str(self.out)]
        arguments += ["--start-at", "ready", "--start-timeout", f"{self.order.timeout_s}s"]
        own = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_") or k == "PLIMSOLL_BIN"}
        key = {"PLIMSOLL_KEY": self.order.key} if self.order.key is not None else {}
        self.process = subprocess.Popen(
            [str(_binary.binary()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.out / "stderr").open("wb"),
            env={**own, **key},
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )

    def state(self) -> dict[str, Any]:
        """Whether it is ready, how far it is, and how it ended."""
        code = self.process.poll() if self.process else None
        said = (self.out / "stderr").read_text(encoding="utf-8", errors="replace") if code is not None else ""
        return {
            "ready": (self.folder / "ready.json").exists(),
            "code": code,
            "said": said,
            "progress": _json(self.folder / "progress.json"),
            "ended": _json(self.folder / "shard.json") if code is not None else None,
        }

    def start(self, unix_ns: int, offset_ns: int, uncertainty_ns: int) -> None:
        """Sets the start, by the clock of this node."""
        sign = {
            "schema": "plimsoll.start/1",
            "launch": self.order.launch,
            "unix_ns": unix_ns + offset_ns,
            "clock_offset_ns": offset_ns,
            "clock_uncertainty_ns": uncertainty_ns,
        }
        path = self.folder.parent / "start.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps(sign) + "\n", encoding="utf-8")
        new.rename(path)

    def interrupt(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.interrupted = True

    def end(self, keep: bool) -> None:
        """Ends the program, and removes its folder unless that is to be kept."""
        if self.process and keep:
            # It writes its files, which it could no longer do after a second interrupt or the end of this actor.
            if not self.interrupted:
                self.interrupt()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDING_S)
        if self.process:
            # One that is stopped would stay, whatever ends this actor.
            self.process.kill()
        if not keep:
            shutil.rmtree(self.out, ignore_errors=True)


def _end_with_parent() -> None:
    """Makes the kernel interrupt the program when the actor exits, because its load would continue otherwise.

    Ray blocks the signal in its workers, and their child processes would inherit that.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGINT)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


class _Cluster:
    """The shards of a run, as the driver sees them."""

    def __init__(self, order: _Order, options: Options) -> None:
        self.ray = _ray()
        self.order, self.options = order, options
        self.group: Any = None
        self.actors: list[Any] = []
        self.shards: list[Shard] = []
        self.progress: list[Any] = [None] * order.count
        self.over = [False] * order.count
        #: Shards whose actor is lost, and those whose folder is here.
        self.gone: set[int] = set()
        self.collected: set[int] = set()
        self.interrupted = False
        self.started = 0.0

    def lost(self) -> list[Shard]:
        return [shard for shard in self.shards if shard.lost is not None]

    # Before the start: whatever goes wrong ends the run, and nothing is sent.

    def get_ready(self, limit_s: float) -> None:
        """Places the shards and prepares them."""
        end = time.monotonic() + limit_s
        self._place()
        abouts = [self._ask(index, "about", end) for index in range(self.order.count)]
        own = _binary.call(["--version"]).stdout.strip()
        for index, about in enumerate(abouts):
            node = f"{about['host']} (node {about['node'][:8]})"
            if about["version"] != own:
                raise RunError(
                    f"shard {index} on {node} has {about['version']}, this driver {own}: install one version everywhere"
                )
            offset, uncertainty = self._compare_clocks(index, end)
            self.shards.append(Shard(index, node, offset, uncertainty, about["folder"]))
        for index in range(self.order.count):
            self._ask(index, "launch", end)
        waiting = set(range(self.order.count))
        while waiting:
            for index in sorted(waiting):
                state = self._ask(index, "state", end)
                if state["code"] is not None:
                    self._refuse(index, state)
                if state["ready"]:
                    waiting.discard(index)
            if time.monotonic() > end:
                names = ", ".join(f"{index}/{self.order.count}" for index in sorted(waiting))
                raise RunError(f"not ready within {limit_s:g} s: shard {names}; nothing was sent")
            if waiting:
                time.sleep(0.05)

    def _place(self) -> None:
        """Reserves a place for each shard: one on each node, if there are enough of them."""
        ray, count, options = self.ray, self.order.count, self.options
        wants = {"CPU": options.cpus, **(options.resources or {})}
        nodes = [node for node in ray.nodes() if node["Alive"]]
        fit = [node for node in nodes if all(node["Resources"].get(k, 0) >= v for k, v in wants.items())]
        strategy = "STRICT_SPREAD" if len(fit) >= count else "SPREAD"
        util = importlib.import_module("ray.util")
        self.group = util.placement_group([dict(wants)] * count, strategy=strategy)
        if not self.group.wait(options.room_timeout_s):
            util.remove_placement_group(self.group)
            have = ", ".join(f"{k} {v:g}" for k, v in sorted(ray.available_resources().items()) if k in wants)
            raise RunError(
                f"Ray has no room for {count} shards with {wants} each: {len(nodes)} nodes, {len(fit)} of them large "
                f"enough, free: {have or 'nothing'}; nothing was sent: use fewer shards, cpus=0.5, a larger cluster, or "
                "room_timeout_s=600 if an autoscaler starts nodes"
            )
        scheduling = importlib.import_module("ray.util.scheduling_strategies").PlacementGroupSchedulingStrategy
        actor = ray.remote(_Process)
        for index in range(count):
            where = scheduling(placement_group=self.group, placement_group_bundle_index=index)
            made = actor.options(
                num_cpus=options.cpus, resources=options.resources, scheduling_strategy=where, max_restarts=0
            ).remote(index, self.order)
            self.actors.append(made)

    def _compare_clocks(self, index: int, end: float) -> tuple[float, float]:
        """Offset of a node's clock from ours (positive: ahead), and its maximum error, in seconds."""
        best = (0.0, float("inf"))
        for _ in range(READINGS):
            before = time.time_ns()
            there = self._ask(index, "clock", end)
            after = time.time_ns()
            if (after - before) / 2e9 < best[1]:
                best = ((there - (before + after) / 2) / 1e9, (after - before) / 2e9)
        return best

    def _ask(self, index: int, method: str, end: float) -> Any:
        """Asks a shard before the start."""
        errors = self.ray.exceptions
        try:
            left = max(end - time.monotonic(), 0.1)
            return self.ray.get(getattr(self.actors[index], method).remote(), timeout=left)
        except errors.GetTimeoutError:
            why = "does not answer"
        except errors.RayActorError as error:
            why = f"was lost before the start ({_first_line(error)})"
        raise RunError(f"shard {index}/{self.order.count} {why}; nothing was sent")

    def _refuse(self, index: int, state: Mapping[str, Any]) -> None:
        said = str(state["said"])
        start = said.find("error: ")
        words = said[start + len("error: ") :].strip() if start >= 0 else said.strip()
        words = words or f"the program ended with exit code {state['code']}"
        kind = UsageError if state["code"] == _binary.USAGE else RunError
        raise kind(f"shard {index}/{self.order.count} on {self.shards[index].node}: {words}")

    def start(self) -> None:
        """Fixes the common start."""
        lead = LEAD_S + LEAD_OF_SHARD_S * self.order.count
        at = time.time_ns() + int(lead * 1e9)
        self.started = time.monotonic() + lead
        calls = [
            actor.start.remote(at, int(shard.clock_offset_s * 1e9), int(shard.clock_uncertainty_s * 1e9))
            for actor, shard in zip(self.actors, self.shards)
        ]
        # One that does not hear it is late, and says so.
        self.ray.wait(calls, num_returns=len(calls), timeout=LEAD_S)

    # After the start: reports lost shards, while the others continue.

    def follow(self, told: Callable[[str], None] | None, limit_s: float = float("inf")) -> None:
        """Watches the shards until all have ended or are lost, or the time is over."""
        end = time.monotonic() + limit_s
        heard = [time.monotonic()] * self.order.count
        asked: dict[int, Any] = {}
        while not all(self.over) and time.monotonic() < end:
            for index in range(self.order.count):
                if not self.over[index] and index not in asked:
                    asked[index] = self.actors[index].state.remote()
            done, _ = self.ray.wait(list(asked.values()), num_returns=len(asked), timeout=POLL_S)
            for index in [index for index, call in asked.items() if call in done]:
                if self._heard(index, asked.pop(index)):
                    heard[index] = time.monotonic()
            self._give_up_silent(heard, asked)
            if told is not None:
                told(self._line())
            if self.lost() and self.options.on_loss == "stop" and not self.interrupted:
                self._interrupt_all()
            time.sleep(POLL_S)

    def _heard(self, index: int, call: Any) -> bool:
        """Reads the state of a shard, and returns whether it changed: a stopped program has no news."""
        before = self.progress[index]
        try:
            state = self.ray.get(call)
        except self.ray.exceptions.RayError as error:
            self.gone.add(index)
            self._lose(index, f"was lost ({_first_line(error)})")
            return False
        self.progress[index] = state["progress"] or before
        if state["code"] is not None:
            self.over[index] = True
            how = (state["ended"] or {}).get("state", f"ended with code {state['code']} and without its last file")
            if how != "done" and not self.interrupted:
                self._lose(index, f"is incomplete ({how})")
        return bool(self.progress[index] != before)

    def _give_up_silent(self, heard: Sequence[float], asked: Mapping[int, Any]) -> None:
        """A shard without news may well go on: it is given up when its load and its files must be over."""
        ends = max((told["duration_s"] for told in self.progress if told), default=self.order.planned_s or 0.0)
        for index, last in enumerate(heard):
            silent = time.monotonic() - last
            patience = WRITING_S if _sent_all(self.progress[index]) else SILENCE_S
            if not self.over[index] and silent > patience and time.monotonic() > self.started + ends + SILENCE_S:
                # The files of a stopped or hanging program can still be fetched.
                self.gone.update({index} & asked.keys())
                self._lose(index, f"has not been heard of for {silent:.0f} s: its load may have gone on")

    def _lose(self, index: int, why: str) -> None:
        after = max(time.monotonic() - self.started, 0.0)
        known = "nothing is known of its load"
        if (told := self.progress[index]) is not None:
            whole = ", its whole load" if _sent_all(told) else ""
            known = (
                f"by its last report, at {told['elapsed_s']:.1f} s of {told['duration_s']:.0f} s, {told['completed']:,} "
                f"requests were completed and {told['in_flight']:,} in flight{whole}"
            )
        shard = self.shards[index]
        shard.lost = f"{why} {after:.1f} s after the start; {known}"
        self.over[index] = True
        warnings.warn(f"shard {index}/{self.order.count} on {shard.node}: {shard.lost}", ShardLost, stacklevel=6)

    def _line(self) -> str:
        told = [progress for progress in self.progress if progress]
        if not told:
            return f"{self.order.count} shards begin"
        running = self.over.count(False)
        lost = f", {len(self.lost())} lost" if self.lost() else ""
        going = [shard for shard, over in zip(self.progress, self.over) if shard and not over]
        left = max([shard["duration_s"] - shard["elapsed_s"] for shard in going], default=0)
        total = {name: sum(shard[name] for shard in told) for name in ("completed", "in_flight", "failed")}
        return (
            f"{running} of {self.order.count} shards{lost}, {max(left, 0):.0f} s left  {total['completed']:,} done  "
            f"{total['in_flight']:,} in flight  {total['failed']:,} failed"
        )

    def interrupt(self) -> None:
        """Ends the load everywhere, and waits for the reports, half a minute at most."""
        self._interrupt_all()
        self.follow(None, limit_s=SILENCE_S)

    def _interrupt_all(self) -> None:
        self.interrupted = True
        for actor in self.actors:
            actor.interrupt.remote()

    def collect(self, folder: Path) -> None:
        """Fetches the folders of all shards that can still give theirs."""
        for index, (shard, actor) in enumerate(zip(self.shards, self.actors)):
            if index not in self.gone:
                try:
                    _fetch(self.ray, actor, shard.folder, folder)
                    self.collected.add(index)
                except self.ray.exceptions.RayError as error:
                    why = f"was lost before its files were collected ({_first_line(error)}),"
                    self._lose(index, why)

    def kept(self) -> str:
        """Where the shards are, if the result could not be written."""
        places = [f"shard {shard.index}/{self.order.count} on {shard.node} in {shard.folder}" for shard in self.shards]
        return f"the result was not written; its shards are kept: {'; '.join(places)}"

    def end(self, stored: bool) -> None:
        """Ends the actors. A shard stays on its node if the load began, and it is not in a result that was written."""

        def ending() -> None:
            for index, actor in enumerate(self.actors):
                actor.end.remote(keep=bool(self.started) and not (stored and index in self.collected))
            done = [actor.__ray_terminate__.remote() for actor in self.actors]
            self.ray.wait(done, num_returns=len(done), timeout=2 * ENDING_S) if done else None
            if self.group is not None:
                importlib.import_module("ray.util").remove_placement_group(self.group)

        # Without its head, a cluster answers nothing.
        ends = threading.Thread(target=ending, daemon=True)
        ends.start()
        ends.join(3 * ENDING_S)


def _sent_all(told: Any) -> bool:
    """Whether a shard has sent its whole load, by its last report."""
    return told is not None and told["elapsed_s"] >= told["duration_s"] and not told["in_flight"]


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _ray() -> Any:
    """Ray, connected to the cluster of the environment, or of this machine."""
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise ImportError("plimsoll.ray needs Ray: `pip install 'plimsoll-load[ray]'`") from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    return ray


def _main(arguments: Sequence[str]) -> int:
    """`python -m plimsoll.ray`: prints the result of a run or of collected shards, and returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m plimsoll.ray", description="Further arguments are the program's.")
    parser.add_argument("command", choices=["run", "collect"])
    parser.add_argument("what", metavar="PROFILE or LAUNCH")
    parser.add_argument("--shards", type=int, default=0)
    parser.add_argument("--out", default="runs", help="a folder, or a place in a bucket such as s3://bucket/runs")
    parser.add_argument("--lost-at-most", type=float, default=0.0, help="a part of the load, such as 0.01")
    given, flags = parser.parse_known_args(arguments)
    if given.command == "collect":
        result = collect(given.what, out=given.out, lost_at_most=given.lost_at_most)
    else:
        key = os.environ.get("PLIMSOLL_KEY")
        options = Options(given.shards, key=key, out=given.out, lost_at_most=given.lost_at_most)
        result = _together(RayRun, _order(["run", "--yes"], given.what, flags, options), options)
    print(result)
    return _binary.PASS if result.passed else _binary.INVALID


if __name__ == "__main__":
    # Imported by its full name, so actors find the module.
    sys.exit(importlib.import_module("plimsoll.ray")._main(sys.argv[1:]))
