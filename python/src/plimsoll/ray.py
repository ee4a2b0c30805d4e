"""One load from the nodes of a Ray cluster: `plimsoll.ray.run(profile, shards=8)`; `versus` compares targets from there.

Each shard is an actor that runs the program on its node. The driver places them, compares their clocks with its own,
fixes one start when all are ready, shows their progress, and collects their folders: no disk is shared. What is sent
follows from profile, seed and shard alone, so nothing is handed out while the load goes on, and a driver that is slow
or gone changes nothing of what the others send.

On every node: `pip install 'plimsoll-load[ray]'`, for instance by `runtime_env={"pip": ["plimsoll-load[ray]"]}`.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
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

__all__ = ["RayRun", "RayVersus", "Shard", "ShardLost", "run", "versus"]

#: Between the readiness of all shards and the start.
LEAD_S = 1.0
#: Between two looks at the shards.
POLL_S = 0.5
#: A shard that answers nothing for so long is given up, once its load must be over.
SILENCE_S = 30.0
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
    """What became of a shard, as the driver saw it."""

    index: int
    #: Host name and id of its node.
    node: str
    #: What its clock is ahead of the driver's, and by how much that may be wrong, in seconds.
    clock_offset_s: float
    clock_uncertainty_s: float
    #: Its folder on its node, which is removed once the result is on the driver's disk.
    folder: str = ""
    #: Why it is missing, in words; `None` if its folder was collected.
    lost: str | None = None


class RayRun(Run):
    """The merged run, with `shards`: where each ran, and why some are missing."""

    shards: Sequence[Shard] = ()

    @property
    def lost(self) -> list[Shard]:
        """The shards that are missing."""
        return [shard for shard in self.shards if shard.lost is not None]


class RayVersus(RayRun, Versus):
    """The same of a comparison."""


R = TypeVar("R", bound=RayRun)


def run(
    profile: Profile,
    *,
    shards: int,
    key: str | None = None,
    run_id: str | None = None,
    out: str | Path = "runs",
    rows: bool = True,
    html: bool = True,
    allow_invalid: bool = False,
    progress: bool | None = None,
    on_progress: Callable[[str], None] | None = None,
    cpus: float = 1,
    resources: Mapping[str, float] | None = None,
    ready_timeout_s: float = 600,
    **flags: Any,
) -> RayRun:
    """Runs a profile as `shards` parts on the nodes of the Ray cluster, one on each where there are enough nodes.

    The profile and the further keywords are those of `plimsoll.run`; a file is sent to the nodes, but not what it
    names (traces, certificates): these must be there. `cpus` and `resources` are what Ray reserves for a shard: the
    program itself uses all cores of its node that it finds free. `on_progress` gets a line about every second.

    A node that is lost before the start ends the run before anything is sent (`RunError`). One that is lost later is
    told as a `ShardLost` warning, the others finish, and the result is INVALID: see `RayRun.lost`. Ctrl-C ends the
    load on all nodes; `Interrupted` has what was measured. If the driver dies, Ray ends the actors, and these the load.
    If the result cannot be written, the nodes keep the folders of their shards, and the error names them.
    """
    given = [*flags_of("run", flags), *rows_flags(rows)]
    place = _Place(shards, cpus, dict(resources or {}), ready_timeout_s)
    order = _order(["run", "--yes"], profile, given, place, run_id, key)
    return _together(RayRun, order, place, _Result(Path(out), rows, html, allow_invalid, progress, on_progress))


def versus(
    targets: Mapping[str, str],
    profile: Profile | None = None,
    *,
    shards: int,
    key: str | None = None,
    run_id: str | None = None,
    out: str | Path = "runs",
    rows: bool = True,
    html: bool = True,
    allow_invalid: bool = False,
    progress: bool | None = None,
    on_progress: Callable[[str], None] | None = None,
    cpus: float = 1,
    resources: Mapping[str, float] | None = None,
    ready_timeout_s: float = 600,
    **flags: Any,
) -> RayVersus:
    """Compares targets from the nodes of the Ray cluster; the keywords are those of `plimsoll.versus` and `run`.

    Each block, a request to every target, is sent by one shard, so that what its node adds is in all of its times
    alike. The blocks of all shards are judged together, at `rate` per second and target in all.
    """
    given = [*flags_of("versus", {"targets": targets, **flags}), *rows_flags(rows)]
    place = _Place(shards, cpus, dict(resources or {}), ready_timeout_s)
    order = _order(["versus"], profile, given, place, run_id, key)
    return _together(RayVersus, order, place, _Result(Path(out), rows, html, allow_invalid, progress, on_progress))


@dataclass(frozen=True)
class _Place:
    """What the cluster is asked for."""

    shards: int
    cpus: float
    resources: dict[str, float]
    #: The longest wait until all shards are ready.
    timeout_s: float


@dataclass(frozen=True)
class _Result:
    """Where the result goes, and what is shown meanwhile."""

    out: Path
    rows: bool
    html: bool
    allow_invalid: bool
    progress: bool | None
    on_progress: Callable[[str], None] | None


def _together(kind: type[R], order: _Order, place: _Place, result: _Result) -> R:
    """Has the shards carry their load out, and merges what they measured."""
    cluster, interrupted, stored = _Cluster(order, place.cpus, place.resources), False, False
    folder = _claim(result.out / order.run_id)
    try:
        cluster.get_ready(place.timeout_s)
        cluster.start()
        shows = result.on_progress is None and _progress.wanted(result.progress)
        with _progress.bar("ray", cluster.planned_s(), shown=shows) as line:
            try:
                cluster.follow(result.on_progress or line)
            except KeyboardInterrupt:
                interrupted = True
                cluster.interrupt()
        cluster.collect(folder)
        merged = _merge(kind, cluster, folder, result)
        stored = True
    except BaseException as error:
        if not cluster.started:
            raise
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(cluster.kept(), None) from error
        if isinstance(error, Exception):
            raise RunError(f"{error}\n{cluster.kept()}") from error
        # As `ray job stop` ends a driver: its exit shows no message.
        print(cluster.kept(), file=sys.stderr, flush=True)
        raise
    finally:
        cluster.end(stored)
        with contextlib.suppress(OSError):
            folder.rmdir()
    if interrupted:
        raise Interrupted(f"interrupted; the report of the time until then is in {merged.folder}", merged)
    return merged


def _claim(folder: Path) -> Path:
    """Creates the folder of the shards before the load: afterwards it would be too late to find that it cannot be."""
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
    return folder


def _merge(kind: type[R], cluster: _Cluster, folder: Path, result: _Result) -> R:
    """Merges the collected shards, and returns once shards and result are on the disk."""
    count = cluster.order.count
    for shard in cluster.lost():
        warnings.warn(f"shard {shard.index}/{count} on {shard.node}: {shard.lost}", ShardLost, stacklevel=4)
    if not any(folder.iterdir()):
        words = "; ".join(f"shard {shard.index}/{count}: {shard.lost}" for shard in cluster.lost())
        raise RunError(f"nothing of the run could be collected: {words}")
    merge = ["merge", str(folder), "--expect", str(count), "--launch", cluster.order.launch, "--out", str(result.out)]
    switches = {
        "--no-html": not result.html,
        "--allow-invalid": result.allow_invalid,
        "--no-jsonl": not result.rows,
    }
    finished = _binary.call([*merge, *(flag for flag, given in switches.items() if given)])
    if finished.folder is None:
        raise RunError(finished.error)
    merged = kind(finished.folder, exit_code=finished.code, text=finished.stdout)
    merged.shards = cluster.shards
    for path in [folder, *folder.rglob("*"), merged.folder, *merged.folder.rglob("*")]:
        opened = os.open(path, os.O_RDONLY)
        os.fsync(opened)
        os.close(opened)
    return merged


@dataclass(frozen=True)
class _Order:
    """What every shard has in common."""

    #: The command of the program, with the flags that a launcher needs.
    command: Sequence[str]
    count: int
    run_id: str
    #: Tells the shards of this launch from those of any other.
    launch: str
    #: Its name, or that of its file; `None` for the command's own.
    profile: str | None
    text: str | None
    flags: Sequence[str]
    key: str | None
    timeout_s: float
    binary: str | None


def _order(
    command: Sequence[str],
    profile: Profile | None,
    flags: Sequence[str],
    place: _Place,
    run_id: str | None,
    key: str | None,
) -> _Order:
    if place.shards < 2:
        raise ValueError(f"shards must be 2 or more; plimsoll.{command[0]}() runs a load from this machine")
    name, text = profile_text(profile) if profile is not None else (None, None)
    run_id = run_id or f"ray-{secrets.token_hex(6)}"
    binary = os.environ.get("PLIMSOLL_BIN")
    launch = secrets.token_hex(8)
    return _Order(command, place.shards, run_id, launch, name, text, flags, key, place.timeout_s, binary)


class _Process:
    """The program on a node: the body of an actor. Every method but the last returns at once."""

    def __init__(self, index: int, order: _Order) -> None:
        self.index, self.order = index, order
        if order.binary and Path(order.binary).is_file():
            os.environ["PLIMSOLL_BIN"] = order.binary
        self.out = Path(tempfile.mkdtemp(prefix="plimsoll-ray-"))
        self.folder = self.out / order.run_id / f"shard-{index:05}-of-{order.count:05}"
        self.process: subprocess.Popen[bytes] | None = None
        self.interrupted = False
        self.packed: Path | None = None

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
        progress = _json(self.folder / "progress.json")
        return {"ready": (self.folder / "ready.json").exists(), "code": code, "said": said, "progress": progress}

    def start(self, unix_ns: int, offset_ns: int, uncertainty_ns: int) -> None:
        """Says when to begin, by the clock of this node."""
        sign = {
            "schema": "plimsoll.start/1",
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

    def pack(self) -> int:
        """Packs the folder, and says how long that is; 0 if there is none."""
        if not self.folder.is_dir():
            return 0
        self.packed = self.out / "packed.tar.gz"
        with tarfile.open(self.packed, "w:gz", compresslevel=1) as archive:
            archive.add(self.folder, self.folder.name)
        return self.packed.stat().st_size

    def piece(self, offset: int) -> bytes:
        if self.packed is None:
            return b""
        with self.packed.open("rb") as file:
            file.seek(offset)
            return file.read(PIECE)

    def end(self, keep: bool) -> None:
        """Ends the program, and removes its folder unless that is to be kept."""
        if self.process and keep:
            # It writes its files, which it could no longer do after a second interrupt or the end of this actor.
            if not self.interrupted:
                self.interrupt()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDING_S)
        elif self.process:
            self.process.kill()
        if not keep:
            shutil.rmtree(self.out, ignore_errors=True)


def _end_with_parent() -> None:
    """Has the kernel interrupt the program when the actor is gone: nobody would end its load.

    Ray blocks the signal in its workers, and what they start would inherit that.
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

    def __init__(self, order: _Order, cpus: float, resources: dict[str, float]) -> None:
        self.ray = _ray()
        self.order, self.cpus, self.resources = order, cpus, resources
        self.group: Any = None
        self.actors: list[Any] = []
        self.shards: list[Shard] = []
        self.progress: list[Any] = [None] * order.count
        self.over = [False] * order.count
        self.started = 0.0

    def lost(self) -> list[Shard]:
        return [shard for shard in self.shards if shard.lost is not None]

    # Before the start: whatever goes wrong ends the run, and nothing is sent.

    def get_ready(self, limit_s: float) -> None:
        """Places the shards and prepares them."""
        end = time.monotonic() + limit_s
        self._place(limit_s)
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

    def _place(self, limit_s: float) -> None:
        """Reserves a place for each shard: one on each node, if there are enough of them."""
        ray, count = self.ray, self.order.count
        wants = {"CPU": self.cpus, **self.resources}
        nodes = [node for node in ray.nodes() if node["Alive"]]
        fit = [node for node in nodes if all(node["Resources"].get(k, 0) >= v for k, v in wants.items())]
        strategy = "STRICT_SPREAD" if len(fit) >= count else "SPREAD"
        util = importlib.import_module("ray.util")
        self.group = util.placement_group([dict(wants)] * count, strategy=strategy)
        if not self.group.wait(min(limit_s, 600)):
            have = ", ".join(f"{k} {v:g}" for k, v in sorted(ray.available_resources().items()) if k in wants)
            raise RunError(
                f"Ray has no room for {count} shards with {wants} each (free: {have or 'nothing'}); "
                "nothing was sent: use fewer shards, cpus=0.5, or a larger cluster"
            )
        scheduling = importlib.import_module("ray.util.scheduling_strategies").PlacementGroupSchedulingStrategy
        actor = ray.remote(_Process)
        for index in range(count):
            where = scheduling(placement_group=self.group, placement_group_bundle_index=index)
            made = actor.options(
                num_cpus=self.cpus, resources=self.resources, scheduling_strategy=where, max_restarts=0
            ).remote(index, self.order)
            self.actors.append(made)

    def _compare_clocks(self, index: int, end: float) -> tuple[float, float]:
        """What a node's clock is ahead of ours, and by how much that may be wrong."""
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
        at = time.time_ns() + int(LEAD_S * 1e9)
        self.started = time.monotonic() + LEAD_S
        calls = [
            actor.start.remote(at, int(shard.clock_offset_s * 1e9), int(shard.clock_uncertainty_s * 1e9))
            for actor, shard in zip(self.actors, self.shards)
        ]
        # One that does not hear it is late, and says so.
        self.ray.wait(calls, num_returns=len(calls), timeout=LEAD_S)

    # After the start: what is lost is told, and the others go on.

    def planned_s(self) -> float | None:
        path, flags = self.order.profile, self.order.flags
        if "--for" in flags:
            return _progress.seconds(flags[flags.index("--for") + 1])
        if path is None:
            return None
        if self.order.text is None:
            return _progress.planned_s(path, flags)
        with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
            file = Path(folder) / path
            file.write_text(self.order.text, encoding="utf-8")
            return _progress.planned_s(str(file), flags)

    def follow(self, told: Callable[[str], None] | None, limit_s: float = float("inf")) -> None:
        """Watches the shards until all have ended or are lost, or for so long."""
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
            self._give_up_silent(heard)
            if told is not None:
                told(self._line())
            time.sleep(POLL_S)

    def _heard(self, index: int, call: Any) -> bool:
        try:
            state = self.ray.get(call)
        except self.ray.exceptions.RayError as error:
            self._lose(index, f"was lost ({_first_line(error)})")
            return False
        self.progress[index] = state["progress"] or self.progress[index]
        self.over[index] = state["code"] is not None
        return True

    def _give_up_silent(self, heard: Sequence[float]) -> None:
        """A shard that only does not answer may well go on: it is given up when its load must be over."""
        ends = max((told["duration_s"] for told in self.progress if told), default=0.0)
        for index, last in enumerate(heard):
            silent = time.monotonic() - last
            if not self.over[index] and silent > SILENCE_S and time.monotonic() > self.started + ends + SILENCE_S:
                self._lose(index, f"has not answered for {silent:.0f} s: control was lost, its load may have gone on")

    def _lose(self, index: int, why: str) -> None:
        after = max(time.monotonic() - self.started, 0.0)
        until = self.progress[index]
        known = f", last heard of {until['elapsed_s']:.0f} s after the start" if until else ""
        self.shards[index].lost = f"{why} {after:.1f} s after the start{known}; the load goes on without its part"
        self.over[index] = True

    def _line(self) -> str:
        told = [progress for progress in self.progress if progress]
        if not told:
            return f"{self.order.count} shards begin"
        running = self.over.count(False)
        lost = f", {len(self.lost())} lost" if self.lost() else ""
        left = max(max(shard["duration_s"] - shard["elapsed_s"] for shard in told), 0)
        total = {name: sum(shard[name] for shard in told) for name in ("completed", "in_flight", "failed")}
        return (
            f"{running} of {self.order.count} shards{lost}, {left:.0f} s left  {total['completed']:,} done  "
            f"{total['in_flight']:,} in flight  {total['failed']:,} failed"
        )

    def interrupt(self) -> None:
        """Ends the load everywhere, and waits for the reports, half a minute at most."""
        for actor in self.actors:
            actor.interrupt.remote()
        self.follow(None, limit_s=SILENCE_S)

    def collect(self, folder: Path) -> None:
        """Fetches the folders of all shards that can still give theirs."""
        for shard, actor in zip(self.shards, self.actors):
            if shard.lost is None:
                try:
                    self._fetch(actor, folder)
                except self.ray.exceptions.RayError as error:
                    why = f"was lost before its files were collected ({_first_line(error)})"
                    shard.lost = f"{why}; they may be in {shard.folder} of its node"

    def _fetch(self, actor: Any, folder: Path) -> None:
        length = self.ray.get(actor.pack.remote(), timeout=600)
        with tempfile.TemporaryFile(dir=folder) as spooled:
            while spooled.tell() < length:
                spooled.write(self.ray.get(actor.piece.remote(spooled.tell()), timeout=600))
            spooled.seek(0)
            if length:
                with tarfile.open(fileobj=spooled, mode="r:gz") as archive:
                    archive.extractall(folder, filter="data")

    def kept(self) -> str:
        """Where the shards are, if the result could not be written."""
        places = [f"shard {shard.index}/{self.order.count} on {shard.node} in {shard.folder}" for shard in self.shards]
        return f"the result was not written; its shards are kept: {'; '.join(places)}"

    def end(self, stored: bool) -> None:
        """Ends the actors. A shard stays on its node if the load began, and it is not in a result that was written."""
        for index, actor in enumerate(self.actors):
            actor.end.remote(keep=bool(self.started) and not (stored and self.shards[index].lost is None))
        util = importlib.import_module("ray.util")
        done = [actor.__ray_terminate__.remote() for actor in self.actors]
        self.ray.wait(done, num_returns=len(done), timeout=2 * ENDING_S) if done else None
        if self.group is not None:
            util.remove_placement_group(self.group)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _ray() -> Any:
    """Ray, connected to its cluster: that of the environment, or of this machine."""
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise ImportError("plimsoll.ray needs Ray: `pip install 'plimsoll-load[ray]'`") from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    return ray
